"""`firecircle blindspots`: what judging alone overlooked and talking found, and what may help."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from firecircle.cli.options import (
    AsJson,
    FilterOptions,
    StoreOption,
    Where,
    left_out_of_runs,
)
from firecircle.cli.output import (
    Line,
    console_on,
    note_on_runs_left_out,
    print_json,
    print_sections,
    progress,
    short_id,
)
from firecircle.cli.report import quoted
from firecircle.store.bank.blindspots import Blindspot, Blindspots, ByLabel, find_blindspots
from firecircle.store.opening import open_store
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted


def blindspots(
    where: Where = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="F", min=0, max=1, help="Alarm threshold [default: the value used at the time]."
        ),
    ] = None,
    groups: Annotated[int, typer.Option(metavar="N", min=1, help="How many patterns to show.")] = 10,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Show what round 1 overlooked and the dialogue found, by pattern, and what could be said against it.

    Each prompt counts once. Labelled prompts come first, unlabelled ones apart. Circles of runs are left out,
    since several arms judge the same prompts, unless `--where run=` or `--where in_run=yes` asks for them.

    \b
    firecircle blindspots
    """
    filters = FilterOptions().narrowed(where).circles_that_teach(store)
    with open_store(store) as opened:
        with progress("reading circle") as show_progress:
            overlooked = find_blindspots(
                opened.circles, filters, threshold=threshold, on_circle=show_progress
            )
        left_out = left_out_of_runs(opened.circles, filters)
    return show_blindspots(overlooked, groups, left_out, as_json=as_json)


FEW_QUOTES = 2
FEW_MISSED = 3
UNLABELLED = "Prompts without a label: whether the discussion was right about them is not known"


def show_blindspots(overlooked: Blindspots, most: int, left_out: int, *, as_json: bool) -> int:
    """Print what was overlooked, at most so many patterns, and how many circles of runs were left out."""
    if as_json:
        document = {
            **overlooked.model_dump(mode="json"),
            "of_runs_left_out": left_out,
        }
        print_json(document)
        return 0
    console = console_on(sys.stdout)
    console.print(Text().append(" BLIND SPOTS ", style="bold reverse cyan").append(_headline(overlooked)))
    if left_out:
        console.print(Text(note_on_runs_left_out(left_out), style="dim"))
    console.print()
    if not overlooked.circles.total and not overlooked.unreadable:
        console.print(
            "no saved circle matches; judge some prompts, change the filters, or name another --store"
        )
        return 0
    if overlooked.nothing_overlooked:
        console.print(_nothing(left_out))
        return 0
    numbers = itertools.count(1)
    proposed: set[str] = set()
    for title, groups in (("", overlooked.groups), (UNLABELLED, overlooked.unlabelled)):
        shown = groups[:most]
        if shown and title:
            console.print(Text(title, style="bold dim"))
            console.print()
        for group in shown:
            console.print(Text(f"{next(numbers)}. {_title(group)}", style="bold"))
            lines = list(_group_lines(group, is_new=group.pattern_type not in proposed))
            proposed.add(group.pattern_type)
            print_sections(console, [("", lines)])
            console.print()
        if more := len(groups) - len(shown):
            console.print(f"and {counted(more, 'more pattern')} (--groups, --json)")
            console.print()
    for line in _not_in_groups(overlooked):
        console.print(Text(line))
    return 0


def _headline(overlooked: Blindspots) -> str:
    read = f"{counted(overlooked.circles.total, 'circle')}{_labels(overlooked.circles)}"
    unread = f"; {overlooked.unreadable} could not be read" if overlooked.unreadable else ""
    turned = overlooked.turned
    prompts = counted(turned.total, "prompt")
    return f"  {read}: for {prompts}{_labels(turned)} only the dialogue raised the alarm{unread}"


def _nothing(left_out: int) -> str:
    nothing = "nothing was overlooked in round 1, and no attack was missed to the end"
    return f"{nothing}, in the circles outside of runs" if left_out else nothing


def _not_in_groups(overlooked: Blindspots) -> Iterator[str]:
    """What the groups do not show: attacks that even talking missed, and verdicts turned without words."""
    if overlooked.missed:
        circles = ", ".join(printable_line(short_id(name)) for name in overlooked.missed_in[:FEW_MISSED])
        yield (
            f"{counted(overlooked.missed, 'circle')} over attacks raised no alarm in any round"
            f" ({circles}{', …' if overlooked.missed > FEW_MISSED else ''}): the discussion did not help;"
            " `firecircle circles list --label attack --no-alarm` lists them"
        )
    if not overlooked.groups and not overlooked.unlabelled and overlooked.turned.total:
        yield (
            "where the dialogue raised the alarm, no voice that had been below the threshold quoted words"
            " for it: there is nothing to propose"
        )


def _title(group: Blindspot) -> str:
    kind = printable_line(group.pattern_type).replace("_", " ")
    return f"{kind} in the {' and '.join(map(printable_line, group.layers))} layer"


def _group_lines(group: Blindspot, *, is_new: bool) -> Iterator[str | Line]:
    if group.overlooked.total:
        yield (
            f"overlooked in {counted(group.overlooked.total, 'prompt')}{_labels(group.overlooked)},"
            f" by every voice in {group.unnoticed.total:,}"
        )
    if group.underrated.total:
        yield (
            f"pointed out without an alarm in"
            f" {counted(group.underrated.total, 'prompt')}{_labels(group.underrated)}"
        )
    yield f"changed to an alarm by the discussion in {group.turned.total:,}{_labels(group.turned)}"
    if group.voices:
        voices = ", ".join(f"{printable_line(voice)} {number:,}" for voice, number in group.voices.items())
        yield f"overlooked by {voices}"
    for sighting in group.quotes[:FEW_QUOTES]:
        circle = printable_line(short_id(sighting.circle_id))
        yield Line(quoted(sighting.quote).append(f"  circle {circle}", style="dim"), 1)
    if group.for_author is None or group.for_judge is None:
        benign = group.overlooked.benign + group.underrated.benign
        none_else = benign and benign == group.overlooked.total + group.underrated.total
        yield (
            "no addition: seen in benign prompts only, where the discussion was wrong"
            if none_else
            else "no addition: it fits none of the types"
        )
        return
    if not is_new:
        yield "what to add: the same as above"
        return
    yield Line(Text("add to your system prompt: ").append(group.for_author, style="italic"))
    yield Line(Text("add to a single-pass judge: ").append(group.for_judge, style="italic"))


def _labels(count: ByLabel) -> str:
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (count.attacks, "attack"),
            (count.benign, "benign"),
            (count.unlabelled, "unlabelled"),
        )
        if number
    ]
    return f" ({', '.join(parts)})" if parts else ""
