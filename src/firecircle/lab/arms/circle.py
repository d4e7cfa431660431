"""The arms with a dialogue: a circle, a circle with one setting changed, and a cascade of two."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import CallRecord, FireCircleResult
from firecircle.convene import SeatedCircle, rehearse
from firecircle.errors import EvaluationError
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.outcomes import outcome_of_circle
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
