"""A batch on a screen or in a pipe, and for CI: rows, summary, SARIF, JUnit."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from firecircle.cli.batch.journal import FAILING, BatchOutcome, Outcome
from firecircle.cli.batch.options import FailOn
from firecircle.cli.batch.reading import STANDARD_INPUT, Batch
from firecircle.cli.options import written_whole
from firecircle.cli.output import VERDICT_STYLES, console_on, pause_line, print_line
from firecircle.cli.sarif import LEVELS, SarifResult, write_sarif_results
from firecircle.lab.datasets import Record
from firecircle.lab.scan.corpus import LINED
from firecircle.lab.scan.summary import found_lines, share_lines
from firecircle.names import Label
from firecircle.telling.safe_text import printable, printable_line, shortened
from firecircle.telling.words import counted, verdict_counts
from firecircle.thresholds import format_figure
from firecircle.verdict import COUNTED, SHOWN, VERDICT_WORDS, VerdictWord
from firecircle.voices.outages import Pause

LONGEST_ID, LONGEST_LABEL, LONGEST_FINDING = 14, len("benign: false alarm"), 24
ROOM_FOR_FINDINGS = 96
"""Columns from which on the patterns have one of their own."""
FRAMES_PER_SECOND = 8
GAP = 2


class BatchView:
    """Shows each outcome; on a terminal above a line that counts."""

    def __init__(self, console: Console, batch: Batch, threshold: float, *, quiet: bool) -> None:
        self._console, self._threshold, self._quiet = console, threshold, quiet
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._total = len(batch.rows)
        self._done = 0
        self._pause: Pause | None = None
        self._words: dict[VerdictWord, int] = {}
        self._began = time.monotonic()
        ids = [row.id if isinstance(row, Record) else f"{batch.name}:{row.line}" for row in batch.rows]
        widest = max((cell_len(self._name(name, batch.name)) for name in ids), default=0)
        self._id_width = min(LONGEST_ID, max(len("id"), widest))
        labels = [row.label or "" for row in batch.rows if isinstance(row, Record)]
        self._label_width = LONGEST_LABEL if any(labels) else 0
        self._batch_name = batch.name

    @contextmanager
    def open(self) -> Iterator[None]:
        """While the batch is judged."""
        if self._quiet or not self._is_live:
            yield
            return
        self._console.print(self._header())
        with Live(
            get_renderable=self._status,
            console=self._console,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
        ):
            yield

    def count(self, word: VerdictWord) -> None:
        """One more is done, whether or not it can be shown already."""
        self._done += 1
        self._words[word] = self._words.get(word, 0) + 1

    def show(self, outcome: Outcome) -> None:
        """The next outcome in the order of the file."""
        if self._quiet:
            return
        if self._is_live:
            self._console.print(self._row(outcome))
        else:
            print_line(self._console, "\t".join(map(printable_line, self._fields(outcome))))

    def pause(self, pause: Pause | None) -> None:
        """Say whom everybody waits for, on the line that counts or on the error stream."""
        self._pause = pause
        if self._quiet or not self._is_live:
            said = pause_line(pause) if pause else "going on"
            print_line(console_on(sys.stderr), said)

    # -- a pipe: one line a prompt -----------------------------------------------------------------------

    def _fields(self, outcome: Outcome) -> list[str]:
        """Id, verdict, F, label, how it is wrong, patterns, and the prompt or what was wrong with the row."""
        metrics = outcome.metrics
        return [
            outcome.id,
            SHOWN[outcome.word],
            format_figure(metrics.consensus.falsehood, self._threshold) if metrics else "",
            outcome.label or "",
            outcome.mistake,
            ",".join(outcome.pattern_types),
            outcome.error or outcome.text,
        ]

    # -- a terminal: rows that line up -------------------------------------------------------------------

    @property
    def _widths(self) -> list[int]:
        """Id, verdict, F, label, finding; 0 leaves a column out. The prompt takes the rest."""
        finding = LONGEST_FINDING if self._console.width >= ROOM_FOR_FINDINGS else 0
        return [self._id_width, len("no verdict"), len("0.00"), self._label_width, finding]

    def _line(self, cells: Sequence[Text]) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        for cell, width in zip(cells, [*self._widths, None], strict=True):
            if width == 0:
                continue
            if width is None:
                cell.truncate(max(8, self._console.width - line.cell_len), overflow="ellipsis")
            else:
                cell.truncate(width, overflow="ellipsis", pad=True)
                cell.append(" " * GAP)
            line.append_text(cell)
        return line

    def _header(self) -> Text:
        titles = ("id", "verdict", "F", "label", "pattern", "prompt")
        return self._line([Text(title, style="bold") for title in titles])

    def _row(self, outcome: Outcome) -> Text:
        metrics = outcome.metrics
        style = VERDICT_STYLES[outcome.word]
        label = Text(printable_line(outcome.label or "", LONGEST_LABEL))
        if outcome.mistake:
            label = Text(f"{outcome.known}: {outcome.mistake}", style="bold red")
        patterns = outcome.pattern_types
        first = next(iter(patterns), "").replace("_", " ")
        more = f" +{len(patterns) - 1}" if len(patterns) > 1 else ""
        return self._line(
            [
                Text(shortened(printable_line(self._name(outcome.id, self._batch_name)), self._id_width)),
                Text(SHOWN[outcome.word], style=style),
                Text(
                    format_figure(metrics.consensus.falsehood, self._threshold) if metrics else "",
                    style=style,
                ),
                label,
                Text(shortened(first, LONGEST_FINDING - len(more)) + more),
                Text(printable_line(outcome.error or outcome.text), style="magenta" if outcome.error else ""),
            ]
        )

    @staticmethod
    def _name(record_id: str, batch: str) -> str:
        """The id without the name of the batch, which stands over the whole table."""
        return record_id.removeprefix(f"{batch}:")

    def _status(self) -> RenderableType:
        counts = [f"{SHOWN[word]} {count:,}" for word in VERDICT_WORDS if (count := self._words.get(word, 0))]
        parts = [f"{self._done:,} of {self._total:,}", *counts, f"{time.monotonic() - self._began:.0f} s"]
        counting = Text(" · ".join(parts), style="dim")
        return Group(counting, Text(pause_line(self._pause), "yellow")) if self._pause else counting


def summary_lines(outcome: BatchOutcome, *, kept: bool) -> list[str]:
    """What the batch comes to, in a few lines."""
    verdicts = ", ".join(verdict_counts(outcome.words))
    lines = [f"{counted(len(outcome.outcomes), 'prompt')}: {verdicts}; {_pace(outcome)}"]
    lines += _against_labels(outcome)
    if outcome.stopped:
        left = outcome.total - len(outcome.outcomes)
        lines.append(f"Stopped, {outcome.stopped}: {left:,} of {outcome.total:,} were not judged.")
    if outcome.lost_in_passing:
        lines.append(
            f"{outcome.lost_in_passing:,} failed or lost a voice because a provider did not answer:"
            " give the same command when it does."
        )
    if kept and any(metrics.kept_as for metrics in outcome.judged):
        lines.append(f"Saved: firecircle circles list --batch {printable_line(outcome.name)}")
    return lines


def _pace(outcome: BatchOutcome) -> str:
    judged = len(outcome.judged)
    pace = f"{outcome.seconds:.1f} s"
    if judged > 1 and outcome.seconds > 0:
        pace += f", {judged / outcome.seconds:.1f} per second"
    if cost := outcome.cost_usd:
        pace += f"; ${cost:.4f}"
    if outcome.estimated_usd:
        pace += (
            f"; by estimate ${outcome.estimated_usd:.4f}{' more' if cost else ''} that no provider counted"
        )
    return pace


def _against_labels(outcome: BatchOutcome) -> list[str]:
    """How the verdicts agree with the labels, and how many attacks are among the prompts without one."""
    attacks, benign = outcome.found("attack"), outcome.found("benign")
    parts = [line + _unsure(outcome, "attack") for line in found_lines(attacks, (0, 0))]
    parts += [line + _unsure(outcome, "benign") for line in found_lines((0, 0), benign)]
    wrong = sum(bool(row.mistake) for row in outcome.outcomes)
    marked = f"; {wrong:,} judged wrongly" if wrong else ""
    unlabelled = [row.word for row in outcome.outcomes if row.known is None and row.word in COUNTED]
    return [
        *([f"Labels: {', '.join(parts)}{marked}"] if parts else []),
        *share_lines(attacks, benign, (unlabelled.count("alarm"), len(unlabelled))),
    ]


def _unsure(outcome: BatchOutcome, label: Label) -> str:
    return f" ({count:,} unsure)" if (count := outcome.unsure(label)) else ""


LONGEST_QUOTE = 200
LONGEST_PROMPT = 2000
NO_PATTERN = "no_agreed_pattern"
"""Files whose rows are lines that can be pointed at."""


def write_junit(
    outcome: BatchOutcome,
    threshold: float,
    fail_on: FailOn,
    file: str,
    findings: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """A test case a prompt. Where findings are given by prompt, those without any are skipped ones."""
    failing = FAILING[fail_on]
    skipped = {
        row.id
        for row in outcome.outcomes
        if row.word in failing and findings is not None and not findings.get(row.id)
    }
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(outcome.name),
        tests=str(len(outcome.outcomes)),
        failures=str(sum(row.word in failing and row.id not in skipped for row in outcome.outcomes)),
        skipped=str(len(skipped)),
        errors=str(outcome.words["no_verdict"]),
        time=f"{outcome.seconds:.3f}",
    )
    for row in outcome.outcomes:
        seconds = row.metrics.fire_circle.duration_seconds if row.metrics and row.metrics.fire_circle else 0.0
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(outcome.name), name=_xml(row.id), time=f"{seconds:.3f}"
        )
        if row.error is not None:
            ElementTree.SubElement(case, "error", message=_xml(printable_line(row.error)))
        elif row.id in skipped:
            ElementTree.SubElement(case, "skipped", message="accepted by the baseline, or unchanged")
        elif row.word in failing:
            lines = [finding_of(row, threshold)] if findings is None else findings[row.id]
            text = row.text if findings is None else "\n".join(lines)
            ElementTree.SubElement(case, "failure", message=_xml(lines[0]), type=row.word).text = _xml(
                printable(text)[:LONGEST_PROMPT]
            )
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    with written_whole(file) as target:
        target.write(ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n")


def _xml(text: str) -> str:
    """The text without what XML cannot hold."""
    return "".join(
        character
        for character in text
        if character in "\t\n"
        or " " <= character < "\ud800"
        or "\udfff" < character < "\ufffe"
        or character > "\uffff"
    )


def write_sarif(outcome: BatchOutcome, batch: Batch, threshold: float, file: str) -> None:
    """A finding for every alarm and every unsure or unread prompt, at its line of the file."""
    write_sarif_results(
        [
            SarifResult(
                _rule(row),
                LEVELS[row.word],
                finding_of(row, threshold),
                *_location(row, batch),
                f"{outcome.name}:{row.id}",
            )
            for row in outcome.outcomes
            if row.word in LEVELS
        ],
        file,
    )


def _rule(row: Outcome) -> str:
    return next(iter(row.pattern_types), NO_PATTERN)


def _location(row: Outcome, batch: Batch) -> tuple[str, tuple[int, int] | None]:
    """Where the prompt stands: its line, its file in the folder, or only the file."""
    source = Path(batch.source)
    line = (row.row, row.row)
    if batch.source == STANDARD_INPUT:
        return "stdin", line
    if source.is_dir():
        return (source / row.id).as_posix(), None
    return source.as_posix(), line if source.suffix.lower() in LINED else None


def finding_of(row: Outcome, threshold: float) -> str:
    """What was found, in one line: the verdict, its patterns, and the words that show them."""
    metrics = row.metrics
    assert metrics is not None
    figure = format_figure(metrics.consensus.falsehood, threshold)
    patterns = ", ".join(name.replace("_", " ") for name in row.pattern_types)
    quotes = [place.text for pattern in metrics.all_patterns for place in pattern.evidence]
    wrong = f"; labelled {row.known}: {row.mistake}" if row.mistake else ""
    shown = f': "{printable_line(quotes[0], LONGEST_QUOTE)}"' if quotes else ""
    return f"{row.word}, F {figure} by {printable_line(metrics.consensus.model)}{wrong}" + (
        f"; {patterns}{shown}" if patterns else ""
    )
