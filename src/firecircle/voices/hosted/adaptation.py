"""Change a request that an endpoint rejected.

Error bodies name the field at fault in many ways: as data (`param`, a path, a field violation), in words, or
in another provider's words passed on by a router. Only a field that was sent can be changed, and only the one
that is named: a complaint about the temperature never drops the schema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from firecircle.voices.hosted.chat import Quirks, keywords_in, strict_schema
from firecircle.voices.hosted.error_bodies import BAD_REQUEST, SERVER_FAULT, Complaint

if TYPE_CHECKING:
    from firecircle.voices.hosted.chat import ChatRequest, LimitField


TURNED_DOWN = (BAD_REQUEST, 422, SERVER_FAULT, 501)
"""Statuses for a request with an unsupported field. 404 is about the model."""
FIXED = ("model", "messages", "input", "contents")
LIMITS: tuple[LimitField, ...] = ("max_tokens", "max_completion_tokens")
LIMIT = frozenset({"limit"})

SCHEMA_WORDS = re.compile(
    r"response[ _]?formats?|json[ _]?schema|json[ _]?object|output_config|structured[ _]?outputs?|"
    r"response_?schema|generation_?config|guided[ _]?(json|decoding|grammar)|grammar|additionalproperties|"
    r"\bschema\b|\bstrict\b|text\.format|json mode",
    re.IGNORECASE,
)
EFFORT_WORDS = re.compile(
    r"reasoning[._ ]?effort|(output_config\.)?effort\b|thinking[ _]?(config|level|budget)?\b|reasoning$",
    re.IGNORECASE,
)
OF_GOOGLE = re.compile(r"^generation_?config\.?", re.IGNORECASE)
"""The path of most fields at Google."""
OF_TOOLS = re.compile(r"\btools?\b|tool_|function call", re.IGNORECASE)
"""Tools have schemas too, and are never sent."""
NO_SYSTEM = re.compile(
    r"messages?\[\d+\]\.role|roles must alternate|role .{0,30}system|"
    r"(system|developer) (role|instructions?|messages?|prompts?)",
    re.IGNORECASE,
)
TURNS_DOWN = re.compile(
    r"not (support|allow|enabl|permit)|unsupported|only|invalid|must|unknown|unexpected|should|expect",
    re.IGNORECASE,
)
ONLY_VALUE = re.compile(
    r"(?:only|must be|should be|set to)(?: the)?(?: exactly| equal to| default| value| set to)* ?"
    r"[(\[`'\"]?(\d{1,2}(?:\.\d{1,4})?)[)\]`'\"]?(?! ?(?:and|to|or|-|,)\b)(?! ?[,-])",
    re.IGNORECASE,
)
RANGE = re.compile(r"between|range|less than|greater than|at most|at least|>=|<=|≤|≥|\[\s*\d", re.IGNORECASE)
LEFT_OF_CONTEXT = re.compile(
    r"\(\s*\d+ > (\d{1,9}) - (\d{1,9})\s*\)|must be <= (\d{1,9})\. Given: (\d{1,9}) "
)
"""How vLLM and TGI report their context size and the length of the question."""
UNKNOWN_NAME = re.compile(r"unknown name \\?[\"'](\w+)", re.IGNORECASE)
"""How Google names every unknown field."""
A_SENTENCE = re.compile(r"(?<=[.;])\s|\n|\bsupported (?:parameters|fields|values)\b", re.IGNORECASE)
FEWEST_USEFUL_TOKENS = 64
OPAQUE = re.compile(
    r"(bad|invalid|malformed) request( error)?|provider returned error|upstream error|invalid_argument|"
    r"request contains an invalid argument|unprocessable (entity|content)|validation error|"
    r"invalid (input|argument|payload)|(http )?4(00|22)|error",
    re.IGNORECASE,
)
"""Words that do not say what is wrong."""
FAILED_AT_JSON = "json_validate_failed"


class Change(NamedTuple):
    """A change to the request, and whether it applies to every request to this model."""

    quirks: Quirks
    names: frozenset[str]
    """What it changes; a call never changes the same thing twice."""
    lasting: bool = True
    """Whether the endpoint asked for it. A guess is remembered only after it has worked."""
    this_time_only: bool = False
    """Whether it applies to this question only, not to the model."""


def change_for(request: ChatRequest, complaint: Complaint) -> Change | None:
    """The change that the complaint asks for; None if there is none, or none that is new."""
    if complaint.status not in TURNED_DOWN and not complaint.wants_responses:
        return None
    if complaint.wants_responses and request.wire.name == "chat":
        return Change(Quirks(wire="responses"), frozenset({"wire"}))
    change = _change_of_fields(request, complaint)
    if change is None and not complaint.is_too_long and not complaint.is_of_unknown_model:
        change = _guess(request, complaint)
    if change is None or change.names <= request.changed:
        return None
    changed = request.with_quirks(change.quirks)
    return change if changed.fields() != request.fields() else None


def _change_of_fields(request: ChatRequest, complaint: Complaint) -> Change | None:
    sent = request.fields()
    names = _fields_in(sent, complaint)
    limit = next((name for name in LIMITS if name in names), None)
    renamed = limit == "max_tokens" and re.search(r"max_completion_tokens\W+instead", complaint.words)
    if limit is not None and not renamed and (lower := _lower_limit(sent[limit], complaint)):
        return lower
    if complaint.is_too_long or complaint.is_of_unknown_model:
        return None
    if not names:
        folds = NO_SYSTEM.search(complaint.text) and TURNS_DOWN.search(complaint.text)
        return Change(Quirks(no_system_role=True), frozenset({"messages"})) if folds else None
    quirks, changed = Quirks(), set()
    for name in names:
        change = _omit(request, name, complaint)
        quirks |= change
        changed.add("schema" if change.schema_omitted else "limit" if name in LIMITS else name)
    return Change(quirks, frozenset(changed), this_time_only=FAILED_AT_JSON in complaint.codes)


def _fields_in(sent: dict[str, Any], complaint: Complaint) -> list[str]:
    """The request fields in a complaint: named as data, otherwise in words."""
    candidates = [name for name in sent if name not in FIXED]
    paths = (*complaint.fields, *UNKNOWN_NAME.findall(complaint.words))
    if as_data := [name for name in candidates if any(_is_path_to(name, path) for path in paths)]:
        return as_data
    if any(path.startswith(FIXED) for path in complaint.fields):
        return []
    # The first sentence that names fields names those at fault; later ones may list what is allowed.
    for sentence in A_SENTENCE.split(complaint.words):
        if in_words := [name for name in candidates if _name_pattern(name).search(sentence)]:
            return in_words
    of_schema = SCHEMA_WORDS.search(complaint.text) and not OF_TOOLS.search(complaint.text)
    if "response_format" in candidates and (of_schema or FAILED_AT_JSON in complaint.codes):
        return ["response_format"]
    return []


def _is_path_to(name: str, path: str) -> bool:
    path = OF_GOOGLE.sub("", path) or path
    if name == "reasoning_effort":
        return EFFORT_WORDS.match(path) is not None
    top = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name == "response_format" and SCHEMA_WORDS.match(path):
        return True
    return _name_pattern(name).fullmatch(top) is not None


def _name_pattern(name: str) -> re.Pattern[str]:
    """A field's name with underscores, as one word, or in several; the token limit has several names."""
    if name == "reasoning_effort":
        return EFFORT_WORDS
    spelling = "max[ _]?(output|new)?[ _]?tokens" if name == "max_tokens" else name.replace("_", "[ _]?")
    return re.compile(rf"(?<![a-z0-9_]){spelling}(?![a-z0-9_])", re.IGNORECASE)


