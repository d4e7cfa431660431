"""`firecircle bank`: the patterns that circles found, kept so that cheaper judging can profit from them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.bank.runs import InRun, in_run_of
from firecircle.cli.options import (
    AsJson,
    Label,
    Pattern,
    Run,
    Since,
    StoreOption,
    Until,
    Voice,
    filters_from,
    type_name,
)

if TYPE_CHECKING:
    from firecircle.store.bank.entries import BankFilters

TypeOption = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only this pattern type.")]
TagOption = Annotated[
    str | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help="Only what has this tag, such as layer:user, voice:NAME, attack:ID or agreement:all.",
    ),
]
TextOption = Annotated[
    str | None,
    typer.Option("--text", metavar="WORDS", help="Only what has all these words in a description or quote."),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The entry; the first letters will do.")]


def bank_commands() -> typer.Typer:
    """The commands of the group."""
    group = typer.Typer(help="Patterns that circles found: learn, search, hand on.")
    group.command("list")(list_entries)
    for command in (search, show, learn, forget):
        group.command()(command)
    group.command("export")(export_to)
    group.command("import")(import_from)
    return group


def list_entries(
    pattern_type: TypeOption = None,
    tag: TagOption = None,
    text: TextOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The most to show.")] = 50,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """List the patterns of the bank, the most often seen first."""
    from firecircle.cli.bank.view import show_entries
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        found = opened.bank.find(_filters(pattern_type, tag, text), limit=limit + 1)
    return show_entries(found[:limit], more=len(found) > limit, as_json=as_json)


def search(
    question: Annotated[
        str, typer.Argument(metavar="TEXT", help="A prompt or a description: text, @file, or -.")
    ],
    k: Annotated[int, typer.Option("--most", "-k", metavar="K", min=1, help="The most to show.")] = 5,
    pattern_type: TypeOption = None,
    tag: TagOption = None,
    text: TextOption = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Show the patterns most relevant to a prompt or a description, the most relevant first."""
    from firecircle.cli.bank.view import show_relevant
    from firecircle.cli.evaluate.inputs import text_of
    from firecircle.store.opening import open_store

    asked = text_of("TEXT", question)
    with open_store(store) as opened:
        found = opened.bank.relevant(asked, k, _filters(pattern_type, tag, text))
    return show_relevant(found, as_json=as_json)


def show(entry: IdArgument, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Show a pattern, where it was seen, and what voices are told about it."""
    from firecircle.cli.bank.view import show_entry
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        found = opened.bank.entry(entry)
    return show_entry(found, as_json=as_json)


def learn(
    since: Since = None,
    until: Until = None,
    pattern: Pattern = None,
    voice: Voice = None,
    label: Label = None,
    run: Run = None,
    in_run: InRun = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Bank the patterns of the circles that are kept. Doing it again changes nothing.

    Circles that raised no alarm, and those labelled benign, teach nothing. Those of runs are left out,
    since several arms judge the same prompts, unless --run or --in-run asks for them.
    """
    from dataclasses import asdict

    from firecircle.cli.bank.runs import left_out, left_out_told
    from firecircle.cli.output import counted, counted_off, print_json
    from firecircle.store.bank.learning import Learnt
    from firecircle.store.bank.learning import learn as learnt_from
    from firecircle.store.opening import open_store

    filters = filters_from(
        since=since,
        until=until,
        alarm=True,
        pattern=pattern,
        voice=voice,
        label=label,
        run=run,
        in_run=in_run_of(run, in_run),
        mode="fire_circle",
        store=store,
    )
    learnt = Learnt()
    with open_store(store) as opened:
        steps = learnt_from(opened.bank, opened.circles, filters)
        for learnt in counted_off(steps, "reading circle"):  # noqa: B007 - the last one tells all
            pass
        entries = opened.bank.count()
        of_runs = left_out(opened.circles, filters)
    if as_json:
        print_json({**asdict(learnt), "of_runs_left_out": of_runs, "entries": entries})
        return 0
    print(
        f"{counted(learnt.sightings, 'sighting')} learnt from {counted(learnt.circles, 'circle')},"
        f" {learnt.known:,} were known; the bank holds {counted(entries, 'pattern')}"
    )
    if learnt.benign:
        print(f"{counted(learnt.benign, 'circle')} with an alarm left out: labelled benign")
    if learnt.unreadable:
        print(f"{counted(learnt.unreadable, 'circle')} left out: cannot be read")
    if of_runs:
        print(left_out_told(of_runs))
    return 0


def forget(
    entry: Annotated[
        str | None, typer.Argument(metavar="ID", help="The entry; the first letters will do.")
    ] = None,
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
    from firecircle.cli.output import counted, print_json
    from firecircle.errors import ConfigError
    from firecircle.store.opening import open_store

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
    if as_json:
        print_json({"sightings": gone})
    else:
        print(f"{counted(gone, 'sighting')} forgotten")
    return 0


def export_to(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - for standard output.")] = "-",
    pattern_type: TypeOption = None,
    tag: TagOption = None,
    text: TextOption = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Write the patterns with all their sightings to a file of JSON lines. They hold words of prompts."""
    from firecircle.cli.options import written_whole
    from firecircle.cli.output import counted, print_json
    from firecircle.cli.printable import printable_line
    from firecircle.errors import ConfigError
    from firecircle.store.bank.transfer import export_lines
    from firecircle.store.opening import open_store

    if as_json and file == "-":
        raise ConfigError(
            "--json", "standard output is the export already", "name a FILE or leave --json out"
        )
    entries = 0
    with open_store(store) as opened, written_whole(file) as target:
        lines = export_lines(opened.bank, _filters(pattern_type, tag, text))
        for entries, line in enumerate(lines):  # noqa: B007 - the header is line 0
            target.write(line + "\n")
    if as_json:
        print_json({"file": file, "entries": entries})
    else:
        where = "" if file == "-" else f" to {printable_line(file)}"
        print(f"{counted(entries, 'pattern')} written{where}", file=sys.stderr if file == "-" else sys.stdout)
    return 0


def import_from(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `bank export` wrote; - for input.")],
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take over the patterns of another bank. What means the same becomes one; nothing is counted twice."""
    from firecircle.cli.options import readable
    from firecircle.cli.output import counted, counted_off, print_json
    from firecircle.store.bank.transfer import entries_in
    from firecircle.store.opening import open_store

    entries = sightings = 0
    with readable(file) as lines, open_store(store) as opened:
        for _, new in counted_off(opened.bank.add_all(entries_in(lines)), "reading pattern"):
            entries, sightings = entries + 1, sightings + new
        held = opened.bank.count()
    if as_json:
        print_json({"file": file, "read": entries, "sightings": sightings, "entries": held})
    else:
        print(
            f"{counted(entries, 'pattern')} read, {counted(sightings, 'sighting')} new;"
            f" the bank holds {counted(held, 'pattern')}"
        )
    return 0


def _filters(pattern_type: str | None, tag: str | None, text: str | None) -> BankFilters:
    from firecircle.store.bank.entries import BankFilters

    return BankFilters(
        pattern_type=None if pattern_type is None else type_name(pattern_type), tag=tag, text=text
    )
