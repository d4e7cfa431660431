"""A sitting circle's events as a stream that survives reloads and dropped connections."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from firecircle.store.finding import CircleSummary
from firecircle.web.problems import RequestError
from firecircle.web.viewer import circle_asked_for, viewer_of
from firecircle.web.watch import News, Over, Watch

MOST_STREAMS = 1000
RECONNECT_MS = 1000


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
