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
from firecircle.lab.records import RunRecord
from firecircle.lab.report.choosing import Choice
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.journal import Journal
from firecircle.lab.runs.journaled_voices import ReplayedVoices

Judged = Choice | RunRecord


async def retell(run: RunFolder, judgements: Sequence[Judged]) -> list[FireCircleResult | None]:
    """The circles of these judgements, in their order; None for one that cannot be held again."""
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
    with Journal(run.journal) as journal:
        return [
            await _held_again(
                arms.get(judged.arm), judged, records.get((judged.dataset, judged.record_id)), journal
            )
            for judged in judgements
        ]


async def _held_again(
    arm: CircleArm | None, judged: Judged, record: Record | None, journal: Journal
) -> FireCircleResult | None:
    if arm is None or record is None or judged.f is None:
        return None
    case = Case(record, judged.dataset, judged.repeat, judged.seed)
    held = await arm.hold(case, ReplayedVoices(journal, arm.name, case))
    # Words are shown only if they led to the numbers on record.
    consensus = held.result.consensus
    return held.result if consensus is not None and abs(consensus.falsehood - judged.f) < 1e-9 else None
