"""The pages people look at."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from firecircle.errors import ConfigError
from firecircle.examples import load_examples
from firecircle.names import CIRCLE_STATUSES, PATTERN_TYPES, embedded_models
from firecircle.request import JudgingRequest, configure_by_file
from firecircle.settings import current_settings, forget_settings
from firecircle.store.circles import CircleStore
from firecircle.store.finding import LARGEST_PAGE, CircleSummary, Filters, Page
from firecircle.telling.answers import answer_of
from firecircle.telling.table import last_words
from firecircle.voices.person import USUAL, question_of
from firecircle.web.api.circles import page_of_circles
from firecircle.web.api.lookups import bank_entries, blindspots, entry_asked_for, heard
from firecircle.web.api.reading import filled_in, parameters_as, query_as
from firecircle.web.api.shapes import (
    BankEntries,
    BankQuery,
    BlindspotQuery,
    CircleQuery,
    CompareQuery,
    PromptQuery,
    ReviewQuery,
)
from firecircle.web.middleware import LOGIN, caller_of, refused_guess, right_of_guess, with_cookie
from firecircle.web.problems import RequestError, plain_detail, refusal_of, title_of
from firecircle.web.rendering import turns_json
from firecircle.web.reviewing import reviews
from firecircle.web.shown.page import CirclePage, caption_of, page_of
from firecircle.web.shown.passages import changes, earlier_turns, shown_layers
from firecircle.web.shown.prompt_table import Listing, TableQuery, csv_of, row_of, table_view
from firecircle.web.viewer import circle_asked_for, viewer_of

if TYPE_CHECKING:
    from firecircle.lab.compare import VoiceInBoth

MOST_SIGHTINGS = 200
MOST_GROUPS = 200
MOST_FOUND = 4
"""Pattern types that the first page names."""
SITTING = 3
"""Circles that sit at this moment and are named there."""
LARGEST_FORM = 10_000
PAGING = ("order", "rising", "before", "start", "limit")


def home(_: Request) -> Response:
    """The list is the front page."""
    return RedirectResponse("/circles", status_code=307)


async def login_page(request: Request) -> Response:
    """Where a reader gives a token of the server."""
    access, trouble = viewer_of(request).access, ""
    if request.method == "POST":
        if refused := refused_guess(request, access):
            raise refused
        token = await _token_in(request)
        if right_of_guess(request, access, token):
            return with_cookie(RedirectResponse("/circles", status_code=303), request, access, token)
        trouble = "That is not the token."
    status = 401 if trouble else 200
    return page_response(request, "login.html", status=status, trouble=trouble, action=LOGIN)


async def _token_in(request: Request) -> str:
    """The only field of the form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise RequestError(413, "the form is too long")
    return parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]


def circles_page(request: Request) -> Response:
    """The list of circles, filtered; an empty field filters nothing. Circles of runs are apart."""
    circles, given = viewer_of(request).store.circles, filled_in(request)
    trouble = ""
    query, page, asked = CircleQuery(), Page(circles=()), dict[str, str]()
    as_csv = given.pop("format", "") == "csv"
    try:
        asked = _with_times(given)
        if asked.setdefault("in_run", "any" if "run_id" in asked else "false") == "any":
            del asked["in_run"]
        query = parameters_as(CircleQuery, asked)
        page = page_of_circles(circles, query, LARGEST_PAGE if as_csv else query.limit)
    except (RequestError, ConfigError) as wrong:
        trouble = plain_detail(RequestError(422, str(wrong)))
    if as_csv and not trouble:
        rows = [row_of(one.id, one.label, one.title, one) for one in page.circles]
        return csv_response(csv_of(table_view(("circle",), rows, TableQuery(format="csv"), given)), "circles")
    filters = {name: value for name, value in given.items() if name not in ("before", "start")}
    older = None
    if page.next_before:
        older = urlencode({**filters, "before": page.next_before})
    elif query.order and len(page.circles) == query.limit:
        older = urlencode({**filters, "start": query.start + query.limit})
    sitting = () if given else circles.find(Filters(status="sitting"), limit=SITTING + 1).circles
    return page_response(
        request,
        "circles.html",
        status=422 if trouble else 200,
        circles=page.circles,
        hits=circles.hits(page.circles, query.text) if query.text else {},
        found=Counter(kind for one in page.circles for kind in one.pattern_types).most_common(MOST_FOUND),
        sitting=sitting[:SITTING],
        reviews=reviews(circles) if query.reviewed else None,
        more_sitting=len(sitting) > SITTING,
        older=older,
        is_later=query.before is not None or query.start > 0,
        given=filters,
        table=Listing(filters, query.order, query.rising),
        counted=urlencode({name: value for name, value in asked.items() if name not in PAGING}),
        trouble=trouble,
        store_name=viewer_of(request).store.name,
        pattern_types=PATTERN_TYPES,
        statuses=CIRCLE_STATUSES,
    )


