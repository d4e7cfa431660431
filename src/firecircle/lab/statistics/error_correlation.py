"""Do the voices fail together? The effective number of voices: how many independent ones they are worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.lab.statistics.estimate import FloatArray
from firecircle.shapes import Shape, Text


class ErrorCorrelation(Shape):
    """How the errors of voices go together."""

    voices: tuple[Text, ...]
    errors: tuple[int, ...]
    heard: tuple[int, ...]
    phi: tuple[tuple[float | None, ...], ...]
    """Correlation of errors between each two voices; None where one of them never or always erred."""
    mean_phi: float | None
    effective_voices: float | None
    """n / (1 + (n - 1) · mean phi): how many independent voices would average out errors as well; 1 to n."""
    participation_ratio: float | None
    """(sum of eigenvalues)² / sum of their squares, of the phi matrix: in how many directions errors vary."""
    note: Text | None = None


def error_correlation(voices: Sequence[str], wrong: FloatArray) -> ErrorCorrelation:
    """`wrong` has a row a voice and a column a record: 1 wrong, 0 right, NaN not heard."""
    n = len(voices)
    heard = np.isfinite(wrong)
    phi = np.eye(n)
    for one in range(n):
        for other in range(one):
            phi[one, other] = phi[other, one] = _phi(wrong[one], wrong[other])
    pairs = phi[np.triu_indices(n, 1)]
    told = pairs[np.isfinite(pairs)]
    mean_phi = float(told.mean()) if told.size else None
    return ErrorCorrelation(
        voices=tuple(voices),
        errors=tuple(int(np.nansum(row)) for row in wrong),
        heard=tuple(int(row.sum()) for row in heard),
        phi=tuple(tuple(float(r) if np.isfinite(r) else None for r in row) for row in phi),
        mean_phi=mean_phi,
        effective_voices=None if mean_phi is None else effective_voices(n, mean_phi),
        # The eigenvalues of a correlation matrix add up to n, their squares to the squares of its entries.
        participation_ratio=float(n**2 / (phi**2).sum()) if told.size == pairs.size and n else None,
        note=_note(n, told.size, pairs.size, mean_phi),
    )


def effective_voices(n: int, mean_phi: float) -> float:
    """Kish's design effect as a number of voices. Errors that offset each other count as independent."""
    return n / (1 + (n - 1) * max(mean_phi, 0.0))


def _phi(one: FloatArray, other: FloatArray) -> float:
    both = np.isfinite(one) & np.isfinite(other)
    first, second = one[both], other[both]
    if first.size < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _note(n: int, told: int, pairs: int, mean_phi: float | None) -> str | None:
    if n < 2:
        return "one voice has nobody to err with"
    if mean_phi is None:
        return "no two voices both erred and were both right at times"
    if told < pairs:
        return f"{pairs - told} of {pairs} pairs have no correlation: a voice that never or always errs"
    return "errors offset each other; counted as independent" if mean_phi < 0 else None
