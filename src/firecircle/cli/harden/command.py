"""`firecircle harden`: what the wording of a system prompt leaves open, and what an addition changes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, StoreOption
from firecircle.cli.trouble import require_lab
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.lab.hardening.measuring import Hardening
    from firecircle.store.circles import CircleStore

ONE_OF_EACH_TYPE = 8


def harden(
    system: Annotated[str, typer.Argument(metavar="TEXT", help="The system prompt: text, @file, or -.")],
    voice: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Measure it: this language model plays the assistant, such as local:qwen or provider:model.",
        ),
    ] = None,
    addition: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Measure this addition instead of the proposed one: text, or @file."
        ),
    ] = None,
    attacks: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="So many attacks, of each type the first ones.")
    ] = ONE_OF_EACH_TYPE,
    fair: Annotated[
        int, typer.Option(metavar="N", min=0, max=4, help="So many fair questions, to see what it costs.")
    ] = 2,
    seed: Annotated[int, typer.Option(metavar="N", help="For the model's answers.")] = 1,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Show what a system prompt guards, which manipulations its wording leaves open, and what to add.

    With --voice a model plays the assistant under this text, without and with the addition, while attacks
    ask for something it keeps; what changed is told, good or bad. F would not show it: F judges the incoming
    message, so that a stricter system prompt raises F.

    \b
    firecircle harden @system.txt
    firecircle harden @system.txt --voice local:qwen
    """
    require_lab("harden")
    from firecircle.cli.evaluate.inputs import text_of
    from firecircle.cli.harden.view import show_hardening
    from firecircle.lab.hardening.wording import read_wording
    from firecircle.store.opening import open_store

    text = text_of("TEXT", system)
    if not text.strip():
        raise ConfigError("TEXT", "is empty", "give a system prompt")
    if addition is not None and voice is None:
        raise ConfigError("--addition", "is measured with a model", "add --voice, such as local:qwen")
    with open_store(store) as opened:
        blind, stored = _from_store(opened.circles)
    wording = read_wording(text, blind)
    added = wording.addition if addition is None else text_of("--addition", addition)
    measured = None
    if voice is not None:
        if not added.strip():
            raise ConfigError(
                "--voice", "the wording leaves no type open, so there is nothing to add", "give --addition"
            )
        measured = _measured(text, added, voice, attacks, fair, seed)
    show_hardening(wording, added, measured, blind, _bundled(), stored, as_json=as_json)
    return 0


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


def _measured(system: str, addition: str, voice: str, attacks: int, fair: int, seed: int) -> Hardening:
    import asyncio

    from firecircle.cli.output import progress
    from firecircle.cli.printable import printable_line
    from firecircle.lab.hardening.measuring import measure

    asking = f"asking {printable_line(voice)}: reply"
    with progress(asking, 2 * (attacks + fair), after=0.0) as show_progress:  # one may take a while
        show_progress(0)
        return asyncio.run(
            measure(
                system,
                addition,
                voice,
                most_attacks=attacks,
                most_fair=fair,
                seed=seed,
                on_reply=show_progress,
            )
        )
