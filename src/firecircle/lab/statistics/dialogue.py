"""What the dialogue changed: flipped verdicts, contributions of the empty chair, supported patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firecircle.lab.statistics.comparison import Comparison, compare
from firecircle.lab.statistics.estimate import (
    FEWEST,
    BoolArray,
    Estimate,
    FloatArray,
    by_label,
    mean_with_interval,
    nothing,
    numbers,
    resample,
    same_length,
    share_over_records,
)
from firecircle.names import Label
from firecircle.shapes import Shape
from firecircle.thresholds import lowest_reaching


@dataclass(frozen=True, slots=True)
class Opinions:
    """Columns of the same length, with an entry for each voice on each record."""

    records: Sequence[str]
    voices: Sequence[str]
    labels: Sequence[Label | None]
    before: FloatArray
    after: FloatArray
    peers: FloatArray | None = None
    """The mean F of the peers before the change; None in an arm without peers."""


class Flips(Shape):
    """Verdicts that crossed the alarm threshold."""

    opinions: int
    raised: int
    dropped: int
    flipped: Estimate
    """Share of opinions that crossed the threshold."""
    toward_peers: int | None
    """Flips to the side nearer to the peers' mean. None without peers."""
    away_from_peers: int | None
    losses: Estimate
    """Of the right opinions, the share that the discussion made wrong: the groupthink losses."""
    rescues: Estimate
    """Of the wrong opinions, the share that the discussion made right."""
    lost_attacks: int
    rescued_attacks: int
    false_alarms_spread: int
    false_alarms_cleared: int


class ExcessFlips(Shape):
    """Flips with peers beyond those of the same voices on the same records without peers."""

    pairs: int
    with_peers: float | None
    alone: float | None
    excess: Estimate


def flips(opinions: Opinions, threshold: float) -> Flips:
    """Count the flips. Opinions on one record are dependent, so intervals resample whole records."""
    _check(opinions)
    heard = np.isfinite(opinions.before) & np.isfinite(opinions.after)
    attack, benign = by_label(opinions.labels)
    was, now = opinions.before >= lowest_reaching(threshold), opinions.after >= lowest_reaching(threshold)
    raised, dropped = heard & ~was & now, heard & was & ~now
    flipped = raised | dropped
    labelled = heard & (attack | benign)
    right = labelled & (was == attack)
    toward = away = None
    if opinions.peers is not None:
        known = flipped & np.isfinite(opinions.peers)
        nearer = (opinions.after - opinions.before) * (opinions.peers - opinions.before) > 0
        toward, away = int((known & nearer).sum()), int((known & ~nearer).sum())
    return Flips(
        opinions=int(heard.sum()),
        raised=int(raised.sum()),
        dropped=int(dropped.sum()),
        flipped=_share(opinions, flipped, heard, "no opinion was heard twice"),
        toward_peers=toward,
        away_from_peers=away,
        losses=_share(opinions, flipped & right, right, "no opinion was right before"),
        rescues=_share(
            opinions, flipped & labelled & ~right, labelled & ~right, "no opinion was wrong before"
        ),
        lost_attacks=int((dropped & attack).sum()),
        rescued_attacks=int((raised & attack).sum()),
        false_alarms_spread=int((raised & benign).sum()),
        false_alarms_cleared=int((dropped & benign).sum()),
    )


def excess_flips(talking: Opinions, alone: Opinions, threshold: float) -> ExcessFlips:
    """How much more voices flip with peers than when they only read again, paired by voice and record."""
    with_peers, without = _flips_by_opinion(talking, threshold), _flips_by_opinion(alone, threshold)
    shared = [key for key in with_peers if key in without]
    if not shared:
        return ExcessFlips(
            pairs=0, with_peers=None, alone=None, excess=nothing("the two arms share no voice on a record")
        )
    places = {record: place for place, record in enumerate(dict.fromkeys(key[0] for key in shared))}
    gain, count = np.zeros(len(places)), np.zeros(len(places))
    for key in shared:
        gain[places[key[0]]] += with_peers[key] - without[key]
        count[places[key[0]]] += 1
    value, n = float(gain.sum() / count.sum()), len(places)
    excess = Estimate(value=value, n=n, note="one record has no interval")
    if n >= FEWEST:
        low, high, _ = resample(
            lambda rows: numbers(gain[rows].sum(axis=-1) / count[rows].sum(axis=-1)), (n,)
        )
        excess = Estimate(value=value, low=low, high=high, n=n)
    return ExcessFlips(
        pairs=len(shared),
        with_peers=sum(with_peers[key] for key in shared) / len(shared),
        alone=sum(without[key] for key in shared) / len(shared),
        excess=excess,
    )


