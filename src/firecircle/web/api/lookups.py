"""What can be looked up: kinds of patterns, voices, the bank, blind spots of judging alone, who was heard."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.catalog import families
from firecircle.circle.pattern_types import MEANINGS
from firecircle.convene import participation_history
from firecircle.errors import ConfigError
from firecircle.request import JudgingRequest, configured_by_file, embedded_models
from firecircle.rotation.fairness import FairnessReport, fairness_in
from firecircle.store import tables
from firecircle.store.bank.blindspots import find_blindspots
from firecircle.store.bank.entries import FullEntry
from firecircle.store.circles import CircleStore
from firecircle.store.database import Database
from firecircle.store.finding import CircleSummary, Filters
from firecircle.web.api.reading import query_as
from firecircle.web.api.shapes import (
    BankEntries,
    BankQuery,
    BlindspotPage,
    BlindspotQuery,
    PatternKind,
    PatternKinds,
    VoiceKind,
    Voices,
)
from firecircle.web.problems import RequestError
from firecircle.web.viewer import viewer_of

MOST_READ = 100
"""Circles read for one page of blind spots: about a second of work."""


def list_patterns(request: Request) -> Response:
    """The kinds of manipulation, and how often each was found."""
    columns = tables.patterns.c
    counted = (
        sa.select(columns.pattern_type, sa.func.count(sa.distinct(columns.circle_pk)))
        .where(columns.grounded.is_(True))
        .group_by(columns.pattern_type)
    )
    with viewer_of(request).store.database.reading() as connection:
        counts = {str(kind): int(number) for kind, number in connection.execute(counted)}
    kinds = [
        PatternKind(pattern_type=kind.value, meaning=meaning, circles=counts.pop(kind.value, 0))
        for kind, meaning in MEANINGS.items()
    ]
    kinds += [
        PatternKind(pattern_type=kind, meaning="", circles=number) for kind, number in sorted(counts.items())
    ]
    return JSONResponse(PatternKinds(patterns=tuple(kinds)).model_dump())


def list_voices(_: Request) -> Response:
    """The voices that the catalog knows, and who sits by default."""
    voices = Voices(
        default=default_models(),
        embedded=embedded_models(),
        families=tuple(
            VoiceKind(
                names=family.names,
                provider_lineage=family.provider_lineage,
                alignment_style=family.alignment_style,
                cognitive_roles=family.cognitive_roles,
            )
            for family in families()
        ),
    )
    return JSONResponse(voices.model_dump())


def default_models() -> tuple[str, ...]:
    """Who sits in a circle when nobody is named."""
    try:
        return configured_by_file(JudgingRequest()).config.models
    except ConfigError:
        return embedded_models()


def list_bank(request: Request) -> Response:
    """The patterns of the bank, the most often seen first."""
    return JSONResponse(bank_entries(request, query_as(BankQuery, request)).model_dump())


def get_entry(request: Request) -> Response:
    """A pattern of the bank with every circle it was seen in."""
    return JSONResponse(entry_asked_for(request).model_dump())


def list_blindspots(request: Request) -> Response:
    """What round 1 overlooked and the dialogue found."""
    return JSONResponse(blindspots(request, query_as(BlindspotQuery, request)).model_dump())


def get_fairness(request: Request) -> Response:
    """Who was heard how often, and how evenly the empty chair went round."""
    return JSONResponse(heard(request).model_dump())


def bank_entries(request: Request, query: BankQuery) -> BankEntries:
    """The entries that a query asks for."""
    return BankEntries(entries=tuple(viewer_of(request).store.bank.find(query, limit=query.limit)))


def entry_asked_for(request: Request) -> FullEntry:
    """The entry that the path names."""
    try:
        return viewer_of(request).store.bank.entry(request.path_params["entry_id"])
    except ConfigError as unknown:
        raise RequestError(404, str(unknown)) from None


def blindspots(request: Request, query: BlindspotQuery) -> BlindspotPage:
    """The blind spots in a stretch of the circles that a query asks for."""
    stretch = _Stretch(viewer_of(request).store.database, query.before)
    # The arms of a run judge the same prompts: its circles count only where they are asked for.
    in_run = query.in_run if query.in_run is not None or query.run_id is not None else False
    filters = Filters(**query.model_dump(exclude={"before", "in_run"}), in_run=in_run)
    overlooked = find_blindspots(stretch, filters)
    return BlindspotPage(**dict(overlooked), next_before=stretch.next_before)


class _Stretch(CircleStore):
    """So many circles of a store as if there were no others: each is read whole, which takes its time."""

    def __init__(self, database: Database, before: int | None) -> None:
        super().__init__(database)
        self._before = before
        self.next_before: int | None = None

    def each_summary(self, filters: Filters | None = None) -> Iterator[CircleSummary]:
        page = self.find(filters, before=self._before, limit=MOST_READ)
        self.next_before = page.next_before
        yield from page.circles


def heard(request: Request) -> FairnessReport:
    """Participation over everybody who was ever heard."""
    return fairness_in(participation_history(viewer_of(request).store))