def _omit(request: ChatRequest, name: str, complaint: Complaint) -> Quirks:
    if name in LIMITS:
        if name == "max_tokens":
            return Quirks(limit_field="max_completion_tokens")
        return Quirks(omitted=frozenset({name}))
    if name == "temperature":
        only = ONLY_VALUE.search(complaint.words)
        if only and not RANGE.search(complaint.words):
            return Quirks(temperature=float(only[1]))
    if name == "response_format" and FAILED_AT_JSON not in complaint.codes:
        return _simpler_schema(request, complaint)
    return Quirks(omitted=frozenset({name}))


def _simpler_schema(request: ChatRequest, complaint: Complaint) -> Quirks:
    """The schema without the named keywords, or no schema at all."""
    schema = request.turn.reply_schema
    keywords = {"strict", *keywords_in(strict_schema(schema))} if schema is not None else {"strict"}
    named = frozenset(
        keyword
        for keyword in keywords - request.quirks.schema_omitted
        if re.search(
            rf"(?<![a-z]){keyword}(?![a-z])", " ".join((complaint.words, *complaint.fields)), re.IGNORECASE
        )
    )
    if not named or "required" in named or "description" in named:
        return Quirks(omitted=frozenset({"response_format"}))
    return Quirks(schema_omitted=named | {"strict"})


def _lower_limit(sent: int, complaint: Complaint) -> Change | None:
    """The highest limit that the complaint allows, for the model or for a question this long."""
    if left := LEFT_OF_CONTEXT.search(complaint.words):
        room = int(left[1] or left[3]) - int(left[2] or left[4])
        fits = FEWEST_USEFUL_TOKENS <= room < sent
        return Change(Quirks(most_tokens=room), LIMIT, this_time_only=True) if fits else None
    numbers = [
        int(digits.replace(",", ""))
        for digits in re.findall(r"(?<![\w.])\d[\d,]*(?![\w.]*\w)", complaint.words)
    ]
    possible = [number for number in numbers if FEWEST_USEFUL_TOKENS <= number < sent]
    if not possible:
        return None
    least = 1 if "exclusive" in complaint.words else 0
    return Change(Quirks(most_tokens=max(possible) - least), LIMIT)


def _guess(request: ChatRequest, complaint: Complaint) -> Change | None:
    """If the complaint says nothing, drop the schema, the most unusual part of the request."""
    if complaint.status >= SERVER_FAULT or not request.sends_schema:
        return None
    says_nothing = all(
        OPAQUE.fullmatch(part.strip(" .")) for part in re.split(r"[:|]\s", complaint.words) if part
    )
    omitted = frozenset({"response_format"})
    return Change(Quirks(omitted=omitted), omitted, lasting=False) if says_nothing else None
