"""Ask a voice for the types of observations that declare none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from firecircle.circle.budget import Budget
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.grounding import fresh_nonce, quoted
from firecircle.circle.hearing import Hearing, Lost, call
from firecircle.circle.pattern_types import (
    meanings,
    needs_classifier,
    read_classification,
)
from firecircle.circle.result import (
    CallRecord,
    DialogueRound,
)
from firecircle.circle.templates import render, template
from firecircle.circle.voice import Message, Turn, Voice
from firecircle.prompt import MultiNeutrosophicPrompt

AT_ONCE = 25
"""Observations per question; weak models lose count beyond that."""
MOST_OBSERVATIONS = 200
LONGEST_OBSERVATION = 1_000
"""The longest observation shown to a classifier, so that thousands of notes cost few calls."""


@dataclass(slots=True)
class Classification:
    """The types that a voice assigned, its calls, and what went wrong, if anything."""

    types: dict[str, str] = field(default_factory=dict)
    calls: list[CallRecord] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    advisory: str | None = None


async def classify_observations(
    model: str,
    voice: Voice,
    history: Sequence[DialogueRound],
    prompt: MultiNeutrosophicPrompt,
    config: FireCircleConfig,
    made: Sequence[CallRecord] = (),
) -> Classification:
    """Classify every observation without one of the eight types; the calls `made` count for the budget."""
    descriptions = _untyped_in(history)
    return await classify_descriptions(
        model, voice, descriptions, prompt=prompt, config=config, round_number=len(history), made=made
    )


def _untyped_in(history: Sequence[DialogueRound]) -> tuple[str, ...]:
    """The observations that declare none of the eight types, each once."""
    notes = (
        note for held in history[1:] for evaluation in held.evaluations for note in evaluation.pattern_notes
    )
    return tuple(dict.fromkeys(words for note in notes if (words := needs_classifier(note))))


def _batches(descriptions: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(descriptions), AT_ONCE):
        yield descriptions[start : start + AT_ONCE]


async def classify_descriptions(
    model: str,
    voice: Voice,
    descriptions: Sequence[str],
    *,
    prompt: MultiNeutrosophicPrompt,
    config: FireCircleConfig,
    round_number: int,
    made: Sequence[CallRecord] = (),
) -> Classification:
    """Classify these descriptions; the keyword heuristic answers for any that the voice leaves out."""
    outcome = Classification()
    heard = Hearing(model)
    budget = Budget.of(config)
    limits = config.limits(model)
    shown = descriptions[:MOST_OBSERVATIONS]
    left_out = len(descriptions) - len(shown)
    for batch in _batches(shown):
        turn = Turn(
            messages=_question(batch, config.seed),
            prompt=prompt,
            round_number=round_number,
            max_tokens=limits.max_tokens,
            temperature=0.0,
            seed=config.seed,
            attempt_seconds=limits.timeout_seconds,
            deadline=asyncio.get_running_loop().time() + limits.timeout_per_round,
        )
        if budget.shortage_for([(voice, turn)], lambda: (*made, *heard.calls)):
            outcome.advisory = f"classifier {model} was not asked (over_budget); the heuristic stood in"
            break
        try:
            reply = await call(heard, voice, turn, "classify")
        except Lost as lost:
            outcome.advisory = f"classifier {model} failed ({lost.kind}: {lost}); the heuristic stood in"
            break
        outcome.replies.append(reply.text)
        types = read_classification(reply.text, batch)
        outcome.types.update(types)
        left_out += len(batch) - len(types)
    if left_out and not outcome.advisory:
        outcome.advisory = f"classifier {model} left out {left_out} observations; the heuristic stood in"
    outcome.calls = heard.calls
    return outcome


def _question(descriptions: Sequence[str], seed: int | None) -> tuple[Message, ...]:
    nonce = fresh_nonce(seed, descriptions)
    fenced = "\n\n".join(
        quoted(nonce, f"observation {number}", text[:LONGEST_OBSERVATION])
        for number, text in enumerate(descriptions, start=1)
    )
    categories = "\n".join(f"- {kind}: {meaning}" for kind, meaning in meanings().items())
    return (
        Message("system", "You sort short observations about prompts into categories."),
        Message(
            "user",
            render(template("classify"), nonce=nonce, categories=categories, observations=fenced),
        ),
    )
