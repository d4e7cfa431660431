"""The rules that compute one verdict from all evaluations, the single list of rules.

A new rule is one entry of `RULES` and its test: results, the viewer and the report of a run show it. This
module imports nothing heavy, because the command line reads its options from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal

from firecircle.thresholds import exceeds, just_above, reaches

if TYPE_CHECKING:
    from firecircle.evaluation import NeutrosophicEvaluation

AlarmRule = Literal["maximum", "calibrated"]
"""The rules that can raise the alarm, as values of `alarm_rule`: `decides_as` of the rules."""
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Words:
    """The active voices' evaluations of one prompt, the only input of a rule."""

    evaluations: Sequence[NeutrosophicEvaluation]
    """Of all rounds, by round."""
    last: Sequence[float]
    """The last F of every voice; never empty."""
    threshold: float
    calibrated: float | None = None
    """The probability of manipulation, if a calibration of these voices is known."""

    @classmethod
    def of(
        cls, evaluations: Sequence[NeutrosophicEvaluation], threshold: float, calibrated: float | None = None
    ) -> Words:
        """From evaluations of one or several rounds."""
        last = {said.model: said.falsehood for said in evaluations}
        return cls(evaluations, tuple(last.values()), threshold, calibrated)


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """One way to compute a number, and from it a verdict, from the evaluations."""

    name: str
    meaning: str
    phrase: str
    """The name in a sentence that lists rules."""
    value: Callable[[Words], float | None]
    decides_as: AlarmRule | None = None
    """Its name as `alarm_rule`, if it can raise the alarm."""
    is_share: bool = False
    """Whether the value is a share of voices, which must be above one half."""

    def alarms(self, value: float, threshold: float) -> bool:
        """Whether this value is an alarm."""
        return exceeds(value, HALF) if self.is_share else reaches(value, threshold)

    def threshold(self, threshold: float) -> float:
        """The value to reach, for comparing whole columns."""
        return just_above(HALF) if self.is_share else threshold


def _highest(evaluations: Sequence[NeutrosophicEvaluation]) -> float | None:
    return max((said.falsehood for said in evaluations), default=None)


RULES = (
    VerdictRule(
        "max_all",
        "highest F of any active voice in any round",
        "the highest F of any round",
        lambda words: _highest(words.evaluations),
        decides_as="maximum",
    ),
    VerdictRule(
        "round1_max",
        "highest F of round 1: the verdict without discussion",
        "round 1 alone",
        lambda words: _highest([said for said in words.evaluations if said.round_number == 1]),
    ),
    VerdictRule(
        "final_max", "highest F among last words", "the highest last word", lambda words: max(words.last)
    ),
    VerdictRule(
        "final_mean", "mean F of last words", "the mean of the last words", lambda words: fmean(words.last)
    ),
    VerdictRule("final_median", "median F of last words", "their median", lambda words: median(words.last)),
    VerdictRule(
        "majority",
        "share of voices whose last F reaches the threshold; alarm above one half",
        "a majority vote",
        lambda words: fmean(reaches(falsehood, words.threshold) for falsehood in words.last),
        is_share=True,
    ),
    VerdictRule(
        "max_stated",
        "highest F of any active voice in any round, without guesses",
        "the highest without guesses",
        lambda words: _highest([said for said in words.evaluations if not said.guessed]),
    ),
    VerdictRule(
        "calibrated",
        "probability of manipulation by the calibration of these voices",
        "the calibrated probability",
        lambda words: words.calibrated,
        decides_as="calibrated",
    ),
)
"""In the order of tables."""
BY_NAME = {rule.name: rule for rule in RULES}
DECIDING: dict[AlarmRule, VerdictRule] = {rule.decides_as: rule for rule in RULES if rule.decides_as}


def values_by_rule(words: Words) -> dict[str, float]:
    """The value of each rule, by name; rules without a value are missing."""
    values = {rule.name: rule.value(words) for rule in RULES}
    return {name: value for name, value in values.items() if value is not None}
