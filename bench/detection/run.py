"""One run over all records: every contender, then every table."""

from __future__ import annotations

from collections.abc import Sequence

from bench.detection.contenders import Contender, JudgedByCircle, judged_by_circle
from bench.detection.memory import memory_of
from bench.detection.peer import HOW_TO_HAVE_IT, judged_by_peer
from bench.detection.seats import rule_and_statistical, with_neural
from bench.detection.tables import (
    print_families,
    print_harmless,
    print_overview,
    print_reliability,
    print_talk,
)
from firecircle.lab.datasets import Record
from firecircle.voices.embedded.learned.neural import is_available
from training.labelled import UNSEEN, is_derived


def compare(records: Sequence[Record], *, neural: bool, peer: bool) -> None:
    """Judge all records with everyone at hand, and print what came of it."""
    seats = rule_and_statistical()
    circles = [judged_by_circle("circle", records, seats)]
    if neural and is_available():
        seats = with_neural(seats)
        circles.append(judged_by_circle("circle with neural", records, seats))
    elif neural:
        print("the neural voice is not installed; see docs/embedded.md")
    rival = judged_by_peer(records) if peer else None
    if peer and rival is None:
        print(HOW_TO_HAVE_IT)

    whole = [circle.dialogue for circle in circles] + ([rival[0]] if rival else [])
    print_tables(records, circles, whole)
    _print_costs(circles, whole, rival[1] if rival else None)


def print_tables(
    records: Sequence[Record], circles: Sequence[JudgedByCircle], whole: Sequence[Contender]
) -> None:
    """Every table; `whole` are the dialogues of the circles and then the rival, if there is one."""
    rounds = [contender for circle in circles for contender in (circle.round_1, circle.dialogue)]
    everyone = [*rounds, *whole[len(circles) :]]
    alone = circles[-1].voices
    print_overview("all sources", records, [*everyone, *alone], lambda _: True)
    print_overview("public sources", records, everyone, lambda record: not is_derived(record))
    print_overview("written for this project", records, everyone, is_derived)
    print_overview(
        "sources no rule was written on",
        records,
        [*everyone, *alone],
        lambda record: record.source in UNSEEN,
    )
    print_overview("all other sources", records, everyone, lambda record: record.source not in UNSEEN)
    print_families(records, whole)
    print_harmless(records, whole)
    for circle in circles:
        print_talk(records, circle)
    for circle in circles:
        print_reliability(records, circle.dialogue)


def _print_costs(
    circles: Sequence[JudgedByCircle], whole: Sequence[Contender], peer_megabytes: float | None
) -> None:
    print("\ntime and memory")
    for contender in whole:
        if spent := contender.time:
            print(
                f"  {contender.name:28} {spent.clock:6.2f} ms a prompt ({spent.cpu:.2f} ms of processor),"
                f" {1000 / spent.clock:.1f} prompts a second"
            )
    for circle in circles:
        memory = memory_of(tuple(circle.judgements[0].rounds[0]))
        print(
            f"  {circle.name:28} {memory.before:.0f} MB before, {memory.after:.0f} MB after all examples,"
            f" {memory.most:.0f} MB at most"
        )
    if len(circles) > 1:
        cost = circles[1].time.clock - circles[0].time.clock
        print(f"  the neural voice adds {cost:.2f} ms a prompt")
    rival = whole[-1]
    if peer_megabytes is not None and rival.time:
        print(f"  {rival.name:28} {peer_megabytes:.0f} MB after all prompts")
        for circle in circles:
            clock, cpu = rival.time.clock / circle.time.clock, rival.time.cpu / circle.time.cpu
            print(f"  {circle.name} is {clock:.1f} times as fast ({cpu:.1f} times by processor time)")
