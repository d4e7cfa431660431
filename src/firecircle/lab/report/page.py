"""The report of a run: one HTML file that needs nothing else, its figures as JSON, each plot as a file."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError, install_command
from firecircle.files import write_whole
from firecircle.lab.figures.columns import RecordFile
from firecircle.lab.figures.run import RULE_WORDS, VERDICT_WORDS, ArmFigures, RunFigures, run_figures
from firecircle.lab.redteam import is_redteam, redteam_of
from firecircle.lab.report.plots import Plot, plots
from firecircle.lab.report.retelling import Choice, instructive, retell
from firecircle.lab.report.sentences import Sentence, shares
from firecircle.lab.report.summary import SIGNIFICANT, p_value, summary, verdict_of
from firecircle.lab.report.verdicts import VerdictTable, verdict_tables
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.statistics.estimate import Estimate
from firecircle.lab.statistics.performance import Group, Performance
from firecircle.lab.statistics.voices import ErrorCorrelation
from firecircle.metrics import metrics_of_circle
from firecircle.telling.patterns import agreement_words
from firecircle.telling.safe_text import (
    line_quoting,
    line_with_codes,
    name_with_codes,
    with_codes,
    without_formula,
)
from firecircle.telling.table import VoiceRow, rows_of_circle
from firecircle.telling.talking import talk_sentences
from firecircle.telling.verdict import Cautions, cautions_of_circle, circle_sentences
from firecircle.telling.words import ROUND_WORDS, counted
from firecircle.thresholds import format_figure

REPORT, FIGURES, PICTURES = "report.html", "figures.json", "figures"
LONGEST_TEXT = 4000
"""Of a layer or a reasoning shown in a report; the store has the rest."""


@dataclass(frozen=True, slots=True)
class InstructiveDialogue:
    """A dialogue worth reading, with every word of it when the circle could be held again."""

    choice: Choice
    result: FireCircleResult | None
    rows: tuple[VoiceRow, ...] = ()
    sentences: tuple[str, ...] = ()
    """Whose word the verdict was, and what the discussion did."""
    cautions: Cautions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What a report left on disk."""

    page: Path
    figures: Path
    records: Path
    pictures: tuple[Path, ...]
    sentences: tuple[Sentence, ...]
    """What the run shows, in words."""
    verdicts: tuple[VerdictTable, ...]
    """Which prompts were judged wrongly, or raised an alarm where there are no labels."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """Everything that the report of a run shows."""

    run: RunFolder
    figures: RunFigures
    drawn: tuple[Plot, ...]
    verdicts: tuple[VerdictTable, ...]
    dialogues: tuple[InstructiveDialogue, ...]


async def report_on_run(run: RunFolder, figures: RunFigures | None = None) -> RunReport:
    """The report of a finished run; its figures are computed unless they are given."""
    run.require_finished()
    figures = figures or run_figures(RecordFile(run.records), run.plan.alarm_threshold)
    chosen = instructive(run.records, run.plan.alarm_threshold)
    retold = await retell(run, chosen)
    return RunReport(
        run,
        figures,
        tuple(plots(figures)),
        verdict_tables(run, figures.reference),
        tuple(_dialogue(choice, result) for choice, result in zip(chosen, retold, strict=True)),
    )


async def write_report(run: RunFolder, out: Path | None = None) -> ReportFiles:
    """Write the report of a finished run, beside its records unless another folder is named."""
    report = await report_on_run(run)
    place = out or run.path / "report"
    figures, verdicts = report.figures, report.verdicts
    try:
        place.mkdir(parents=True, exist_ok=True)
        pictures = _draw(place / PICTURES, report.drawn)
        write_whole(place / FIGURES, figures.model_dump_json(indent=2) + "\n")
        page = place / REPORT
        write_whole(page, render(report))
        (place / run.records.name).unlink(missing_ok=True)
        shutil.copyfile(run.records, place / run.records.name)
    except OSError as unwritable:
        raise StoreError(f"--out: cannot write to {place}: {unwritable.strerror or unwritable}") from None
    return ReportFiles(page, place / FIGURES, place / run.records.name, pictures, summary(figures), verdicts)


def _draw(place: Path, drawn: Sequence[Plot]) -> tuple[Path, ...]:
    place.mkdir(exist_ok=True)
    written = []
    for plot in drawn:
        path = place / f"{plot.name}.svg"
        write_whole(path, plot.svg)
        written.append(path)
    return tuple(written)


def _dialogue(choice: Choice, result: FireCircleResult | None) -> InstructiveDialogue:
    if result is None:
        return InstructiveDialogue(choice, None)
    line = line_quoting((*result.config.models, *(seat.model for seat in result.substitutions)))
    return InstructiveDialogue(
        choice,
        result,
        rows_of_circle(result),
        (*circle_sentences(result, metrics_of_circle(result), line), *talk_sentences(result, line)),
        cautions_of_circle(result, line),
    )


def render(report: RunReport) -> str:
    """The report as one file, its pictures inside."""
    return _rendered(report, "report.html", picture)


def render_inside(report: RunReport) -> str:
    """The report as a part of another page, which has its pictures at `figures/NAME.svg`."""
    return _rendered(report, "report_body.html", lambda plot: f"{PICTURES}/{plot.name}.svg")


def _rendered(report: RunReport, template: str, source_of: Callable[[Plot], str]) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import escape
    except ModuleNotFoundError:
        raise ConfigError("report", f"needs the extra `lab`: {install_command('lab')}") from None
    run, figures, dialogues = report.run, report.figures, report.dialogues
    pages = Environment(
        loader=PackageLoader("firecircle.lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    pages.filters.update(
        FILTERS,
        share=shares,
        picture=source_of,
        cut=cut,
        line=line_of,
        count_of=counted,
        name=name_of,
        coded=escape,
        falsehood=lambda value: format_figure(value, figures.threshold),
    )
    return pages.get_template(template).render(
        run=run,
        about=run.about,
        plan=(run.path / "plan.toml").read_text(encoding="utf-8"),
        figures=figures,
        sentences=summary(figures),
        plots=report.drawn,
        tables=report.verdicts,
        shown_at={
            (one.choice.dataset, one.choice.record_id): place for place, one in enumerate(dialogues, 1)
        },
        dialogues=dialogues,
        round_words=ROUND_WORDS,
        grouped=grouped(figures),
        tone_words=TONE_WORDS,
        started=time.strftime("%Y-%m-%d", time.gmtime(run.about.started_at)),
        rules=RULE_WORDS,
        verdicts=VERDICT_WORDS,
        verdict_of=verdict_of,
        agreement_words=agreement_words,
        significant=SIGNIFICANT,
        redteam=redteam_of(run) if is_redteam(run.plan) else None,
    )


def picture(plot: Plot) -> str:
    """The plot as an image inside the page; as an image, nothing in it can run or clash with the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(plot.svg.encode()).decode()


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text short enough to read."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def name_of(name: str) -> Any:
    """A name from the data or the plan, as markup; one that could pass for words of ours stands in quotes."""
    from markupsafe import escape

    return escape(without_formula(name_with_codes(name)))


