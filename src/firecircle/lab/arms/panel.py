"""The arms without a dialogue: one voice, several independent ones, or one guided by the bank."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from firecircle.circle.panel import Guide, Panel
from firecircle.circle.result import CallRecord
from firecircle.convene import SeatedPanel, rehearse
from firecircle.errors import EvaluationError
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.outcomes import outcome_of_panel
from firecircle.lab.records import Outcome

if TYPE_CHECKING:
    from firecircle.lab.arms.circle import CircleArm


USUAL_FOLDS = 5


@dataclass(frozen=True, slots=True)
class ApartArm:
    """`single` and `parallel`: the circle's first question, asked once."""

    name: str
    kind: str
    panel: SeatedPanel

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that are asked."""
        return tuple(self.panel.voices)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Ask each voice once."""
        return await ask_apart(case, self.panel, voices)

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """One call per voice."""
        return await rehearse(case.record.prompt, self.panel.config)


async def ask_apart(
    case: Case, panel: SeatedPanel, voices: CaseVoices, guidance: Sequence[str] = ()
) -> Outcome:
    """Independent evaluations of a case, with this guidance if any."""
    started = time.monotonic()
    heard: list[Panel] = []
    error = None
    try:
        await panel.ask(
            case.record.prompt,
            seed=case.seed,
            watched=voices.seat,
            listener=heard.append,
            guidance=guidance,
        )
    except EvaluationError as failed:
        error = str(failed)
    seconds = max(time.monotonic() - started, voices.seconds())
    if not heard:
        return Outcome(status="failed", error=error, latency_seconds=seconds)
    return outcome_of_panel(heard[0], seconds=seconds, error=error)


@dataclass(frozen=True, slots=True)
class GuidedArm:
    """`guided`: one voice with guidance from circles over other records; without guidance, it equals
    `single`.

    Records are split into folds. A fold is judged with a bank that learnt from the circles of all other
    folds, so that nothing is tested on its own training data. The arm judges only after the circles it learns
    from are finished, and after it received its guides.
    """

    name: str
    teacher: CircleArm
    folds: int
    panel: SeatedPanel
    guides: tuple[Guide, ...] = ()
    """One per fold, which learnt from all others."""
    kind: str = "guided"

    @property
    def models(self) -> tuple[str, ...]:
        """The voice's model."""
        return tuple(self.panel.voices)

    def guided_by(self, guides: Sequence[Guide]) -> GuidedArm:
        """The arm, ready to judge."""
        return replace(self, guides=tuple(guides))

    def fold_of(self, case: Case) -> int:
        """The fold of a record; a group is never split."""
        group = case.record.id if case.record.group is None else case.record.group
        key = f"{case.dataset}/{group}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=8).digest()) % self.folds

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Ask once, with the guidance of the other folds' bank."""
        guide = self.guides[self.fold_of(case)]
        guidance = await asyncio.to_thread(guide.guidance_for, case.record.prompt)
        return await ask_apart(case, self.panel, voices, guidance)

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """One call per voice, without the few lines of guidance."""
        return await rehearse(case.record.prompt, self.panel.config)
