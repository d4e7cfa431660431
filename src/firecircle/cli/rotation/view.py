"""Fairness in the terminal: bars for who was heard and who held the chair, and what that adds up to."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firecircle.cli.output import bar, console_on, print_json, print_sections, section
from firecircle.cli.printable import printable_line
from firecircle.rotation.affinity import Affinity, factors
from firecircle.rotation.drawing import DrawCheck
from firecircle.rotation.fairness import Evenness, FairnessReport, Simulation
from firecircle.rotation.history import Draw
from firecircle.telling.answers import CHAIR_SYMBOL
from firecircle.telling.safe_text import shortened
from firecircle.telling.words import counted, time_text

SAME, ANOTHER = 0, 1
BAR = 8
MOST_PAIRS = 10
LATEST = 5
"""So many draws are shown; JSON has them all."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Who was heard, who is due, and the draws so far."""

    report: FairnessReport
    weights: Mapping[str, float]
    expertise: Sequence[tuple[str, float]]
    """How well each voice fits the domain, the best first."""
    draws: Sequence[Draw]
    domain: str
    at: float


def show_standings(standings: Standings, *, as_json: bool) -> int:
    """Print the standings; the exit status."""
    report = standings.report
    if as_json:
        print_json(
            {
                **report.model_dump(mode="json"),
                "domain": standings.domain,
                "weights": dict(standings.weights),
                "expertise": dict(standings.expertise),
                "draws": [draw.model_dump(mode="json") for draw in standings.draws],
            }
        )
        return 0
    console = console_on(sys.stdout)
    _headline(console, f"{counted(report.sittings, 'sitting')}, {counted(len(report.voices), 'voice')}")
    console.print(_table(console, report, standings.at, standings.weights))
    console.print(Text(f"weight: how much a voice is due in the domain {standings.domain}", style="dim"))
    console.print()
    _evenness(console, report)
    fit = ", ".join(f"{printable_line(voice)} {share:.2f}" for voice, share in standings.expertise)
    latest = list(standings.draws)[-LATEST:]
    print_sections(
        console,
        [
            ("Fit", [f"for {standings.domain}: {fit}"]),
            ("Draws", [_draw_line(draw) for draw in reversed(latest)]),
        ],
    )
    return 0


def show_simulation(outcome: Simulation, seed: str, *, as_json: bool) -> int:
    """Print what the next sittings would be; the exit status."""
    if as_json:
        print_json({"seed": seed, **outcome.model_dump(mode="json")})
        return 0
    console = console_on(sys.stdout)
    _headline(console, f"{counted(len(outcome.draws), 'sitting')} simulated, seed {printable_line(seed)}")
    for number, draw in enumerate(outcome.draws, start=1):
        names = [
            f"{printable_line(voice)}{CHAIR_SYMBOL if voice == draw.chair else ''}" for voice in draw.selected
        ]
        console.print(*section(f"{number:>6}", [", ".join(names)]))
    console.print()
    console.print(_table(console, outcome.after, outcome.draws[-1].at))
    console.print(Text(f"{CHAIR_SYMBOL} holds the chair first; counts include the real history", style="dim"))
    console.print()
    _evenness(console, outcome.after)
    return 0


def show_check(draw: Draw, check: DrawCheck, *, as_json: bool) -> int:
    """Print whether a draw is what its seed gives; the exit status."""
    if as_json:
        document = {
            "valid": check.valid,
            "problems": list(check.problems),
            "differences": list(check.differences),
        }
        print_json({**document, "draw": draw.model_dump(mode="json")})
        return SAME if check.valid else ANOTHER
    console = console_on(sys.stdout)
    word, colour = (" VERIFIED ", "green") if check.valid else (" NOT VERIFIED ", "red")
    headline = Text().append(word, style=f"bold reverse {colour}")
    console.print(headline.append(f"  {printable_line(draw.draw_id)}", style="bold"))
    console.print()
    weights = [
        f"{candidate.weight:.3f} {'*' if candidate.voice_id in draw.selected else ' '}"
        f" {printable_line(candidate.voice_id)}"
        for candidate in sorted(draw.candidates, key=lambda candidate: -candidate.weight)
    ]
    print_sections(
        console,
        [
            ("Drawn", [f"{_moment(draw.at)}, {draw.required_count} of {len(draw.candidates)}"]),
            ("Seed", [printable_line(draw.seed)]),
            ("Domain", [printable_line(draw.decision_domain)]),
            ("Circle", [", ".join(map(printable_line, draw.selected)) + _shadow(draw)]),
            ("Chair", [printable_line(draw.chair or "nobody")]),
            ("Weights", weights),
            ("Affinity", _pairs_in(draw)),
            ("Wrong", [printable_line(problem) for problem in check.problems]),
            ("History", [printable_line(difference) for difference in check.differences]),
        ],
    )
    return SAME if check.valid else ANOTHER


