"""Pages of runs: how far they are, their report, two beside each other, and single judgements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from markupsafe import Markup
from pydantic import Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from firecircle.errors import FireCircleError
from firecircle.shapes import Shape
from firecircle.store.circles import CircleStore
from firecircle.store.finding import Filters
from firecircle.store.rows import title_of
from firecircle.telling.answers import all_answers
from firecircle.telling.words import shown_pause
from firecircle.web.api.reading import filled_in, parameters_as, query_as
from firecircle.web.api.runs import line_of, run_asked_for, run_lines, verdicts_by_arm
from firecircle.web.api.shapes import Name, RunLine
from firecircle.web.judgements import (
    MOST,
    MOST_UNFINISHED,
    Judgement,
    JudgementQuery,
    all_judgements,
    every_record,
    paired_rows,
    rows_of,
    word_of,
)
from firecircle.web.pages import csv_response, page_response
from firecircle.web.problems import RequestError
from firecircle.web.reports import figures_at_once, figures_of, report_of
from firecircle.web.shown.page import Caption, page_of
from firecircle.web.shown.passages import ShownLayer, earlier_turns, shown_layers
from firecircle.web.shown.prompt_table import ListQuery, TableQuery, TableView, csv_of, list_view, table_view
from firecircle.web.shown.run_plots import run_plots
from firecircle.web.viewer import viewer_of

if TYPE_CHECKING:
    from firecircle.lab.figures.run import RunFigures
    from firecircle.lab.records import RunRecord
    from firecircle.lab.report.sentences import Sentence
    from firecircle.lab.runs.folder import RunFolder

SITTING = 20
"""How many sitting circles a run's page lists; the list of circles has the rest."""
LOCKED = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What is drawn or saved from a report has its style inside and runs nothing."""


def _cost(run: RunLine) -> float | None:
    costs = [arm.cost_usd for arm in run.arms if arm.cost_usd is not None]
    return sum(costs) if costs else None


COLUMNS: dict[str, Callable[[RunLine], str | float | None]] = {
    "run": lambda run: run.run_id,
    "state": lambda run: run.state,
    "progress": lambda run: sum(arm.records for arm in run.arms) / (run.total * len(run.arms) or 1),
    "arms": lambda run: len(run.arms),
    "cost": _cost,
    "began": lambda run: run.started_at,
}


class OneRecord(Shape):
    """Which judgement of a run is held again."""

    arm: Name
    dataset: Name
    record: Name
    repeat: int = Field(default=0, ge=0, le=10**6)


class ComparedRuns(TableQuery):
    """Which runs are compared, and which of their arms prompt by prompt."""

    first: Name
    second: Name
    arm: Name | None = None


def runs_page(request: Request) -> Response:
    """All runs."""
    given = filled_in(request)
    listed = list_view(run_lines(), COLUMNS, parameters_as(ListQuery, given), given)
    if isinstance(listed, str):
        return csv_response(listed, "runs")
    return page_response(request, "runs.html", table=listed)


def run_page(request: Request) -> Response:
    """How far a run is, its judgements in plots once it is finished, and one by one."""
    given = filled_in(request)
    query = parameters_as(JudgementQuery, given)
    run = run_asked_for(request.path_params["run_id"])
    judgements, threshold = all_judgements(run), run.plan.alarm_threshold
    arms = [arm for arm in run.about.arms if query.arm in (None, arm)]
    table = table_view(arms, rows_of(judgements, query, arms, threshold), query, given)
    if query.format == "csv":
        return csv_response(csv_of(table), run.about.run_id)
    circles = viewer_of(request).store.circles
    of_run = Filters(run_id=run.about.run_id)
    figures = figures_at_once(run)
    figured = {arm.arm: arm.performance for arm in figures.arms} if figures else {}
    return page_response(
        request,
        "run.html",
        run=line_of(run),
        sentences=_in_short(figures),
        figured=figured,
        pause=shown_pause(run.pause.host, run.pause.why, run.pause.resumes_at) if run.pause else None,
        mendable=run.mendable,
        damage=run.damage.lines,
        table=_linked(table, circles, (run, judgements)),
        words=verdicts_by_arm(judgements),
        is_cut=len(judgements) in (MOST, MOST_UNFINISHED),
        sitting=circles.find(of_run.model_copy(update={"status": "sitting"}), limit=SITTING).circles,
        any_kept=bool(circles.find(of_run, limit=1).circles),
        given=given,
        threshold=threshold,
        ranges=query.ranges,
        plots=run_plots(run.records, threshold, query.arm, figured) if run.has_table else None,
    )


def _linked(
    table: TableView, circles: CircleStore, *sources: tuple[RunFolder, Sequence[Judgement]]
) -> TableView:
    """The shown rows with the addresses of their circles: as they were kept, else held again.

    There is one source for all columns, or one for each.
    """
    places = [0] * len(table.columns) if len(sources) == 1 else range(len(sources))
    links: dict[tuple[int, int], str] = {}
    for place, (run, judgements) in enumerate(sources):
        entries = [
            entry
            for row in table.rows
            for entry, of in zip(row.entries, places, strict=True)
            if entry and of == place
        ]
        listed = [judgements[entry.number] for entry in entries]
        kept_as = _kept_circles(circles, run, listed)
        address = f"/runs/{quote(run.about.run_id, safe='')}/circle"
        for at, (entry, one) in enumerate(zip(entries, listed, strict=True)):
            asked = {"arm": one.arm, "dataset": one.dataset, "record": one.record_id, "repeat": one.repeat}
            kept = kept_as.get(at)
            links[place, entry.number] = (
                f"/circles/{quote(kept, safe='')}" if kept else f"{address}?{urlencode(asked)}"
            )
    rows = tuple(
        replace(
            row,
            entries=tuple(
                one and replace(one, href=links[of, one.number])
                for one, of in zip(row.entries, places, strict=True)
            ),
        )
        for row in table.rows
    )
    return replace(table, rows=rows)


def _in_short(figures: RunFigures | None) -> list[tuple[Sentence, str]]:
    """What the report says first and what to be careful about, each with the word before it."""
    if figures is None:
        return []
    from firecircle.lab.report.page import TONE_WORDS
    from firecircle.lab.report.summary import summary

    return [(one, TONE_WORDS[one.tone]) for one in summary(figures) if one.part != "rest"]


def report_page(request: Request) -> Response:
    """A finished run's report as a page of the viewer."""
    from firecircle.lab.report.page import render_inside

    run = run_asked_for(request.path_params["run_id"])
    # Its own template escapes every value, as the viewer's do.
    return page_response(
        request, "report.html", run_id=run.about.run_id, report=Markup(render_inside(report_of(run)))
    )


