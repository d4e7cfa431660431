"""The arms of a circle and of voices that judge without talking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Guide, Panel
from firecircle.circle.result import CallRecord, FireCircleResult
from firecircle.convene import SeatedCircle, SeatedPanel, rehearse
from firecircle.errors import EvaluationError
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.outcomes import outcome_of_circle, outcome_of_panel
from firecircle.lab.records import Outcome
from firecircle.prompt import MultiNeutrosophicPrompt


@dataclass(frozen=True, slots=True)
class Held:
    """A finished circle, and why it reached no consensus, if so."""

    result: FireCircleResult
    error: str | None
    seconds: float
    roles: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The outcome to record."""
        outcome = outcome_of_circle(self.result, seconds=self.seconds, error=self.error)
        return outcome.model_copy(update={"roles": self.roles}) if self.roles else outcome


@dataclass(frozen=True, slots=True)
class CircleArm:
    """`fire_circle` and the controls that differ from it only in settings."""

    name: str
    kind: str
    circle: SeatedCircle
    change: Callable[[MultiNeutrosophicPrompt], MultiNeutrosophicPrompt] | None = None
    """Changes the prompt before it is judged."""
    roles_in: Callable[[FireCircleResult], tuple[str, ...]] | None = None
    cheat: str | None = None
    """A voice that the lab adds and that no provider has."""

    @property
    def config(self) -> FireCircleConfig:
        """The settings of the circle."""
        return self.circle.config

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that may be asked."""
        return tuple(model for model in self.circle.voices if model != self.cheat)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Run the circle."""
        return (await self.run(case, voices)).outcome

    async def run(self, case: Case, voices: CaseVoices) -> Held:
        """Run the circle and return its full result."""
        started = time.monotonic()
        error = None
        try:
            result = await self.circle.run(
                self._prompt(case),
                seed=case.seed,
                watched=voices.seat,
                on_event=voices.listener(self.name, self.models),
            )
        except EvaluationError as failed:
            if failed.partial_result is None:
                raise
            result, error = failed.partial_result, str(failed)
        roles = self.roles_in(result) if self.roles_in else ()
        return Held(result, error, max(time.monotonic() - started, voices.seconds()), roles)

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """Every round that may take place."""
        calls = await rehearse(self._prompt(case), self.config)
        return tuple(call for call in calls if call.model != self.cheat)

    def _prompt(self, case: Case) -> MultiNeutrosophicPrompt:
        return self.change(case.record.prompt) if self.change else case.record.prompt


_SUMS = ("calls", "attempts", "tokens_in", "tokens_cached", "tokens_out", "calls_without_tokens")


@dataclass(frozen=True, slots=True)
class CascadeArm:
    """`cascade`: the second circle runs if the first one's F is within the band, or if it failed."""

    name: str
    first: CircleArm
    second: CircleArm
    band: tuple[float, float]
    kind: str = "cascade"

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that may be asked."""
        return tuple(dict.fromkeys((*self.first.models, *self.second.models)))

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """The verdict of the last circle, and the cost of both."""
        cheap = await self.first.judge(case, voices)
        low, high = self.band
        if cheap.f is not None and not low <= cheap.f <= high:
            return cheap.model_copy(update={"escalated": False})
        dear = await self.second.judge(case, voices)
        sums = {name: getattr(cheap, name) + getattr(dear, name) for name in _SUMS}
        prices = (cheap.cost_usd, dear.cost_usd)
        return dear.model_copy(
            update={
                **sums,
                "cost_usd": None if None in prices else sum(price or 0.0 for price in prices),
                "latency_seconds": cheap.latency_seconds + dear.latency_seconds,
                "escalated": True,
            }
        )

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """Both circles: how many records need the second is not known in advance."""
        return (*await self.first.rehearse(case), *await self.second.rehearse(case))


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
