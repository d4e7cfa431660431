"""`firecircle compare`: before and after, by the ids of prompts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from firecircle.cli.options import AsJson, StoreOption
from firecircle.cli.output import console_on, figures_table, print_json, short_id, table_console
from firecircle.cli.trouble import require_lab
from firecircle.errors import ConfigError
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.telling.words import counted
from firecircle.verdict import SHOWN, VerdictWord

if TYPE_CHECKING:
    from firecircle.lab.compare import BatchComparison, CircleComparison, Flip, PairedVerdicts, RunComparison
    from firecircle.lab.runs.folder import RunFolder
    from firecircle.lab.statistics.estimate import Estimate
    from firecircle.store.circles import CircleStore

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A batch's name, a run (its id, folder or last), or a circle's id."),
]
KINDS = ("batch", "run", "circle")


def compare(first: Name, second: Name, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Compare two batches, two runs or two circles: what differs, and which verdicts flipped.

    Prompts go by their ids, or by their row where they have none, also when their text or the system text
    has changed. Put batch:, run: or circle: before a name that could be several things. F judges the
    incoming message, so a stricter system prompt raises it: `firecircle harden` measures a system prompt.

    \b
    firecircle batch messages.csv --system @old.txt --name before
    firecircle batch messages.csv --system @new.txt --name after
    firecircle compare before after
    """
    from firecircle.store.opening import open_store

    require_lab("compare", "duckdb")
    from firecircle.lab.compare import compare_batches, compare_circles, compare_runs

    with open_store(store) as opened:
        kinds = [_kind(name, opened.circles) for name in (first, second)]
        names = [_without_kind(name) for name in (first, second)]
        if kinds[0] != kinds[1]:
            raise ConfigError(
                "compare",
                f"{names[0]} is a {kinds[0]} and {names[1]} a {kinds[1]}",
                "name two of a kind, with batch:, run: or circle: before them",
            )
        match kinds[0]:
            case "batch":
                show_batches(compare_batches(opened.circles, *names), as_json=as_json)
            case "circle":
                show_circles(compare_circles(opened.circles, *names), as_json=as_json)
            case _:
                show_runs(compare_runs(_run(names[0]), _run(names[1])), as_json=as_json)
    return 0


def _kind(name: str, circles: CircleStore) -> str:
    """What a name stands for: what is written before it, else the first of batch, run, circle that exists."""
    from firecircle.store.finding import Filters

    written, colon, _ = name.partition(":")
    if colon and written in KINDS:
        return written
    if circles.find(Filters(batch=name), limit=1).circles:
        return "batch"
    try:
        _run(name)
    except ConfigError:
        pass
    else:
        return "run"
    try:
        circles.summary(name)
    except ConfigError:
        raise ConfigError(
            "compare",
            f"{name} is not a saved batch, run or circle",
            "`firecircle circles list` and `firecircle lab report` show what is",
        ) from None
    return "circle"


def _without_kind(name: str) -> str:
    written, colon, rest = name.partition(":")
    return rest if colon and written in KINDS else name


def _run(name: str) -> RunFolder:
    from firecircle.lab.runs.folder import find_run

    return find_run(name)


FEW = 10
"""Flips that are listed of an arm or batch; JSON has them all."""


def show_runs(compared: RunComparison, *, as_json: bool) -> None:
    """What changed from one run to the other."""
    if as_json:
        print_json(compared.model_dump(mode="json"))
        return
    _print_names(compared.first, compared.second)
    _print_differences(compared.differences)
    _print_figures([(arm.arm, arm.beside) for arm in compared.arms])
    for arm in compared.arms:
        if arm.beside.flips:
            _print_flips(arm.beside, f" of {printable_line(arm.arm)}")
    if steady := [arm.arm for arm in compared.arms if not arm.beside.flips]:
        print(f"no verdict flipped of {printable_line(', '.join(steady))}")
    for side, names in (("first", compared.only_first), ("second", compared.only_second)):
        if names:
            print(f"only in the {side}: {printable_line(', '.join(names))}")


def show_batches(compared: BatchComparison, *, as_json: bool) -> None:
    """What changed from one batch to the other."""
    if as_json:
        print_json(compared.model_dump(mode="json"))
        return
    _print_names(compared.first, compared.second)
    _print_differences(compared.differences)
    _print_figures([("", compared.beside)])
    if compared.beside.flips:
        _print_flips(compared.beside, "")
    else:
        print("no verdict flipped")
        print()
    if compared.beside.changed.get("system"):
        console_on(sys.stdout).print(
            Text(
                "F judges the incoming message under each system text: a text that forbids more makes the"
                " same message more of a violation. `firecircle harden` measures the system text itself.",
                style="dim",
            )
        )