def circle_page(request: Request) -> Response:
    """A circle or panel. In a blind review its prompt alone, until its reader has said what it is."""
    circles, summary = viewer_of(request).store.circles, circle_asked_for(request)
    query = query_as(ReviewQuery, request)
    judged = circles.load(summary)
    is_blind = query.blind and query.rater not in summary.said_by and (query.rater or summary.label is None)
    caption = caption_of(summary)
    if query.rater:  # what others said is shown apart, and not before this person has said it
        label, note = summary.said_by.get(query.rater, (None, None))
        caption = replace(caption, label=label, note=note)
    return page_response(
        request,
        "circle.html",
        page=page_of(caption, judged),
        blind=shown_layers(judged.prompt, ()) if is_blind else None,
        query=query,
        reviews=reviews(circles, query.rater) if query.review else None,
        said_by=() if is_blind else summary.said_by,
        people=viewer_of(request).convener.seats(summary.id),
        only_here=viewer_of(request).access.only_here,
        standalone=False,
        **_neighbours(circles, summary),
    )


def _neighbours(circles: CircleStore, summary: CircleSummary) -> dict[str, Any]:
    return dict(zip(("newer", "older"), circles.neighbours(summary.pk), strict=True))


def review(request: Request) -> Response:
    """Lead to the circle whose label would teach most, or to the one that comes after another."""
    query = query_as(ReviewQuery, request)
    waiting = [one.id for one, _ in reviews(viewer_of(request).store.circles, query.rater).waiting]
    place = waiting.index(query.after) + 1 if query.after in waiting else 0
    if place == len(waiting):
        return RedirectResponse("/circles?reviewed=true", status_code=303)
    asked = urlencode(
        {
            "review": "true",
            **({"blind": "true"} if query.blind else {}),
            **({"rater": query.rater} if query.rater else {}),
        }
    )
    return RedirectResponse(f"/circles/{quote(waiting[place], safe='')}?{asked}", status_code=303)


def dialogue_page(request: Request) -> Response:
    """What the voices of a circle said, from top to bottom."""
    viewer, summary = viewer_of(request), circle_asked_for(request)
    page = page_of(caption_of(summary), viewer.store.circles.load(summary))
    if not isinstance(page, CirclePage):
        raise RequestError(404, f"{summary.id}: its voices were asked independently; it has no dialogue")
    near = _neighbours(viewer.store.circles, summary)
    return page_response(
        request, "dialogue.html", page=page, blind=None, query=ReviewQuery(), said_by=(), **near
    )


def circles_beside_page(request: Request) -> Response:
    """Two circles beside each other."""
    from firecircle.lab.compare import compare_circles

    query, circles = query_as(CompareQuery, request), viewer_of(request).store.circles
    try:
        comparison = compare_circles(circles, query.first, query.second)
    except ConfigError as unknown:
        raise RequestError(404, str(unknown)) from None
    first, second = circles.summary(comparison.first), circles.summary(comparison.second)
    judged = circles.load(first), circles.load(second)
    layers = changes(judged[0].prompt, judged[1].prompt)
    said = last_words(judged[0]), last_words(judged[1])

    def moved(voice: VoiceInBoth) -> float:
        one, other = (words.get(voice.voice) for words in said)
        return abs(other.last - one.last) if one and other else -1.0

    return page_response(
        request,
        "compare_circles.html",
        comparison=comparison,
        first=first,
        second=second,
        changed=[layer for layer in layers if layer.pieces],
        same=[layer.name for layer in layers if not layer.pieces],
        # What a prompt differs in is shown word by word.
        differences=[words for words in comparison.differences if not words.startswith("data: ")],
        voices=sorted(comparison.voices, key=moved, reverse=True),
        words_of=said,
    )


