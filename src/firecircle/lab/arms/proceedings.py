"""What rival protocols share: questions in other words, and a record of everything said, lost and paid.

Rubric, evidence and markers are the circle's; only the question after them differs.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import json_repair

from firecircle.catalog import original_of
from firecircle.circle.base_config import BaseEvaluationConfig
from firecircle.circle.budget import Budget
from firecircle.circle.circumstances import Circumstances, circumstances_of
from firecircle.circle.hearing import LONGEST_MESSAGE, Hearing, Lost, call, hear
from firecircle.circle.questions import Questions, reply_schema
from firecircle.circle.reading.evidence import Evidence
from firecircle.circle.reading.keywords import refusal_in
from firecircle.circle.reading.thinking import split_thinking
from firecircle.circle.result import CallRecord, Failure
from firecircle.circle.templates import render, template
from firecircle.circle.voice import Peer, Reply, Turn, Voice
from firecircle.convene import SeatedCircle, SeatedPanel
from firecircle.evaluation import NeutrosophicEvaluation, Verdict
from firecircle.lab.arms.arm import Case, CaseVoices, Unwatched
from firecircle.lab.arms.outcomes import outcome_of_rival
from firecircle.lab.records import Outcome
from firecircle.voices.seating import rehearsed_voices

Words = TypeVar("Words")
Seated = SeatedCircle | SeatedPanel


class Undecided(Exception):  # noqa: N818 - an outcome, not a mistake
    """The protocol reached no verdict; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to one voice."""

    model: str
    question: str
    peers: tuple[Peer, ...] = ()
    """Other voices' statements in the question, for voices with their own prompts."""
    seed: int | None = None
    """Replaces the seed of the case."""
    side: Verdict | None = None
    """The side that the voice must argue for."""


