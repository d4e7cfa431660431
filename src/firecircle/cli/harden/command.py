"""`firecircle harden`: what the wording of a system prompt leaves open, and which attacks get through."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, BudgetUsd, StoreOption
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.lab.hardening.measuring import Case, Hardening
    from firecircle.store.circles import CircleStore

ONE_OF_EACH_TYPE = 8
PROPOSED = "proposed"


def harden(
    system: Annotated[str, typer.Argument(metavar="TEXT", help="The system prompt: text, @file, or -.")],
    voice: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Send attacks to this model as the assistant, such as local:qwen or provider:model.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Your attacks, in any form that `firecircle batch` reads. Default: bundled ones.",
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Compare with a changed system prompt: text, @file, or `proposed` for what is shown.",
        ),
    ] = None,
    attacks: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Send so many attacks. Default: 8 bundled ones, or the whole file."
        ),
    ] = None,
    budget_usd: BudgetUsd = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Show which manipulations a system prompt leaves open, and which attacks get through to a model.

    Without --voice only the wording is read. With it each attack is sent to the model under this text, and
    under the changed one with --after; the answers show what was given away. A stopped measurement goes on
    with the same command. Exit status 2 if it stopped before the last attack.

    \b
    firecircle harden @system.txt
    firecircle harden @system.txt --voice local:qwen --after proposed
    firecircle harden @system.txt --voice provider:model --batch attacks.csv --budget-usd 1
    """
    from firecircle.cli.evaluate.inputs import text_of
    from firecircle.cli.harden.view import show_hardening
    from firecircle.lab.hardening.wording import read_wording
    from firecircle.store.opening import open_store

    text = text_of("TEXT", system)
    if not text.strip():
        raise ConfigError("TEXT", "is empty", "give a system prompt")
    for option, value in (("--after", after), ("--batch", batch), ("--attacks", attacks)):
        if value is not None and voice is None:
            raise ConfigError(option, "is for attacks on a model", "add --voice, such as local:qwen")
    with open_store(store) as opened:
        blind, stored = _from_store(opened.circles)
    wording = read_wording(text, blind)
    measured = None
    if voice is not None:
        changed = None if after is None else text_of("--after", after)
        if after == PROPOSED:
            if not wording.addition:
                raise ConfigError(
                    "--after", "nothing is proposed: the wording leaves no type open", "give a text"
                )
            changed = f"{text.rstrip()}\n{wording.addition}"
        measured = _measured(text, changed, voice, _cases(batch, attacks), budget_usd)
    show_hardening(wording, measured, blind, _bundled(), stored, as_json=as_json)
    return 2 if measured is not None and measured.stopped else 0


def _cases(batch: str | None, most: int | None) -> list[Case]:
    from firecircle.lab.hardening.measuring import FAIR, Case, bundled_cases, fair_cases

    if batch is None:
        return bundled_cases(most or ONE_OF_EACH_TYPE)
    from firecircle.cli.batch.reading import read_batch
    from firecircle.lab.datasets import FieldMap
    from firecircle.names import is_benign
    from firecircle.prompt import MultiNeutrosophicPrompt

    rows = read_batch(batch, FieldMap(), None, MultiNeutrosophicPrompt(user="")).records
    cases = [
        Case(f"{number}:{row.id}", FAIR if is_benign(row.label) else row.family or "attack", row.prompt)
        for number, row in enumerate(rows, start=1)
    ]
    hostile = [case for case in cases if case.kind != FAIR][:most]
    if not hostile:
        raise ConfigError(
            "--batch", f"{batch} has no attack", "label some rows attack, or leave the label out"
        )
    return [*hostile, *([case for case in cases if case.kind == FAIR] or fair_cases())]


def _from_store(circles: CircleStore) -> tuple[tuple[str, ...], Counter[str]]:
    """The types that kept circles had blind spots for, worst first; how many attacks are kept of each."""
    from firecircle.cli.output import progress
    from firecircle.store.bank.blindspots import find_blindspots
    from firecircle.store.finding import Filters

    with progress("reading circle") as show_progress:
        spots = find_blindspots(circles, Filters(in_run=False), on_circle=show_progress)
    kept = Counter(
        kind
        for summary in circles.each_summary(Filters(in_run=False, label="attack"))
        for kind in dict.fromkeys(summary.pattern_types)
    )
    return tuple(dict.fromkeys(spot.pattern_type for spot in (*spots.groups, *spots.unlabelled))), kept


def _bundled() -> Counter[str]:
    from firecircle.examples import load_examples

    return Counter(example.pattern_type for example in load_examples() if example.label == "attack")


def _measured(
    system: str, changed: str | None, voice: str, cases: list[Case], budget_usd: float | None
) -> Hardening:
    import asyncio

    from firecircle.cli.output import progress
    from firecircle.lab.hardening.measuring import measure
    from firecircle.telling.safe_text import printable_line

    total = len(cases) * (1 if changed is None else 2)
    with progress(f"asking {printable_line(voice)}: reply", total, after=0.0) as show_progress:
        show_progress(0)
        return asyncio.run(
            measure(system, changed, voice, cases, budget_usd=budget_usd, on_reply=show_progress)
        )
