"""What can come of reading a reply: a reading, a refusal, or nothing readable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from firecircle.evaluation import PatternNote, Verdict

LONGEST_EXCERPT = 80


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of one reply, and how they were found there."""

    truth: float
    indeterminacy: float
    falsehood: float
    read_as: Literal["json", "stated", "logprobs", "keyword"]
    verdict: Verdict | None
    reasoning: str
    imputed: tuple[str, ...] = ()
    """Which of truth and indeterminacy the voice did not state."""
    patterns_observed: tuple[PatternNote, ...] = ()
    consensus_patterns: tuple[PatternNote, ...] = ()
    speaks_for: str | None = None
    thinking: str | None = None
    """What stood in a `<think>` block, closed or not; it is no part of the answer."""


class Refused(Exception):  # noqa: N818 - an outcome of reading, not a mistake
    """The reply declines to evaluate; the message quotes how."""


class Unreadable(Exception):  # noqa: N818 - an outcome of reading, not a mistake
    """The reply holds no numbers and no keyword; the message says in one line what was missing."""


def excerpt(text: str) -> str:
    """The beginning of a text on one line, fit for a message: no control characters, not long."""
    line = " ".join(text[: 8 * LONGEST_EXCERPT].split())
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return repr(shown if len(shown) <= LONGEST_EXCERPT else shown[: LONGEST_EXCERPT - 1] + "…")
