"""One run over all sets: every contender, then every table."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.detection.contenders import (
    Contender,
    JudgedByCircle,
    calibrated,
    generalist,
    judged_by_circle,
    said_alone,
)
from bench.detection.memory import memory_of
from bench.detection.peer import JudgedByPeer, how_to_have_the_others, judged_by_peers
from bench.detection.seats import blind_seats, shipped
from bench.detection.tables import (
    print_against,
    print_calibration,
    print_families,
    print_harmless,
    print_overview,
    print_reliability,
    print_talk,
    print_unread,
)
from firecircle.lab.calibrated import left_out_probabilities
from firecircle.lab.datasets import Record, read_dataset
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.voices.calibrations import shipped_calibration
from firecircle.voices.embedded.generalist import shipped_fusions
from firecircle.voices.embedded.learned.neural import is_available
from training.generalist import left_out_falsehood
from training.labelled import DEV, DEV2, SEALED, UNSEEN, is_derived
from training.verdict import ROUNDS, said_of, words_of

COUNTER = Path(__file__).with_name("scored.toml")


@dataclass(slots=True)
class JudgedSet:
    """A set of records and what everybody made of it."""

    path: Path
    records: list[Record]
    circles: list[JudgedByCircle]
    rivals: list[JudgedByPeer]
    generalists: list[Contender]
    calibrated: list[Contender]


CIRCLES = {"circle": EMBEDDED_MODELS, "circle with neural": (*EMBEDDED_MODELS, NEURAL_MODEL)}
SETS = {"dev": DEV, "dev2": DEV2, "sealed": SEALED}


def compare(names: Sequence[str], *, neural: bool, peer: bool) -> None:
    """Judge these sets with everyone at hand, and print what came of it."""
    neural = neural and _neural_is_here()
    judged = [_judge(SETS[name], neural=neural, peer=peer) for name in names]
    _judge_in_one_pass(judged)
    _judge_by_calibration(judged)
    for each in judged:
        _print_set(each)
    if peer:
        print(*how_to_have_the_others(), sep="\n")


def _neural_is_here() -> bool:
    if not is_available():
        print("the neural voice is not installed; see docs/embedded.md")
    return is_available()


def _judge(path: Path, *, neural: bool, peer: bool) -> JudgedSet:
    records = list(read_dataset(path))
    circles = []
    for name, models in CIRCLES.items():
        if NEURAL_MODEL in models and not neural:
            continue
        seats = shipped(records, models) if path == SEALED else blind_seats(models)
        if all(record.source in seats for record in records):  # else some voice was trained on a source
            circles.append(judged_by_circle(name, records, seats))
    return JudgedSet(path, records, circles, judged_by_peers(records) if peer else [], [], [])


def _judge_by_calibration(judged: Sequence[JudgedSet]) -> None:
    """The calibrated verdict: on the exam by what ships, else by weights that never saw the source."""
    known = [each for each in judged if each.path != SEALED]
    for place in range(max(len(each.circles) for each in judged)):
        of_circle = [each for each in known if place < len(each.circles)]
        said = [one for each in of_circle for one in said_of(each.records, each.circles[place].judgements)]
        models = next(
            tuple(e.circles[place].judgements[0].rounds[0]) for e in judged if place < len(e.circles)
        )
        scores = iter(left_out_probabilities(words_of(models, said)) if of_circle else ())
        for each in judged:
            if place >= len(each.circles):
                continue
            circle = each.circles[place]
            if each.path != SEALED:
                each.calibrated.append(calibrated(circle, [float(next(scores)) for _ in each.records]))
            elif ships := shipped_calibration(models, ROUNDS):
                told = [
                    ships.probability({m: [held.get(m) for held in one.rounds] for m in models}) or 0.0
                    for one in circle.judgements
                ]
                each.calibrated.append(calibrated(circle, told))


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
                fusion = shipped_fusions()[frozenset(words[0])]
                each.generalists.append(generalist(circle, [fusion.falsehood(by_lens) for by_lens in words]))
            elif left_out:
                each.generalists.append(generalist(circle, left_out))


def _print_set(judged: JudgedSet) -> None:
    records, circles, rivals = judged.records, judged.circles, judged.rivals
    times = tomllib.loads(COUNTER.read_text(encoding="utf-8")).get(judged.path.stem)
    known = f"scored {times} times before" if times is not None else "development data"
    print(f"\n{'=' * 100}\n{judged.path.name}: {len(records)} records, {known}")
    peers = [rival.contender for rival in rivals]
    talked = [circle.dialogue for circle in circles]
    ours = [*talked, *judged.calibrated, *judged.generalists]
    rounds = [contender for circle in circles for contender in (circle.round_1, circle.dialogue)]
    everyone = [*rounds, *judged.calibrated, *judged.generalists, *peers]
    print_overview("all sources", records, [*everyone, *circles[-1].voices], lambda _: True)
    if judged.path == DEV:
        print_overview("public sources", records, everyone, lambda record: not is_derived(record))
        print_overview("written for this project", records, everyone, is_derived)
        of_unseen = "sources no rule was written on"
        print_overview(of_unseen, records, everyone, lambda record: record.source in UNSEEN)
        print_overview("all other sources", records, everyone, lambda record: record.source not in UNSEEN)
    for peer in peers:
        print_against(records, ours, peer)
    for highest, weighed in zip(talked, judged.calibrated, strict=False):
        print_against(records, [weighed], highest)
    if len(talked) > 1:
        print_against(records, talked[1:], talked[0])
    print_calibration(records, ours)
    print_families(records, [*ours, *peers])
    print_harmless(records, [*ours, *peers])
    print_unread(records, [*ours, *peers])
    for circle in circles:
        print_talk(records, circle)
    for contender in ours:
        print_reliability(records, contender)
    _print_costs(circles, rivals)


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
    if len(circles) > 1:
        cost = circles[1].time.cpu - circles[0].time.cpu
        print(f"  the neural voice adds {cost:.2f} ms of processor a prompt")
    for contender, megabytes in rivals:
        print(f"  {contender.name:28} {megabytes:.0f} MB after all prompts")
        for circle in circles:
            if contender.time:
                clock, cpu = contender.time.clock / circle.time.clock, contender.time.cpu / circle.time.cpu
                print(f"  {circle.name} is {clock:.1f} times as fast ({cpu:.1f} times by processor time)")
