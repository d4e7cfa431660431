"""Everything every voice said, round by round, for --verbose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from firecircle.circle.result import FireCircleResult
from firecircle.cli.output import Line, Section
from firecircle.cli.printable import printable, printable_line
from firecircle.cli.report.findings import with_names
from firecircle.cli.report.marks import ROUND_WORDS, notes_of
from firecircle.evaluation import NeutrosophicEvaluation

NOBODY: Mapping[str, str] = {}


def transcript(result: FireCircleResult) -> Iterator[Section]:
    """The rounds of a dialogue in full."""
    for held in result.dialogue_history:
        lines = [Line(Text(ROUND_WORDS[held.kind], style="dim"))]
        for said in held.evaluations:
            lines += spoken(said, result.peer_labels, is_chair=said.model == held.occupied_chair)
        yield Section(f"Round {held.round_number}", lines)


def spoken(
    said: NeutrosophicEvaluation, labels: Mapping[str, str] = NOBODY, *, is_chair: bool = False
) -> Iterator[Line]:
    """One answer in full: numbers, what to know of them, reasons and observations."""
    title = Text().append(printable_line(said.model), style="bold")
    title.append(f"  F {said.falsehood:.2f}  T {said.truth:.2f}  I {said.indeterminacy:.2f}")
    title.append("  from the empty chair" if is_chair else "")
    yield Line(title)
    for line in _details(said):
        yield Line(Text(printable(with_names(line, labels))), 1)


def _details(said: NeutrosophicEvaluation) -> Iterator[str]:
    yield from (f"note: {note}" for note in notes_of(said))
    if said.speaks_for:
        yield f"speaks for: {printable_line(said.speaks_for)}"
    if reasoning := printable(said.reasoning).strip():
        yield reasoning
    for note in said.pattern_notes:
        kind = f"{printable_line(note.type)}: " if note.type else ""
        quote = f" “{printable_line(note.quote)}”" if note.quote else ""
        layer = f" in {printable_line(note.layer)}" if note.layer else ""
        yield f"- {kind}{printable_line(note.description)}{quote}{layer}"
