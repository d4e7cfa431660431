"""Figures and reports of finished runs, computed from their records once and kept in memory."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from firecircle.web.problems import RequestError

if TYPE_CHECKING:
    from firecircle.lab.figures.run import RunFigures
    from firecircle.lab.report.page import RunReport
    from firecircle.lab.runs.folder import RunFolder

MOST_JUDGEMENTS = 20_000
"""Judgements whose figures are computed while a run's page is opened: about a second. The report of a larger
run is computed when it is asked for."""


def figures_of(run: RunFolder) -> RunFigures:
    """Every figure of a finished run."""
    return _figures(run.records, run.records.stat().st_mtime_ns, run.plan.alarm_threshold)


def figures_at_once(run: RunFolder) -> RunFigures | None:
    """The figures for a run's own page; None before its end and where they take long."""
    if not run.has_table or run.total * len(run.about.arms) > MOST_JUDGEMENTS:
        return None
    return figures_of(run)


def report_of(run: RunFolder) -> RunReport:
    """The report of a finished run."""
    from firecircle.lab.report.page import report_on_run

    if not run.has_table:
        raise RequestError(404, "report: the run is not finished; its report is here when it is")
    return asyncio.run(report_on_run(run, figures_of(run)))


@lru_cache(maxsize=16)
def _figures(records: Path, _: int, threshold: float) -> RunFigures:
    from firecircle.lab.figures.columns import RecordFile
    from firecircle.lab.figures.run import run_figures

    return run_figures(RecordFile(records), threshold)