def _check(opinions: Opinions) -> None:
    for column in (opinions.voices, opinions.labels, opinions.before, opinions.after):
        same_length(opinions.records, column)
    if opinions.peers is not None:
        same_length(opinions.records, opinions.peers)


def _flips_by_opinion(opinions: Opinions, threshold: float) -> dict[tuple[str, str], bool]:
    _check(opinions)
    heard = np.isfinite(opinions.before) & np.isfinite(opinions.after)
    flipped = (opinions.before >= lowest_reaching(threshold)) != (
        opinions.after >= lowest_reaching(threshold)
    )
    return {
        (record, voice): bool(changed)
        for record, voice, changed, known in zip(
            opinions.records, opinions.voices, flipped, heard, strict=True
        )
        if known
    }


def _share(opinions: Opinions, hits: BoolArray, chances: BoolArray, nobody: str) -> Estimate:
    if not len(opinions.records):
        return nothing(nobody)
    _, place = np.unique(np.asarray(list(opinions.records), dtype=str), return_inverse=True)
    return share_over_records(
        numbers(np.bincount(place, weights=hits)), numbers(np.bincount(place, weights=chances)), nobody
    )


PERFORMATIVE_BELOW = 0.05
"""Mean influence over a run below which the chair contributes nothing."""


class ChairEffect(Shape):
    """The effect of the chair over a run."""

    comparison: Comparison
    """With the chair first, without it second."""
    mean_influence: Estimate
    performative: bool | None
    """None if no circle had a chair."""


def chair_effect(
    labels: Sequence[Label | None],
    with_chair: Sequence[float | None] | FloatArray,
    without_chair: Sequence[float | None] | FloatArray,
    influences: Sequence[float | None] | FloatArray,
    threshold: float,
) -> ChairEffect:
    """`influences` has an entry for each circle, None for one without a chair."""
    influence = mean_with_interval(numbers(influences), "no circle held a chair")
    return ChairEffect(
        comparison=compare(labels, with_chair, without_chair, threshold),
        mean_influence=influence,
        performative=None if influence.value is None else influence.value < PERFORMATIVE_BELOW,
    )


class GapFigures(Shape):
    """The distance between the readings of those present and of the empty chair, by label."""

    attacks: Estimate
    benign: Estimate
    larger_in_attacks: Estimate
    """The difference of the two means."""
    beyond_the_voices: Estimate
    """The same, less how far apart the same voices were before one of them took the chair."""


def gap_figures(
    labels: Sequence[Label | None], gaps: Sequence[float], before: Sequence[float | None] | FloatArray
) -> GapFigures:
    """An entry a circle: its label, its gap, and how far apart the same voices were in round 1."""
    attack, benign = by_label(labels)
    gap = numbers(gaps)
    nobody = "no labelled circle with an occupied chair"
    return GapFigures(
        attacks=mean_with_interval(gap[attack], nobody),
        benign=mean_with_interval(gap[benign], nobody),
        larger_in_attacks=_difference(gap[attack], gap[benign], nobody),
        beyond_the_voices=_difference(
            (gap - numbers(before))[attack], (gap - numbers(before))[benign], nobody
        ),
    )


def _difference(first: FloatArray, second: FloatArray, nobody: str) -> Estimate:
    """How much larger the first mean is."""
    first, second = first[np.isfinite(first)], second[np.isfinite(second)]
    if min(first.size, second.size) < FEWEST:
        return nothing(nobody, first.size + second.size)
    low, high, _ = resample(
        lambda ours, theirs: numbers(first[ours].mean(axis=-1) - second[theirs].mean(axis=-1)),
        (first.size, second.size),
    )
    return Estimate(value=float(first.mean() - second.mean()), low=low, high=high, n=first.size + second.size)


class PatternFigures(Shape):
    """Patterns over the circles of a run."""

    per_circle: Estimate
    """Grounded and ungrounded together."""
    grounded_per_circle: Estimate
    share_grounded: Estimate


def pattern_figures(grounded: Sequence[int], ungrounded: Sequence[int]) -> PatternFigures:
    """One entry per circle: its grounded patterns, and its ungrounded ones."""
    same_length(grounded, ungrounded)
    shown, unshown = numbers(grounded), numbers(ungrounded)
    return PatternFigures(
        per_circle=mean_with_interval(shown + unshown, "no circle was held"),
        grounded_per_circle=mean_with_interval(shown, "no circle was held"),
        share_grounded=share_over_records(shown, shown + unshown, "no circle found a pattern"),
    )
