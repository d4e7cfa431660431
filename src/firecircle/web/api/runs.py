"""Runs over HTTP: which there are and how far. They lie in folders of their own, not in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.errors import ConfigError, StoreError, install_command
from firecircle.verdict import VERDICT_WORDS, VerdictWord
from firecircle.web.api.shapes import ArmProgress, RunLine, RunLines, RunOut, Share
from firecircle.web.judgements import Judgement, all_judgements
from firecircle.web.problems import RequestError

if TYPE_CHECKING:
    from firecircle.lab.runs.folder import RunFolder


def list_all_runs(_: Request) -> Response:
    """The saved runs, the newest first, with how far each is."""
    return JSONResponse(RunLines(runs=run_lines()).model_dump())


def get_run(request: Request) -> Response:
    """One run and how far it is."""
    run = run_asked_for(request.path_params["run_id"])
    words = verdicts_by_arm(all_judgements(run))
    return JSONResponse(RunOut(**line_of(run).model_dump(), verdicts=words).model_dump())


def verdicts_by_arm(judgements: Sequence[Judgement]) -> dict[str, dict[VerdictWord, int]]:
    """How many judgements of each arm came to each verdict word."""
    counts: dict[str, dict[VerdictWord, int]] = {}
    for one in judgements:
        words = counts.setdefault(one.arm, dict.fromkeys(VERDICT_WORDS, 0))
        words[one.verdict] += 1
    return counts


def run_lines() -> tuple[RunLine, ...]:
    """Every readable run; none where the lab is not installed."""
    try:
        from firecircle.lab.runs.folder import list_runs
    except ModuleNotFoundError:
        return ()
    lines = []
    for run in list_runs():
        try:
            lines.append(line_of(run))
        except (ConfigError, StoreError):
            continue  # half written, or of another version; `firecircle lab` tells more
    return tuple(lines)


def run_asked_for(name: str) -> RunFolder:
    """The run of this id, among those that are listed: a path is no name of a run here."""
    try:
        from firecircle.lab.runs.folder import list_runs
    except ModuleNotFoundError:
        raise RequestError(404, f"runs: not installed; {install_command('lab')}") from None
    run = next((run for run in list_runs() if run.about.run_id == name), None)
    if run is None:
        raise RequestError(404, f"{name}: no such run; `firecircle lab report` lists them")
    return run


def line_of(run: RunFolder) -> RunLine:
    """How far a run is, from its journal."""
    from firecircle.lab.records import RunJournal
    from firecircle.lab.runs.cases import Tally

    with RunJournal(run.journal) as journal:
        tally = Tally.of(journal, run.about.arms, run.total)
    return RunLine(
        run_id=run.about.run_id,
        state=run.state,
        started_at=run.about.started_at,
        total=run.total,
        arms=tuple(
            ArmProgress(
                arm=name,
                records=arm.records,
                failed=arm.failed,
                recall=_share(arm.found, arm.attacks),
                false_alarm_rate=_share(arm.false_alarms, arm.benign),
                calls=arm.calls,
                tokens=arm.tokens,
                cost_usd=arm.cost_usd,
                voices_lost=arm.voices_lost,
            )
            for name, arm in tally.arms.items()
        ),
        has_report=run.has_table,
    )


def _share(hits: int, of: int) -> Share:
    from firecircle.lab.statistics.estimate import wilson

    found = wilson(hits, of)
    return Share(value=found.value, low=found.low, high=found.high, n=found.n)
