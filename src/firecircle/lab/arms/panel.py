"""The arms without a dialogue: one voice once, or several voices apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord
from firecircle.convene import SeatedPanel, rehearse
from firecircle.errors import EvaluationError
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.outcomes import outcome_of_panel
from firecircle.lab.records import Outcome


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
