"""One run over all sets: every contender, then every table."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.detection.contenders import (
    Contender,
    JudgedByCircle,
    generalist,
    judged_by_circle,
    said_alone,
)
from bench.detection.memory import memory_of
from bench.detection.peer import HOW_TO_HAVE_IT, judged_by_peer
from bench.detection.seats import rule_and_statistical, shipped
from bench.detection.tables import (
    print_against_peer,
    print_families,
    print_harmless,
    print_overview,
    print_reliability,
    print_talk,
    print_unread,
)
from firecircle.lab.datasets import Record, read_dataset
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.voices.embedded.generalist import shipped_weights
from firecircle.voices.embedded.learned.neural import is_available
from training.generalist import left_out_falsehood
from training.labelled import DEV, DEV2, SEALED, UNSEEN, is_derived

COUNTER = Path(__file__).with_name("scored.toml")


@dataclass(slots=True)
class JudgedSet:
    """A set of records and what everybody made of it."""

    path: Path
    records: list[Record]
    circles: list[JudgedByCircle]
    rival: tuple[Contender, float] | None
    generalists: list[Contender]


SETS = {"dev": DEV, "dev2": DEV2, "sealed": SEALED}


def compare(names: Sequence[str], *, neural: bool, peer: bool) -> None:
    """Judge these sets with everyone at hand, and print what came of it."""
    neural = neural and _neural_is_here()
    judged = [_judge(SETS[name], neural=neural, peer=peer) for name in names]
    _judge_in_one_pass(judged)
    for each in judged:
        _print_set(each)
    if peer and judged[0].rival is None:
        print(HOW_TO_HAVE_IT)


def _neural_is_here() -> bool:
    if not is_available():
        print("the neural voice is not installed; see docs/embedded.md")
    return is_available()


def _judge(path: Path, *, neural: bool, peer: bool) -> JudgedSet:
    records = list(read_dataset(path))
    seats = rule_and_statistical() if path == DEV else shipped(records, EMBEDDED_MODELS)
    circles = [judged_by_circle("circle", records, seats)]
    if neural and path != DEV:  # it was trained on dev.jsonl, and training it without each source takes hours
        seats = shipped(records, (*EMBEDDED_MODELS, NEURAL_MODEL))
        circles.append(judged_by_circle("circle with neural", records, seats))
    return JudgedSet(path, records, circles, judged_by_peer(records) if peer else None, [])


def _judge_in_one_pass(judged: Sequence[JudgedSet]) -> None:
    """The generalist, where its weights never saw the source: those that ship on the exam, else others."""
    known = [each for each in judged if each.path != SEALED]
    if len(known) == 1:
        print(f"{known[0].path.stem} alone is too little to fit the generalist without its sources")
    records = [record for each in known for record in each.records]
    for place in range(max(len(each.circles) for each in judged)):
        said = [
            words for each in known for words in said_alone(each.circles[min(place, len(each.circles) - 1)])
        ]
        scores = iter(left_out_falsehood(records, said) if len(known) > 1 else ())
        for each in judged:
            left_out = [next(scores) for _ in each.records] if each.path != SEALED and len(known) > 1 else []
            if place >= len(each.circles):
                continue
            circle = each.circles[place]
            if each.path == SEALED:
                words = said_alone(circle)
                weights = shipped_weights()[frozenset(words[0])]
                each.generalists.append(generalist(circle, [weights.falsehood(by_lens) for by_lens in words]))
            elif left_out:
                each.generalists.append(generalist(circle, left_out))


def _print_set(judged: JudgedSet) -> None:
    records, circles, rival = judged.records, judged.circles, judged.rival
    times = tomllib.loads(COUNTER.read_text(encoding="utf-8")).get(judged.path.stem)
    known = f"scored {times} times before" if times is not None else "development data"
    print(f"\n{'=' * 100}\n{judged.path.name}: {len(records)} records, {known}")
    ours = [*(circle.dialogue for circle in circles), *judged.generalists]
    whole = [*ours, *([rival[0]] if rival else [])]
    rounds = [contender for circle in circles for contender in (circle.round_1, circle.dialogue)]
    everyone = [*rounds, *whole[len(circles) :]]
    print_overview("all sources", records, [*everyone, *circles[-1].voices], lambda _: True)
    if judged.path == DEV:
        print_overview("public sources", records, everyone, lambda record: not is_derived(record))
        print_overview("written for this project", records, everyone, is_derived)
        of_unseen = "sources no rule was written on"
        print_overview(of_unseen, records, everyone, lambda record: record.source in UNSEEN)
        print_overview("all other sources", records, everyone, lambda record: record.source not in UNSEEN)
    if rival:
        print_against_peer(records, ours, rival[0])
    print_families(records, whole)
    print_harmless(records, whole)
    print_unread(records, whole)
    for circle in circles:
        print_talk(records, circle)
    for contender in ours:
        print_reliability(records, contender)
    _print_costs(circles, rival)


def _print_costs(circles: Sequence[JudgedByCircle], rival: tuple[Contender, float] | None) -> None:
    print("\ntime and memory")
    for contender in [*(circle.dialogue for circle in circles), *([rival[0]] if rival else [])]:
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
    if rival and rival[0].time:
        print(f"  {rival[0].name:28} {rival[1]:.0f} MB after all prompts")
        for circle in circles:
            clock, cpu = rival[0].time.clock / circle.time.clock, rival[0].time.cpu / circle.time.cpu
            print(f"  {circle.name} is {clock:.1f} times as fast ({cpu:.1f} times by processor time)")
