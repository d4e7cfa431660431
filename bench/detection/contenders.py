"""Who is compared: a score and an alarm for every record, and the time it took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.detection.labelled import Labelled
from bench.detection.seats import Seats
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.dialogue import Dialogue

ALARM = 0.7


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds a record: by the clock, and of all cores together (what other programs do not disturb)."""

    clock: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of judging; scores and alarms stand in the order of the records."""

    name: str
    scores: Sequence[float]
    alarms: Sequence[bool]
    took: Took | None = None
    """None for a part of another contender, which cannot be timed by itself."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a circle made of one record: every F by round and voice."""

    rounds: tuple[dict[str, float], ...]
    moves: tuple[float, ...]
    """By how much each F moved from one round to the next."""
    final_mean: float
    agreed: bool
    """Whether the voices agreed on a pattern."""

    def highest(self, rounds: int = 99) -> float:
        """The highest F of all voices up to a round."""
        return max(falsehood for held in self.rounds[:rounds] for falsehood in held.values())


@dataclass(frozen=True, slots=True)
class Sitting:
    """A circle that has judged every record."""

    name: str
    heard: Sequence[Heard]
    took: Took

    @property
    def round_1(self) -> Contender:
        """What it would say without talking."""
        return self._by(f"{self.name}, round 1", lambda one: one.highest(1))

    @property
    def dialogue(self) -> Contender:
        """What it says."""
        return self._by(self.name, Heard.highest, self.took)

    @property
    def voices(self) -> tuple[Contender, ...]:
        """Each voice alone, before anybody talked."""
        return tuple(
            self._by(f"  {name} alone", lambda one, name=name: one.rounds[0][name])  # type: ignore[misc]
            for name in self.heard[0].rounds[0]
        )

    def _by(self, name: str, score: Callable[[Heard], float], took: Took | None = None) -> Contender:
        scores = [score(one) for one in self.heard]
        return Contender(name, scores, [found >= ALARM for found in scores], took)


def sit(name: str, records: Sequence[Labelled], seats: Seats) -> Sitting:
    """Let a circle judge every record, one after the other, with the default configuration."""
    return asyncio.run(_sit(name, records, seats))


async def _sit(name: str, records: Sequence[Labelled], seats: Seats) -> Sitting:
    models = tuple(next(iter(seats.values())))
    config = FireCircleConfig.embedded(models=models, seed=1)
    for record in records[:3]:
        await _heard(record, config, seats)  # what is loaded on first use is not part of the time
    clock, cpu = time.perf_counter(), time.process_time()
    heard = [await _heard(record, config, seats) for record in records]
    each = 1000 / len(records)
    took = Took((time.perf_counter() - clock) * each, (time.process_time() - cpu) * each)
    return Sitting(name, heard, took)


async def _heard(record: Labelled, config: FireCircleConfig, seats: Seats) -> Heard:
    result = await Dialogue(record.prompt, config, seats[record.source]).hold()
    return Heard(
        tuple({said.model: said.falsehood for said in held.evaluations} for held in result.dialogue_history),
        tuple(flip.after - flip.before for flip in result.flips),
        result.rival_verdicts["final_mean"].value,
        bool(result.patterns),
    )
