"""Random circles with random voices, held by the real engine and written down step by step."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from firecircle import EvaluationError, FireCircleConfig, ModelCharacteristics, fire_circle_evaluate
from firecircle.catalog import ROLE_WEIGHTS
from firecircle.circle.events import Event
from firecircle.errors import ConfigError
from formal.recording import Recording
from tests.scripted import PROMPT, Script

ROLES = tuple(ROLE_WEIGHTS)


def _brings(chance: random.Random) -> dict[str, float]:
    """What a voice brings: often much, so that most circles form a quorum and can lose it."""
    if chance.random() < 0.5:
        share = chance.choice([0.55, 0.6, 0.9])
        return {"temporal_reasoning": share, "cross_layer_analysis": share}
    return {role: chance.randrange(21) / 20 for role in chance.sample(ROLES, chance.randint(1, 3))}


def random_circle(chance: random.Random) -> FireCircleConfig:
    """A circle that is accepted, of 2 to 8 voices with up to 3 reserves."""
    while True:
        voices, reserves = chance.choice([2, 3, 3, 4, 4, 5, 7, 8]), chance.randint(0, 3)
        names = [f"m{n}" for n in range(voices + reserves)]
        models = names[:voices]
        chair = chance.choice(["rotating", "rotating", "rotating", "fixed", "none"])
        try:
            return FireCircleConfig(
                models=models,
                reserves=names[voices:],
                model_characteristics={
                    name: ModelCharacteristics(name, _brings(chance), chance.choice(["us", "cn", "eu"]))
                    for name in names
                },
                enforce_quorum=chance.random() < 0.8,
                min_viable_models=chance.choice([2, 2, min(3, voices)]),
                max_rounds=chance.choice([1, 2, 3, 3, 3, 4]),
                failure_mode=chance.choice(["resilient"] * 5 + ["strict"]),
                empty_chair=chair != "none",
                empty_chair_rotation=chair != "fixed",
                empty_chair_model=chance.choice(models) if chair == "fixed" else None,
                require_empty_chair_role=False,
                early_stop_convergence=chance.choice([0.0, 0.1, 0.1, 0.3]),
                extra_round_on_divergence=chance.random() < 0.8,
                seed=chance.randrange(100),
            )
        except ConfigError:
            continue


def _lines(chance: random.Random, config: FireCircleConfig) -> dict[str, list[Any]]:
    """What each voice would say whenever it is called; one that failed would have answered later."""
    odds = chance.choice([0.0, 0.1, 0.2, 0.4])
    opinions = chance.choice([range(0, 101, 5), (10, 90), (20, 25, 30)])

    def line() -> Any:
        return RuntimeError("lost") if chance.random() < odds else chance.choice(opinions) / 100

    return {model: [line() for _ in range(6)] for model in (*config.models, *config.reserves)}


def held(seed: int) -> Recording:
    """Hold the circle of this seed and write down what happened; some are cancelled half-way."""
    chance = random.Random(seed)
    config = random_circle(chance)
    script = Script(_lines(chance, config))
    cancelled_after = chance.randint(2, 12) if chance.random() < 0.1 else None
    recording, told = Recording(), 0

    async def hold() -> None:
        task = asyncio.current_task()
        assert task is not None

        def listen(event: Event) -> None:
            nonlocal told
            recording(event)
            told += 1
            if told == cancelled_after:
                task.cancel()

        await fire_circle_evaluate(PROMPT, config, caller=script, on_event=listen)

    with contextlib.suppress(EvaluationError, asyncio.CancelledError):
        asyncio.run(hold())
    return recording
