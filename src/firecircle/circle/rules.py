"""The rules that compute one verdict from all evaluations, the single list of rules.

A new rule is one entry of `RULES` and its test: results, the viewer and the report of a run show it. This
module imports nothing heavy, because the command line reads its options from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from firecircle.shapes import Moment, Shape, Text, Unit
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


SUREST = 0.99
"""No evaluation counts as more certain than this, so that none decides alone."""
FEWEST_HEARD = 0.5
"""The least share of the weight that the heard voices must have; below it the maximum decides."""
MOST_ROUNDS, MOST_VOICES = 4, 10

Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
Weight = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e6)]
Spread = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e6)]


class VoiceWeights(Shape):
    """The weights of one voice's evaluations by round, and its usual evaluations."""

    weights: tuple[Weight, ...]
    """For the log-odds of its F in each round."""
    means: tuple[Finite, ...]
    spreads: tuple[Spread, ...]
    """Mean and standard deviation of these log-odds in the training circles."""


class TriedRule(Shape):
    """The performance of one rule on the labelled circles."""

    auc: Unit
    recall_at_1_percent: Unit
    """The share of attacks found with 1% false alarms."""
    recall_at_5_percent: Unit
    recall: Unit
    """At its alarm threshold."""
    false_alarm_rate: Unit
    calibration_error: Unit
    """The mean distance of the value from the observed share of attacks over tenths (ECE)."""


class Fit(Shape):
    """The origin of a calibration, and its performance on circles outside its training set."""

    id: Text
    fitted_at: Moment
    version: Text
    origin: Text
    """The labelled circles, in a few words."""
    run_id: Text | None = None
    attacks: int = Field(ge=0)
    benign: int = Field(ge=0)
    folds: Text
    """How circles were separated from the weights that judged them."""
    ridge: Finite
    """The strength of the penalty on the weights."""
    threshold: Unit
    calibrated: TriedRule
    maximum: TriedRule
    auc_gain: tuple[Finite, Finite, Finite]
    """Calibrated minus maximum, with the interval of a paired bootstrap: value, low, high."""
    thresholds: dict[Text, Unit] = Field(default_factory=dict)
    """The lowest alarm threshold with at most `1%` and `5%` false alarms on these circles."""


class VerdictCalibration(Shape):
    """Weights for one set of voices."""

    voices: dict[Text, VoiceWeights] = Field(min_length=1, max_length=MOST_VOICES)
    rounds: int = Field(ge=1, le=MOST_ROUNDS)
    """The rounds it uses; a circle must allow as many."""
    offset: Finite
    fit: Fit

    @model_validator(mode="after")
    def _one_weight_a_round(self) -> VerdictCalibration:
        for name, voice in self.voices.items():
            if not len(voice.weights) == len(voice.means) == len(voice.spreads) == self.rounds:
                raise ValueError(
                    f"{name} has not one weight, mean and spread for each of {self.rounds} rounds"
                )
        return self

    def fits(self, models: Sequence[str], max_rounds: int) -> bool:
        """Whether it is for circles with these voices and at least as many rounds."""
        return frozenset(models) == frozenset(self.voices) and max_rounds >= self.rounds

    def heard_share(self, heard: Sequence[str]) -> float:
        """The share of the weight that these voices have."""
        shares = {
            name: sum(w * s for w, s in zip(voice.weights, voice.spreads, strict=True))
            for name, voice in self.voices.items()
        }
        whole = sum(shares.values())
        return sum(share for name, share in shares.items() if name in heard) / whole if whole else 0.0

    def probability(self, said: Mapping[str, Sequence[float | None]]) -> float | None:
        """The probability of manipulation from each voice's F by round, None where it did not speak.

        In a round without an evaluation, a voice's earlier one counts. A missing voice counts as if it agreed
        with the others, each relative to its usual evaluations. None if no voice was heard.
        """
        heard = {
            name: standing
            for name in self.voices
            if (standing := words_by_round(said.get(name, ()), self.rounds)) is not None
        }
        if not heard:
            return None
        score = self.offset
        for at in range(self.rounds):
            usual = {
                name: (log_odds(words[at]) - self.voices[name].means[at]) / self.voices[name].spreads[at]
                for name, words in heard.items()
            }
            typical = sum(usual.values()) / len(usual)
            for name, voice in self.voices.items():
                place = usual.get(name, typical)
                score += voice.weights[at] * (voice.means[at] + voice.spreads[at] * place)
        return round(1 / (1 + math.exp(-max(-30.0, min(30.0, score)))), 6)


def words_by_round(words: Sequence[float | None], rounds: int) -> tuple[float, ...] | None:
    """A voice's latest F after each round; before its first, that first one. None if there is none."""
    first = next((word for word in words[:rounds] if word is not None), None)
    if first is None:
        return None
    standing: list[float] = []
    for at in range(rounds):
        word = words[at] if at < len(words) else None
        standing.append(word if word is not None else standing[-1] if standing else first)
    return tuple(standing)


def log_odds(falsehood: float) -> float:
    """The log-odds, within bounds."""
    bounded = min(max(falsehood, 1 - SUREST), SUREST)
    return math.log(bounded / (1 - bounded))
