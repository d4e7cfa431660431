"""How the voices of a circle relate: agreement beyond chance, shared errors, the effect of size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.circle.quorum import effective_voices
from firecircle.lab.statistics.estimate import (
    FEWEST,
    NO_ATTACKS,
    NO_BENIGN,
    Estimate,
    FloatArray,
    RowNumbers,
    by_label,
    mean_with_interval,
    nothing,
    numbers,
    resample,
    same_length,
)
from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.thresholds import lowest_reaching

SAME = 1e-12


def krippendorff_alpha(scores: FloatArray) -> Estimate:
    """Alpha with the interval metric; a row per voice, a column per record, NaN for a missing voice.

    1 is perfect agreement, 0 what chance gives, below 0 systematic disagreement. For alarms as 0 and 1 it
    equals the nominal alpha. Records with fewer than two voices are left out.
    """
    heard = np.isfinite(scores)
    pairable = heard.sum(axis=0) >= 2
    values, heard = scores[:, pairable], heard[:, pairable]
    records = int(pairable.sum())
    if not records:
        return nothing("no record was judged by two voices")
    count = numbers(heard.sum(axis=0))
    total = numbers(np.where(heard, values, 0.0).sum(axis=0))
    squares = numbers(np.where(heard, values**2, 0.0).sum(axis=0))
    within = numbers(np.where(heard, (values - total / count) ** 2, 0.0).sum(axis=0))

    def alpha(rows: RowNumbers) -> FloatArray:
        n = count[rows].sum(axis=-1)
        # Squared differences of all pairs equal sums of squares about the mean, so no pair has to be formed.
        observed = (within[rows] * count[rows] / (count[rows] - 1)).sum(axis=-1)
        about_mean = squares[rows].sum(axis=-1) - total[rows].sum(axis=-1) ** 2 / n
        expected = np.maximum(about_mean, 0.0) * n / (n - 1)
        varies = expected > SAME
        # A resample without variation shows no agreement, so it counts as none.
        return numbers(np.where(varies, 1 - observed / np.where(varies, expected, 1.0), 0.0))

    if np.ptp(values[heard]) <= SAME:
        return nothing(
            "every voice gave the same score everywhere: agreement cannot be distinguished from silence",
            records,
        )
    value = float(alpha(np.arange(records)))
    if records < FEWEST:
        return Estimate(value=value, n=records, note="one record has no interval")
    low, high, _ = resample(alpha, (records,))
    return Estimate(value=value, low=low, high=high, n=records)


class ErrorCorrelation(Shape):
    """How the errors of voices correlate."""

    voices: tuple[Text, ...]
    errors: tuple[int, ...]
    heard: tuple[int, ...]
    phi: tuple[tuple[float | None, ...], ...]
    """Correlation of errors between each two voices; None if one of them never or always erred."""
    mean_phi: float | None
    effective_voices: float | None
    """n / (1 + (n - 1) · mean phi): how many independent voices would average out errors as well; 1 to n."""
    participation_ratio: float | None
    """(sum of eigenvalues)² / sum of their squares, of the phi matrix: in how many directions errors vary."""
    note: Text | None = None


def error_correlation(voices: Sequence[str], wrong: FloatArray) -> ErrorCorrelation:
    """`wrong` has a row per voice and a column per record: 1 wrong, 0 right, NaN not heard."""
    n = len(voices)
    heard = np.isfinite(wrong)
    phi = np.eye(n)
    for first in range(n):
        for other in range(first):
            phi[first, other] = phi[other, first] = _phi(wrong[first], wrong[other])
    pairs = phi[np.triu_indices(n, 1)]
    known = pairs[np.isfinite(pairs)]
    mean_phi = float(known.mean()) if known.size else None
    return ErrorCorrelation(
        voices=tuple(voices),
        errors=tuple(int(np.nansum(row)) for row in wrong),
        heard=tuple(int(row.sum()) for row in heard),
        phi=tuple(tuple(float(r) if np.isfinite(r) else None for r in row) for row in phi),
        mean_phi=mean_phi,
        effective_voices=None if mean_phi is None else effective_voices(n, mean_phi),
        # The eigenvalues of a correlation matrix add up to n, their squares to the squares of its entries.
        participation_ratio=float(n**2 / (phi**2).sum()) if known.size == pairs.size and n else None,
        note=_note(n, known.size, pairs.size, mean_phi),
    )


def _phi(first: FloatArray, second: FloatArray) -> float:
    both = np.isfinite(first) & np.isfinite(second)
    first, second = first[both], second[both]
    if first.size < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _note(n: int, known: int, pairs: int, mean_phi: float | None) -> str | None:
    if n < 2:
        return "one voice alone has no error correlation"
    if mean_phi is None:
        return "no two voices both erred and were both right at times"
    if known < pairs:
        return f"{pairs - known} of {pairs} pairs have no correlation: a voice that never or always errs"
    return "errors offset each other; counted as independent" if mean_phi < 0 else None


class SizeRates(Shape):
    """The rates of the maximum over a random circle of this size."""

    size: int
    recall: Estimate
    false_alarm_rate: Estimate


def rates_by_size(
    labels: Sequence[Label | None], scores: FloatArray, threshold: float
) -> tuple[SizeRates, ...]:
    """`scores` has a row a voice and a column a record, NaN where a voice was not heard.

    The chance that a random circle of k among the m voices heard holds none of the a that raise the alarm is
    hypergeometric, so the expectation over all subsets is exact. Records with fewer than k
    voices are left out.
    """
    from scipy.stats import hypergeom

    same_length(labels, scores.T)
    attack, benign = by_label(labels)
    heard = np.isfinite(scores)
    present = heard.sum(axis=0)
    alarms = (heard & (np.where(heard, scores, -np.inf) >= lowest_reaching(threshold))).sum(axis=0)
    rows: list[SizeRates] = []
    for size in range(1, scores.shape[0] + 1):
        enough = present >= size
        chance = np.full(present.shape, np.nan)
        chance[enough] = 1 - hypergeom.pmf(0, present[enough], alarms[enough], size)
        # A tail below rounding is certainty, and certainty has the exact interval of a share.
        chance = numbers(np.where(np.isclose(chance, np.round(chance), atol=1e-12), np.round(chance), chance))
        rows.append(
            SizeRates(
                size=size,
                recall=mean_with_interval(chance[attack], NO_ATTACKS),
                false_alarm_rate=mean_with_interval(chance[benign], NO_BENIGN),
            )
        )
    return tuple(rows)
