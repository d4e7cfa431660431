"""What a guided arm learns: a bank for each fold, filled from the circles over all other folds."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from firecircle.circle.panel import Guide
from firecircle.lab.arms.arm import Case
from firecircle.lab.arms.guided import GuidedArm
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.journal import Journal
from firecircle.lab.runs.replaying import FromTheJournal
from firecircle.store.bank.entries import store_fire_circle_patterns
from firecircle.store.opening import open_store


async def learnt(
    folder: RunFolder, journal: Journal, arm: GuidedArm, prefix: str, open_banks: ExitStack
) -> list[Guide]:
    """The guides of an arm, one for each fold. Its teacher's alarms are what they learn from; the databases
    are named by `prefix`.

    Labels play no part: whoever uses a bank has none. They are filled in the same order whenever a run is
    taken up again, so that the same guidance is given.
    """
    banks = [
        open_banks.enter_context(open_store(f"{prefix}-{fold}.sqlite")).bank for fold in range(arm.folds)
    ]
    repeat, seed = folder.plan.sittings[0]
    for chosen in chosen_records(folder.plan, folder.base):
        case = Case(chosen.record, chosen.dataset, repeat, seed)
        held = await arm.teacher.hold(case, FromTheJournal(journal, arm.teacher.name, case))
        if held.error is not None or not held.result.alarm or not held.result.patterns:
            continue
        # When a circle sat differs from run to run, and would differ in what is told of it.
        result = held.result.model_copy(update={"started_at": 0.0})
        own = arm.fold_of(case)
        for fold, bank in enumerate(banks):
            if fold != own:
                await asyncio.to_thread(store_fire_circle_patterns, result, chosen.record.id, bank)
    return list(banks)
