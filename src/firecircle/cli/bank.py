"""`firecircle bank`: the patterns that circles found, kept so that cheaper judging can profit from them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from firecircle.cli.evaluate.inputs import text_of
from firecircle.cli.options import (
    AsJson,
    ExportFile,
    FilterOptions,
    Force,
    PatternType,
    StoreOption,
    Where,
    left_out_of_runs,
    pattern_type,
    readable,
    refuse_json_beside_export,
    refuse_to_replace,
    with_options,
    written_whole,
)
from firecircle.cli.output import (
    Line,
    console_on,
    note_on_runs_left_out,
    print_json,
    print_outcome,
    print_sections,
    print_written,
    section,
    short_id,
    with_progress,
)
from firecircle.cli.report import quoted
from firecircle.errors import ConfigError
from firecircle.names import has_neural_weights
from firecircle.store.bank.bank import GUIDED_TYPES, Learnt, entries_in, export_lines, guidance_text
from firecircle.store.bank.bank import learn as learnt_from
from firecircle.store.bank.entries import BankEntry, BankFilters, FullEntry, Relevant, Sighting
from firecircle.store.opening import open_store
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted, time_text
from firecircle.voices.embedded.learned.neural import nearness_in_meaning

if TYPE_CHECKING:
    from firecircle.store.bank.entries import BankFilters

MOST_LISTED, MOST_RELEVANT = 50, 5
ENTRY_ID = typer.Argument(metavar="ID", help="The entry; the first letters will do.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOptions:
    """Which entries of the bank a command is about; all that are given must hold."""

    type: PatternType = None
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            metavar="TAG",
            help="Only what has this tag, such as layer:user, voice:NAME, attack:ID or agreement:all.",
        ),
    ] = None
    text: Annotated[
        str | None,
        typer.Option(
            "--text", metavar="WORDS", help="Only what has all these words in a description or quote."
        ),
    ] = None

    @property
    def filters(self) -> BankFilters:
        """The filters these options ask for."""
        return BankFilters(
            pattern_type=None if self.type is None else pattern_type(self.type), tag=self.tag, text=self.text
        )


@with_options(EntryOptions)
def list_entries(
    like: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A prompt or a description: text, @file, or -."),
    ] = None,
    *,
    given: EntryOptions,
    limit: Annotated[
        int | None, typer.Option("--limit", "-k", metavar="N", min=1, help="Maximum number to show.")
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """List the patterns of the bank, the most often seen first, or those most relevant to a text.

    Relevance goes from 0 (nothing in common) towards 1 (the pattern says all that is asked): by words and
    their meaning, and half by meaning where the sentence model is installed (`firecircle local fetch
    neural`).
    """
    if like is not None:
        return _show_relevant(like, given, limit or MOST_RELEVANT, store, as_json=as_json)
    most = limit or MOST_LISTED
    with open_store(store) as opened:
        entries = opened.bank.find(given.filters, limit=most + 1)
    return show_entries(entries[:most], more=len(entries) > most, as_json=as_json)


def _show_relevant(like: str, given: EntryOptions, most: int, store: str | None, *, as_json: bool) -> int:
    prompt = text_of("TEXT", like)
    meaning = nearness_in_meaning if has_neural_weights() else None
    with open_store(store) as opened:
        relevant = opened.bank.relevant(prompt, most, given.filters, meaning=meaning)
    return show_relevant(relevant, by_meaning=meaning is not None, as_json=as_json)


def show(entry: Annotated[str, ENTRY_ID], store: StoreOption = None, as_json: AsJson = False) -> int:
    """Show a pattern, where it was seen, and what voices are shown about it."""
    with open_store(store) as opened:
        full_entry = opened.bank.entry(entry)
    return show_entry(full_entry, as_json=as_json)


def learn(
    where: Where = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Bank the patterns of the saved circles. Doing it again changes nothing.

    Circles that raised no alarm, and those labelled benign, teach nothing. Those of runs are left out,
    since several arms judge the same prompts, unless `--where run=` or `--where in_run=yes` asks for them.
    """
    filters = FilterOptions().narrowed(where).circles_that_teach(store).model_copy(update={"alarm": True})
    learnt = Learnt()
    with open_store(store) as opened:
        steps = learnt_from(opened.bank, opened.circles, filters)
        for learnt in with_progress(steps, "reading circle"):  # noqa: B007 - the last one sums up all
            pass
        entries = opened.bank.count()
        left_out = left_out_of_runs(opened.circles, filters)
    if as_json:
        print_json({**asdict(learnt), "of_runs_left_out": left_out, "entries": entries})
        return 0
    print(
        f"{counted(learnt.sightings, 'sighting')} learnt from {counted(learnt.circles, 'circle')},"
        f" {learnt.known:,} were known; the bank has {counted(entries, 'pattern')}"
    )
    if learnt.benign:
        print(f"{counted(learnt.benign, 'circle')} with an alarm left out: labelled benign")
    if learnt.unreadable:
        damaged = counted(learnt.unreadable, "circle")
        print(f"{damaged} left out: damaged; `firecircle doctor --store` names them")
    if left_out:
        print(note_on_runs_left_out(left_out))
    return 0


