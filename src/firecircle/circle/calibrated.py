"""The calibrated verdict: the probability of manipulation, from all evaluations of every round.

The consensus takes the highest falsehood, so one voice that is often wrong decides for all. A calibration is
fitted on labelled circles of the same voices (`firecircle calibrate --verdict`): a logistic regression over
the log-odds of each voice's F in each round. No weight is negative, so a higher F never lowers the
probability. A calibration is part of the configuration of the circle it judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, model_validator

from firecircle.shapes import Moment, Shape, Text, Unit

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
