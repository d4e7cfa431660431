"""One run over all records: every contender, then every table."""

from __future__ import annotations

from collections.abc import Sequence

from bench.detection.contenders import Contender, Sitting, sit
from bench.detection.labelled import Labelled
from bench.detection.memory import memory_of
from bench.detection.peer import HOW_TO_HAVE_IT, judged_by_peer
from bench.detection.seats import neural_is_installed, rule_and_statistical, with_neural
from bench.detection.tables import print_clear, print_families, print_overview, print_reliability, print_talk


def compare(records: Sequence[Labelled], *, neural: bool, peer: bool) -> None:
    """Judge all records with everyone at hand, and print what came of it."""
    seats = rule_and_statistical()
    sittings = [sit("circle", records, seats)]
    if neural and neural_is_installed():
        seats = with_neural(seats)
        sittings.append(sit("circle with neural", records, seats))
    elif neural:
        print("the neural voice is not installed; see docs/embedded.md")
    rival = judged_by_peer(records) if peer else None
    if peer and rival is None:
        print(HOW_TO_HAVE_IT)

    whole = [sitting.dialogue for sitting in sittings] + ([rival[0]] if rival else [])
    _print_all(records, sittings, whole)
    _print_costs(sittings, whole, rival[1] if rival else None)


def _print_all(records: Sequence[Labelled], sittings: Sequence[Sitting], whole: Sequence[Contender]) -> None:
    rounds = [one for sitting in sittings for one in (sitting.round_1, sitting.dialogue)]
    everyone = [*rounds, *whole[len(sittings) :]]
    alone = sittings[-1].voices
    print_overview("all sources", records, [*everyone, *alone], lambda _: True)
    print_overview("public sources", records, everyone, lambda one: not one.derived)
    print_overview("written for this project", records, everyone, lambda one: one.derived)
    print_overview("sources no rule was written on", records, [*everyone, *alone], lambda one: one.unseen)
    print_overview("all other sources", records, everyone, lambda one: not one.unseen)
    print_families(records, whole)
    print_clear(records, whole)
    for sitting in sittings:
        print_talk(records, sitting)
    for sitting in sittings:
        print_reliability(records, sitting.dialogue)


def _print_costs(
    sittings: Sequence[Sitting], whole: Sequence[Contender], peer_megabytes: float | None
) -> None:
    print("\ntime and memory")
    for one in whole:
        if took := one.took:
            print(
                f"  {one.name:28} {took.clock:6.2f} ms a prompt ({took.cpu:.2f} ms of processor),"
                f" {1000 / took.clock:.1f} prompts a second"
            )
    for sitting in sittings:
        held = memory_of(tuple(sitting.heard[0].rounds[0]))
        print(
            f"  {sitting.name:28} {held.before:.0f} MB before, {held.after:.0f} MB after all examples,"
            f" {held.most:.0f} MB at most"
        )
    if len(sittings) > 1:
        cost = sittings[1].took.clock - sittings[0].took.clock
        print(f"  the neural voice adds {cost:.2f} ms a prompt")
    rival = whole[-1]
    if peer_megabytes is not None and rival.took:
        print(f"  {rival.name:28} {peer_megabytes:.0f} MB after all prompts")
        for sitting in sittings:
            clock, cpu = rival.took.clock / sitting.took.clock, rival.took.cpu / sitting.took.cpu
            print(f"  {sitting.name} is {clock:.1f} times as fast ({cpu:.1f} times by processor time)")
