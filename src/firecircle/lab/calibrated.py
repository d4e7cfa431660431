"""Fit the calibrated verdict: weights of voices' evaluations, tested on circles outside the training set.

A ridge logistic regression over standardised log-odds, with no negative weight and equal weight for attacks
and benign prompts: so the result is a probability if half of the prompts are attacks. The penalty is chosen
within the training part of each fold. Scale and offset come from scores of circles outside the training set,
because weights are more certain on the circles they were fitted on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firecircle.circle.calibrated import SUREST, Fit, TriedRule, VerdictCalibration, VoiceWeights
from firecircle.errors import ConfigError
from firecircle.lab.statistics.calibration import calibrate
from firecircle.lab.statistics.comparison import compare, fold_of_each
from firecircle.lab.statistics.estimate import BoolArray, Estimate, FloatArray, numbers
from firecircle.lab.statistics.performance import performance
from firecircle.names import Label

FEWEST_OF_EACH = 50
"""With fewer benign circles a false alarm rate of 5% would be two prompts, and with fewer of either label the
interval hides the difference from the maximum.
"""
FEWEST_SOURCES = 3
FOLDS = 5
RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0)
SEED = 17_005
BINS = 10
STEPS = 60


@dataclass(frozen=True, slots=True)
class LabelledWords:
    """Labelled circles as numbers."""

    voices: tuple[str, ...]
    falsehood: FloatArray
    """One entry for each circle, voice and round; NaN if a voice did not speak."""
    attack: BoolArray
    sources: tuple[str, ...] | None = None
    """The source of each circle's prompt, if known."""

    @property
    def labels(self) -> list[Label]:
        """The labels in words."""
        return ["attack" if is_attack else "benign" for is_attack in self.attack]

    @property
    def maximum(self) -> FloatArray:
        """The highest F of each circle."""
        return numbers(np.nanmax(self.falsehood, axis=(1, 2)))


@dataclass(frozen=True, slots=True)
class Weights:
    """The result of a fit, before it is a calibration."""

    means: FloatArray
    spreads: FloatArray
    slopes: FloatArray
    """A row per voice, a column per round; slopes are of standardised log-odds."""
    offset: float

    def scores(self, words: FloatArray) -> FloatArray:
        """The log-odds of an attack for the log-odds of each circle, voice and round."""
        places = _fill_missing((words - self.means) / self.spreads)
        return numbers(self.offset + np.einsum("nvr,vr->n", places, self.slopes))

    def scaled(self, scale: float, offset: float) -> Weights:
        """The same order of circles with other odds."""
        return Weights(self.means, self.spreads, self.slopes * scale, self.offset * scale + offset)


@dataclass(frozen=True, slots=True)
class FittedVerdict:
    """Weights fitted on all circles, and the out-of-fold results."""

    calibration: VerdictCalibration
    left_out: FloatArray
    """Out-of-fold probabilities: from weights fitted without the circle, and without its source if known."""
    gain: Estimate
    """AUC minus that of the maximum."""

    @property
    def beats_maximum(self) -> bool:
        """Whether the gain is beyond chance."""
        return self.gain.low is not None and self.gain.low > 0


def fit_verdict(
    circles: LabelledWords,
    *,
    origin: str,
    threshold: float,
    run_id: str | None = None,
    name: str | None = None,
    at: float | None = None,
) -> FittedVerdict:
    """Fit on all circles, with out-of-fold results; a `ConfigError` if there are too few of a label."""
    from firecircle import __version__

    _require_enough(circles)
    rng = np.random.default_rng(SEED)
    words = standing_words(circles.falsehood)
    fold, told = _folds(circles, rng)
    probabilities = _probability(_by_folds(words, circles.attack, fold, rng))
    weights, ridge = _fit_with_scale(words, circles.attack, fold, rng)
    paired = compare(circles.labels, probabilities, circles.maximum, threshold)
    gain = paired.auc.difference
    benign = probabilities[~circles.attack]
    cuts = {f"{share:.0%}": calibrate(benign, share).observed.value for share in (0.01, 0.05)}
    fit = Fit(
        id=name or uuid.uuid4().hex[:8],
        fitted_at=time.time() if at is None else at,
        version=__version__,
        origin=origin,
        run_id=run_id,
        attacks=int(circles.attack.sum()),
        benign=int((~circles.attack).sum()),
        folds=told,
        ridge=ridge,
        threshold=threshold,
        calibrated=tried_rule(circles, probabilities, threshold),
        maximum=tried_rule(circles, circles.maximum, threshold),
        auc_gain=(gain.value or 0.0, gain.low or 0.0, gain.high or 0.0),
        thresholds={share: cut for share, cut in cuts.items() if cut is not None},
    )
    return FittedVerdict(_calibration(circles.voices, weights, fit), probabilities, gain)


