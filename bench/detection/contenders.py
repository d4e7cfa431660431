"""Who is compared: a score and an alarm for every record, and the time it took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.detection.seats import Seats
from firecircle.circle.config import FireCircleConfig
from firecircle.convene import SeatedCircle
from firecircle.lab.datasets import Record
from training.labelled import ALARM


@dataclass(frozen=True, slots=True)
class Milliseconds:
    """Time for a record: by the clock, and of all cores together (which other programs do not disturb)."""

    clock: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of judging; scores and alarms stand in the order of the records."""

    name: str
    scores: Sequence[float]
    alarms: Sequence[bool]
    time: Milliseconds | None = None
    """None for a part of another contender, which cannot be timed by itself."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a circle made of one record: every F by round and voice."""

    rounds: tuple[dict[str, float], ...]
    moves: tuple[float, ...]
    """By how much each F moved from one round to the next."""
    final_mean: float
    agreed: tuple[str, ...]
    """The types that the voices agreed on."""
    shown: tuple[str, ...]
    """The types that any voice showed, the agreed ones first."""
    has_reason: bool
    """Whether a pattern type is the reason of the verdict."""

    def highest(self, rounds: int = 99) -> float:
        """The highest F of all voices up to a round."""
        return max(falsehood for voices in self.rounds[:rounds] for falsehood in voices.values())


@dataclass(frozen=True, slots=True)
class JudgedByCircle:
    """A circle that has judged every record."""

    name: str
    judgements: Sequence[Judgement]
    time: Milliseconds

    @property
    def round_1(self) -> Contender:
        """What it would say without talking."""
        return self._by(f"{self.name}, round 1", lambda judgement: judgement.highest(1))

    @property
    def dialogue(self) -> Contender:
        """What it says."""
        return self._by(self.name, Judgement.highest, self.time)

    @property
    def last_words(self) -> Contender:
        """The mean F of the last round, as a rival way to decide."""
        return self._by(f"{self.name}, mean of last words", lambda judgement: judgement.final_mean)

    @property
    def voices(self) -> tuple[Contender, ...]:
        """Each voice alone, before anybody talked."""
        return tuple(self._voice(name) for name in self.judgements[0].rounds[0])

    def _voice(self, name: str) -> Contender:
        return self._by(f"  {name} alone", lambda judgement: judgement.rounds[0][name])

    def _by(
        self, name: str, score: Callable[[Judgement], float], time: Milliseconds | None = None
    ) -> Contender:
        scores = [score(judgement) for judgement in self.judgements]
        return Contender(name, scores, [score >= ALARM for score in scores], time)


def judged_by_circle(name: str, records: Sequence[Record], seats: Seats) -> JudgedByCircle:
    """Let a circle judge every record, one after the other, with the default configuration."""
    return asyncio.run(_judge_all(name, records, seats))


async def _judge_all(name: str, records: Sequence[Record], seats: Seats) -> JudgedByCircle:
    models = tuple(next(iter(seats.values())))
    config = FireCircleConfig.embedded(models=models, seed=1)
    for record in records[:3]:
        await _judge(record, config, seats)  # what is loaded on first use is not part of the time
    clock, cpu = time.perf_counter(), time.process_time()
    judgements = [await _judge(record, config, seats) for record in records]
    each = 1000 / len(records)
    spent = Milliseconds((time.perf_counter() - clock) * each, (time.process_time() - cpu) * each)
    return JudgedByCircle(name, judgements, spent)


async def _judge(record: Record, config: FireCircleConfig, seats: Seats) -> Judgement:
    result = await SeatedCircle(config, seats[record.source]).run(record.prompt)
    return Judgement(
        tuple(
            {evaluation.model: evaluation.falsehood for evaluation in held.evaluations}
            for held in result.dialogue_history
        ),
        tuple(flip.after - flip.before for flip in result.flips),
        result.rival_verdicts["final_mean"].value,
        tuple(pattern.pattern_type for pattern in result.patterns),
        tuple(pattern.pattern_type for pattern in result.patterns + result.single_voice_patterns),
        result.reason is not None and result.reason.pattern_type is not None,
    )
