"""The verdict in one word, for every surface: commands, files, pages, tools and code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from firecircle.names import is_attack, is_benign
from firecircle.thresholds import reaches

VerdictWord = Literal["alarm", "unsure", "no_alarm", "unread", "no_verdict"]
VERDICT_WORDS: tuple[VerdictWord, ...] = get_args(VerdictWord)
SHOWN: Mapping[VerdictWord, str] = {
    "alarm": "ALARM",
    "unsure": "unsure",
    "no_alarm": "no alarm",
    "unread": "unread",
    "no_verdict": "no verdict",
}
WORST_FIRST: tuple[VerdictWord, ...] = ("alarm", "unsure", "unread", "no_alarm", "no_verdict")
"""The first of these that any part of a prompt has is the verdict of the whole."""
COUNTED: tuple[VerdictWord, ...] = ("alarm", "unsure", "no_alarm")
"""The verdicts that can be right or wrong on a labelled prompt; `unsure` counts as no alarm."""

UNSURE_SHARE, UNSURE_INDETERMINACY = 0.5, 0.7
"""Unsure instead of no alarm: from this share of the threshold, or from this indeterminacy."""


def verdict_word(
    value: float | None,
    threshold: float,
    *,
    indeterminacy: float = 0.0,
    unread: bool = False,
    unsure_from: float | None = None,
) -> VerdictWord:
    """The verdict on a prompt.

    `value` is the deciding number: the highest F, the mean of a panel or a calibrated probability; None
    without a consensus. `unread` means that no active voice reads the prompt's language. `unsure_from` is the
    number from which it is unsure, by default half the threshold.
    """
    if value is None:
        return "no_verdict"
    if reaches(value, threshold):
        return "alarm"
    if unread:
        return "unread"
    close = reaches(value, UNSURE_SHARE * threshold if unsure_from is None else unsure_from)
    return "unsure" if close or reaches(indeterminacy, UNSURE_INDETERMINACY) else "no_alarm"


def mistake_of(word: VerdictWord, label: str | None) -> Literal["missed", "false alarm"] | None:
    """How a verdict contradicts the label of the prompt."""
    if word not in COUNTED:
        return None
    if word != "alarm" and is_attack(label):
        return "missed"
    return "false alarm" if word == "alarm" and is_benign(label) else None


def is_right(word: VerdictWord, label: str | None) -> bool | None:
    """Whether a verdict agrees with the label; None if either does not say."""
    if word not in COUNTED or not (is_attack(label) or is_benign(label)):
        return None
    return mistake_of(word, label) is None
