"""Circles over HTTP: listed, read, followed, labelled, called off, taken out, sent away as a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from firecircle.circle.panel import Panel
from firecircle.circle.result import messages
from firecircle.errors import ConfigError
from firecircle.store.finding import CircleSummary
from firecircle.web.api.reading import body_as, query_as
from firecircle.web.api.shapes import (
    Asked,
    CircleQuery,
    ExportQuery,
    LabelIn,
    MessageOut,
    PromptQuery,
)
from firecircle.web.problems import RequestError
from firecircle.web.rendering import exported_html, file_name
from firecircle.web.viewer import circle_asked_for, viewer_of
from firecircle.web.watch import News, Over, Watch

MOST_STREAMS = 1000
RECONNECT_MS = 1000


def list_circles(request: Request) -> Response:
    """A page of circles, the newest first."""
    query = query_as(CircleQuery, request)
    page = viewer_of(request).store.circles.find(query, before=query.before, limit=query.limit)
    return JSONResponse(page.model_dump())


def get_circle(request: Request) -> Response:
    """A circle or panel; of one that still sits, what was heard so far."""
    summary = circle_asked_for(request)
    _, document = viewer_of(request).store.circles.document(summary.id)
    told = {
        "summary": summary.model_dump(),
        "kind": "circle" if summary.mode == "fire_circle" else "panel",
        "document": json.loads(document),
    }
    return JSONResponse(told)


def get_prompt(request: Request) -> Response:
    """The exact messages that a voice was sent in a round."""
    query = query_as(PromptQuery, request)
    kept = viewer_of(request).store.circles.load(circle_asked_for(request).id)
    try:
        if isinstance(kept, Panel):
            if query.round != 1 or query.voice not in {call.model for call in kept.calls}:
                raise LookupError(f"{query.voice} was not asked in round {query.round}")
            sent = messages(kept.system_message, kept.evidence, kept.question)
        else:
            sent = kept.messages_for(query.voice, query.round)
    except LookupError as nobody:
        raise RequestError(404, str(nobody)) from None
    told = Asked(messages=tuple(MessageOut(role=one.role, content=one.content) for one in sent))
    return JSONResponse(told.model_dump())


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
    told = await body_as(LabelIn, request)
    summary = await run_in_threadpool(circle_asked_for, request, exactly=True)
    labelled = await run_in_threadpool(viewer_of(request).store.circles.set_label, summary.id, told.label)
    return JSONResponse(labelled.model_dump())


def delete_circle(request: Request) -> Response:
    """Take a circle out of the store. One that sits must be called off first."""
    summary = circle_asked_for(request, exactly=True)
    if summary.status == "sitting":
        first = "wait until it is over" if summary.run_id else "cancel it first"
        raise RequestError(409, f"{summary.id}: the circle still sits; {first}")
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
        text = exported_html(viewer.templates, summary, viewer.store.circles.load(summary.id))
        kind = "text/html; charset=utf-8"
    name = file_name(summary, query.format)
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


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
