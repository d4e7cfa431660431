"""Dialogues worth reading: which teach the most, and holding them again to show every word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firecircle.circle.result import FireCircleResult, account
from firecircle.engine.voices import ReplayedVoices
from firecircle.errors import FireCircleError
from firecircle.lab.arms.arm import Case
from firecircle.lab.arms.building import build_arms
from firecircle.lab.arms.circle import CircleArm
from firecircle.lab.datasets import Record
from firecircle.lab.figures.run import CIRCLES
from firecircle.lab.records import RunJournal, RunRecord, records_table
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.thresholds import lowest_reaching

MOST = 10
REASONS = (
    ("rescued", "an attack that no voice saw alone and the dialogue found"),
    ("talked_out", "voices that had seen an attack were talked out of it"),
    ("spread", "a false alarm that only the dialogue raised"),
    ("cleared", "a false alarm of round 1 that the dialogue laid to rest in every voice"),
    ("missed", "an attack that stayed unseen, the closest call"),
    ("divided", "voices that stayed divided to the end"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """A judgement worth reading, and why."""

    arm: str
    dataset: str
    record_id: str
    repeat: int
    seed: int
    label: str | None
    family: str | None
    f: float
    round1_f: float
    why: str


Judged = Choice | RunRecord


def instructive(records: Path, threshold: float, most: int = MOST) -> tuple[Choice, ...]:
    """The most instructive judgements of the arms that talk: taken in turn from each reason, best first."""
    import duckdb

    database = duckdb.connect(":memory:")
    source = records_table(database, records)
    kinds = ", ".join(f"'{kind}'" for kind in CIRCLES)
    rows = database.execute(
        f"""
        WITH told AS (
            SELECT arm, dataset, record_id, repeat, seed, label, family, f, round1_f, final_max,
                   groupthink_losses, kind = 'fire_circle' AS plain,
                   list_transform(voices, lambda v: v.falsehood) AS heard,
                   list_max(heard) - list_min(heard) AS apart
            FROM {source} WHERE status = 'judged' AND kind IN ({kinds})
        ), reasons AS (
            SELECT *, CASE
                WHEN label = 'attack' AND round1_f < $threshold AND f >= $threshold THEN 'rescued'
                WHEN label = 'attack' AND groupthink_losses > 0 THEN 'talked_out'
                WHEN label = 'benign' AND round1_f < $threshold AND f >= $threshold THEN 'spread'
                WHEN label = 'benign' AND round1_f >= $threshold AND final_max < $threshold THEN 'cleared'
                WHEN label = 'attack' AND f < $threshold THEN 'missed'
                ELSE 'divided' END AS why
            FROM told
        ), ranked AS (
            SELECT *, row_number() OVER (PARTITION BY why ORDER BY plain DESC,
                CASE why WHEN 'rescued' THEN f - round1_f WHEN 'talked_out' THEN groupthink_losses
                         WHEN 'spread' THEN f - round1_f WHEN 'cleared' THEN round1_f - final_max
                         WHEN 'missed' THEN f ELSE apart END DESC, record_id, arm) AS place
            FROM reasons
        )
        SELECT arm, dataset, record_id, repeat, seed, label, family, f, round1_f, why
        FROM ranked WHERE place <= $most ORDER BY place, arm, record_id
        """,
        {"threshold": lowest_reaching(threshold), "most": most},
    ).fetchall()
    return tuple(_in_turn([Choice(*row) for row in rows], most))


def _in_turn(choices: list[Choice], most: int) -> list[Choice]:
    """One of each reason, then a second of each, and so on; no prompt twice."""
    queues: dict[str, list[Choice]] = {reason: [] for reason, _ in REASONS}
    for choice in choices:
        queues[choice.why].append(choice)
    words = dict(REASONS)
    taken: list[Choice] = []
    seen: set[tuple[str, str]] = set()
    while len(taken) < most and any(queues.values()):
        for reason, queue in queues.items():
            while queue and (queue[0].dataset, queue[0].record_id) in seen:
                queue.pop(0)
            if queue and len(taken) < most:
                choice = queue.pop(0)
                seen.add((choice.dataset, choice.record_id))
                taken.append(replace(choice, why=words[reason]))
    return taken


async def retell(run: RunFolder, judgements: Sequence[Judged]) -> list[FireCircleResult | None]:
    """The circles of these judgements, in their order; None for one that cannot be held again.

    No voice is asked: embedded voices say the same again, others speak from the journal. A circle whose calls
    are not in the journal is told by its numbers alone.
    """
    places = {(judged.dataset, judged.record_id) for judged in judgements}
    try:
        arms = {
            arm.name: arm
            for arm in build_arms(run.plan, run.about.default_models)
            if isinstance(arm, CircleArm)
        }
        records = {
            (row.dataset, row.record.id): row.record
            for row in chosen_records(run.plan, run.base)
            if (row.dataset, row.record.id) in places
        }
    except FireCircleError:
        return [None] * len(judgements)  # the data or a setting is no longer there; the figures are
    with RunJournal(run.journal) as journal:
        return [
            await _held_again(
                run, arms.get(judged.arm), judged, records.get((judged.dataset, judged.record_id)), journal
            )
            for judged in judgements
        ]


async def _held_again(
    run: RunFolder, arm: CircleArm | None, judged: Judged, record: Record | None, journal: RunJournal
) -> FireCircleResult | None:
    if arm is None or record is None or judged.f is None:
        return None
    case = Case(record, judged.dataset, judged.repeat, judged.seed)
    voices = ReplayedVoices(journal, case.key(arm.name))
    held = await arm.run(case, voices)
    # Words are shown only if they led to the numbers on record.
    consensus = held.result.consensus
    if consensus is None or abs(consensus.falsehood - judged.f) >= 1e-9:
        return None
    return _as_it_took(held.result, voices.seconds_then, run.about.started_at)


def _as_it_took(
    result: FireCircleResult, seconds_then: Mapping[tuple[int, str], Sequence[float]], began: float
) -> FireCircleResult:
    """The circle with the times its calls took when they were made, from the beginning of the run on."""
    left = {place: list(seconds) for place, seconds in seconds_then.items()}
    calls, took = [], dict[tuple[int, str], float]()
    for call in result.calls:
        place = (call.round_number, call.model)
        seconds = left[place].pop(0) if left.get(place) else call.latency_seconds
        calls.append(call.model_copy(update={"latency_seconds": seconds, "started_at": None}))
        took[place] = took.get(place, 0.0) + seconds
    rounds, at = [], began
    for held in result.dialogue_history:
        longest = max(
            (spent for (number, _), spent in took.items() if number == held.round_number), default=0.0
        )
        rounds.append(held.model_copy(update={"timestamp": at, "duration_seconds": longest}))
        at += longest
    return result.model_copy(
        update={
            "started_at": began,
            "duration_seconds": at - began,
            "dialogue_history": tuple(rounds),
            "calls": tuple(calls),
            "accounting": account(calls),
        }
    )
