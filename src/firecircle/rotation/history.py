"""What is remembered of past sittings: who took part, and how each circle was drawn.

The history itself is kept elsewhere; here are its shapes, the protocol a keeper follows, and one that
keeps everything in memory, for trying out what would happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Protocol

from pydantic import Field

from firecircle.shapes import Shape, Text, Unit

DRAW_METHOD = "weighted-order-sha256/1"
"""How draws are made now; a draw made in another way cannot be verified by this version."""

Name = Annotated[Text, Field(min_length=1)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]
"""A moment, in seconds since 1970."""
Count = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Participation(Shape):
    """One voice in one sitting. A voice has at most one row per sitting."""

    voice_id: Name
    session_id: Name
    decision_domain: Name
    role_played: Name
    contribution_quality: Unit | None = None
    """Its share of what the circle found; None when there was nothing to find."""
    was_empty_chair: bool = False
    at: Seconds


class Candidate(Shape):
    """A voice that could be drawn, as it stood at that moment: every fact the draw depends on."""

    voice_id: Name
    heard: Count = 0
    last_heard: Seconds | None = None
    heard_in_domain: Count = 0
    chairs: Count = 0
    last_chair: Seconds | None = None
    expertise: Weight = 1.0
    """What matching the domain multiplies the weight by; 1 when nobody asked for it."""
    weight: Weight = 1.0
    provider_lineage: Text
    cognitive_roles: dict[Text, Unit]


class Draw(Shape):
    """How a circle was chosen, with all that is needed to choose it again."""

    draw_id: Name
    """A digest of everything else, so that a changed record shows."""
    method: Name = DRAW_METHOD
    session_id: Name
    at: Seconds
    seed: Text
    decision_domain: Name
    required_count: Annotated[int, Field(ge=1)]
    include_empty_chair: bool
    min_cognitive_coverage: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    """None, as the lineages below, when the set need not be a quorum."""
    min_provider_groups: Annotated[int, Field(ge=1)] | None
    candidates: tuple[Candidate, ...]
    """By name, whatever the order in which they were listed."""
    selected: tuple[Name, ...]
    """In the order in which the circle lists them, so that its chair rotates by duty."""
    chair: Name | None
    """Who holds the chair first."""
    used: bool = True
    """False in shadow mode: the choice was recorded, and others sat."""


class ParticipationHistory(Protocol):
    """Whoever keeps the history. What `append` and `record_draw` return from is kept for good."""

    def append(self, row: Participation) -> None:
        """Keep one row."""
        ...

    def participations(
        self, *, voice_id: str | None = None, decision_domain: str | None = None
    ) -> Iterator[Participation]:
        """The rows, oldest first; of one voice or one domain, if asked."""
        ...

    def record_draw(self, draw: Draw) -> None:
        """Keep one draw."""
        ...

    def draws(self) -> Iterator[Draw]:
        """The draws, oldest first."""
        ...


class MemoryHistory:
    """A history that ends with the process."""

    def __init__(self, rows: Iterable[Participation] = (), draws: Iterable[Draw] = ()) -> None:
        self._rows = list(rows)
        self._draws = list(draws)

    @classmethod
    def copy_of(cls, other: ParticipationHistory) -> MemoryHistory:
        """Another history as it is now, to go on from without touching it."""
        return cls(other.participations(), other.draws())

    def append(self, row: Participation) -> None:
        """Keep one row."""
        self._rows.append(row)

    def participations(
        self, *, voice_id: str | None = None, decision_domain: str | None = None
    ) -> Iterator[Participation]:
        """The rows, in the order they were kept."""
        for row in self._rows:
            if voice_id in (None, row.voice_id) and decision_domain in (None, row.decision_domain):
                yield row

    def record_draw(self, draw: Draw) -> None:
        """Keep one draw."""
        self._draws.append(draw)

    def draws(self) -> Iterator[Draw]:
        """The draws, in the order they were kept."""
        yield from self._draws
