"""Asking voices within a budget, one or several at once: in a round of a circle, or each alone."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firecircle.circle.answer import reply_schema
from firecircle.circle.budget import Budget
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.config import EvaluationConfig
from firecircle.circle.hearing import Hearing, hear
from firecircle.circle.ledger import RoundPage
from firecircle.circle.panel import Panel, PanelListener
from firecircle.circle.questions import Questions
from firecircle.circle.result import CallRecord, VoicePrompt, messages
from firecircle.circle.voice import Turn, Voice
from firecircle.errors import BudgetError, EvaluationError
from firecircle.prompt import MultiNeutrosophicPrompt


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks the voices of a judgement, and holds every question against what is left of the budget."""

    voices: Mapping[str, Voice]
    budget: Budget
    turn: Callable[[RoundPage, VoicePrompt], Turn]
    """The question to one voice, with all that goes with it."""
    calls: Callable[[], Sequence[CallRecord]]
    """Every call of this judgement so far."""
    clarify: Callable[[str, float, float], str]
    strict: bool = False

    def shortage(self, page: RoundPage, questions: Iterable[VoicePrompt]) -> str | None:
        """How much is spent, if what is left is not enough for all these questions; else None."""
        coming = ((self.voices[asked.model], self.turn(page, asked)) for asked in questions)
        return self.budget.shortage_for(coming, self.calls)

    async def ask(self, page: RoundPage, model: str) -> Hearing:
        """Ask one voice the question on the page. Only a cancellation escapes; all else is on record."""
        heard = page.hearings[model] = Hearing(model)
        await hear(
            heard,
            self.voices[model],
            self.turn(page, page.prompts[model]),
            strict=self.strict,
            clarify=self.clarify,
            may_ask=lambda again: self._may_ask_again(page, model, again),
        )
        return heard

    def _may_ask_again(self, page: RoundPage, model: str, again: Turn) -> bool:
        """Whether a further question fits beside the answers that are still under way."""

        def coming() -> Iterable[tuple[Voice, Turn]]:
            for asked in page.under_way:
                if asked.model != model:
                    yield self.voices[asked.model], self.turn(page, asked)
            yield self.voices[model], again

        return self.budget.shortage_for(coming(), self.calls) is None


async def hear_all(asking: Iterable[Coroutine[Any, Any, Hearing]], *, until_one_fails: bool = False) -> None:
    """Ask all at once and hear everybody out, or only until the first one fails; no task is left behind."""
    hearings = [asyncio.create_task(hearing) for hearing in asking]
    try:
        under_way = set(hearings)
        while under_way:
            over, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            failed = [hearing for hearing in over if hearing.result().failure]
            if failed and until_one_fails:
                break
    finally:
        stray = [hearing for hearing in hearings if not hearing.done()]
        for hearing in stray:
            hearing.cancel()
        await asyncio.gather(*stray, return_exceptions=True)


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
        plain_question=not guidance and not circumstances.asks_in_other_words(),
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
