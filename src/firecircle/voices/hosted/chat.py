"""Chat completions: the call, its answer, and the JSON schema that a reply is asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import to_json

from firecircle.shapes import writable
from firecircle.voices.control_tokens import as_plain_text
from firecircle.voices.hosted.wires import WIRES, address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from firecircle.circle.voice import Message, Turn
    from firecircle.names import Effort, WireName
    from firecircle.voices.hosted.providers import Provider
    from firecircle.voices.hosted.wires.format import Wire

SPOKEN = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching {}",
    "format": "as {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "{} if nothing else",
}
"""Keywords that move into the description, and their wording."""
UNSAYABLE = ("uniqueItems", "minProperties", "maxProperties", "patternProperties", "examples", "$schema")
"""Keywords that are dropped: our own schemas do not use them."""
NAMED_SCHEMAS = ("properties", "$defs", "definitions")
"""Keywords with schemas by name. A property may have the same name as a keyword."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with closed objects, and with its ranges in words."""
    low, high = schema.get("minimum"), schema.get("maximum")
    is_range = low is not None and high is not None
    spoken = [f"from {low} to {high}"] if is_range else []
    strict: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword not in SPOKEN:
            if keyword not in UNSAYABLE:
                strict[keyword] = _convert(keyword, value)
        elif not (is_range and keyword in ("minimum", "maximum")):
            spoken.append(SPOKEN[keyword].format(value))
    if spoken:
        words = "; ".join(spoken)
        strict["description"] = f"{strict['description']} ({words})" if "description" in strict else words
    if "properties" in strict:
        strict |= {"required": [*strict["properties"]], "additionalProperties": False}
    return strict


def _convert(keyword: str, value: Any) -> Any:
    if keyword in NAMED_SCHEMAS and isinstance(value, Mapping):
        return {name: strict_schema(inner) for name, inner in value.items()}
    if isinstance(value, Mapping) and keyword in ("items", "not"):
        return strict_schema(value)
    if keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [strict_schema(inner) for inner in value]
    return value


_strict_schemas: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
MOST_SCHEMAS = 32