def report_file(request: Request) -> Response:
    """The report as one file, as `firecircle lab report` writes it."""
    from firecircle.lab.report.page import render

    run = run_asked_for(request.path_params["run_id"])
    headers = {
        "content-security-policy": LOCKED,
        "content-disposition": 'attachment; filename="report.html"',
    }
    return HTMLResponse(render(report_of(run)), headers=headers)


def report_figure(request: Request) -> Response:
    """One plot of a report."""
    from firecircle.lab.report.plots import plots

    run, name = run_asked_for(request.path_params["run_id"]), request.path_params["name"]
    drawn = plots(figures_of(run)) if run.has_table else ()
    plot = next((plot for plot in drawn if plot.name == name), None)
    if plot is None:
        raise RequestError(404, f"{name}: no such plot of this run")
    return Response(plot.svg, media_type="image/svg+xml", headers={"content-security-policy": LOCKED})


def compare_page(request: Request) -> Response:
    """Two finished runs compared: figures of their arms, and the prompts of one arm, the turned first."""
    from firecircle.lab.compare import compare_runs

    given = filled_in(request)
    query = parameters_as(ComparedRuns, given)
    runs = run_asked_for(query.first), run_asked_for(query.second)
    comparison = compare_runs(*runs)
    arms = {arm.arm: arm.beside for arm in comparison.arms}
    arm = query.arm if query.arm in arms else next((name for name, of in arms.items() if of.flips), None)
    arm = arm or next(iter(arms))
    sources = [(run, all_judgements(run)) for run in runs]
    rows = paired_rows(
        [judgements for _, judgements in sources],
        arm,
        comparison.thresholds,
        {flip.id: flip for flip in arms[arm].flips},
    )
    table = table_view([run.about.run_id for run in runs], rows, query, given)
    if query.format == "csv":
        return csv_response(csv_of(table), f"{query.first}-{query.second}-{arm}")
    linked = _linked(table, viewer_of(request).store.circles, *sources)
    return page_response(
        request,
        "compare.html",
        comparison=comparison,
        table=linked,
        arm=arm,
        turned=sum(len(of.flips) for of in arms.values()),
        shared=sum(of.shared for of in arms.values()),
    )


