"""The web application: which path is answered by whom."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from firecircle.errors import FireCircleError
from firecircle.store.opening import Store
from firecircle.web import batch_pages, pages, run_pages
from firecircle.web.access import Access
from firecircle.web.api.operations import BASE, OPERATIONS, openapi
from firecircle.web.convener import Convener
from firecircle.web.middleware import LOGIN, Gate
from firecircle.web.problems import RequestError, problem_response, refusal_of, wants_problem
from firecircle.web.rendering import templates
from firecircle.web.seats import SEATS
from firecircle.web.viewer import Viewer
from firecircle.web.watch import Watch


class Site(NamedTuple):
    """An application, and what to call before it ends so that open streams do not hold it up."""

    app: ASGIApp
    leave: Callable[[], None]


def build_site(store: Store, access: Access | None = None) -> Site:
    """The application for one store. The store stays open; whoever opened it closes it."""
    access = access or Access()
    watch = Watch(store)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        viewer = Viewer(store, Convener(store), watch, access, templates())
        app.state.viewer = viewer
        try:
            yield
        finally:
            await watch.close()
            await run_in_threadpool(viewer.convener.close)

    inside = Starlette(
        routes=_routes(),
        exception_handlers=dict.fromkeys(
            (RequestError, HTTPException, FireCircleError, Exception), _answer_refusal
        ),
        lifespan=lifespan,
    )
    # Around everything, so that even the answer to a bug has its safety headers.
    return Site(Gate(inside, access), watch.leave)


def _routes() -> list[Route | Mount]:
    handlers: dict[str, dict[str, Callable[..., Any]]] = {}
    for operation in OPERATIONS:
        handlers.setdefault(BASE + operation.path, {})[operation.method] = operation.handler
    api = [
        Route(path, _by_method(methods), methods=list(methods), name=f"api {path}")
        if len(methods) > 1
        else Route(path, next(iter(methods.values())), methods=list(methods), name=f"api {path}")
        for path, methods in handlers.items()
    ]
    return [
        Route("/", pages.home),
        Route("/circles", pages.circles_page),
        Route("/circles/compare", pages.circles_beside_page),
        Route("/review", pages.review),
        Route("/circles/{circle_id}", pages.circle_page),
        Route("/circles/{circle_id}/dialogue", pages.dialogue_page),
        Route("/circles/{circle_id}/answer", pages.answer_part),
        Route("/convene", pages.convene_page),
        Route(f"{SEATS}{{token}}", pages.seat_page),
        Route("/bank", pages.bank_page),
        Route("/bank/{entry_id}", pages.entry_page),
        Route("/blindspots", pages.blindspots_page),
        Route("/rotation", pages.rotation_page),
        Route("/conversations/{name:path}", batch_pages.conversation_page),
        Route("/batches", batch_pages.batches_page),
        Route("/batches/{name:path}", batch_pages.batch_page),
        Route("/runs", run_pages.runs_page),
        Route("/runs/compare", run_pages.compare_page),
        Route("/runs/{run_id}", run_pages.run_page),
        Route("/runs/{run_id}/report", run_pages.report_page),
        Route("/runs/{run_id}/report.html", run_pages.report_file),
        Route("/runs/{run_id}/figures/{name}.svg", run_pages.report_figure),
        Route("/runs/{run_id}/circle", run_pages.judgement_page),
        Route(LOGIN, pages.login_page, methods=["GET", "POST"]),
        *api,
        Route(f"{BASE}/openapi.json", lambda _: JSONResponse(openapi())),
        Mount("/static", StaticFiles(directory=str(resources.files("firecircle.web") / "static"))),
    ]


def _by_method(methods: dict[str, Callable[..., Any]]) -> Callable[[Request], Any]:
    """One endpoint for a path that answers several methods; plain functions are called on a thread."""

    async def answer(request: Request) -> Any:
        handler = methods["GET" if request.method == "HEAD" else request.method]
        if iscoroutinefunction(handler):
            return await handler(request)
        return await run_in_threadpool(handler, request)

    return answer


def _answer_refusal(request: Request, error: Exception) -> Response:
    refusal = refusal_of(error)
    if wants_problem(request):
        return problem_response(refusal)
    return pages.refusal_page(request, refusal)
