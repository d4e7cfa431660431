"""The report in its order: every word if asked for, the verdict, and all that explains it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType

from firecircle.circle.result import FireCircleResult
from firecircle.cli.bank.guide import guidance_lines
from firecircle.cli.evaluate.request import Request
from firecircle.cli.evaluate.saving import short_id
from firecircle.cli.output import Section, section
from firecircle.cli.printable import printable_line
from firecircle.cli.report.findings import findings
from firecircle.cli.report.outcome import aftermath, cost_line, losses, next_step, quorum_lines
from firecircle.cli.report.table import BoardView, board_of_panel
from firecircle.cli.report.transcript import spoken, transcript
from firecircle.cli.report.verdict import circle_verdict, framed, no_verdict, panel_verdict
from firecircle.metrics import ReciprocityMetrics


def circle_report(
    console: Console, request: Request, result: FireCircleResult, metrics: ReciprocityMetrics
) -> Iterator[RenderableType]:
    """A circle that reached a verdict; its table has been seen already."""
    if request.verbose:
        yield ""
        yield from transcript(result)
    yield ""
    yield framed(console, circle_verdict(result, metrics))
    yield ""
    yield from findings(result, verbose=request.verbose)
    yield from aftermath(result)
    yield from _session(request)
    yield from _kept(metrics.kept_as)


def panel_report(console: Console, request: Request, metrics: ReciprocityMetrics) -> Iterator[RenderableType]:
    """Voices that were asked once."""
    yield BoardView(board_of_panel(metrics.evaluations, metrics.failures), request.threshold)
    if request.verbose:
        yield ""
        yield from section("Answers", [line for said in metrics.evaluations for line in spoken(said)])
    yield ""
    yield framed(console, panel_verdict(metrics, request.threshold))
    cost = section("Cost", [cost_line(metrics.accounting)])
    told = guidance_lines(metrics.guidance, request.plan.asked)
    if rest := [*told, *losses(metrics.failures), *cost, *_session(request), *_kept(metrics.kept_as)]:
        yield ""
        yield from rest


def remains(
    console: Console, request: Request, partial: FireCircleResult, kept_as: str | None = None
) -> Iterator[RenderableType]:
    """What was heard before a circle broke off."""
    if request.verbose:
        yield ""
        yield from transcript(partial)
    yield ""
    yield framed(console, no_verdict(partial))
    yield ""
    if partial.patterns:
        yield from findings(partial, verbose=request.verbose)
    if partial.failures:
        yield from section("Quorum", quorum_lines(partial))
    yield from losses(partial.failures, partial.substitutions)
    if step := next_step(partial):
        yield from section("Next", [step])
    yield from _kept(kept_as)


def _session(request: Request) -> Iterator[Section]:
    session = request.session
    if session is None or request.session_file is None:
        return
    heading = session.trust_trajectory.replace("_", ", ")
    where = printable_line(request.session_file)
    line = f"{where}: turn {session.turn_count} is next; trust {session.trust:.2f} ({heading})"
    yield from section("Session", [line])


def _kept(kept_as: str | None) -> Iterator[Section]:
    """How to find it again."""
    if kept_as is not None:
        name = printable_line(short_id(kept_as))
        yield from section("Kept", [f"as {name}: firecircle circles show {name}"])
