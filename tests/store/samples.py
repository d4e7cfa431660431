"""Circles and panels to keep, judged by scripted voices through the public entries."""

from __future__ import annotations

from typing import Any

from firecircle import (
    EvaluationConfig,
    FireCircleResult,
    MultiNeutrosophicPrompt,
    PromptGuard,
    ReciprocityMetrics,
    fire_circle_evaluate,
)
from firecircle.store.opening import Store
from tests.scripted import PROMPT, Script, circle, pattern, says

VOICES = ("ash", "birch", "cedar")


def script(*falsehoods: float, voices: tuple[str, ...] = VOICES, **fields: Any) -> Script:
    """Every voice says the same number in a round, with these fields."""
    return Script({voice: [says(number, **fields) for number in falsehoods] for voice in voices})


async def held(
    store: Store | None,
    *falsehoods: float,
    prompt: MultiNeutrosophicPrompt = PROMPT,
    voices: tuple[str, ...] = VOICES,
    label: str | None = None,
    seed: int | None = None,
    patterns: tuple[str, ...] = (),
    reasoning: str = "plain words",
    alarm_threshold: float = 0.7,
) -> FireCircleResult:
    """A circle of as many rounds as there are numbers, kept if there is a store."""
    fields = {"patterns_observed": [pattern(kind) for kind in patterns], "reasoning": reasoning}
    return await fire_circle_evaluate(
        prompt,
        circle(
            *voices,
            max_rounds=len(falsehoods),
            seed=seed,
            extra_round_on_divergence=False,
            alarm_threshold=alarm_threshold,
        ),
        caller=script(*falsehoods, voices=voices, **fields),
        store=store,
        label=label,
    )


async def asked_apart(store: Store, falsehood: float, mode: str = "parallel") -> ReciprocityMetrics:
    """A panel, kept."""
    voices = VOICES[:1] if mode == "single" else VOICES
    guard = PromptGuard(
        EvaluationConfig(models=voices, mode=mode), caller=script(falsehood, voices=voices), store=store
    )
    return await guard.evaluate_prompt(PROMPT, label="attack")


def saying(text: str) -> MultiNeutrosophicPrompt:
    """A prompt of a user who says this."""
    return MultiNeutrosophicPrompt(system="You answer.", user=text, turns=())
