"""One run over all sets: every contender, then every table."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from bench.detection.contenders import JudgedByCircle, judged_by_circle
from bench.detection.memory import memory_of
from bench.detection.peer import JudgedByPeer, how_to_have_the_others, judged_by_peers
from bench.detection.roles import print_roles, write_roles
from bench.detection.seats import blind_seats, shipped
from bench.detection.tables import (
    print_against,
    print_families,
    print_harmless,
    print_overview,
    print_patterns,
    print_talk,
    print_unread,
)
from firecircle.lab.datasets import Record, read_dataset
from firecircle.names import embedded_models
from training.labelled import DEV, DEV2, DEV3, SEALED, is_derived

COUNTER = Path(__file__).with_name("scored.toml")
DEVELOPMENT = frozenset(("dev", "dev2", "dev3"))
"""The sets over which the roles are measured; one alone lacks families."""
SETS = {"dev": DEV, "dev2": DEV2, "dev3": DEV3, "sealed": SEALED}


def compare(names: Sequence[str], *, peer: bool, write: bool = False) -> None:
    """Judge these sets with everyone at hand, print what came of it, and write down the readers' roles."""
    judged: list[tuple[Sequence[Record], JudgedByCircle]] = []
    models = embedded_models()
    if len(models) < 3:
        print("the weights of the neural reader are missing: `firecircle local fetch neural`")
    for name in names:
        records = list(read_dataset(SETS[name]))
        seats = shipped(records, models) if name == "sealed" else blind_seats(records, models)
        circle = judged_by_circle(f"{len(models)} readers", records, seats)
        if name != "sealed":
            judged.append((records, circle))
        _print_set(SETS[name], records, circle, judged_by_peers(records) if peer else [])
    if DEVELOPMENT.issubset(names):
        print_roles(judged)
        if write:
            write_roles(judged)
    if peer:
        print(*how_to_have_the_others(), sep="\n")


def _print_set(
    path: Path, records: Sequence[Record], circle: JudgedByCircle, rivals: Sequence[JudgedByPeer]
) -> None:
    times = tomllib.loads(COUNTER.read_text(encoding="utf-8")).get(path.stem)
    known = f"scored {times} times before" if times is not None else "development data"
    print(f"\n{'=' * 100}\n{path.name}: {len(records)} records, {known}")
    peers = [rival.contender for rival in rivals]
    ours = circle.dialogue
    everyone = [circle.round_1, ours, *peers]
    print_overview("all sources", records, [*everyone, *circle.voices], lambda _: True)
    if path == DEV:
        print_overview("public sources", records, everyone, lambda record: not is_derived(record))
        print_overview("written for this project", records, everyone, is_derived)
    for peer in peers:
        print_against(records, [ours], peer)
    print_patterns(records, circle)
    print_families(records, [ours, *peers])
    print_harmless(records, [ours, *peers])
    print_unread(records, [ours, *peers])
    print_talk(records, circle)
    _print_costs([circle], rivals)


def _print_costs(circles: Sequence[JudgedByCircle], rivals: Sequence[JudgedByPeer]) -> None:
    print("\ntime and memory")
    for contender in [*(circle.dialogue for circle in circles), *(rival.contender for rival in rivals)]:
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
    for contender, megabytes in rivals:
        print(f"  {contender.name:28} {megabytes:.0f} MB after all prompts")
        for circle in circles:
            if contender.time:
                clock, cpu = contender.time.clock / circle.time.clock, contender.time.cpu / circle.time.cpu
                print(f"  {circle.name} is {clock:.1f} times as fast ({cpu:.1f} times by processor time)")