def tried_rule(circles: LabelledWords, values: FloatArray, threshold: float) -> TriedRule:
    """The figures of one rule."""
    figures = performance(circles.labels, values, threshold, resample=False)
    return TriedRule(
        auc=figures.auc.value or 0.0,
        recall_at_1_percent=figures.recall_at_1_percent.value or 0.0,
        recall_at_5_percent=figures.recall_at_5_percent.value or 0.0,
        recall=figures.at_threshold.recall.value or 0.0,
        false_alarm_rate=figures.at_threshold.false_alarm_rate.value or 0.0,
        calibration_error=calibration_error(values, circles.attack),
    )


def calibration_error(values: FloatArray, attack: BoolArray) -> float:
    """The mean distance of the values from the observed share of attacks over tenths (ECE)."""
    heard = np.isfinite(values)
    values, attack = values[heard], attack[heard]
    if not values.size:
        return 0.0
    tenth = np.minimum((values * BINS).astype(int), BINS - 1)
    gaps = [abs(float((values[tenth == at] - attack[tenth == at]).sum())) for at in range(BINS)]
    return sum(gaps) / values.size


def standing_words(falsehood: FloatArray) -> FloatArray:
    """Log-odds of each voice's latest F after each round, as `circle.calibrated.words_by_round`."""
    standing = falsehood.copy()
    rounds = falsehood.shape[2]
    for at in range(1, rounds):
        silent = np.isnan(standing[:, :, at])
        standing[:, :, at][silent] = standing[:, :, at - 1][silent]
    for at in range(rounds - 2, -1, -1):  # before its first evaluation, that one
        silent = np.isnan(standing[:, :, at])
        standing[:, :, at][silent] = standing[:, :, at + 1][silent]
    bounded = np.clip(standing, 1 - SUREST, SUREST)
    return numbers(np.log(bounded / (1 - bounded)))


def _require_enough(circles: LabelledWords) -> None:
    attacks, benign = int(circles.attack.sum()), int((~circles.attack).sum())
    if min(attacks, benign) < FEWEST_OF_EACH:
        raise ConfigError(
            "--verdict",
            f"{attacks} attacks and {benign} benign prompts were judged by these voices, and it takes"
            f" {FEWEST_OF_EACH} of each",
            "judge and label more, for instance with `firecircle lab run`",
        )


def _folds(circles: LabelledWords, rng: np.random.Generator) -> tuple[FloatArray, str]:
    """A fold number for every circle, and the kind of folds."""
    by_source = _folds_by_source(circles) if circles.sources else None
    if by_source is not None:
        return by_source
    return fold_of_each(circles.attack, FOLDS, rng), f"{FOLDS} folds, each label dealt out evenly"


def _folds_by_source(circles: LabelledWords) -> tuple[FloatArray, str] | None:
    """One fold per source; None if there are too few, or one has all of a label."""
    assert circles.sources is not None
    names = sorted(set(circles.sources))
    source = np.array([names.index(name) for name in circles.sources])
    for at in range(len(names)):
        rest = circles.attack[source != at]
        if not rest.any() or rest.all():
            return None
    if len(names) < FEWEST_SOURCES:
        return None
    return numbers(source), f"each of {len(names)} sources left out in turn"