@dataclass(slots=True)
class Proceedings:
    """One case under one protocol."""

    case: Case
    seated: Seated
    circumstances: Circumstances
    questions: Questions
    watched: CaseVoices
    budget: Budget
    hearings: list[Hearing] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    _voices: dict[str, Voice] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, seated: Seated, voices: CaseVoices, budget: Budget | None = None) -> Proceedings:
        """Start a case. Raises a `ConfigError` if its prompt has no text in focus."""
        prompt, config = case.record.prompt, seated.config
        prompt.require_text(config.focus)
        circumstances = circumstances_of(
            prompt, seed=case.seed, seating=seated.seating, templates=config.templates
        )
        questions = Questions(prompt, config.models, circumstances, focus=config.focus)
        return cls(case, seated, circumstances, questions, voices, budget or Budget.of(config))

    @property
    def config(self) -> BaseEvaluationConfig:
        """The settings of the voices."""
        return self.seated.config

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """Every call so far."""
        return tuple(call for hearing in self.hearings for call in hearing.calls)

    @property
    def rounds(self) -> int:
        """How many rounds had a question."""
        return max((call.round_number for call in self.calls), default=0)

    def rendered(self, name: str, **values: str) -> str:
        """A question from a template of this package."""
        facts = {
            "turn_context": self.questions.turn_context,
            "turn_fact": self.questions.turn_fact,
            "question": self.questions.question,
            "answer": self.questions.answer_format("baseline"),
        }
        words = template(name, "templates", "firecircle.lab.arms")
        return render(words, **{**facts, **values})

    async def judgements(self, number: int, asked: Sequence[Asked]) -> list[NeutrosophicEvaluation]:
        """These voices' evaluations of the prompt, asked at once; lost voices are recorded."""

        async def judgement(of: Asked, turn: Turn) -> NeutrosophicEvaluation | None:
            hearing = self._new_hearing(of.model)
            voice = self._voice(of.model)
            await hear(
                hearing,
                voice,
                turn,
                strict=False,
                clarify=self.questions.clarify,
                may_ask=lambda again: self._shortage([(voice, again)]) is None,
            )
            return hearing.evaluation

        turns = [self._turn(number, of, reply_schema("baseline")) for of in asked]
        answers = await self._ask_all(asked, turns, judgement)
        return [answer for answer in answers if answer is not None]

    async def words(
        self,
        number: int,
        asked: Sequence[Asked],
        schema: Mapping[str, Any],
        read: Callable[[str], Words],
    ) -> dict[str, Words]:
        """Answers to a question that is not a judgement, by model; `read` parses one or raises `Lost`."""

        async def answer(of: Asked, turn: Turn) -> tuple[str, Words] | None:
            hearing = self._new_hearing(of.model)
            started = time.monotonic()
            reply: Reply | None = None
            try:
                reply = await call(hearing, self._voice(of.model), turn, "answer")
                return of.model, read(self._answer_text(reply, turn))
            except Lost as lost:
                hearing.failure = Failure(
                    model=of.model,
                    round_number=number,
                    kind=lost.kind,
                    message=str(lost)[:LONGEST_MESSAGE],
                    attempts=reply.attempts if reply else lost.attempts,
                    raw_reply=reply.text if reply else None,
                    reasoning_trace=reply.reasoning_trace if reply else None,
                    elapsed_seconds=time.monotonic() - started,
                )
                return None

        turns = [self._turn(number, of, schema) for of in asked]
        answers = await self._ask_all(asked, turns, answer)
        return dict(pair for pair in answers if pair is not None)

    def outcome(
        self,
        verdict: NeutrosophicEvaluation | None,
        *,
        seconds: float,
        error: str | None = None,
        answers: Sequence[NeutrosophicEvaluation] = (),
        roles: Mapping[str, Sequence[str]] | None = None,
    ) -> Outcome:
        """The outcome to record."""
        return outcome_of_rival(
            verdict,
            self.hearings,
            self.config,
            self.circumstances,
            rounds=self.rounds,
            seconds=max(time.monotonic() - self.started, seconds),
            error=error,
            answers=answers,
            roles=roles or {},
        )

    def why_lost(self, model: str | None = None) -> str:
        """How this voice, or otherwise any voice, was lost first, in a few words."""
        for hearing in self.hearings:
            if hearing.failure and model in (None, hearing.model):
                return f"{hearing.model}: {hearing.failure.kind}: {hearing.failure.message}"
        return "no voice was asked"

    def _voice(self, model: str) -> Voice:
        """The voice to ask, also under the name of a repeat (`model#2`)."""
        if model not in self._voices:
            seated = self.seated.voices
            voice = seated[model] if model in seated else seated[original_of(model)]
            self._voices[model] = self.watched.seat(model, voice)
        return self._voices[model]

    def _new_hearing(self, model: str) -> Hearing:
        hearing = Hearing(model)
        self.hearings.append(hearing)
        return hearing

    async def _ask_all(
        self,
        asked: Sequence[Asked],
        turns: Sequence[Turn],
        answer: Callable[[Asked, Turn], Coroutine[Any, Any, Words | None]],
    ) -> list[Words | None]:
        if spent := self._shortage(
            (self._voice(of.model), turn) for of, turn in zip(asked, turns, strict=True)
        ):
            raise Undecided(f"over_budget: {spent}, what is left is not enough to ask")
        async with asyncio.TaskGroup() as together:
            tasks = [together.create_task(answer(of, turn)) for of, turn in zip(asked, turns, strict=True)]
        return [task.result() for task in tasks]

    def _shortage(self, coming: Iterable[tuple[Voice, Turn]]) -> str | None:
        return self.budget.shortage_for(coming, lambda: self.calls)

    def _turn(self, number: int, asked: Asked, schema: Mapping[str, Any]) -> Turn:
        seed = self.case.seed if asked.seed is None else asked.seed
        turn = self.questions.turn(asked.model, asked.question, self.config, schema, number=number, seed=seed)
        return turn._replace(peers=asked.peers, side=asked.side)

    def _answer_text(self, reply: Reply, turn: Turn) -> str:
        """The answer without thoughts; raises `Lost` if there is none, or if it declines."""
        answer = split_thinking(reply.text).answer.strip()
        if not answer:
            if reply.cut_short:
                raise Lost(
                    "cut_off", f"max_tokens={turn.max_tokens} was spent before an answer; give it more"
                )
            raise Lost("unparseable", "the reply is empty")
        known = Evidence((*(layer.text for layer in turn.prompt.layers), turn.question))
        if refusal := refusal_in(answer, known):
            raise Lost("refused", f"the voice declined: {refusal}")
        return answer


async def rehearsed(
    case: Case, seated: Seated, hold: Callable[[Proceedings], Awaitable[object]]
) -> tuple[CallRecord, ...]:
    """The calls that a protocol may take and the most each may consume, without making them."""
    proceedings = Proceedings.of(case, seated, _Rehearsal(seated), Budget(tokens=None, money=None))
    await hold(proceedings)
    return proceedings.calls


class _Rehearsal(Unwatched):
    """Replaces voices by stand-ins with estimates."""

    def __init__(self, seated: Seated) -> None:
        self._seated = seated

    def seat(self, model: str, voice: Voice) -> Voice:
        """The stand-in of a model."""
        return rehearsed_voices([model], self._seated.config)[model]


def object_in(answer: str) -> dict[str, Any] | None:
    """The JSON object in an answer, repaired if necessary; None if there is none."""
    braces = re.search(r"\{.*", answer, re.DOTALL)
    if braces is None:
        return None
    whole = braces.group()[: braces.group().rfind("}") + 1] or braces.group()
    try:
        value = json.loads(whole)
    except json.JSONDecodeError:
        value = json_repair.loads(braces.group())
    return value if isinstance(value, dict) else None
