"""Blind spots on the screen: how often, where, whose, with the words that show them, and what would help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from firecircle.cli.blindspots.trying import Outcome, Trial, Trials
from firecircle.cli.output import (
    Line,
    console_on,
    note_on_runs_left_out,
    print_json,
    print_sections,
    short_id,
)
from firecircle.cli.printable import printable_line
from firecircle.cli.report.findings import quoted
from firecircle.store.bank.blindspots import Blindspot, Blindspots, ByLabel
from firecircle.telling.words import counted

FEW_QUOTES = 2
NO_CHANGE = 0.005


def show_blindspots(
    overlooked: Blindspots, shown: Sequence[Blindspot], trials: Trials | None, left_out: int, *, as_json: bool
) -> int:
    """Print what was overlooked, and how many circles of runs were left out; the exit status."""
    if as_json:
        document = {
            **overlooked.model_dump(mode="json"),
            "of_runs_left_out": left_out,
            "trials": None if trials is None else _trials_document(trials),
        }
        print_json(document)
        return 0
    console = console_on(sys.stdout)
    console.print(Text().append(" BLIND SPOTS ", style="bold reverse cyan").append(_headline(overlooked)))
    if left_out:
        console.print(Text(note_on_runs_left_out(left_out), style="dim"))
    console.print()
    if not overlooked.circles.circles:
        console.print(
            "no circle that is kept matches; judge some prompts, or ask for others or another --store"
        )
        return 0
    if not overlooked.groups:
        console.print("nothing was overlooked in round 1 and found in the dialogue")
        return 0
    console.print(_totals(overlooked.groups))
    console.print(Text("counted once for each circle, voice and layer", style="dim"))
    by_addition = {trial.addition: trial for trial in trials.trials} if trials else {}
    for number, group in enumerate(shown, start=1):
        console.print()
        console.print(Text(f"{number}. {_title(group)}", style="bold"))
        print_sections(console, [("", list(_group_lines(group, by_addition.get(group.addition or ""))))])
    if more := len(overlooked.groups) - len(shown):
        console.print()
        console.print(f"and {counted(more, 'more group')} (--groups, --json)")
    if trials:
        console.print()
        console.print(
            f"tried on {counted(trials.attacks, 'attack')} (those first that round 1 missed) and"
            f" {counted(trials.benign, 'benign prompt')} with {printable_line(trials.voice)};"
            f" alarm from {trials.threshold:g}"
        )
    return 0


def _headline(overlooked: Blindspots) -> str:
    read = f"{counted(overlooked.circles.circles, 'circle')}{_labels(overlooked.circles)}"
    unread = f"; {overlooked.unreadable} could not be read" if overlooked.unreadable else ""
    turned = overlooked.turned
    return f"  {read}: in {turned.circles:,}{_labels(turned)} only the dialogue raised the alarm{unread}"


def _totals(groups: Sequence[Blindspot]) -> Table:
    """By pattern, voice and layer how often something was overlooked, and how often that mattered."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("by")
    for title in ("overlooked", "verdict turned"):
        table.add_column(title, justify="right", no_wrap=True)
    for of in (_pattern_of, _voice_of, _layer_of):
        for name, group in _summed(groups, of):
            table.add_row(Text(printable_line(name)), *(f"{number:,}" for number in group))
    return table


def _summed(groups: Sequence[Blindspot], of: Callable[[Blindspot], str]) -> list[tuple[str, tuple[int, int]]]:
    sums: dict[str, tuple[int, int]] = {}
    for group in groups:
        missed, turned = sums.get(of(group), (0, 0))
        sums[of(group)] = (missed + group.overlooked.circles, turned + group.turned.circles)
    return sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))


def _pattern_of(group: Blindspot) -> str:
    return group.pattern_type.replace("_", " ")


def _voice_of(group: Blindspot) -> str:
    return group.voice


def _layer_of(group: Blindspot) -> str:
    return f"{group.layer} layer"


def _title(group: Blindspot) -> str:
    kind = printable_line(group.pattern_type).replace("_", " ")
    return f"{kind} in the {printable_line(group.layer)} layer, by {printable_line(group.voice)}"


def _group_lines(group: Blindspot, trial: Trial | None) -> Iterator[str | Line]:
    yield (
        f"overlooked in {counted(group.overlooked.circles, 'circle')}{_labels(group.overlooked)};"
        f" unnoticed by all in {group.unnoticed.circles:,}; verdict turned in {group.turned.circles:,}"
    )
    for sighting in group.quotes[:FEW_QUOTES]:
        circle = printable_line(short_id(sighting.circle_id))
        yield Line(quoted(sighting.quote).append(f"  circle {circle}", style="dim"), 1)
    if group.addition is None:
        yield "no addition: it fits none of the types"
        return
    yield Line(Text("add to a single pass: ").append(group.addition, style="italic"))
    if trial is not None:
        yield from (Line(Text(line), 1) for line in _trial_lines(trial))


def _trial_lines(trial: Trial) -> Iterator[str]:
    for name, outcome in (("attacks", trial.attacks), ("benign", trial.benign)):
        if outcome is None:
            yield f"{name}: none answered both times"
        else:
            yield f"{name}: {_change(outcome)}"
    if trial.gain is not None:
        yield _apart(trial.gain)
    if trial.unanswered:
        yield f"{counted(trial.unanswered, 'prompt')} not answered both times"


def _apart(gain: float) -> str:
    """What an addition did to the distance between attacks and benign prompts."""
    if abs(gain) < NO_CHANGE:
        return "attacks and benign prompts as far apart as before: no change"
    how = "farther apart: better" if gain > 0 else "closer together: worse"
    return f"attacks and benign prompts {abs(gain):.3f} {how}"


def _change(outcome: Outcome) -> str:
    alarms = f"{outcome.alarms_before} → {outcome.alarms_after} alarms of {outcome.prompts}"
    return f"{alarms}, mean F {outcome.mean_before:.2f} → {outcome.mean_after:.2f}"


def _labels(count: ByLabel) -> str:
    unlabelled = count.circles - count.attacks - count.benign
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (count.attacks, "attack"),
            (count.benign, "benign"),
            (unlabelled, "unlabelled"),
        )
        if number
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _trials_document(trials: Trials) -> dict[str, object]:
    rows = [{**trial.model_dump(mode="json"), "gain": trial.gain} for trial in trials.trials]
    return {**trials.model_dump(mode="json", exclude={"trials"}), "trials": rows}