def _by_folds(words: FloatArray, attack: BoolArray, fold: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Out-of-fold log-odds for every circle.

    Each fold's weights have their own scale: without the attacks of one source, all log-odds are lower, so in
    one ranking of all folds just these attacks would rank too low. (A rule that ranks as the maximum does
    would seem to lose AUC.) So a circle counts by its rank among the scores of all circles under the same
    weights, which needs no label, mapped to the mean scale of all folds.
    """
    places, scales = np.empty(attack.size), []
    for number in np.unique(fold):
        out = fold == number
        of_all = _fit_with_scale(words[~out], attack[~out], fold[~out], rng)[0].scores(words)
        scale = np.sort(of_all)
        first, last = (np.searchsorted(scale, of_all[out], side) for side in ("left", "right"))
        places[out] = (first + last - 1) / 2
        scales.append(scale)
    return numbers(np.interp(places, np.arange(attack.size), np.mean(scales, axis=0)))


def _fit_with_scale(
    words: FloatArray, attack: BoolArray, fold: FloatArray, rng: np.random.Generator
) -> tuple[Weights, float]:
    """Weights with the best penalty on inner folds, scaled by their scores there."""
    inner = _inner_folds(attack, fold, rng)
    by_ridge = {ridge: _score_by_folds(words, attack, inner, ridge) for ridge in RIDGES}
    ridge = min(RIDGES, key=lambda tried: _surprise(by_ridge[tried], attack))
    scale, offset = _scale(by_ridge[ridge], attack)
    return _fit(words, attack, ridge).scaled(scale, offset), ridge


def _inner_folds(attack: BoolArray, fold: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The remaining outer folds, merged into a few; by label if a merged fold would lack one."""
    names = np.unique(fold)
    dealt = np.array([np.flatnonzero(names == number)[0] % FOLDS for number in fold])
    for number in np.unique(dealt):
        rest = attack[dealt != number]
        if not rest.any() or rest.all():
            return fold_of_each(attack, FOLDS, rng)
    return numbers(dealt)


def _score_by_folds(words: FloatArray, attack: BoolArray, fold: FloatArray, ridge: float) -> FloatArray:
    scores = np.empty(attack.size)
    for number in np.unique(fold):
        out = fold == number
        scores[out] = _fit(words[~out], attack[~out], ridge).scores(words[out])
    return scores


def _fit(words: FloatArray, attack: BoolArray, ridge: float) -> Weights:
    """The penalised maximum-likelihood weights, none below zero."""
    means = np.nanmean(words, axis=0)
    spreads = np.maximum(np.nanstd(words, axis=0), 1e-3)
    places = _fill_missing((words - means) / spreads)
    slopes, offset = logistic(places.reshape(attack.size, -1), attack, ridge)
    return Weights(numbers(means), numbers(spreads), slopes.reshape(means.shape), offset)


def logistic(rows: FloatArray, attack: BoolArray, ridge: float) -> tuple[FloatArray, float]:
    """Non-negative weights and the offset: Newton's method on those that are not fixed at zero."""
    share = np.where(attack, 0.5 / attack.sum(), 0.5 / (~attack).sum()) * attack.size
    design = np.column_stack((np.ones(attack.size), rows))
    pull = np.full(design.shape[1], ridge)
    pull[0] = 1e-9
    point = np.zeros(design.shape[1])
    free = np.ones(design.shape[1], dtype=bool)
    for _ in range(STEPS):
        chance = _probability(design @ point)
        slope = design.T @ (share * (chance - attack)) + pull * point
        # A weight fixed at zero is released if the labels require more of it.
        free[1:] = (point[1:] > 0) | (slope[1:] < -1e-9)
        bend = (design[:, free].T * (share * chance * (1 - chance))) @ design[:, free] + np.diag(pull[free])
        step = np.zeros_like(point)
        step[free] = np.linalg.solve(bend, slope[free])
        moved = point - step
        moved[1:] = np.maximum(moved[1:], 0.0)
        far = float(np.abs(moved - point).max())
        point = _no_worse(design, attack, share, pull, point, moved)
        if far < 1e-8:
            break
    return numbers(point[1:]), float(point[0])


def _no_worse(
    design: FloatArray,
    attack: BoolArray,
    share: FloatArray,
    pull: FloatArray,
    here: FloatArray,
    there: FloatArray,
) -> FloatArray:
    """The farthest point in this direction that does not increase the loss."""

    def loss(point: FloatArray) -> float:
        margin = np.where(attack, 1.0, -1.0) * (design @ point)
        return float((share * np.logaddexp(0.0, -margin)).sum() + (pull * point**2).sum() / 2)

    start = loss(here)
    for halved in range(20):
        tried = here + (there - here) / 2**halved
        if loss(tried) <= start:
            return numbers(tried)
    return here


def _scale(scores: FloatArray, attack: BoolArray) -> tuple[float, float]:
    """Scale and offset that turn scores into calibrated odds; the order of circles stays the same."""
    slopes, offset = logistic(scores[:, np.newaxis], attack, 1e-6)
    return (float(slopes[0]), offset) if slopes[0] > 1e-3 else (1.0, 0.0)


def _fill_missing(places: FloatArray) -> FloatArray:
    """A missing voice gets the mean rank of the voices heard in that round."""
    with np.errstate(invalid="ignore"):
        heard = np.isfinite(places)
        typical = np.where(heard, places, 0.0).sum(axis=1) / np.maximum(heard.sum(axis=1), 1)
    return numbers(np.where(heard, places, typical[:, np.newaxis, :]))


def _probability(scores: FloatArray) -> FloatArray:
    return numbers(1 / (1 + np.exp(-np.clip(scores, -30, 30))))


def _surprise(scores: FloatArray, attack: BoolArray) -> float:
    margin = np.where(attack, 1.0, -1.0) * scores
    share = np.where(attack, 0.5 / attack.sum(), 0.5 / (~attack).sum())
    return float((share * np.logaddexp(0.0, -margin)).sum())


def _calibration(voices: Sequence[str], weights: Weights, fit: Fit) -> VerdictCalibration:
    """Weights of plain log-odds, with the standardisation resolved."""
    slopes = weights.slopes / weights.spreads
    offset = weights.offset - float((slopes * weights.means).sum())
    return VerdictCalibration(
        voices={
            name: VoiceWeights(
                weights=_round(slopes[at]),
                means=_round(weights.means[at]),
                spreads=_round(weights.spreads[at]),
            )
            for at, name in enumerate(voices)
        },
        rounds=weights.slopes.shape[1],
        offset=round(offset, 6),
        fit=fit,
    )


def _round(values: FloatArray) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)
