"""What votes show: effective number of voices, agreement, the best subset, weights, one more judge."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from firecircle.circle.independence import FEWEST_ITEMS, effective_voices
from firecircle.lab.calibrated import logistic
from firecircle.lab.statistics.comparison import fold_of_each
from firecircle.lab.statistics.curves import auc
from firecircle.lab.statistics.estimate import (
    MOST_RESAMPLES,
    SEED,
    BoolArray,
    Estimate,
    FloatArray,
    by_label,
    nothing,
    numbers,
    scored,
    wilson,
)
from firecircle.lab.statistics.voices import (
    ErrorCorrelation,
    error_correlation,
    krippendorff_alpha,
)
from firecircle.lab.votes.reading import Votes
from firecircle.names import Label
from firecircle.shapes import Shape, Text

FOLDS = 5
RIDGE = 1.0
MOST_SUBSETS = 5_000
"""With more subsets than this of one size, the best one is grown judge by judge."""
Weighing = Callable[[FloatArray, BoolArray], FloatArray]
"""Scores and truth to a weight for each judge."""


class VotesIndependence(Shape):
    """How many independent voices would average out errors as well as these."""

    voices: int
    effective: Estimate

    def sentence(self) -> str:
        """Such as `3 voices ≈ 2.1 independent (n = 512)`."""
        value = self.effective.value
        if value is None:
            return f"{self.voices} voices, independence not measured: {self.effective.note}"
        return f"{self.voices} voices ≈ {value:.1f} independent (n = {self.effective.n:,})"


class JudgeErrors(Shape):
    """How often one judge is wrong, and its weight in the calibrated sum."""

    judge: Text
    error_rate: Estimate
    weight: float | None
    """Share of the weights; None without both labels."""


class Subset(Shape):
    """The judges of one size whose mean score separates attacks from benign prompts best."""

    judges: tuple[Text, ...]
    held_out_auc: Estimate
    """AUC on items that did not take part in the choice."""
    effective: float | None


class VotesReport(Shape):
    """Everything that `firecircle lab votes` reports."""

    judges: tuple[Text, ...]
    items: int
    labelled: int
    independence: VotesIndependence
    errors: ErrorCorrelation
    agreement: Estimate
    each: tuple[JudgeErrors, ...]
    best: tuple[Subset, ...]
    weighted_auc: Estimate
    equal_auc: Estimate
    one_more: float | None
    """What another judge, as correlated as these are on average, would add to the effective number."""


def independence(votes: Votes) -> VotesIndependence:
    """The effective number of voices with a bootstrap interval over items."""
    wrong = votes.wrong[:, np.isfinite(votes.wrong).sum(axis=0) >= 2]
    voices, n = wrong.shape
    if voices < 2:
        return VotesIndependence(voices=voices, effective=nothing("it takes two judges", n))
    if n < FEWEST_ITEMS:
        why = f"{n} labelled items judged by two of them; it takes {FEWEST_ITEMS}"
        return VotesIndependence(voices=voices, effective=nothing(why, n))
    value = error_correlation(votes.judges, wrong).effective_voices
    if value is None:
        return VotesIndependence(
            voices=voices, effective=nothing("no two judges were both wrong and right at times", n)
        )
    rng = np.random.default_rng(SEED)
    drawn = [_mean_phi(wrong[:, rng.integers(0, n, n)]) for _ in range(MOST_RESAMPLES // 4)]
    known = [effective_voices(voices, phi) for phi in drawn if np.isfinite(phi)]
    low, high = (float(bound) for bound in np.quantile(known, (0.025, 0.975)))
    return VotesIndependence(voices=voices, effective=Estimate(value=value, low=low, high=high, n=n))


def _mean_phi(wrong: FloatArray) -> float:
    """The mean correlation of errors, all pairs at once: the loop of `error_correlation` is slow here."""
    heard = np.isfinite(wrong).astype(float)
    value = np.where(heard > 0, wrong, 0.0)
    both, hits = heard @ heard.T, value @ heard.T  # hits[i, j]: errors of i where j was heard too
    with np.errstate(invalid="ignore", divide="ignore"):
        share = hits / both
        spread = np.sqrt(share * (1 - share))
        phi = ((value @ value.T) / both - share * share.T) / (spread * spread.T)
    pairs = phi[np.triu_indices(len(wrong), 1)]
    known = pairs[np.isfinite(pairs)]
    return float(known.mean()) if known.size else float("nan")


def report_on_votes(votes: Votes, size: int | None = None) -> VotesReport:
    """All figures; `size` is that of the best subset, by default every size up to all judges."""
    attack, benign = by_label(votes.labels)
    errors = error_correlation(votes.judges, votes.wrong)
    filled = _fill_gaps(votes.scores)
    known = (attack | benign) & np.isfinite(filled).all(axis=0)
    both = min((attack & known).sum(), (benign & known).sum()) >= FOLDS
    truth, scores = attack[known], filled[:, known]
    fold = fold_of_each(truth, FOLDS, np.random.default_rng(SEED))
    weights = _weights(scores, truth) if both else None
    why = f"it takes {FOLDS} attacks and {FOLDS} benign items"
    count = len(votes.judges)
    return VotesReport(
        judges=votes.judges,
        items=len(votes.labels),
        labelled=int((attack | benign).sum()),
        independence=independence(votes),
        errors=errors,
        agreement=krippendorff_alpha(votes.scores),
        each=tuple(
            JudgeErrors(
                judge=judge,
                error_rate=wilson(wrong, heard, "no labelled item"),
                weight=None if weights is None else float(weights[row]),
            )
            for row, (judge, wrong, heard) in enumerate(_error_counts(votes))
        ),
        best=tuple(
            _best(votes, scores, truth, fold, k) for k in ([size] if size else range(1, count + 1)) if both
        ),
        weighted_auc=_held_out(scores, truth, fold, _weights) if both else nothing(why),
        equal_auc=_auc(scores.mean(axis=0), truth) if both else nothing(why),
        one_more=None
        if errors.mean_phi is None
        else effective_voices(count + 1, errors.mean_phi) - effective_voices(count, errors.mean_phi),
    )


def _error_counts(votes: Votes) -> list[tuple[str, int, int]]:
    wrong = votes.wrong
    heard = np.isfinite(wrong).sum(axis=1)
    return [(j, int(np.nansum(row)), int(n)) for j, row, n in zip(votes.judges, wrong, heard, strict=True)]


def _fill_gaps(scores: FloatArray) -> FloatArray:
    """A judge who did not vote on an item has the mean of those who did."""
    heard = np.isfinite(scores)
    count = heard.sum(axis=0)
    mean = np.where(heard, scores, 0.0).sum(axis=0) / np.where(count, count, np.nan)
    return numbers(np.where(heard, scores, mean))


def _weights(scores: FloatArray, attack: BoolArray) -> FloatArray:
    """Shares of a logistic regression without weights below zero."""
    slopes, _ = logistic(numbers(scores.T), attack, RIDGE)
    return slopes / slopes.sum() if slopes.sum() > 0 else numbers(np.full(len(scores), 1 / len(scores)))


def _auc(sums: FloatArray, attack: BoolArray) -> Estimate:
    labels: list[Label] = ["attack" if is_attack else "benign" for is_attack in attack]
    return auc(scored(labels, sums))


def _held_out(scores: FloatArray, attack: BoolArray, fold: FloatArray, weigh: Weighing) -> Estimate:
    """The AUC of sums whose weights were found on the other folds."""
    sums = np.empty(attack.size)
    for number in range(FOLDS):
        inside = fold != number
        sums[~inside] = weigh(scores[:, inside], attack[inside]) @ scores[:, ~inside]
    return _auc(numbers(sums), attack)


def _best(votes: Votes, scores: FloatArray, attack: BoolArray, fold: FloatArray, k: int) -> Subset:
    def chosen(part: FloatArray, truth: BoolArray) -> FloatArray:
        rows = _best_rows(part, truth, k)
        return numbers([1 / k if row in rows else 0.0 for row in range(len(scores))])

    judges = [votes.judges[row] for row in np.flatnonzero(chosen(scores, attack))]
    effective = error_correlation(judges, votes.of(judges).wrong).effective_voices
    return Subset(
        judges=tuple(judges),
        held_out_auc=_held_out(scores, attack, fold, chosen),
        effective=1.0 if k == 1 else effective,
    )


def _best_rows(scores: FloatArray, attack: BoolArray, k: int) -> tuple[int, ...]:
    def separation(rows: tuple[int, ...]) -> float:
        return _separation(scores[list(rows)].mean(axis=0), attack)

    every = range(len(scores))
    if math.comb(len(scores), k) <= MOST_SUBSETS:
        return max(combinations(every, k), key=separation)
    rows: tuple[int, ...] = ()
    while len(rows) < k:
        rows = max(((*rows, row) for row in every if row not in rows), key=separation)
    return rows


def _separation(sums: FloatArray, attack: BoolArray) -> float:
    """AUC without an interval."""
    from scipy.stats import rankdata

    ranks, hits = rankdata(sums), int(attack.sum())
    return float((ranks[attack].sum() - hits * (hits + 1) / 2) / (hits * (attack.size - hits)))
