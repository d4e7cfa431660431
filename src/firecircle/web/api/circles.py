"""Circles over HTTP: begun, listed, read, followed, labelled, called off, taken out, sent away as a file."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from firecircle.circle.events import VoiceRetried
from firecircle.circle.panel import Panel
from firecircle.circle.result import Usages, account, messages
from firecircle.errors import ConfigError
from firecircle.names import EvaluationMode
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest, configure_by_file
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Page
from firecircle.verdict import VERDICT_WORDS
from firecircle.web.api.reading import body_as, query_as
from firecircle.web.api.shapes import (
    Amount,
    AnswerIn,
    Asked,
    Begun,
    CircleQuery,
    CountQuery,
    Counts,
    Estimate,
    ExportQuery,
    Judging,
    LabelIn,
    Live,
    LiveCircle,
    LiveQuery,
    LiveRetry,
    MessageOut,
    PromptQuery,
)
from firecircle.web.problems import RequestError
from firecircle.web.rendering import exported_html, file_name
from firecircle.web.seats import require_known_voices
from firecircle.web.viewer import circle_asked_for, viewer_of
from firecircle.web.watch import News, Over, Watch

MOST_STREAMS = 1000
MOST_WATCHED = 100
COUNTED_TO = 10_000
"""Nobody who looks at a list needs to know more exactly, and counting a large store would take seconds."""
RECONNECT_MS = 1000
_FIELDS = {"alarm_threshold": "threshold", "max_rounds": "rounds", "failure_mode": "strict"}
"""What the form calls otherwise than the configuration."""


async def estimate(request: Request) -> Response:
    """What judging may take at most."""
    form = await body_as(Judging, request)
    config = configure_by_file(_asked_for(form)).config
    calls = await viewer_of(request).convener.rehearse(_prompt_in(form), config)
    sums = account(calls)
    estimated = Estimate(
        total=_amount(sums.total),
        by_round={str(number): _amount(usages) for number, usages in sums.by_round.items()},
        by_voice={model: _amount(usages) for model, usages in sums.by_voice.items()},
        models=config.first_asked,
    )
    return JSONResponse(estimated.model_dump())


async def evaluate(request: Request) -> Response:
    """Begin to judge. 202 while the circle is running, 200 when it is over already."""
    form = await body_as(Judging, request)
    viewer = viewer_of(request)
    judges = configure_by_file(_asked_for(form))
    circle_id = await viewer.convener.convene(_prompt_in(form), judges.config, form.label, judges.seating)
    summary = await run_in_threadpool(viewer.store.circles.summary, circle_id)
    people = {seat.model: seat.url for seat in viewer.convener.seats(circle_id)}
    url = f"/circles/{quote(summary.id, safe='')}"
    begun = Begun(id=summary.id, status=summary.status, url=url, people=people)
    location = {"location": f"/api/v1/circles/{quote(summary.id, safe='')}"}
    status = 202 if summary.status == "sitting" else 200
    return JSONResponse(begun.model_dump(), status_code=status, headers=location)


async def answer(request: Request) -> Response:
    """Answer for a person in a circle; the token of their link is in the path."""
    convener = viewer_of(request).convener
    seat = convener.seat(request.path_params["token"])
    form = await body_as(AnswerIn, request)
    await convener.take(seat, form.round, form)
    return Response(status_code=204)


def _asked_for(form: Judging) -> JudgingRequest:
    require_known_voices("models", form.models)
    require_known_voices("reserves", form.reserves)
    return JudgingRequest(
        EvaluationMode(form.mode),
        {
            "models": form.models or None,
            "reserves": form.reserves or None,
            "focus": form.focus,
            "max_rounds": form.rounds,
            "alarm_threshold": form.threshold,
            "empty_chair": form.empty_chair,
            "failure_mode": "strict" if form.strict else None,
            "enforce_quorum": None if form.enforce_quorum else False,
            "seed": form.seed,
            "budget_usd": form.budget_usd,
            "budget_tokens": form.budget_tokens,
        },
        written=_FIELDS,
    )


def _prompt_in(form: Judging) -> MultiNeutrosophicPrompt:
    """The prompt to judge; one with nothing in it is refused."""
    turns = None
    if form.turns is not None:
        turns = tuple(EarlierTurn(role=turn.role, content=turn.content) for turn in form.turns)
    prompt = MultiNeutrosophicPrompt(
        system=form.system, application=form.application, user=form.user, turns=turns
    )
    prompt.require_text(form.focus or "prompt")
    return prompt


def _amount(sums: Usages) -> Amount:
    price = None if sums.calls_without_price else sums.cost_usd
    return Amount(calls=sums.calls, tokens_in=sums.tokens_in, tokens_out=sums.tokens_out, cost_usd=price)


def list_circles(request: Request) -> Response:
    """A page of circles, the newest first, or those with the greatest figure."""
    page = page_of_circles(viewer_of(request).store.circles, query_as(CircleQuery, request))
    return JSONResponse(page.model_dump())


def page_of_circles(circles: CircleStore, query: CircleQuery, limit: int | None = None) -> Page:
    """What a list shows; one in another order is paged by `start`."""
    if query.order is None:
        return circles.find(query, before=query.before, limit=limit or query.limit)
    rising, most = query.rising, limit or query.limit
    listed = circles.in_order(query.order, query, rising=rising, start=query.start, limit=most)
    return Page(circles=listed)


def get_circle(request: Request) -> Response:
    """A circle or panel; of one that is still running, what was heard so far."""
    summary = circle_asked_for(request)
    _, document = viewer_of(request).store.circles.document(summary.id)
    circle = {
        "summary": summary.model_dump(),
        "kind": "circle" if summary.mode == "fire_circle" else "panel",
        "document": json.loads(document),
    }
    return JSONResponse(circle)


def get_prompt(request: Request) -> Response:
    """The exact messages that a voice was sent in a round."""
    query = query_as(PromptQuery, request)
    kept = viewer_of(request).store.circles.load(circle_asked_for(request))
    try:
        if isinstance(kept, Panel):
            if query.round != 1 or query.voice not in {call.model for call in kept.calls}:
                raise LookupError(f"{query.voice} was not asked in round {query.round}")
            sent = messages(kept.system_message, kept.evidence, kept.question)
        else:
            sent = kept.messages_for(query.voice, query.round)
    except LookupError as nobody:
        raise RequestError(404, str(nobody)) from None
    shown = tuple(MessageOut(role=message.role, content=message.content) for message in sent)
    return JSONResponse(Asked(messages=shown).model_dump())


def cancel_circle(request: Request) -> Response:
    """Call a circle off, here or in the process that holds it; it ends within a few seconds."""
    viewer, summary = viewer_of(request), circle_asked_for(request, exactly=True)
    if not viewer.convener.cancel(summary.id):
        try:
            summary = viewer.store.circles.ask_to_cancel(summary.id)
        except ConfigError as over:
            raise RequestError(409, str(over)) from None
    return JSONResponse(summary.model_dump(), status_code=202)


async def label_circle(request: Request) -> Response:
    """Say what a circle's prompt really was."""
    form = await body_as(LabelIn, request)
    summary = await run_in_threadpool(circle_asked_for, request, exactly=True)
    circles = viewer_of(request).store.circles
    if form.note is None:
        labelled = await run_in_threadpool(circles.set_label, summary.id, form.label)
    else:
        note = form.note if form.label or form.note.strip() else None
        labelled = await run_in_threadpool(circles.review, summary.id, form.label, note, form.rater)
    return JSONResponse(labelled.model_dump())


