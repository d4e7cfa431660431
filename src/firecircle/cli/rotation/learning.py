"""What kept circles teach about pairs of voices, read no further than a draw can wait for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from pydantic import ValidationError

from firecircle.errors import ConfigError, StoreError
from firecircle.rotation.affinity import FEWEST_CIRCLES, Affinity, CircleGlance, affinities
from firecircle.rotation.history import Draw
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.telling.words import counted

LOOKED_AT = 1_000
"""So many of the newest circles are looked at, in a list that costs little."""
READ = 100
"""So many of them are read: the newest that found patterns and seated two of the pool."""


def pairs_learnt(circles: CircleStore, pool: Collection[str]) -> tuple[Affinity, ...]:
    """What the newest kept circles say about pairs of these voices."""
    names = set(pool)
    newest = islice(circles.each_summary(Filters(mode="fire_circle", in_run=False)), LOOKED_AT)
    shared = (circle for circle in newest if circle.pattern_types and len(names & {*circle.voices}) > 1)
    return affinities(glances(circles, islice(shared, READ)))


def glances(circles: CircleStore, summaries: Iterable[CircleSummary]) -> Iterator[CircleGlance]:
    """What these circles say about pairs; one that cannot be read, or is gone by now, is left out."""
    for summary in summaries:
        try:
            yield CircleGlance.model_validate_json(circles.document(summary.id)[1])
        except (StoreError, ConfigError, ValidationError):
            continue


def affinity_note(drawn: Draw) -> str:
    """How much a draw that was asked to heed affinity knew."""
    if not drawn.affinities:
        return (
            "affinity: nothing is learnt yet, drawn without; no two of these voices have shared"
            f" {FEWEST_CIRCLES} kept circles that found patterns"
        )
    return f"affinity: {counted(len(drawn.affinities), 'pair')} of these voices known from kept circles"
