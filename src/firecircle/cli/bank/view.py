"""The bank on the screen. Descriptions and quotes are words of strangers and cleaned before printing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC

from rich.text import Text

from firecircle.cli.output import Line, console_on, print_json, print_sections, section, short_id
from firecircle.cli.printable import printable_line
from firecircle.cli.report.findings import quoted
from firecircle.store.bank.bank import GUIDED_TYPES, guidance_text
from firecircle.store.bank.entries import BankEntry, FullEntry, Relevant, Sighting
from firecircle.telling.words import counted, time_text

FEW = 5
"""So many sightings and quotes are shown; JSON has them all."""
LONGEST_DESCRIPTION = 300


def show_entries(entries: Sequence[BankEntry], *, more: bool, as_json: bool) -> int:
    """Print a list of entries; the exit status."""
    if as_json:
        print_json({"entries": [entry.model_dump(mode="json") for entry in entries], "more": more})
        return 0
    if not entries:
        console_on(sys.stdout).print(
            "no such pattern in the bank; `firecircle bank learn` fills it from the saved circles"
        )
        return 0
    for entry in entries:
        _print_entry(entry)
    if more:
        print("there are more; --limit shows them")
    return 0


def show_relevant(relevant: Sequence[Relevant], *, by_meaning: bool, as_json: bool) -> int:
    """Print what is relevant to a question; the exit status."""
    how = "words and meaning" if by_meaning else "words"
    if as_json:
        print_json({"found": [match.model_dump(mode="json") for match in relevant], "compared_by": how})
        return 0
    if not relevant:
        print("nothing in the bank has to do with that")
        return 0
    for match in relevant:
        _print_entry(match.entry, f"relevance {match.score:.2f}, ")
    console_on(sys.stdout).print(
        Text(
            f"relevance from 0 (nothing in common) towards 1 (says all that is asked), by {how}", style="dim"
        )
    )
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
    guidance = (
        guidance_text(entry.pattern_type, entry.description)
        if _guides(entry)
        else "nothing: this pattern fits no type, so there is no example text for it"
    )
    sections: list[tuple[str, Sequence[str | Line]]] = [
        ("Described", [printable_line(entry.description, LONGEST_DESCRIPTION)]),
        ("Seen", [seen]),
        ("Where", [line for sighting in entry.seen[:FEW] for line in _sighting_lines(sighting)]),
        ("More", [f"{counted(len(entry.seen) - FEW, 'more sighting')} (--json)"] if entry.seen[FEW:] else []),
        ("Told", [f"as guidance: {guidance}"]),
    ]
    print_sections(console, sections)
    return 0


def _sighting_lines(sighting: Sighting) -> Iterable[Line]:
    circle = f", circle {printable_line(short_id(sighting.circle_id))}" if sighting.circle_id else ""
    voices = ", ".join(map(printable_line, sighting.models))
    yield Line(Text(f"{_day(sighting.at)} {printable_line(sighting.attack_id)}{circle}: {voices}"))
    for quote in sighting.examples[:2]:
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
    return time_text(at, "%Y-%m-%d", UTC)
