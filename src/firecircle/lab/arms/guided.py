"""One voice with what circles over other records taught the bank; without it, that is the arm `single`.

Records are split into folds. Whoever judges a fold is guided by a bank that has learnt from the circles of
all other folds, so that nothing is tested on what it was taught with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from firecircle.circle.panel import Guide
from firecircle.circle.result import CallRecord
from firecircle.convene import SeatedPanel, rehearse
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.circle import CircleArm
from firecircle.lab.arms.panel import ask_apart
from firecircle.lab.records import Outcome

USUAL_FOLDS = 5


@dataclass(frozen=True, slots=True)
class GuidedArm:
    """`guided`: judges only after its teacher's circles are over, and once it was given its guides."""

    name: str
    teacher: CircleArm
    folds: int
    panel: SeatedPanel
    guides: tuple[Guide, ...] = ()
    """One for each fold, which has learnt from all others."""
    kind: str = "guided"

    @property
    def models(self) -> tuple[str, ...]:
        """Who is asked."""
        return tuple(self.panel.voices)

    def guided_by(self, guides: Sequence[Guide]) -> GuidedArm:
        """The arm, ready to judge."""
        return replace(self, guides=tuple(guides))

    def fold_of(self, case: Case) -> int:
        """Which part of the records this one belongs to; a group is never torn apart."""
        group = case.record.id if case.record.group is None else case.record.group
        told = f"{case.dataset}/{group}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(told, digest_size=8).digest()) % self.folds

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Ask once, after what the bank of the other folds tells of such prompts."""
        guide = self.guides[self.fold_of(case)]
        guidance = await asyncio.to_thread(guide.guidance_for, case.record.prompt)
        return await ask_apart(case, self.panel, voices, guidance)

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """One call a voice; the few lines of guidance are not in it."""
        return await rehearse(case.record.prompt, self.panel.config)
