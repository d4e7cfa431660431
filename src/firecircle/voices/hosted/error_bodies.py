"""What an endpoint says is wrong, in any format, and which kinds of trouble it means."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firecircle.voices.hosted.wires.format import dicts

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD_REQUEST, NO_KEY, UNPAID, FORBIDDEN, UNKNOWN = 400, 401, 402, 403, 404
TIMED_OUT, TOO_LARGE, TOO_MANY, FLEX_FULL, SERVER_FAULT = 408, 413, 429, 498, 500
REFUSAL = re.compile(
    r"content[ _]?filter|content[ _](management[ _])?polic(y|ies)|content exists risk|responsible ?ai|"
    r"data[ _]?inspection|invalid[ _]prompt|prompt injection|"
    r"(violat\w*|breach\w*) .{0,60}(polic(y|ies)|guidelines|terms)|usage guidelines|"
    r"usage polic(y|ies)|safety[ _](check|system|filter|setting|polic|violation|block|reason|guideline)|"
    r"(blocked|rejected|refused|stopped) .{0,40}(safety|moderation|guardrail|polic(y|ies))|"
    r"\bflagged\b|moderation|guardrail|considered high risk|inappropriate (content|input|prompt)|"
    r"(unsafe|harmful|prohibited|disallowed|illegal|sensitive)[ _](or \w+ )?"
    r"(content|prompt|material|words?|input|output|information)|new_sensitive|^refusal$|"
    r"敏感|不安全|违规|违法|涉及安全",
    re.IGNORECASE,
)
"""How filters and moderators say that they, not the model, refuse a question."""
NO_REFUSAL = (NO_KEY, UNPAID, UNKNOWN, TIMED_OUT, TOO_LARGE, TOO_MANY, FLEX_FULL)
REFUSAL_CODES = frozenset({"1301", "refusal", "safety", "sensitive", "content_safety"})
TOO_LONG = re.compile(
    r"context[ _-]?(length|window|size)|"
    r"(prompt|input|message|request|conversation)s? (is |are )?too (long|large)|"
    r"too[ _]many[ _](prompt[ _]|input[ _])?tokens|too (long|large) for|length of (all |the )?messages|"
    r"reduce (the|your) (length|message|prompt|input)|exceeds? .{0,60}(context|input (length|tokens))|"
    r"^too long\b|string_above_max_length|input[ _]length|token[ _]limit[ _]exceeded",
    re.IGNORECASE,
)
"""The question is too long; the same question will be too long next time."""
UNKNOWN_MODEL = re.compile(
    r"model[ _-]?(id )?[`'\"]?[^\s`'\",]{0,120}?[`'\"]?[ _]"
    r"(does[ _]not[ _]exist|not[ _]exist|not[ _]found|is not found|"
    r"has been (deprecated|retired|removed|decommissioned|shut down)|"
    r"is (deprecated|retired|no longer (available|supported)|not available|unavailable|decommissioned))|"
    r"not a valid model|model.{0,200}\bretired|(unknown|invalid|no such|unrecognized)[ _]model|"
    r"model_not_found|model_decommissioned|deploymentnotfound|no endpoints found for|^model: \S+ \|",
    re.IGNORECASE,
)
RESPONSES_ONLY = re.compile(
    r"only (supported|available) (in|with|via|through) (the )?[`'\"/]*(v1/)?responses", re.IGNORECASE
)
"""How OpenAI says that a model supports only the Responses format."""
NO_CHAT_MODEL = re.compile(r"not a chat model", re.IGNORECASE)
NO_WAITING_CURES = re.compile(
    r"insufficient[ _](quota|balance|credit|fund)|billing[ _](hard|not)|out of credits?|"
    r"(per|a|each|every)[ _-](day|month|week)\b|perday|permonth|(?<![a-z])(daily|monthly|weekly)\b|"
    r"request too large|tokens must be reduced|quota .{0,20}limit: 0\b|余额不足|欠费|arrear",
    re.IGNORECASE,
)
"""Limits that do not pass within minutes."""
LIMIT_AND_REQUEST = re.compile(r"limit:? (\d[\d,]{0,15}), requested:? (\d[\d,]{0,15})", re.IGNORECASE)
OF_EVERYBODY = re.compile(
    r"\b(your |this )?(account|organi[sz]ation|project|workspace|team|api key|ip address|client)\b|"
    r"all models|free-models|global",
    re.IGNORECASE,
)
OF_A_MODEL = re.compile(
    r"\b(for|this|per|the|to|of) (the )?model\b|\bmodel: |permodel|rate[ -]limited upstream|"
    r"\bfor [`'\"]?[a-z][\w./:-]*\d[\w./:-]*[`'\"]? (in|on)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Complaint:
    """The content of an endpoint's error."""

    status: int
    words: str
    codes: tuple[str, ...] = ()
    """Every code, type and reason in it, in lower case."""
    fields: tuple[str, ...] = ()
    """The request fields it names as data, as paths such as `messages[0].role`."""
    delays: tuple[str, ...] = ()
    """Waits that it gives as data."""
    flagged: bool = False
    """Whether it gives reasons of moderation."""

    @property
    def text(self) -> str:
        """Words and codes together, for matching."""
        return " | ".join((self.words, *self.codes))

    @property
    def is_refusal(self) -> bool:
        """Whether a filter refused, not the key check or the request parser."""
        if self.status in NO_REFUSAL or self.status >= SERVER_FAULT:
            return False
        return (
            self.flagged
            or any(code in REFUSAL_CODES for code in self.codes)
            or any(REFUSAL.search(text) for text in (self.words, *self.codes))
        )

    @property
    def is_too_long(self) -> bool:
        """Whether the question exceeds the model's context."""
        fits_badly = self.status in (BAD_REQUEST, TOO_LARGE, 422, SERVER_FAULT)
        return fits_badly and TOO_LONG.search(self.text) is not None

    @property
    def is_of_unknown_model(self) -> bool:
        """Whether the provider does not have the model."""
        if self.status == FORBIDDEN:
            return "model_not_found" in self.codes
        if self.wants_responses or NO_CHAT_MODEL.search(self.words):
            return False
        return self.status in (BAD_REQUEST, UNKNOWN, 410, 422) and UNKNOWN_MODEL.search(self.text) is not None

    @property
    def wants_responses(self) -> bool:
        """Whether the model exists but supports only the Responses format."""
        return self.status in (BAD_REQUEST, UNKNOWN) and RESPONSES_ONLY.search(self.words) is not None

    @property
    def waiting_helps(self) -> bool:
        """Whether a 429 passes: a spent quota or a request larger than the limit does not."""
        if NO_WAITING_CURES.search(self.text):
            return False
        numbers = LIMIT_AND_REQUEST.search(self.words)
        return numbers is None or _number(numbers[2]) <= _number(numbers[1])

    @property
    def is_of_everybody(self) -> bool:
        """Whether a limit applies to more than this model."""
        return OF_EVERYBODY.search(self.text) is not None and OF_A_MODEL.search(self.text) is None


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))


