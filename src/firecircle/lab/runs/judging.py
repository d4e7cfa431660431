"""One record under some of the arms, each in its turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from firecircle.errors import ConfigError
from firecircle.lab.arms.arm import Arm, Case, Seating
from firecircle.lab.records import Outcome, RunRecord
from firecircle.lab.runs.cases import Chosen


@dataclass(frozen=True, slots=True)
class Task:
    """A record in one sitting, with the names of the arms that have yet to judge it."""

    chosen: Chosen
    repeat: int
    plan_seed: int
    arms: tuple[str, ...]
    earlier: Mapping[str, Outcome]
    """What other arms made of it, for those that refer to them."""

    @property
    def case(self) -> Case:
        """As the arms see it."""
        return Case(self.chosen.record, self.chosen.dataset, self.repeat, self.plan_seed, self.earlier)


async def judge_with(arm: Arm, case: Case, seating: Seating) -> Outcome:
    """The outcome; a record that this arm cannot take, such as one without the layer in focus, has failed."""
    try:
        return await arm.judge(case, seating)
    except ConfigError as unsuitable:
        return Outcome(status="failed", error=str(unsuitable))


def as_record(run_id: str, task: Task, arm: Arm, outcome: Outcome) -> RunRecord:
    """The outcome with whose it is."""
    record = task.chosen.record
    return RunRecord(
        run_id=run_id,
        arm=arm.name,
        kind=arm.kind,
        repeat=task.repeat,
        seed=task.plan_seed,
        dataset=task.chosen.dataset,
        record_id=record.id,
        source=record.source,
        family=record.family,
        label=record.label,
        turn_count=record.prompt.turn_number,
        layers=tuple(layer.name for layer in record.prompt.layers),
        **dict(outcome),
    )


def with_earlier(case: Case, name: str, outcome: Outcome) -> Case:
    """The case as the next arm sees it."""
    return replace(case, earlier={**case.earlier, name: outcome})
