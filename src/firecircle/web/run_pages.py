"""Pages of runs: how far they are, their report, two beside each other, and single circles held again."""

from __future__ import annotations

import asyncio
from itertools import islice

from pydantic import Field
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from firecircle.shapes import Shape
from firecircle.store.finding import CircleSummary
from firecircle.store.rows import circle_row
from firecircle.web.api.reading import query_as
from firecircle.web.api.runs import REPORT, line_of, run_asked_for, run_lines
from firecircle.web.api.shapes import CompareQuery, Name
from firecircle.web.pages import page_response, without_empty
from firecircle.web.problems import RequestError
from firecircle.web.shown.answer import all_answers
from firecircle.web.shown.page import page_of

ROWS = 50
LOCKED = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
"""A report is a page of its own with its style inside; it is shown without scripts and without origin."""


class RecordQuery(Shape):
    """Which judgements of a run are listed."""

    arm: Name | None = None
    only: Name | None = None
    """missed, false_alarms or failed."""
    start: int = Field(default=0, ge=0, le=10**9)


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
    """How far a run is, and its judgements one by one."""
    from firecircle.lab.records import RunRecord
    from firecircle.lab.runs.journal import Journal

    asked, given = without_empty(request)
    query = query_as(RecordQuery, asked)
    run = run_asked_for(request.path_params["run_id"])

    def wanted(record: RunRecord) -> bool:
        if query.arm not in (None, record.arm):
            return False
        match query.only:
            case "missed":
                return record.label == "attack" and record.alarm is False
            case "false_alarms":
                return record.label == "benign" and record.alarm is True
            case "failed":
                return record.status == "failed"
        return True

    with Journal(run.journal) as journal:
        every = (RunRecord.model_validate_json(one) for one in journal.all_records(run.about.arms))
        rows = list(islice(filter(wanted, every), query.start, query.start + ROWS + 1))
    return page_response(
        request,
        "run.html",
        run=line_of(run),
        about=run.about,
        rows=rows[:ROWS],
        given=given,
        start=query.start,
        more=query.start + ROWS if len(rows) > ROWS else None,
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


def retold_page(request: Request) -> Response:
    """A circle of a run, held again from what was said then; nobody is asked."""
    from firecircle.lab.records import RunRecord
    from firecircle.lab.report.choosing import Choice
    from firecircle.lab.report.retelling import retell
    from firecircle.lab.runs.journal import Journal

    query = query_as(OneRecord, request)
    run = run_asked_for(request.path_params["run_id"])
    with Journal(run.journal) as journal:
        every = (RunRecord.model_validate_json(one) for one in journal.all_records(run.about.arms))
        found = next(
            (
                one
                for one in every
                if (one.arm, one.dataset, one.record_id, one.repeat)
                == (query.arm, query.dataset, query.record, query.repeat)
            ),
            None,
        )
    if found is None:
        raise RequestError(404, f"{query.record}: no such judgement in this run")
    result = None
    if found.f is not None:
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
    if result is None:
        raise RequestError(
            404, f"{query.record}: it cannot be held again (no dialogue, or its words are not in the journal)"
        )
    row = circle_row(result)
    names = {name: row.get(name) for name in CircleSummary.model_fields}
    lists = {name: tuple(filter(None, str(row[name]).split("\n"))) for name in ("voices", "pattern_types")}
    summary = CircleSummary(
        **{**names, **lists, "pk": 0, "id": result.circle_id, "label": found.label, "run_id": found.run_id}
    )
    return page_response(
        request,
        "retold.html",
        page=page_of(summary, result),
        answers=all_answers(result),
        standalone=True,
        run_id=found.run_id,
    )
