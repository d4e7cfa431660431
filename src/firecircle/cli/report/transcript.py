"""Everything every voice said, round by round, for --verbose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from firecircle.circle.result import FireCircleResult
from firecircle.cli.output import Line, Section
from firecircle.cli.printable import printable, printable_line
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.telling.answers import cares_about
from firecircle.telling.patterns import with_names
from firecircle.telling.words import ROUND_WORDS

NOBODY: Mapping[str, str] = {}


def transcript(result: FireCircleResult) -> Iterator[Section]:
    """The rounds of a dialogue in full."""
    for held in result.dialogue_history:
        lines = [Line(Text(ROUND_WORDS[held.kind], style="dim"))]
        for evaluation in held.evaluations:
            lines += spoken(evaluation, result.peer_labels, is_chair=evaluation.model == held.occupied_chair)
        yield Section(f"Round {held.round_number}", lines)


def spoken(
    evaluation: NeutrosophicEvaluation, labels: Mapping[str, str] = NOBODY, *, is_chair: bool = False
) -> Iterator[Line]:
    """One answer in full: numbers, what to know of them, reasons and observations."""
    title = Text().append(printable_line(evaluation.model), style="bold")
    title.append(
        f"  F {evaluation.falsehood:.2f}  T {evaluation.truth:.2f}  I {evaluation.indeterminacy:.2f}"
    )
    title.append("  from the empty chair" if is_chair else "")
    yield Line(title)
    for line in _details(evaluation):
        yield Line(Text(printable(with_names(line, labels))), 1)


def _details(evaluation: NeutrosophicEvaluation) -> Iterator[str]:
    yield from (f"note: {note}" for note in cares_about(evaluation))
    if evaluation.speaks_for:
        yield f"speaks for: {printable_line(evaluation.speaks_for)}"
    if reasoning := printable(evaluation.reasoning).strip():
        yield reasoning
    for note in evaluation.pattern_notes:
        kind = f"{printable_line(note.type)}: " if note.type else ""
        quote = f" “{printable_line(note.quote)}”" if note.quote else ""
        layer = f" in {printable_line(note.layer)}" if note.layer else ""
        yield f"- {kind}{printable_line(note.description)}{quote}{layer}"
