"""`firecircle redteam`: attack a circle and see what it takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, names_in
from firecircle.cli.printable import printable_line
from firecircle.cli.trouble import INCOMPLETE, INTERRUPTED, MOST_COMPLAINTS, complain, require_lab
from firecircle.errors import ConfigError
from firecircle.telling.words import counted

if TYPE_CHECKING:
    from firecircle.examples import Example
    from firecircle.lab.redteam.attacks import Attack
    from firecircle.lab.redteam.kept_circles import KeptCircles
    from firecircle.lab.redteam.trial import RedTeamReport, Trial
    from firecircle.names import Label

HELD, BROKEN = 0, 1


def redteam(
    models: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,C", help="Whom to attack. Default: the built-in voices."),
    ] = None,
    attacks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,NAME", help="Only these attacks, such as order or always_1; --list names all."
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER,LAYER", help="Texts only in these layers: user, application, turns, system."
        ),
    ] = None,
    prompts: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many attack and how many benign prompts.")
    ] = 10,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, max=4, help="Rounds at most.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="Makes it repeatable.")] = 1,
    anew: Annotated[
        bool, typer.Option("--anew", help="Hold every circle again, whatever was held before.")
    ] = False,
    no_save: Annotated[
        bool, typer.Option("--no-save", help="Keep no circles to go on with, and no report for the viewer.")
    ] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the attacks.")] = False,
    as_json: AsJson = False,
) -> int:
    """Attack a circle with texts for its evaluators and members that cheat, and show what came of it.

    Bundled attack prompts are judged with a harmless text and with each attacking text in the same place, and
    in circles with a cheating member; benign prompts where a false alarm is wanted. Every circle is kept as
    soon as it is held: the same command goes on after Ctrl-C, a crash or kill -9. Exit status 1: some attack
    succeeded; 4: circles lost a voice to the network, and the same command holds them again.
    """
    require_lab("redteam")
    import asyncio

    from firecircle.cli.output import print_json
    from firecircle.cli.redteam.view import list_attacks, show
    from firecircle.lab.redteam.attacks import all_attacks
    from firecircle.lab.redteam.kept_circles import KeptCircles, circles_folder, digest_of
    from firecircle.lab.redteam.reports import keep
    from firecircle.lab.redteam.trial import Trial
    from firecircle.request import JudgingRequest, configured_by_file, embedded_models
    from firecircle.voices.seating import with_todays_models

    chosen = _chosen(all_attacks(), names_in(attacks or (), "--attacks"), names_in(layers or (), "--layers"))
    if show_list:
        return list_attacks(chosen, as_json=as_json)
    voices = names_in(models or (), "--models") or embedded_models()
    settings = {"models": voices, "max_rounds": rounds, "seed": seed}
    request = JudgingRequest(settings=settings, written={"models": "--models"})
    config = configured_by_file(request).config
    from firecircle.circle.config import FireCircleConfig

    assert isinstance(config, FireCircleConfig)
    config = asyncio.run(with_todays_models(config))
    trial = Trial.of(config, _examples("attack", prompts), _examples("benign", prompts))
    file = circles_folder() / f"{digest_of(trial.circle)}.jsonl"
    with nullcontext() if no_save else KeptCircles.opened(file, trial.circle, anew=anew) as kept:
        report = _carried_out(trial, chosen, kept)
    if report is None:
        return INTERRUPTED
    path = None if no_save else keep(report)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        show(report, path)
    if report.hurt:
        again = "" if no_save else ": the same command holds them again"
        complain(
            f"{counted(report.hurt, 'circle')} lost a voice to the network, a limit or a deadline{again}"
        )
    if any(outcome.succeeded.hits for outcome in report.outcomes):
        return BROKEN
    return INCOMPLETE if report.hurt else HELD


def _carried_out(trial: Trial, attacks: Sequence[Attack], kept: KeptCircles | None) -> RedTeamReport | None:
    """Hold the circles that are not held yet; None if that was interrupted."""
    import asyncio

    from firecircle.cli.output import progress

    done, total = 0, trial.sittings(attacks)
    for line in _about_before(trial, attacks, kept) if kept else ():
        print(line, file=sys.stderr, flush=True)
    with progress("held circles:", total, after=0.0) as show_progress:

        def count(held: int) -> None:
            nonlocal done
            done = held
            show_progress(held)

        try:
            return asyncio.run(trial.run(attacks, count, kept))
        except KeyboardInterrupt:
            pass
    end = (
        "are held and kept, and the same command goes on where this one stopped"
        if kept
        else "were held, and none is kept (--no-save)"
    )
    complain(f"interrupted; {done:,} of {total:,} circles {end}")
    return None


def _about_before(trial: Trial, attacks: Sequence[Attack], kept: KeptCircles) -> Iterator[str]:
    """What was held before, and what of it cannot be read."""
    file = printable_line(str(kept.path))
    for bad in kept.damaged[:MOST_COMPLAINTS]:
        why = printable_line(bad.why, 200)
        yield f"note: {file}, line {bad.number}: {why}; its circle is held again if no other line has it"
    if len(kept.damaged) > MOST_COMPLAINTS:
        yield f"note: {file}: so it is with {len(kept.damaged) - MOST_COMPLAINTS:,} more lines"
    if known := trial.held_before(attacks, kept):
        total = trial.sittings(attacks)
        yield f"going on after {known:,} of {total:,} circles, kept in {file} (--anew holds all again)"


def _chosen(known: Sequence[Attack], names: Sequence[str], layers: Sequence[str]) -> list[Attack]:
    """The attacks that were asked for; a `ConfigError` for a name that is none."""
    for given, option, possible in (
        (names, "--attacks", {attack.name for attack in known}),
        (layers, "--layers", {attack.layer for attack in known if attack.layer}),
    ):
        for name in given:
            if name not in possible:
                raise ConfigError(option, f"there is no {name!r}", f"use {', '.join(sorted(possible))}")
    return [
        attack
        for attack in known
        if (not names or attack.name in names)
        and (not layers or attack.layer is None or attack.layer in layers)
    ]


def _examples(label: Label, number: int) -> list[Example]:
    """Bundled prompts with this label, in equal steps over all of them."""
    from firecircle.examples import load_examples

    every = [example for example in load_examples() if example.label == label]
    number = min(number, len(every))
    return [every[place * len(every) // number] for place in range(number)]
