"""The table of operations: routes and the OpenAPI schema are both read from it, so they cannot differ."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from firecircle.rotation.fairness import FairnessReport
from firecircle.shapes import Shape
from firecircle.store.bank.entries import FullEntry
from firecircle.store.finding import CircleSummary, Page
from firecircle.web.api import circles, judging, learnt, live, lookups, runs, shapes

Handler = Callable[[Request], Response] | Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked."""

    method: str
    path: str
    name: str
    handler: Handler
    answer: type[Shape] | str | None
    """The shape of a good answer, or its media type."""
    statuses: tuple[int, ...] = (200,)
    query: type[Shape] | None = None
    body: type[Shape] | None = None
    refusals: tuple[int, ...] = ()
    """What else can come, beyond what any request may get."""

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.handler.__doc__ or "").strip().splitlines()[0]


ONE = "/circles/{circle_id}"
BODY = (400, 413, 415, 422)

OPERATIONS = (
    Operation(
        "POST",
        "/evaluate",
        "evaluate",
        judging.evaluate,
        shapes.Begun,
        (200, 202),
        body=shapes.Judging,
        refusals=(*BODY, 429, 502),
    ),
    Operation(
        "POST", "/estimate", "estimate", judging.estimate, shapes.Estimate, body=shapes.Judging, refusals=BODY
    ),
    Operation(
        "GET",
        "/circles",
        "list_circles",
        circles.list_circles,
        Page,
        query=shapes.CircleQuery,
        refusals=(422,),
    ),
    Operation("GET", ONE, "get_circle", circles.get_circle, shapes.Circle, refusals=(404,)),
    Operation("DELETE", ONE, "delete_circle", circles.delete_circle, None, (204,), refusals=(404, 409)),
    Operation(
        "GET", f"{ONE}/events", "circle_events", live.circle_events, "text/event-stream", refusals=(404, 422)
    ),
    Operation(
        "GET",
        f"{ONE}/prompt",
        "get_prompt",
        circles.get_prompt,
        shapes.Asked,
        query=shapes.PromptQuery,
        refusals=(404, 422),
    ),
    Operation(
        "POST",
        f"{ONE}/cancel",
        "cancel_circle",
        circles.cancel_circle,
        CircleSummary,
        (202,),
        refusals=(404, 409),
    ),
    Operation(
        "PUT",
        f"{ONE}/label",
        "label_circle",
        circles.label_circle,
        CircleSummary,
        body=shapes.LabelIn,
        refusals=(404, *BODY),
    ),
    Operation(
        "GET",
        f"{ONE}/export",
        "export_circle",
        circles.export_circle,
        "text/html",
        query=shapes.ExportQuery,
        refusals=(404, 422),
    ),
    Operation("GET", "/patterns", "list_patterns", lookups.list_patterns, shapes.PatternKinds),
    Operation("GET", "/voices", "list_voices", lookups.list_voices, shapes.Voices),
    Operation(
        "GET",
        "/bank",
        "list_bank",
        learnt.list_bank,
        shapes.BankEntries,
        query=shapes.BankQuery,
        refusals=(422,),
    ),
    Operation("GET", "/bank/{entry_id}", "get_bank_entry", learnt.get_entry, FullEntry, refusals=(404,)),
    Operation(
        "GET",
        "/blindspots",
        "list_blindspots",
        learnt.list_blindspots,
        shapes.BlindspotPage,
        query=shapes.BlindspotQuery,
        refusals=(422,),
    ),
    Operation("GET", "/rotation", "get_fairness", learnt.get_fairness, FairnessReport),
    Operation("GET", "/runs", "list_runs", runs.list_all_runs, shapes.RunLines),
    Operation("GET", "/runs/{run_id}", "get_run", runs.get_run, shapes.RunLine, refusals=(404,)),
)
