"""Pages of runs: how far they are, their report, two beside each other, and single judgements."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from pydantic import Field
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from firecircle.circle.result import FireCircleResult
from firecircle.errors import FireCircleError
from firecircle.shapes import Shape
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.store.rows import circle_row
from firecircle.web.api.reading import query_as
from firecircle.web.api.runs import REPORT, line_of, run_asked_for, run_lines
from firecircle.web.api.shapes import CompareQuery, Name
from firecircle.web.judgements import Judgement, JudgementQuery, every_record, judgements
from firecircle.web.pages import page_response, without_empty
from firecircle.web.problems import RequestError
from firecircle.web.shown.answer import all_answers
from firecircle.web.shown.page import page_of
from firecircle.web.shown.passages import ShownLayer, shown_layers
from firecircle.web.shown.run_plots import run_plots
from firecircle.web.viewer import viewer_of

if TYPE_CHECKING:
    from firecircle.lab.records import RunRecord
    from firecircle.lab.runs.folder import RunFolder

ROWS = 50
SITTING = 20
"""How many sitting circles a run's page lists; the list of circles has the rest."""
LOCKED = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
"""A report is a page of its own with its style inside; it is shown without scripts and without origin."""


class OneRecord(Shape):
    """Which judgement of a run is held again."""

    arm: Name
    dataset: Name
    record: Name
    repeat: int = Field(default=0, ge=0, le=10**6)


def runs_page(request: Request) -> Response:
    """All runs."""
    return page_response(request, "runs.html", runs=run_lines())


def run_page(request: Request) -> Response:
    """How far a run is, its judgements in plots once it is finished, and one by one."""
    asked, given = without_empty(request)
    query = query_as(JudgementQuery, asked)
    run = run_asked_for(request.path_params["run_id"])
    rows = judgements(run, query, ROWS + 1)
    shown = rows[:ROWS]
    circles = viewer_of(request).store.circles
    of_run = Filters(run_id=run.about.run_id)
    is_finished = run.state == "finished" and run.records.exists()
    more = urlencode({**given, "start": str(query.start + ROWS)}) if len(rows) > ROWS else None
    return page_response(
        request,
        "run.html",
        run=line_of(run),
        rows=shown,
        kept_as=_kept_circles(circles, run, shown),
        sitting=circles.find(of_run.model_copy(update={"status": "sitting"}), limit=SITTING).circles,
        any_kept=bool(circles.find(of_run, limit=1).circles),
        given=given,
        ranges=query.told_ranges(),
        plots=run_plots(run.records, run.plan.alarm_threshold, query.arm) if is_finished else None,
        more=more,
    )


def report_page(request: Request) -> Response:
    """A finished run's report, locked in."""
    run = run_asked_for(request.path_params["run_id"])
    path = run.path / REPORT
    if not path.is_file():
        raise RequestError(
            404, f"report: not written yet; `firecircle lab report {run.about.run_id}` writes it"
        )
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": LOCKED})


def compare_page(request: Request) -> Response:
    """Two finished runs beside each other."""
    from firecircle.lab.compare import compare_runs

    query = query_as(CompareQuery, request)
    beside = compare_runs(run_asked_for(query.first), run_asked_for(query.second))
    return page_response(request, "compare.html", beside=beside)


def judgement_page(request: Request) -> Response:
    """One judgement: its circle held again from what was said then, or else its numbers. Nobody is asked."""
    query = query_as(OneRecord, request)
    run = run_asked_for(request.path_params["run_id"])
    wanted = (query.arm, query.dataset, query.record, query.repeat)
    found = next(
        (
            one
            for one in every_record(run, query.record)
            if (one.arm, one.dataset, one.record_id, one.repeat) == wanted
        ),
        None,
    )
    if found is None:
        raise RequestError(404, f"{query.record}: no such judgement in this run")
    result = _held_again(run, found)
    kept_as = _kept_circles(viewer_of(request).store.circles, run, [found]).get(0)
    if result is None:
        return page_response(
            request,
            "judgement.html",
            found=found,
            kept_as=kept_as,
            layers=_layers(run, found),
            rounds=sorted({one.round_number for one in found.voices}),
            voices=list(dict.fromkeys(one.model for one in found.voices)),
            said={(one.model, one.round_number): one for one in found.voices},
        )
    row = circle_row(result)
    names = {name: row.get(name) for name in CircleSummary.model_fields}
    lists = {name: tuple(filter(None, str(row[name]).split("\n"))) for name in ("voices", "pattern_types")}
    of_run = {name: getattr(found, name) for name in ("run_id", "arm", "record_id", "label")}
    summary = CircleSummary(**{**names, **lists, **of_run, "pk": 0, "id": result.circle_id})
    return page_response(
        request,
        "retold.html",
        page=page_of(summary, result),
        answers=all_answers(result),
        standalone=True,
        run_id=found.run_id,
        kept_as=kept_as,
    )


def _kept_circles(
    circles: CircleStore, run: RunFolder, shown: Sequence[Judgement | RunRecord]
) -> dict[int, str]:
    """The stored circles that came to what these judgements say, by their places; of many there is none."""
    from firecircle.lab.runs.live import is_same, kept_ids

    asked = [kept_ids(run.about, one.arm, one.dataset, one.record_id, one.repeat) for one in shown]
    there = circles.finished([name for names in asked for name in names])
    return {
        place: name
        for place, (one, names) in enumerate(zip(shown, asked, strict=True))
        if (name := next((name for name in names if is_same(there, name, one.f)), None))
    }


def _held_again(run: RunFolder, found: RunRecord) -> FireCircleResult | None:
    from firecircle.lab.report.choosing import Choice
    from firecircle.lab.report.retelling import retell

    if found.f is None:
        return None
    choice = Choice(
        found.arm,
        found.dataset,
        found.record_id,
        found.repeat,
        found.seed,
        found.label,
        found.family,
        found.f,
        found.round1_f or 0.0,
        "asked for",
    )
    (result,) = asyncio.run(retell(run, [choice]))
    return result


def _layers(run: RunFolder, found: RunRecord) -> tuple[ShownLayer, ...]:
    """The prompt as its dataset has it; nothing where the dataset is no longer there."""
    from firecircle.lab.runs.cases import chosen_records

    wanted = (found.dataset, found.record_id)
    try:
        every = chosen_records(run.plan, run.base)
        prompt = next((one.record.prompt for one in every if (one.dataset, one.record.id) == wanted), None)
    except FireCircleError:
        prompt = None
    return shown_layers(prompt, ()) if prompt else ()