def forget(
    entry: Annotated[str | None, ENTRY_ID] = None,
    circle: Annotated[
        str | None, typer.Option(metavar="ID", help="Instead: what this circle brought.")
    ] = None,
    attack: Annotated[
        str | None, typer.Option(metavar="ID", help="Instead: what this attack brought.")
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take a pattern out of the bank, or what one circle or attack has brought into it."""
    if sum(given is not None for given in (entry, circle, attack)) != 1:
        raise ConfigError("forget", "name either an entry, a --circle or an --attack")
    with open_store(store) as opened:
        if entry is not None:
            gone = opened.bank.forget(entry).sightings
        elif circle is not None:
            gone = opened.bank.forget_circle(circle)
        else:
            gone = opened.bank.forget_attack(str(attack))
    if not gone:
        raise ConfigError(circle or attack, "the bank has seen nothing there")
    return print_outcome(f"{counted(gone, 'sighting')} forgotten", {"sightings": gone}, as_json=as_json)


@with_options(EntryOptions)
def export_to(
    file: ExportFile = "-",
    *,
    given: EntryOptions,
    force: Force = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Write the patterns with all their sightings to a file of JSON lines. They hold words of prompts."""
    refuse_json_beside_export(file, as_json=as_json)
    refuse_to_replace(file, force=force)
    entries = 0
    with open_store(store) as opened, written_whole(file) as target:
        for entries, line in enumerate(export_lines(opened.bank, given.filters)):  # noqa: B007 - line 0 is the header
            target.write(line + "\n")
    print_written(counted(entries, "pattern"), file, {"entries": entries}, as_json=as_json)
    return 0


def import_from(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `bank export` wrote; - for input.")],
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take over the patterns of another bank. What means the same becomes one; nothing is counted twice."""
    entries = sightings = 0
    with readable(file) as lines, open_store(store) as opened:
        for _, new in with_progress(opened.bank.add_all(entries_in(lines)), "reading pattern"):
            entries, sightings = entries + 1, sightings + new
        held = opened.bank.count()
    return print_outcome(
        f"{counted(entries, 'pattern')} read, {counted(sightings, 'sighting')} new;"
        f" the bank holds {counted(held, 'pattern')}",
        {"file": file, "read": entries, "sightings": sightings, "entries": held},
        as_json=as_json,
    )


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
        print("no pattern in the bank is related to that")
        return 0
    for match in relevant:
        _print_entry(match.entry, f"relevance {match.score:.2f}, ")
    console_on(sys.stdout).print(
        Text(f"relevance is from 0 (unrelated) to 1 (the same), compared by {how}", style="dim")
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
    console.print(title, soft_wrap=not console.is_terminal)
    console.print(*section("", [Line(description)]))


def _plain(pattern_type: str) -> str:
    return printable_line(pattern_type).replace("_", " ")


def _day(at: float) -> str:
    return time_text(at, "%Y-%m-%d", UTC)
