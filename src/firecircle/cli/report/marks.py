"""The words, marks and bars that stand for a voice's answer, wherever it is shown."""

from __future__ import annotations

from firecircle.circle.result import RoundKind
from firecircle.errors import FailureKind
from firecircle.evaluation import NeutrosophicEvaluation

ALARM_MARK, CHAIR_MARK, RESERVE_MARK, LOST_MARK = "!", "◆", "+", "✗"

MEANINGS = {
    ALARM_MARK: "at or above the threshold",
    CHAIR_MARK: "empty chair",
    "↺": "repeats its last answer",
    "⇄": "polarity corrected",
    "≈": "keyword guess",
    RESERVE_MARK: "reserve",
}
ROUND_WORDS: dict[RoundKind, str] = {
    "baseline": "each alone",
    "discussion": "talking",
    "synthesis": "closing words",
}
FAILURE_WORDS: dict[FailureKind, str] = {
    "timeout": "timeout",
    "rate_limited": "rate limit",
    "http_error": "http error",
    "connection": "connection",
    "refused": "refused",
    "unparseable": "unreadable",
    "over_budget": "budget",
    "raised": "error",
}


def marks_of(said: NeutrosophicEvaluation, *, threshold: float, is_chair: bool) -> str:
    """Everything notable about an answer, one character each; `MEANINGS` explains them."""
    return "".join(
        mark
        for mark, applies in (
            (ALARM_MARK, said.falsehood >= threshold),
            (CHAIR_MARK, is_chair),
            ("↺", said.read_as == "carried"),
            ("⇄", said.polarity == "corrected"),
            ("≈", said.guessed),
        )
        if applies
    )


def notes_of(said: NeutrosophicEvaluation) -> list[str]:
    """What a reader must know before trusting the numbers of an answer, in words."""
    notes = []
    if said.read_as == "carried":
        notes.append("carried over from the round before, the reply could not be read")
    if said.read_as == "logprobs":
        notes.append("falsehood is the probability of the verdict word")
    if said.guessed:
        notes.append("guessed from a keyword, no numbers were stated")
    if said.polarity == "corrected":
        notes.append("polarity corrected: word and numbers contradicted each other and the word won")
    if said.polarity == "clarified":
        notes.append("asked again because word and numbers contradicted each other")
    if said.imputed:
        notes.append(f"{' and '.join(said.imputed)} not stated, imputed")
    return notes


def bar(share: float, width: int) -> str:
    """A bar of the given width, filled to the share: any share shows, and only a whole one fills it."""
    filled = min(width, max(int(share * width + 1e-9), 1 if share > 0 else 0))
    return "█" * filled + "░" * (width - filled)


def style_of(falsehood: float, threshold: float) -> str:
    """A colour for a falsehood; the alarm mark says the same without colour."""
    if falsehood >= threshold:
        return "bold red"
    return "yellow" if falsehood >= threshold / 2 else "green"
