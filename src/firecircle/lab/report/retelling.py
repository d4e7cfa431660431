"""Holding a run's circles again to show every word: embedded voices say the same, others from the journal.

Nobody is asked. A circle whose calls are not in the journal is told by its numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from firecircle.circle.result import FireCircleResult
from firecircle.errors import FireCircleError
from firecircle.lab.arms.arm import Case
from firecircle.lab.arms.building import build_arms
from firecircle.lab.arms.circle import CircleArm
from firecircle.lab.datasets import Record
from firecircle.lab.report.choosing import Choice
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.journal import Journal
from firecircle.lab.runs.replaying import FromTheJournal


async def retell(run: RunFolder, chosen: Sequence[Choice]) -> list[FireCircleResult | None]:
    """The circles that were chosen, in their order; None for one that cannot be held again."""
    wanted = {(choice.dataset, choice.record_id) for choice in chosen}
    try:
        arms = {arm.name: arm for arm in build_arms(run.plan) if isinstance(arm, CircleArm)}
        records = {
            (found.dataset, found.record.id): found.record
            for found in chosen_records(run.plan, run.base)
            if (found.dataset, found.record.id) in wanted
        }
    except FireCircleError:
        return [None] * len(chosen)  # the data or a setting is no longer there; the figures are
    with Journal(run.journal) as journal:
        return [
            await _again(
                arms.get(choice.arm), choice, records.get((choice.dataset, choice.record_id)), journal
            )
            for choice in chosen
        ]


async def _again(
    arm: CircleArm | None, choice: Choice, record: Record | None, journal: Journal
) -> FireCircleResult | None:
    if arm is None or record is None:
        return None
    case = Case(record, choice.dataset, choice.repeat, choice.seed)
    held = await arm.hold(case, FromTheJournal(journal, arm.name, case))
    # Words are shown only if they led to the numbers on record.
    said = held.result.consensus
    return held.result if said is not None and abs(said.falsehood - choice.f) < 1e-9 else None