def line_of(text: str, longest: int | None = None) -> Any:
    """A text on one line, as markup."""
    from markupsafe import escape

    return escape(without_formula(line_with_codes(text, longest)))


def _shown(value: Any) -> Any:
    """Whatever the page writes that is not markup yet, with the codes of characters that hide."""
    return with_codes(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


# -- tables: the number, and its interval beneath it ------------------------------------------------------

NONE = "–"
TONE_WORDS = {"gain": "Gain. ", "loss": "No gain. ", "warning": "Care. ", "plain": ""}
_FORMS: dict[str, Callable[[float], str]] = {
    "share": lambda value: f"{value:.1%}",
    "number": lambda value: f"{value:.3f}",
    "signed": lambda value: f"{value:+.3f}",
    "short": lambda value: f"{value:.2f}",
    "money": lambda value: f"{value:.4f}",
}


def figure(estimate: Estimate, how: str) -> str:
    """The figure without its interval."""
    return NONE if estimate.value is None else _FORMS[how](estimate.value)


def ends(estimate: Estimate, how: str) -> str:
    """The interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{_FORMS[how](estimate.low)} to {_FORMS[how](estimate.high)}"


def p_in_table(p: float | None) -> str:
    """A p-value without its equals sign."""
    return NONE if p is None else p_value(p).removeprefix("= ")


def worth(errors: ErrorCorrelation | None) -> str:
    """The effective number of voices."""
    if errors is None or errors.effective_voices is None:
        return NONE
    return f"{errors.effective_voices:.1f}"


FILTERS: dict[str, Callable[..., str]] = {"figure": figure, "ends": ends, "p": p_in_table, "worth": worth}


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A family, layer, turn or source, and what every arm made of it."""

    name: str
    attacks: int
    benign: int
    cells: tuple[str, ...]


def grouped(figures: RunFigures) -> tuple[tuple[str, tuple[GroupRow, ...]], ...]:
    """Groups as rows, arms as columns."""
    ways: tuple[tuple[str, Callable[[ArmFigures], tuple[Group, ...]]], ...] = (
        ("Family", lambda arm: arm.by_family),
        ("Layers with text", lambda arm: arm.by_layer),
        ("Turn", lambda arm: arm.by_turns),
        ("Source", lambda arm: arm.by_source),
    )
    return tuple((title, _rows([of(arm) for arm in _compared(figures)])) for title, of in ways)


def _compared(figures: RunFigures) -> list[ArmFigures]:
    """The arms that are compared with each other; attacks have a table of their own."""
    return [arm for arm in figures.arms if arm.kind != "attacked"]


def _rows(by_arm: list[tuple[Group, ...]]) -> tuple[GroupRow, ...]:
    by_name = [{group.name: group.performance for group in groups} for groups in by_arm]
    names = sorted({name for groups in by_name for name in groups})
    rows = []
    for name in names:
        performances = [groups.get(name) for groups in by_name]
        sizes = [of for of in performances if of is not None]
        rows.append(
            GroupRow(
                name=name,
                attacks=max(of.attacks for of in sizes),
                benign=max(of.benign for of in sizes),
                cells=tuple(_cell(of) for of in performances),
            )
        )
    return tuple(rows)


def _cell(of: Performance | None) -> str:
    if of is None or not (of.attacks or of.benign):
        return NONE
    found, false = of.at_threshold.recall.value, of.at_threshold.false_alarm_rate.value
    if false is None:
        return f"{found:.0%}"
    return f"{NONE if found is None else f'{found:.0%}'} / {false:.0%}"