def strict_schema_once(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Cached by schema: the circle has a few and sends them with every question."""
    original, strict = _strict_schemas.get(id(schema), (None, {}))
    if original is not schema:
        if len(_strict_schemas) >= MOST_SCHEMAS:
            _strict_schemas.clear()
        strict = strict_schema(schema)
        _strict_schemas[id(schema)] = schema, strict
    return strict


def keywords_in(schema: Mapping[str, Any]) -> frozenset[str]:
    """Every optional keyword of a schema."""
    keywords = set(schema) - {"type", "items", *NAMED_SCHEMAS}
    for name in NAMED_SCHEMAS:
        for inner in schema.get(name, {}).values():
            keywords |= keywords_in(inner)
    if isinstance(schema.get("items"), Mapping):
        keywords |= keywords_in(schema["items"])
    return frozenset(keywords)


def without_keywords(schema: Mapping[str, Any], lacking: Collection[str]) -> dict[str, Any]:
    """The schema without some keywords, at any depth."""
    lesser: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in lacking:
            continue
        if keyword in NAMED_SCHEMAS:
            lesser[keyword] = {name: without_keywords(inner, lacking) for name, inner in value.items()}
        elif keyword == "items" and isinstance(value, Mapping):
            lesser[keyword] = without_keywords(value, lacking)
        else:
            lesser[keyword] = value
    return lesser


# The probability that a model's verdict word is `violation`, from log-probabilities

CANDIDATES = 20
"""Requested token alternatives: the most that OpenAI gives."""
LEAST_SHARE = 0.1
"""The least common probability of the three words for their ratio to mean anything."""

_VERDICT = re.compile(r'(?<!\\)"verdict"\s*:\s*"')


def violation_probability(choice: Mapping[str, Any]) -> float | None:
    """The probability of `violation` in a JSON answer, with `unsure` counting half; None if unknown."""
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        return None
    spelled = [str(token.get("token") or "") for token in tokens]
    beginnings = [*_VERDICT.finditer("".join(spelled))]
    if not beginnings:
        return None
    word_at = beginnings[-1].end()
    ends = [*accumulate(map(len, spelled))]
    place = next((place for place, end in enumerate(ends) if end > word_at), None)
    if place is None:
        return None
    before_word = spelled[place][: word_at - (ends[place] - len(spelled[place]))]
    shares = {"violation": 0.0, "no_violation": 0.0, "unsure": 0.0}
    for token, probability in _candidates(tokens[place]):
        part = token.removeprefix(before_word).rstrip('",} \n')
        if token.startswith(before_word) and part:
            for word in shares:
                if word.startswith(part):
                    shares[word] += probability
    together = sum(shares.values())
    if together < LEAST_SHARE:
        return None
    return (shares["violation"] + shares["unsure"] / 2) / together


def _candidates(token: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The alternatives of a token, and the token itself if it is not among them."""
    likeliest = token.get("top_logprobs")
    others = [other for other in likeliest if isinstance(other, dict)] if isinstance(likeliest, list) else []
    listed = {str(other.get("token")): other for other in (token, *others)}
    for text, candidate in listed.items():
        logprob = candidate.get("logprob")
        if isinstance(logprob, int | float) and logprob <= 0:
            yield text, math.exp(logprob)


LimitField = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class Quirks:
    """How one model's request differs from the usual one."""

    omitted: frozenset[str] = frozenset()
    """Fields that it rejects."""
    limit_field: LimitField = "max_tokens"
    """Its name for the token limit: OpenAI's reasoning models only accept the other one."""
    most_tokens: int | None = None
    """The highest limit it accepts."""
    temperature: float | None = None
    """The only temperature it accepts."""
    schema_omitted: frozenset[str] = frozenset()
    """Schema keywords that it rejects; `strict` means strict mode."""
    no_system_role: bool = False
    """Whether the system message goes in front of the user's."""
    wire: WireName | None = None
    """Its format, if it is not its provider's."""

    def __or__(self, other: Quirks) -> Quirks:
        """Combine known and newly found differences."""
        usual = Quirks()
        return Quirks(
            omitted=self.omitted | other.omitted,
            limit_field=other.limit_field if other.limit_field != usual.limit_field else self.limit_field,
            most_tokens=other.most_tokens or self.most_tokens,
            temperature=self.temperature if other.temperature is None else other.temperature,
            schema_omitted=self.schema_omitted | other.schema_omitted,
            no_system_role=self.no_system_role or other.no_system_role,
            wire=other.wire or self.wire,
        )

    def in_words(self) -> tuple[str, ...]:
        """The differences for display, one per entry."""
        words = [f"without {name}" for name in sorted(self.omitted)]
        if self.limit_field not in self.omitted and self.limit_field != "max_tokens":
            words.append(f"limit sent as {self.limit_field}")
        if self.most_tokens is not None:
            words.append(f"at most {self.most_tokens} tokens")
        if self.temperature is not None:
            words.append(f"temperature {self.temperature:g}")
        if self.schema_omitted:
            words.append(f"schema without {', '.join(sorted(self.schema_omitted))}")
        if self.no_system_role:
            words.append("no system role")
        if self.wire is not None:
            words.append(f"asked in the format {self.wire}")
        return tuple(words)


NO_QUIRKS = Quirks()
_known: dict[tuple[str, str], Quirks] = {}
"""By address and model."""


def known_quirks(provider: Provider, name: str) -> Quirks:
    """What this process has found out about a model at an address."""
    return _known.get((provider.base_url, name), NO_QUIRKS)


def remember(provider: Provider, name: str, found: Quirks) -> None:
    """Add newly found differences of a model."""
    _known[provider.base_url, name] = known_quirks(provider, name) | found


def forget_quirks() -> None:
    """Forget all models, as in a new process."""
    _known.clear()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A turn as a request to one model."""

    turn: Turn
    name: str
    provider: Provider
    quirks: Quirks = field(default_factory=Quirks)
    changed: frozenset[str] = frozenset()
    """What complaints have changed already."""
    by_word: bool = False
    """Whether to ask for the probability of the verdict word."""

    @property
    def sends_schema(self) -> bool:
        """Whether the request includes the answer's schema."""
        possible = self.turn.reply_schema is not None and self.provider.structured_output == "auto"
        return possible and "response_format" not in self.quirks.omitted

    @property
    def asks_for_logprobs(self) -> bool:
        """Whether to ask for log-probabilities: the answer has a verdict whose probability is needed."""
        return self.by_word and "verdict" in (self.turn.reply_schema or {}).get("properties", {})

    @property
    def effort(self) -> Effort | None:
        """The requested reasoning effort; None to leave it out."""
        asked = self.turn.effort != "default" and "reasoning_effort" not in self.quirks.omitted
        return self.turn.effort if asked else None

    @property
    def marks_cache(self) -> bool:
        """Whether the endpoint needs cache marks, and further rounds make caching worthwhile."""
        told = self.wire.name == "messages" or (
            self.provider.name == "openrouter" and self.name.lstrip("~").startswith("anthropic/")
        )
        return told and self.turn.opens_again and "cache_control" not in self.quirks.omitted

    @property
    def wire(self) -> Wire:
        """The wire format of the request."""
        return WIRES[self.quirks.wire or self.provider.wire]

    @property
    def url(self) -> str:
        """The request's address, with the provider's query."""
        return self.provider.auth.with_query(address_of(self.wire, self.provider.base_url, self.name))

    def with_quirks(self, found: Quirks, changed: frozenset[str] = frozenset()) -> ChatRequest:
        """The same question with these differences."""
        return replace(self, quirks=self.quirks | found, changed=self.changed | changed)

    def fields(self) -> dict[str, Any]:
        """The request, field by field."""
        messages = _messages(self.turn.messages, self._spell, fold_system=self.quirks.no_system_role)
        if self.marks_cache:
            messages[-1] = self._with_mark(messages[-1])
        return {"model": self.name, "messages": messages, **self._settings()}

    def _with_mark(self, message: dict[str, Any]) -> dict[str, Any]:
        """The last message in two parts: the opening that all questions share is marked for the cache."""
        content, question = message["content"], self._spell(writable(self.turn.question))
        before = content[: -len(question)] if question and content.endswith(question) else ""
        if not before.strip():
            return message
        opening = {"type": "text", "text": before, "cache_control": {"type": "ephemeral"}}
        return {**message, "content": [opening, {"type": "text", "text": question}]}

    @property
    def _spell(self) -> Callable[[str], str]:
        return as_plain_text if self.provider.reads_control_tokens else str

    def _settings(self) -> dict[str, Any]:
        turn, quirks = self.turn, self.quirks
        fields: dict[str, Any] = {
            quirks.limit_field: min(turn.max_tokens, quirks.most_tokens or turn.max_tokens),
        }
        if turn.temperature is not None:
            only = quirks.temperature
            fields["temperature"] = turn.temperature if only is None else only
        if turn.seed is not None:
            fields[self.provider.seed_field] = turn.seed
        if self.effort is not None:
            fields["reasoning_effort"] = self.effort
        if self.sends_schema:
            fields["response_format"] = {"type": "json_schema", "json_schema": self._schema()}
        logprobs = {"logprobs": True, "top_logprobs": CANDIDATES}
        if self.asks_for_logprobs and not quirks.omitted & logprobs.keys():
            fields |= logprobs
        return {name: value for name, value in fields.items() if name not in quirks.omitted}

    def body(self) -> bytes:
        """The request in its wire format, ready to send."""
        return to_json(self.wire.spelled(self.fields()), fallback=dict)

    def _schema(self) -> dict[str, Any]:
        """The answer's schema in commonly accepted keywords, without those this endpoint rejects."""
        assert self.turn.reply_schema is not None
        schema = strict_schema_once(self.turn.reply_schema)
        lacking = self.quirks.schema_omitted
        if not lacking:
            return {"name": "evaluation", "strict": True, "schema": schema}
        named: dict[str, Any] = {"name": "evaluation", "schema": without_keywords(schema, lacking)}
        return named if "strict" in lacking else {**named, "strict": True}


def _messages(
    messages: Sequence[Message], spelled: Callable[[str], str], *, fold_system: bool
) -> list[dict[str, Any]]:
    written = [{"role": message.role, "content": spelled(writable(message.content))} for message in messages]
    if not fold_system:
        return written
    preface = [message["content"] for message in written if message["role"] == "system"]
    others = [message for message in written if message["role"] != "system"]
    if not others:
        return [{"role": "user", "content": "\n\n".join(preface)}]
    others[0] = {**others[0], "content": "\n\n".join((*preface, others[0]["content"]))}
    return others