def delete_circle(request: Request) -> Response:
    """Take a circle out of the store. One that is running must be cancelled first."""
    summary = circle_asked_for(request, exactly=True)
    if summary.status == "sitting":
        first = "wait until it is over" if summary.run_id else "cancel it first"
        raise RequestError(409, f"{summary.id}: the circle is still running; {first}")
    viewer_of(request).store.circles.delete(summary.id)
    return Response(status_code=204)


def export_circle(request: Request) -> Response:
    """A circle as one file: a page that needs nothing else, or the result as JSON."""
    query, viewer = query_as(ExportQuery, request), viewer_of(request)
    summary = circle_asked_for(request)
    if query.format == "json":
        _, text = viewer.store.circles.document(summary.id)
        kind = "application/json"
    else:
        text = exported_html(viewer.templates, summary, viewer.store.circles.load(summary))
        kind = "text/html; charset=utf-8"
    name = file_name(summary, query.format)
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def count_circles(request: Request) -> Response:
    """How many circles the filters of a list leave, and how many are kept."""
    circles, query = viewer_of(request).store.circles, query_as(CountQuery, request)
    most = None if query.exact else COUNTED_TO
    total = circles.count(most=most)
    counts = Counts(
        matching=circles.count(query, most=most),
        verdicts={
            word: circles.count(query.model_copy(update={"verdict": word}), most=most)
            for word in VERDICT_WORDS
        },
        wrong=circles.count(query.model_copy(update={"verdict": None, "outcome": "wrong"}), most=most),
        total=total,
        counted_to=most,
        about=circles.about_how_many() if total == most else None,
    )
    return JSONResponse(counts.model_dump())


