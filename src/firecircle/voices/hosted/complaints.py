"""What an endpoint says is wrong, and which kinds of trouble it means."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
