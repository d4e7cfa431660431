"""Pages of what circles taught: the bank, blind spots, and who was heard."""

from __future__ import annotations

from statistics import fmean
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from firecircle.errors import ConfigError
from firecircle.names import PATTERN_TYPES
from firecircle.web.api.learnt import bank_entries, blindspots, entry_asked_for, heard
from firecircle.web.api.reading import filled_in, parameters_as
from firecircle.web.api.shapes import BankEntries, BankQuery, BlindspotQuery
from firecircle.web.pages import page_response
from firecircle.web.problems import RequestError, plain_detail

MOST_SIGHTINGS = 200
MOST_GROUPS = 200


def bank_page(request: Request) -> Response:
    """The bank, searched and filtered."""
    given = filled_in(request)
    trouble, page = "", BankEntries(entries=())
    try:
        page = bank_entries(request, parameters_as(BankQuery, given))
    except (RequestError, ConfigError) as wrong:
        trouble = plain_detail(RequestError(422, str(wrong)))
    return page_response(
        request,
        "bank.html",
        status=422 if trouble else 200,
        entries=page.entries,
        given=given,
        trouble=trouble,
        pattern_types=PATTERN_TYPES,
    )


def entry_page(request: Request) -> Response:
    """One pattern and the circles it was seen in."""
    return page_response(request, "bank_entry.html", entry=entry_asked_for(request), most=MOST_SIGHTINGS)


def blindspots_page(request: Request) -> Response:
    """What judging alone overlooked."""
    given = filled_in(request)
    query = parameters_as(BlindspotQuery, given)
    page = blindspots(request, query)
    older = urlencode({**given, "before": page.next_before}) if page.next_before is not None else None
    return page_response(
        request,
        "blindspots.html",
        blindspots=page,
        groups=page.groups[:MOST_GROUPS],
        older=older,
        is_newest=query.before is None,
        leaves_runs_out=not query.in_run and query.run_id is None,
    )


def rotation_page(request: Request) -> Response:
    """Who was heard how often, and how even that is."""
    report = heard(request)
    counts = [voice.count for voice in report.voices] or [0]
    chairs = [voice.chair_count for voice in report.voices] or [0]
    return page_response(
        request,
        "rotation.html",
        report=report,
        most=max(counts) or 1,
        even=fmean(counts),
        most_chairs=max(chairs) or 1,
        even_chairs=fmean(chairs),
    )