def watch_circles(request: Request) -> Response:
    """How far some circles are, at once: one short question serves all open pages of a browser."""
    asked = dict(_followed(query_as(LiveQuery, request).follow))
    circles = viewer_of(request).store.circles
    live = []
    for circle_id, seq in list(asked.items())[:MOST_WATCHED]:
        try:
            summary = circles.summary(circle_id)
        except ConfigError:
            live.append(LiveCircle(id=circle_id, status=None, seq=seq))
            continue
        news = circles.events_after(summary.pk, seq)
        retries = tuple(
            LiveRetry(model=event.model, attempt=event.attempt, reason=event.reason)
            for _, event in news
            if isinstance(event, VoiceRetried)
        )
        latest = max((number for number, _ in news), default=seq)
        live.append(LiveCircle(id=circle_id, status=summary.status, seq=latest, retries=retries))
    return JSONResponse(Live(circles=tuple(live)).model_dump())


def _followed(lines: str) -> Iterator[tuple[str, int]]:
    """Ids and the numbers of the last known events; a line that says neither is left out."""
    for line in lines.split("\n"):
        number, _, circle_id = line.partition(" ")
        if circle_id and re.fullmatch(r"-1|[0-9]{1,9}", number):
            yield circle_id, int(number)


async def circle_events(request: Request) -> Response:
    """The events after `Last-Event-ID`, as they come; `closed` with the circle's summary at the end."""
    viewer = viewer_of(request)
    after = _last_heard(request)
    summary = await run_in_threadpool(circle_asked_for, request)
    if viewer.watch.followers >= MOST_STREAMS:
        raise RequestError(503, f"{MOST_STREAMS} streams are open already; close one", {"retry-after": "5"})
    return StreamingResponse(
        _stream(viewer.watch, summary, after),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


def _last_heard(request: Request) -> int:
    given = request.headers.get("last-event-id") or request.query_params.get("after") or "-1"
    try:
        after = int(given)
    except ValueError:
        raise RequestError(422, "last-event-id: it must be the number of an event") from None
    if not -1 <= after < 2**31:
        raise RequestError(422, "last-event-id: it must be the number of an event")
    return after


async def _stream(watch: Watch, summary: CircleSummary, after: int) -> AsyncIterator[str]:
    yield f"retry: {RECONNECT_MS}\n\n"
    async for news in watch.follow(summary, after):
        match news:
            case None:
                yield ": still here\n\n"
            case News(seq, event):
                yield f"id: {seq}\nevent: {event.kind}\ndata: {event.model_dump_json()}\n\n"
            case Over(summary=last):
                yield f"event: closed\ndata: {last.model_dump_json() if last else '{}'}\n\n"
