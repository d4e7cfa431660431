"""The first thing to read: alarm or not, how strong, who said so, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.text import Text

from firecircle.circle.result import FireCircleResult
from firecircle.cli.output import Line, Section, counted
from firecircle.cli.printable import printable_line
from firecircle.cli.report.findings import with_names
from firecircle.cli.report.live import STOP_WORDS
from firecircle.cli.report.marks import bar, notes_of, style_of
from firecircle.cli.report.outcome import told_falsehood
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.metrics import ReciprocityMetrics

BAR = 20
LONGEST_REASON = 320


@dataclass(slots=True)
class Verdict:
    """What goes into the frame, line by line, and the frame's colour."""

    colour: str
    lines: list[Text] = field(default_factory=list)

    def add(self, line: str, style: str = "") -> None:
        """One more line."""
        self.lines.append(Text(line, style=style))


def circle_verdict(result: FireCircleResult, metrics: ReciprocityMetrics) -> Verdict:
    """The verdict of a circle that reached one."""
    said, held = metrics.consensus, len(result.dialogue_history)
    verdict = _opened(said, result.config.alarm_threshold)
    if said.round_number == 1:
        when = "alone, before anybody talked" if held > 1 else "alone"
    elif _held_chair(result, said):
        when = "from the empty chair"
    else:
        when = "after reading the others"
    verdict.add(
        f"Said by {printable_line(said.model)} in round {said.round_number}, {when}; no active voice went"
        f" higher. Ended after {counted(held, 'round')}: {STOP_WORDS[result.stopped]}."
    )
    _add_balance(verdict, metrics)
    _add_reason(verdict, said, result.peer_labels)
    return verdict


def panel_verdict(metrics: ReciprocityMetrics, threshold: float) -> Verdict:
    """The verdict of voices that were asked once."""
    verdict = _opened(metrics.consensus, threshold)
    if metrics.agreement is None:
        verdict.add(f"Said by {printable_line(metrics.evaluations[0].model)}, asked once and alone.")
        _add_balance(verdict, metrics)
        _add_reason(verdict, metrics.evaluations[0], {})
    else:
        voices = counted(len(metrics.evaluations), "voice")
        verdict.add(f"The mean of {voices} that did not talk; agreement {metrics.agreement:.2f}.")
        _add_balance(verdict, metrics)
    return verdict


def no_verdict(partial: FireCircleResult) -> Verdict:
    """What a circle that ended without a consensus leaves behind, in short."""
    verdict = Verdict("yellow")
    line = Text().append(" NO CONSENSUS ", style="bold reverse yellow")
    verdict.lines.append(line.append(f"  {STOP_WORDS[partial.stopped]}", style="bold"))
    heard = [said for held in partial.dialogue_history for said in held.evaluations]
    if not heard:
        verdict.add("Nothing was heard.")
        return verdict
    voices = counted(len({said.model for said in heard}), "voice")
    highest = max(heard, key=lambda said: said.falsehood)
    verdict.add(
        f"Heard until then: {counted(len(heard), 'answer')} of {voices}. The highest falsehood was"
        f" {highest.falsehood:.2f}, by {printable_line(highest.model)} in round {highest.round_number}."
    )
    return verdict


def framed(console: Console, verdict: Verdict) -> RenderableType:
    """A frame on a terminal; in a pipe a section like the others."""
    if console.is_terminal:
        lines = Text("\n").join(verdict.lines)
        return Panel(lines, box=box.HEAVY, border_style=verdict.colour, padding=(0, 1))
    return Section("Verdict", [Line(Text(line.plain.strip())) for line in verdict.lines])


def _opened(said: NeutrosophicEvaluation, threshold: float) -> Verdict:
    alarm = said.falsehood >= threshold
    verdict = Verdict("red" if alarm else "green")
    line = Text().append(" ALARM " if alarm else " no alarm ", style=f"bold reverse {verdict.colour}")
    line.append(f"  F {told_falsehood(said.falsehood, threshold)} ", style="bold")
    line.append(bar(said.falsehood, BAR), style=style_of(said.falsehood, threshold))
    line.append(f"  {'at or above' if alarm else 'below'} the threshold {threshold:.2f}")
    verdict.lines.append(line)
    return verdict


def _add_balance(verdict: Verdict, metrics: ReciprocityMetrics) -> None:
    verdict.add(f"Balance {metrics.balance:+.2f}: the exchange is {metrics.exchange_type}.")


def _add_reason(verdict: Verdict, said: NeutrosophicEvaluation, labels: Mapping[str, str]) -> None:
    for note in notes_of(said):
        verdict.add(f"Note: {note}.", "yellow")
    if reason := printable_line(with_names(said.reasoning, labels), LONGEST_REASON):
        verdict.add(f"Why: {reason}", "italic")


def _held_chair(result: FireCircleResult, said: NeutrosophicEvaluation) -> bool:
    return any(
        held.round_number == said.round_number and held.occupied_chair == said.model
        for held in result.dialogue_history
    )
