"""The report of a run: one HTML file that needs nothing else, its figures as JSON, and every plot apart."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.lab.figures.arms import RULE_WORDS
from firecircle.lab.figures.columns import RecordFile
from firecircle.lab.figures.run import RunFigures, run_figures
from firecircle.lab.report.choosing import Choice, instructive
from firecircle.lab.report.plots import Plot, plots
from firecircle.lab.report.retelling import retell
from firecircle.lab.report.sentence import Sentence, many, shares
from firecircle.lab.report.tables import FILTERS, MARKS, grouped
from firecircle.lab.report.words import SIGNIFICANT, summary, verdict_of
from firecircle.lab.runs.folder import RunFolder
from firecircle.metrics import metrics_of_circle
from firecircle.telling.cautions import Cautions, cautions_of_circle
from firecircle.telling.safe_text import line_with_codes, with_codes
from firecircle.telling.table import VoiceRow, rows_of_circle
from firecircle.telling.talking import talk_sentences
from firecircle.telling.verdict import circle_sentences
from firecircle.telling.words import ROUND_WORDS

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
    """Whose word the verdict was, and what talking did."""
    cautions: Cautions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """What a report left on disk."""

    page: Path
    figures: Path
    records: Path
    pictures: tuple[Path, ...]
    sentences: tuple[Sentence, ...]
    """What the run shows, in words."""


async def write_report(run: RunFolder, out: Path | None = None) -> Written:
    """Write the report of a finished run, beside its records unless told another folder."""
    run.require_finished()
    place = out or run.path / "report"
    figures = run_figures(RecordFile(run.records), run.plan.alarm_threshold)
    drawn = tuple(plots(figures))
    chosen = instructive(run.records, run.plan.alarm_threshold)
    dialogues = [
        _dialogue(choice, result) for choice, result in zip(chosen, await retell(run, chosen), strict=True)
    ]
    try:
        place.mkdir(parents=True, exist_ok=True)
        pictures = _draw(place / PICTURES, drawn)
        (place / FIGURES).write_text(figures.model_dump_json(indent=2) + "\n", encoding="utf-8")
        page = place / REPORT
        page.write_text(render(run, figures, drawn, dialogues), encoding="utf-8")
        shutil.copyfile(run.records, place / run.records.name)
    except OSError as unwritable:
        raise StoreError(f"--out: cannot write to {place}: {unwritable.strerror or unwritable}") from None
    return Written(page, place / FIGURES, place / run.records.name, pictures, summary(figures))


def _draw(place: Path, drawn: Sequence[Plot]) -> tuple[Path, ...]:
    place.mkdir(exist_ok=True)
    written = []
    for plot in drawn:
        for form in ("svg", "png", "pdf"):
            path = place / f"{plot.name}.{form}"
            if form == "svg":
                path.write_text(plot.svg, encoding="utf-8")
            else:
                path.write_bytes(plot.drawn("png" if form == "png" else "pdf"))
            written.append(path)
    return tuple(written)


def _dialogue(choice: Choice, result: FireCircleResult | None) -> InstructiveDialogue:
    if result is None:
        return InstructiveDialogue(choice, None)
    return InstructiveDialogue(
        choice,
        result,
        rows_of_circle(result),
        (
            *circle_sentences(result, metrics_of_circle(result), line_with_codes),
            *talk_sentences(result, line_with_codes),
        ),
        cautions_of_circle(result, line_with_codes),
    )


def render(
    run: RunFolder, figures: RunFigures, drawn: Sequence[Plot], dialogues: Sequence[InstructiveDialogue]
) -> str:
    """The page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ConfigError("report", "needs the extra `lab`: pip install 'firecircle[lab]'") from None
    pages = Environment(
        loader=PackageLoader("firecircle.lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(FILTERS, share=shares, picture=picture, cut=cut, count_of=many)
    return pages.get_template("report.html").render(
        run=run,
        about=run.about,
        plan=(run.path / "plan.toml").read_text(encoding="utf-8"),
        figures=figures,
        sentences=summary(figures),
        plots=drawn,
        dialogues=dialogues,
        round_words=ROUND_WORDS,
        grouped=grouped(figures),
        marks=MARKS,
        started=time.strftime("%Y-%m-%d", time.gmtime(run.about.started_at)),
        rules=RULE_WORDS,
        verdict_of=verdict_of,
        significant=SIGNIFICANT,
    )


def picture(plot: Plot) -> str:
    """The plot as an image inside the page; as an image, nothing in it can run or clash with the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(plot.svg.encode()).decode()


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text short enough to read, with the codes of characters that hide."""
    return (
        with_codes(text)
        if len(text) <= longest
        else f"{with_codes(text[:longest])}… ({len(text):,} characters)"
    )