def show_pairs(pairs: Sequence[Affinity], *, as_json: bool) -> int:
    """Print who complements whom; the exit status."""
    if as_json:
        print_json([pair.model_dump(mode="json") for pair in pairs])
        return 0
    console = console_on(sys.stdout)
    if not pairs:
        console.print("no circle with patterns is saved yet")
    for pair in pairs[:MOST_PAIRS]:
        names = f"{printable_line(pair.first)} + {printable_line(pair.second)}"
        alone = max(pair.backed_by_first, pair.backed_by_second)
        shares = f"{pair.backed_by_either} of {pair.patterns} patterns together, {alone} by one alone"
        facts = f"{shares}; {counted(pair.circles, 'circle')}"
        console.print(*section(f"{pair.complement:.2f}", [names, facts]))
    return 0


def _headline(console: Console, words: str) -> None:
    console.print(Text().append(" ROTATION ", style="bold reverse cyan").append(f"  {words}", style="bold"))
    console.print()


def _table(
    console: Console, report: FairnessReport, at: float, weights: Mapping[str, float] | None = None
) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("voice", "heard", "chair", "last heard", *(("weight",) if weights is not None else ())):
        table.add_column(title, no_wrap=True)
    digits = len(str(report.heard.most)) + len(str(report.chairs.most))
    taken = 2 * (BAR + 1) + digits + len("last heard") + (BAR + 6 if weights is not None else 0)
    room = max(12, console.width - taken - 2 * len(table.columns))
    heaviest = max(weights.values(), default=1.0) if weights else 1.0
    for voice in report.voices:
        row = [
            Text(shortened(printable_line(voice.voice_id), room)),
            _share(voice.count, report.heard.most),
            _share(voice.chair_count, report.chairs.most),
            Text(_ago(at, voice.last_heard)),
        ]
        if weights is not None:
            weight = weights[voice.voice_id]
            row.append(Text(f"{bar(weight / heaviest, BAR)} {weight:.3f}"))
        table.add_row(*row)
    return table


def _share(count: int, most: int) -> Text:
    return Text(f"{bar(count / most if most else 0.0, BAR)} {count}")


def _evenness(console: Console, report: FairnessReport) -> None:
    never_in_chair = [voice for voice in report.never_in_chair if voice not in report.never_heard]
    never = [
        f"{what}: {', '.join(map(printable_line, voices))}"
        for what, voices in (("heard", report.never_heard), ("in the chair", never_in_chair))
        if voices
    ]
    even = [f"heard {_in_words(report.heard)}", f"chair {_in_words(report.chairs)}"]
    print_sections(console, [("Evenness", even), ("Never", never)])


def _in_words(even: Evenness) -> str:
    indices = f"Jain {even.jain:.2f} (1 is even), Gini {even.gini:.2f} (0 is even)"
    return f"{even.least} to {even.most} times; {indices}"


def _draw_line(draw: Draw) -> str:
    names = ", ".join(map(printable_line, draw.selected))
    domain = printable_line(draw.decision_domain)
    return f"{printable_line(draw.draw_id)} {_moment(draw.at)} {domain}: {names}{_shadow(draw)}"


def _pairs_in(draw: Draw) -> list[str]:
    """By what the voices of the circle bent each other's weight, the strongest first."""
    beside = factors(draw.affinities)
    if not beside:
        return []
    seated = [pair for pair in beside if set(pair) <= set(draw.selected)]
    seated.sort(key=lambda pair: (-abs(math.log(beside[pair])), pair))
    return [
        f"{counted(len(draw.affinities), 'pair')} known among the candidates",
        *(
            f"{beside[drawn, joining]:.2f}  {printable_line(joining)} beside {printable_line(drawn)}"
            for drawn, joining in seated[:MOST_PAIRS]
        ),
    ]


def _shadow(draw: Draw) -> str:
    return "" if draw.used else " (shadow: not used)"


def _ago(at: float, last: float | None) -> str:
    if last is None:
        return "never"
    hours = max(0.0, at - last) / 3600
    if hours < 1:
        return "just now"
    return f"{hours:.0f} h ago" if hours < 48 else f"{hours / 24:.0f} d ago"


def _moment(at: float) -> str:
    return time_text(at, "%Y-%m-%d %H:%M UTC", UTC)
