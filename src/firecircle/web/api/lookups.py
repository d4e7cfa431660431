"""What can be looked up: the bank, blind spots of judging alone, who was heard."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.errors import ConfigError
from firecircle.rotation.selector import FairnessReport, fairness_in
from firecircle.rotation.tracker import stored_history
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
)
from firecircle.web.problems import RequestError
from firecircle.web.viewer import viewer_of

MOST_READ = 100
"""Circles read for one page of blind spots: about a second of work."""


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
    return fairness_in(stored_history(viewer_of(request).store))