def answer_part(request: Request) -> Response:
    """What stands behind one cell of the grid."""
    query = query_as(PromptQuery, request)
    summary = circle_asked_for(request)
    judged = viewer_of(request).store.circles.load(summary)
    try:
        answer = answer_of(judged, query.voice, query.round)
    except LookupError as nobody:
        raise RequestError(404, str(nobody)) from None
    return page_response(
        request,
        "answer.html",
        answer=answer,
        opening=(judged.system_message, judged.evidence),
        threshold=judged.config.alarm_threshold,
        standalone=False,
    )


def seat_page(request: Request) -> Response:
    """Where a person in a circle answers: the prompt, and from round 2 what the others state."""
    seat = viewer_of(request).convener.seat(request.path_params["token"])
    turn, known = seat.turn, {"etag": f'"{seat.stage}"'}
    if request.headers.get("if-none-match") == known["etag"]:
        return Response(status_code=304, headers=known)
    page = page_response(
        request,
        "seat.html",
        seat=seat,
        question=question_of(turn) if turn else None,
        layers=shown_layers(turn.prompt, ()) if turn else (),
        earlier_turns=earlier_turns(turn.prompt, turn.turn_number) if turn else "",
        usual=USUAL,
        pattern_types=(*PATTERN_TYPES, "other"),
    )
    page.headers.update(known)
    return page


def convene_page(request: Request) -> Response:
    """The form to convene a circle, empty or with the prompt of another circle or of an example."""
    if not caller_of(request).may_write:
        raise RequestError(403, "this token only reads")
    prompt = None
    if given := request.query_params.get("from"):
        try:
            prompt = viewer_of(request).store.circles.load(given).prompt
        except ConfigError as unknown:
            raise RequestError(404, str(unknown)) from None
    elif example := request.query_params.get("example"):
        prompt = next((one.prompt for one in load_examples() if one.id == example), None)
    forget_settings()
    trouble, ignored, models = "", None, embedded_models()
    try:
        models = configure_by_file(JudgingRequest()).config.models
        ignored = current_settings().note() if current_settings().ignored else None
    except ConfigError as wrong:
        trouble = plain_detail(refusal_of(wrong))
    return page_response(
        request,
        "convene.html",
        prompt=prompt,
        turns=turns_json(prompt) if prompt else "",
        examples=load_examples(),
        trouble=trouble,
        ignored=ignored,
        default_models=models,
        embedded=embedded_models(),
    )


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
    # Counted by the very filters of the list that the number leads to.
    missed = {"mode": "fire_circle", "outcome": "missed", **_which_runs(query)}
    return page_response(
        request,
        "blindspots.html",
        missed=viewer_of(request).store.circles.count(parameters_as(CircleQuery, missed)),
        missed_query=urlencode(missed),
        blindspots=page,
        labelled=page.groups[:MOST_GROUPS],
        unlabelled=page.unlabelled[:MOST_GROUPS],
        older=older,
        is_newest=query.before is None,
        leaves_runs_out=not query.in_run and query.run_id is None,
    )


def _which_runs(query: BlindspotQuery) -> dict[str, str]:
    if query.run_id is not None:
        return {"run_id": query.run_id}
    return {"in_run": "true" if query.in_run else "false"}


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


def page_response(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page made from a template."""
    viewer, caller = viewer_of(request), caller_of(request)
    text = viewer.templates.get_template(template).render(
        write_token=caller.write_token, caller=caller, path=request.scope["path"], **values
    )
    return HTMLResponse(text, status_code=status)


def csv_response(table: str, name: str) -> Response:
    """A file for a spreadsheet."""
    told = re.sub(r"[^0-9A-Za-z_-]", "_", name)[:60]
    headers = {"content-disposition": f'attachment; filename="{told}.csv"'}
    return Response(table, media_type="text/csv", headers=headers)


def refusal_page(request: Request, refusal: RequestError) -> Response:
    """A refusal for people."""
    response = page_response(
        request,
        "refusal.html",
        status=refusal.status,
        title=title_of(refusal.status),
        detail=plain_detail(refusal),
    )
    response.headers.update(refusal.headers)
    return response


def _with_times(given: dict[str, str]) -> dict[str, str]:
    """The form with its days as the API takes them; the last day counts whole."""
    rest = {name: value for name, value in given.items() if name not in ("from", "to")}
    try:
        if first := given.get("from"):
            rest["since"] = str(datetime.fromisoformat(first).timestamp())
        if last := given.get("to"):
            rest["until"] = str((datetime.fromisoformat(last) + timedelta(days=1)).timestamp())
    except (ValueError, OverflowError):
        raise RequestError(422, "from, to: write a day as 2026-01-31") from None
    return rest