MAX_MESSAGE_CHARS = 300
MAX_MESSAGE_SCANNED = 20_000
"""An answer that should be short may have megabytes."""
DEEPEST = 4
STATUS_WORDS = (
    (re.compile(r"rate[ _-]?limit|too many requests|resource_exhausted", re.IGNORECASE), TOO_MANY),
    (re.compile(r"insufficient (balance|credit|fund)|payment required", re.IGNORECASE), UNPAID),
    (re.compile(r"invalid api key|authenticat|unauthori[sz]ed", re.IGNORECASE), NO_KEY),
    (
        re.compile(
            r"overload|unavailable|capacity|(server|api)[ _]error|internal[ _]error|timed? ?out",
            re.IGNORECASE,
        ),
        503,
    ),
)
"""The meaning of an error in a 200 answer that gives no status."""


def complaint_in(body: Any, status: int) -> Complaint:
    """The words, codes and named fields of an error body in any format."""
    parts = list(_parts(body))
    words: list[str] = []
    for part in parts:
        sentence = _words(part)
        if sentence and not any(sentence in earlier for earlier in words):
            words.append(sentence)
    codes = tuple(code for part in parts for code in _codes(part))
    flagged = any(_reasons(part) for part in parts)
    words += [f"reasons: {reasons}" for part in parts if (reasons := _reasons(part))]
    if not words and isinstance(body, dict | list) and body:
        words = [json.dumps(body)[:MAX_MESSAGE_SCANNED]]
    message = ": ".join(words)
    return Complaint(
        _status(status, message, codes),
        message,
        codes,
        tuple(path for part in parts for path in _paths(part)),
        tuple(delay for part in parts for delay in _delays(part)),
        flagged,
    )


def _parts(body: Any, depth: int = 0) -> Iterator[dict[str, Any] | str]:
    """The error objects and plain texts in a body, outermost first."""
    if isinstance(body, str):
        text = as_text(body)
        if depth and text.startswith(("{", "[")):
            try:
                body = json.loads(text)
            except (ValueError, RecursionError):
                yield text
                return
        else:
            yield text
            return
    if depth > DEEPEST:
        return
    if isinstance(body, list):
        for entry in body[:3]:
            yield from _parts(entry, depth + 1)
        return
    if not isinstance(body, dict):
        return
    inner = body.get("error")
    if isinstance(inner, dict | list) and inner:
        yield from _parts(inner, depth + 1)
    elif isinstance(inner, str) and inner.strip():
        yield {**body, "message": body.get("message") or inner, "error": None}
    elif isinstance(body.get("base_resp"), dict):
        yield from _parts(body["base_resp"], depth + 1)
    elif isinstance(body.get("message"), dict):
        yield {**body, "message": None}
        yield from _parts(body["message"], depth + 1)
    elif isinstance(body.get("errors"), list) and body["errors"]:
        yield body
        yield from _parts(body["errors"], depth + 1)
    else:
        yield body
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        yield from _parts(metadata["raw"], depth + 1)
    if isinstance(body.get("innererror"), dict):
        yield {**body["innererror"], "message": None}