def show_circles(compared: CircleComparison, *, as_json: bool) -> None:
    """What differs between two circles."""
    if as_json:
        print_json(compared.model_dump(mode="json"))
        return
    _print_names(compared.first, compared.second)
    _print_differences(compared.differences)
    table = figures_table(("F first", "second"))
    table.add_row(
        "verdict", *(_verdict(*pair) for pair in zip(compared.falsehood, compared.verdict, strict=True))
    )
    for voice in compared.voices:
        spoken = (_show_rounds(voice.first), _show_rounds(voice.second))
        table.add_row(shortened(printable_line(voice.voice), 40), *spoken)
    table_console().print(table)
    for side, types in (("first", compared.patterns_only_first), ("second", compared.patterns_only_second)):
        if types:
            print(f"pattern only in the {side}: {', '.join(map(printable_line, types)).replace('_', ' ')}")


def _verdict(falsehood: float | None, word: VerdictWord) -> str:
    return SHOWN[word] if falsehood is None else f"{falsehood:.2f} {SHOWN[word]}"


def _show_rounds(rounds: tuple[float, float] | None) -> str:
    return "–" if rounds is None else f"{rounds[0]:.2f} → {rounds[1]:.2f}"


def _print_names(first: str, second: str) -> None:
    print(f"first   {printable_line(first)}")
    print(f"second  {printable_line(second)}")
    print()


def _print_differences(differences: Sequence[str]) -> None:
    console = console_on(sys.stdout)
    if not differences:
        print("nothing else differs: the same prompts, plan and voices")
    for difference in differences:
        console.print(Text(f"differs  {printable_line(difference)}"), soft_wrap=False)
    print()


def _print_figures(sides: Sequence[tuple[str, PairedVerdicts]]) -> None:
    """The figures of the shared prompts: alarms for all, rates where there are labels."""
    alarms = figures_table(("shared", "alarms first", "second", "mean F first", "second", "flipped"))
    rates = figures_table(("found first", "second", "false alarms", "second", "AUC first", "second", "p"))
    for name, beside in sides:
        arm = shortened(printable_line(name), 20)
        means = ("–" if mean is None else f"{mean:.2f}" for mean in beside.mean_falsehood)
        alarms.add_row(
            arm,
            f"{beside.shared:,}",
            *(f"{number:,}" for number in beside.alarms),
            *means,
            f"{len(beside.flips):,}",
        )
        if beside.first and beside.second and beside.comparison:
            ours, theirs = beside.first, beside.second
            rates.add_row(
                arm,
                _share(ours.at_threshold.recall),
                _share(theirs.at_threshold.recall),
                _share(ours.at_threshold.false_alarm_rate),
                _share(theirs.at_threshold.false_alarm_rate),
                _number(ours.auc.value),
                _number(theirs.auc.value),
                _number(beside.comparison.right.p_value),
            )
    console = table_console()
    console.print(alarms)
    if rates.row_count:
        print()
        console.print(rates)
        labelled = sides[0][1].first
        if labelled:
            attacks, benign = counted(labelled.attacks, "attack"), counted(labelled.benign, "benign prompt")
            print(f"of {attacks} and {benign} that both judged; p: McNemar over all of them")
    print()


def _print_flips(beside: PairedVerdicts, of: str) -> None:
    more = f", {FEW} of them" if len(beside.flips) > FEW else ""
    print(f"{counted(len(beside.flips), 'verdict')} flipped{of}{more}:")
    console = console_on(sys.stdout)
    width = console.width if console.is_terminal else 10_000
    for flip in beside.flips[:FEW]:
        for line in _flip_lines(flip):
            console.print(Text(line if len(line) <= width else f"{line[: width - 1]}…"), soft_wrap=True)
    print()


def _flip_lines(flip: Flip) -> Iterator[str]:
    right = {None: "", True: " (right)", False: " (wrong)"}[flip.right]
    label = f", labelled {flip.label}" if flip.label else ""
    circle = f", circle {printable_line(short_id(flip.circles[1]))}" if flip.circles[1] else ""
    name = printable_line(flip.id, 40)
    yield f"  {name}  F {flip.first:.2f} → {flip.second:.2f} {SHOWN[flip.now]}{right}{label}{circle}"
    changed = f"[{', '.join(flip.changed)} changed] " if flip.changed else ""
    if flip.words or changed:
        yield f"      {changed}{printable_line(flip.words or '')}"


def _share(estimate: Estimate) -> str:
    return "–" if estimate.value is None else f"{estimate.value:.0%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
