"""The bank on the screen. Descriptions and quotes are words of strangers and cleaned before printing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.text import Text

from firecircle.cli.evaluate.saving import short_id
from firecircle.cli.output import Line, console_on, counted, print_json, section
from firecircle.cli.printable import printable_line
from firecircle.cli.report.findings import quoted
from firecircle.store.bank.entries import BankEntry, FullEntry, Relevant, Sighting
from firecircle.store.bank.guidance import GUIDED_TYPES, guidance_text

FEW = 5
"""So many sightings and quotes are shown; JSON has them all."""
LONGEST_DESCRIPTION = 300


def show_entries(entries: Sequence[BankEntry], *, more: bool, as_json: bool) -> int:
    """Print a list of entries; the exit status."""
    if as_json:
        print_json({"entries": [one.model_dump(mode="json") for one in entries], "more": more})
        return 0
    if not entries:
        console_on(sys.stdout).print(
            "no such pattern in the bank; `firecircle bank learn` fills it from the circles that are kept"
        )
        return 0
    for entry in entries:
        _print_entry(entry)
    if more:
        print("there are more; --limit shows them")
    return 0


def show_relevant(found: Sequence[Relevant], *, as_json: bool) -> int:
    """Print what is relevant to a question; the exit status."""
    if as_json:
        print_json({"found": [one.model_dump(mode="json") for one in found]})
        return 0
    if not found:
        print("nothing in the bank has to do with that")
        return 0
    for one in found:
        _print_entry(one.entry, f"relevance {one.score:.2f}, ")
    return 0


def show_entry(entry: FullEntry, *, as_json: bool) -> int:
    """Print an entry with where it was seen; the exit status."""
    if as_json:
        guidance = guidance_text(entry.pattern_type, entry.description) if _guides(entry) else None
        print_json({**entry.model_dump(mode="json"), "guidance": guidance})
        return 0
    console = console_on(sys.stdout)
    title = Text(_plain(entry.pattern_type), style="bold").append(f"  {printable_line(entry.id)}")
    console.print(title)
    console.print()
    seen = (
        f"{counted(entry.sightings, 'time')} in {counted(entry.attacks, 'attack')},"
        f" from {_day(entry.first_seen_at)} to {_day(entry.last_seen_at)},"
        f" agreement up to {entry.highest_agreement:.0%}"
    )
    told = (
        guidance_text(entry.pattern_type, entry.description)
        if _guides(entry)
        else "nothing: of what fits none of the types there are no words of our own"
    )
    latest = entry.seen[:FEW]
    parts: list[tuple[str, Sequence[str | Line]]] = [
        ("Described", [printable_line(entry.description, LONGEST_DESCRIPTION)]),
        ("Seen", [seen]),
        ("Where", [line for one in latest for line in _sighting_lines(one)]),
        ("More", [f"{counted(len(entry.seen) - FEW, 'more sighting')} (--json)"] if entry.seen[FEW:] else []),
        ("Told", [f"as guidance: {told}"]),
    ]
    for label, lines in parts:
        for one in section(label, lines):
            console.print(one)
    return 0


def _sighting_lines(seen: Sighting) -> Iterable[Line]:
    circle = f", circle {printable_line(short_id(seen.circle_id))}" if seen.circle_id else ""
    voices = ", ".join(map(printable_line, seen.models))
    yield Line(Text(f"{_day(seen.at)} {printable_line(seen.attack_id)}{circle}: {voices}"))
    for quote in seen.examples[:2]:
        yield Line(quoted(quote), 1)


def _guides(entry: BankEntry) -> bool:
    return entry.pattern_type in GUIDED_TYPES


def _print_entry(entry: BankEntry, before: str = "") -> None:
    """Two paragraphs: what and how often, and in which words."""
    title = Text(printable_line(entry.id)).append(f"  {_plain(entry.pattern_type)}", style="bold")
    seen = f"seen {counted(entry.sightings, 'time')} in {counted(entry.attacks, 'attack')}"
    title.append(f"  {before}{seen}, last {_day(entry.last_seen_at)}")
    console = console_on(sys.stdout)
    description = Text(printable_line(entry.description, LONGEST_DESCRIPTION), style="italic")
    console.print(title)
    console.print(*section("", [Line(description)]))


def _plain(pattern_type: str) -> str:
    return printable_line(pattern_type).replace("_", " ")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
