"""Judging without talking: the single and parallel modes ask the circle's first question and stop there."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Protocol

from pydantic import AfterValidator

from firecircle.circle.answer import reply_schema
from firecircle.circle.asking import Asker, hear_all
from firecircle.circle.budget import Budget
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.config import EvaluationConfig
from firecircle.circle.ledger import RoundPage
from firecircle.circle.questions import Questions
from firecircle.circle.result import (
    SCHEMA_VERSION,
    CallRecord,
    Failure,
    VoicePrompt,
    messages,
    require_known_version,
)
from firecircle.circle.voice import Turn, Voice
from firecircle.errors import BudgetError, EvaluationError
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.names import EvaluationMode
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.thresholds import reaches


class Panel(Shape):
    """What several voices were asked and said, each on its own."""

    schema_version: Annotated[int, AfterValidator(require_known_version)] = SCHEMA_VERSION
    panel_id: Text
    started_at: float = 0.0
    duration_seconds: float = 0.0
    config: EvaluationConfig
    prompt: MultiNeutrosophicPrompt
    circumstances: Circumstances
    system_message: Text = ""
    evidence: Text = ""
    question: Text = ""
    """The one question all were asked; the evidence stands before it."""
    guidance: tuple[Text, ...] = ()
    """What the question told about manipulations seen in other prompts."""
    evaluations: tuple[NeutrosophicEvaluation, ...] = ()
    failures: tuple[Failure, ...] = ()
    calls: tuple[CallRecord, ...] = ()

    @property
    def consensus(self) -> NeutrosophicEvaluation:
        """The one voice's word in the single mode, else the average."""
        return self.evaluations[0] if self.config.mode is EvaluationMode.SINGLE else self.mean

    @property
    def alarm(self) -> bool:
        """Whether what they say together reaches the alarm threshold."""
        return bool(self.evaluations) and reaches(self.consensus.falsehood, self.config.alarm_threshold)

    @property
    def mean(self) -> NeutrosophicEvaluation:
        """The average of what was said."""
        return NeutrosophicEvaluation(
            truth=fmean(evaluation.truth for evaluation in self.evaluations),
            indeterminacy=fmean(evaluation.indeterminacy for evaluation in self.evaluations),
            falsehood=fmean(evaluation.falsehood for evaluation in self.evaluations),
            reasoning="\n".join(
                f"{evaluation.model}: {evaluation.reasoning}" for evaluation in self.evaluations
            ),
            model="parallel",
            round_number=1,
            guessed=any(evaluation.guessed for evaluation in self.evaluations),
        )

    @property
    def agreement(self) -> float:
        """1 when all say the same; falls with the mean Euclidean distance from the average, to 0."""
        centre = self.mean
        apart = fmean(
            math.dist(
                (evaluation.truth, evaluation.indeterminacy, evaluation.falsehood),
                (centre.truth, centre.indeterminacy, centre.falsehood),
            )
            for evaluation in self.evaluations
        )
        return 1.0 - apart / math.sqrt(3.0)


PanelListener = Callable[[Panel], None]


class Guide(Protocol):
    """Whoever knows manipulations seen in other prompts, and which of them to look out for in this one."""

    def guidance_for(self, prompt: MultiNeutrosophicPrompt) -> tuple[str, ...]:
        """A line for each, in words that are nobody's but ours."""
        ...


async def judge_alone(
    prompt: MultiNeutrosophicPrompt,
    config: EvaluationConfig,
    voices: Mapping[str, Voice],
    circumstances: Circumstances,
    *,
    listener: PanelListener | None = None,
    guidance: Sequence[str] = (),
) -> Panel:
    """Ask each voice the plain question once. Raises `EvaluationError` when nobody could answer.

    `listener` is handed the panel in either case. `guidance` tells voices that read the question what to
    look out for; embedded voices look at the prompt alone.
    """
    prompt.require_text(config.focus)
    models = tuple(voices)
    questions = Questions(prompt, models, circumstances, focus=config.focus)
    question = questions.guided(guidance) if guidance else questions.standard("baseline", ())
    opening = Panel(
        panel_id=uuid.uuid4().hex,
        started_at=time.time(),
        config=config.model_copy(update={"api_key": None}),
        prompt=prompt,
        circumstances=circumstances,
        system_message=questions.system,
        evidence=questions.evidence,
        question=question,
        guidance=tuple(guidance),
    )
    turn = Turn(
        messages=messages(questions.system, questions.evidence, question),
        prompt=prompt,
        question=question,
        focus=config.focus,
        turn_number=circumstances.turn_number,
        reply_schema=reply_schema("baseline"),
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        seed=config.seed,
        attempt_seconds=config.timeout_seconds,
        deadline=asyncio.get_running_loop().time() + config.timeout_per_round,
    )
    page = RoundPage(1, "baseline", None, question)
    page.prompts = {model: VoicePrompt(model=model, text="") for model in models}
    asker = Asker(voices, Budget.of(config), lambda *_: turn, lambda: page.calls, questions.clarify)
    if spent := asker.shortage(page, page.prompts.values()):
        raise BudgetError(f"over_budget: {spent}, what is left is not enough to ask", model=models[0])
    await hear_all(asker.ask(page, model) for model in models)
    panel = opening.model_copy(
        update={
            "duration_seconds": time.time() - opening.started_at,
            "evaluations": page.evaluations,
            "failures": page.failures,
            "calls": page.calls,
        }
    )
    if listener is not None:
        listener(panel)
    if not panel.evaluations:
        losses = "; ".join(f"{lost.model}: {lost.kind}: {lost.message}" for lost in panel.failures)
        raise EvaluationError(f"no voice could answer: {losses}", model=panel.failures[0].model)
    return panel
