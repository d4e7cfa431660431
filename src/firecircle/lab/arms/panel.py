"""The arms without a dialogue: one voice once, several voices apart, or one voice guided by the bank."""

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
        """Everybody who is asked."""
        return tuple(self.panel.voices)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Ask each voice once."""
        return await ask_apart(case, self.panel, voices)

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """One call a voice."""
        return await rehearse(case.record.prompt, self.panel.config)


async def ask_apart(
    case: Case, panel: SeatedPanel, voices: CaseVoices, guidance: Sequence[str] = ()
) -> Outcome:
    """What voices make of a case, each by itself, after this guidance if there is any."""
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
    """`guided`: one voice with what circles over other records taught the bank; without it, that is `single`.

    Records are split into folds. Whoever judges a fold is guided by a bank that has learnt from the circles
    of all other folds, so that nothing is tested on what it was taught with. The arm judges only after its
    teacher's circles are over, and once it was given its guides.
    """

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
        key = f"{case.dataset}/{group}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=8).digest()) % self.folds

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Ask once, after what the bank of the other folds tells of such prompts."""
        guide = self.guides[self.fold_of(case)]
        guidance = await asyncio.to_thread(guide.guidance_for, case.record.prompt)
        return await ask_apart(case, self.panel, voices, guidance)

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """One call a voice; the few lines of guidance are not in it."""
        return await rehearse(case.record.prompt, self.panel.config)