MESSAGES = ("message", "detail", "msg", "status_msg", "error_description", "title", "Message", "error_msg")


def _words(part: dict[str, Any] | str) -> str:
    if isinstance(part, str):
        return part.strip()
    for name in MESSAGES:
        value = part.get(name)
        if isinstance(value, str) and value.strip():
            return as_text(value.strip())
        if isinstance(value, list | dict) and value:
            return _join_entries(value)
    return ""


def _join_entries(value: list[Any] | dict[str, Any]) -> str:
    """The format of FastAPI and others: a list of places and what is wrong there."""
    entries = value if isinstance(value, list) else [value]
    complaints = []
    for entry in entries[:5]:
        if isinstance(entry, dict) and isinstance(entry.get("msg") or entry.get("message"), str):
            steps = entry.get("loc")
            place = ".".join(str(step) for step in steps if step != "body") if isinstance(steps, list) else ""
            words = entry.get("msg") or entry["message"]
            complaints.append(f"{place}: {words}" if place else words)
        else:
            complaints.append(entry if isinstance(entry, str) else json.dumps(entry))
    return "; ".join(complaints)


def _codes(part: dict[str, Any] | str) -> Iterator[str]:
    if isinstance(part, str):
        return
    for name in (
        "code",
        "type",
        "status",
        "reason",
        "error_code",
        "status_code",
        "error_type",
        "limit_source",
    ):
        for holder in (part, part.get("metadata")):
            value = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                yield str(value).lower()
    for detail in dicts(part.get("details")):
        for violation in dicts(detail.get("violations")):
            yield from (str(violation[key]).lower() for key in ("quotaId", "quotaMetric") if key in violation)


def _reasons(part: dict[str, Any] | str) -> str:
    metadata = part.get("metadata") if isinstance(part, dict) else None
    reasons = metadata.get("reasons") if isinstance(metadata, dict) else None
    return ", ".join(map(str, reasons)) if isinstance(reasons, list) else ""


def _paths(part: dict[str, Any] | str) -> Iterator[str]:
    if isinstance(part, str):
        return
    if isinstance(part.get("param"), str) and part["param"]:
        yield part["param"]
    for listed in (part.get("detail"), part.get("details"), part.get("message"), part.get("errors")):
        for entry in listed if isinstance(listed, list) else ():
            place = entry.get("loc") if isinstance(entry, dict) else None
            if isinstance(place, list):
                yield ".".join(str(step) for step in place if step != "body")
    for detail in dicts(part.get("details")):
        for violation in dicts(detail.get("fieldViolations")):
            if violation.get("field"):
                yield str(violation["field"])


def _delays(part: dict[str, Any] | str) -> Iterator[str]:
    if isinstance(part, str):
        return
    for detail in dicts(part.get("details")):
        if "retryDelay" in detail:
            yield str(detail["retryDelay"])
    metadata = part.get("metadata")
    for holder in (part, metadata if isinstance(metadata, dict) else {}):
        for name in ("retry_after", "retry_after_seconds"):
            if isinstance(holder.get(name), str | int | float):
                yield str(holder[name])
    headers = metadata.get("headers") if isinstance(metadata, dict) else None
    if isinstance(headers, dict):
        yield from (str(value) for name, value in headers.items() if str(name).lower().endswith("reset"))


def _status(status: int, words: str, codes: tuple[str, ...]) -> int:
    """The HTTP status; if it is a success, the status that the error itself names or describes."""
    if not 200 <= status < 300:
        return status
    for code in codes:
        if code.isdecimal() and len(code) == 3 and code[0] in "45":
            return int(code)
    described = " ".join((words, *codes))
    return next((number for pattern, number in STATUS_WORDS if pattern.search(described)), 0)


TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
UNSEEN = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
IS_PAGE = re.compile(r"\s*(<!doctype html|<html|<head|<body|<title|<h1|<\?xml)", re.IGNORECASE)


def is_page(text: str) -> bool:
    """Whether a text is a web page."""
    return IS_PAGE.match(text) is not None


def as_text(text: str) -> str:
    """The text; for a web page its title, otherwise its first words."""
    text = text[:MAX_MESSAGE_SCANNED]
    if not is_page(text):
        return text
    import html

    named = TITLE.search(text) or HEADING.search(text)
    seen = UNSEEN.sub(" ", named[1] if named else text)
    return " ".join(html.unescape(seen).split())[:MAX_MESSAGE_CHARS]