def judgement_page(request: Request) -> Response:
    """One judgement: its circle again from what was said, or else its numbers. No voice is asked."""
    from firecircle.lab.report.retelling import retell

    query = query_as(OneRecord, request)
    run = run_asked_for(request.path_params["run_id"])
    asked_for = (query.arm, query.dataset, query.record, query.repeat)
    judgement = next(
        (
            record
            for record in every_record(run, query.record)
            if (record.arm, record.dataset, record.record_id, record.repeat) == asked_for
        ),
        None,
    )
    if judgement is None:
        raise RequestError(404, f"{query.record}: no such judgement in this run")
    (result,) = asyncio.run(retell(run, [judgement]))
    kept_as = _kept_circles(viewer_of(request).store.circles, run, [judgement]).get(0)
    if result is None:
        layers, words = _prompt_of(run, judgement)
        return page_response(
            request,
            "judgement.html",
            judgement=judgement,
            word=word_of(judgement),
            kept_as=kept_as,
            threshold=run.plan.alarm_threshold,
            layers=layers,
            earlier_turns=words,
            rounds=sorted({voice.round_number for voice in judgement.voices}),
            voices=list(dict.fromkeys(voice.model for voice in judgement.voices)),
            answers={(voice.model, voice.round_number): voice for voice in judgement.voices},
        )
    caption = Caption(
        result.circle_id,
        result.stopped,
        title_of(result.prompt),
        judgement.label,
        judgement.run_id,
        judgement.arm,
        judgement.record_id,
    )
    return page_response(
        request,
        "retold.html",
        page=page_of(caption, result),
        answers=all_answers(result),
        standalone=True,
        run_id=judgement.run_id,
        kept_as=kept_as,
        threshold=result.config.alarm_threshold,
    )


def _kept_circles(
    circles: CircleStore, run: RunFolder, listed: Sequence[Judgement | RunRecord]
) -> dict[int, str]:
    """The stored circles that came to what these judgements say, by their places; of many there is none."""
    from firecircle.lab.runs.live import is_same, stored_ids

    candidates = [
        stored_ids(run.about, judgement.arm, judgement.dataset, judgement.record_id, judgement.repeat)
        for judgement in listed
    ]
    there = circles.finished([name for names in candidates for name in names])
    return {
        place: name
        for place, (judgement, names) in enumerate(zip(listed, candidates, strict=True))
        if (name := next((name for name in names if is_same(there, name, judgement.f)), None))
    }


def _prompt_of(run: RunFolder, judgement: RunRecord) -> tuple[tuple[ShownLayer, ...], str]:
    """The prompt as its dataset has it, with what is known of earlier turns; nothing where that is gone."""
    from firecircle.lab.runs.cases import chosen_records

    place = (judgement.dataset, judgement.record_id)
    try:
        every = chosen_records(run.plan, run.base)
        prompt = next((row.record.prompt for row in every if (row.dataset, row.record.id) == place), None)
    except FireCircleError:
        prompt = None
    return (shown_layers(prompt, ()), earlier_turns(prompt, prompt.turn_number)) if prompt else ((), "")
