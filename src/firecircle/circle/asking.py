"""Ask voices within a budget, one or several at once: in the turns of a circle, or independently."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from firecircle.circle import events
from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.budget import Budget, estimate_of
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.grounding import peer_quotes
from firecircle.circle.hearing import Hearing, hear
from firecircle.circle.ledger import Ledger, RoundPage
from firecircle.circle.panel import Panel, PanelListener
from firecircle.circle.questions import Questions, reply_schema
from firecircle.circle.result import CallRecord, DialogueRound, VoicePrompt, account
from firecircle.circle.voice import Peer, PeersOnDemand, Retry, Turn, Usage, Voice
from firecircle.errors import BudgetError, EvaluationError
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import writable


@dataclass(slots=True)
class Turns:
    """The turns of one circle. A voice sees the others only from round 2 on, and by their labels."""

    prompt: MultiNeutrosophicPrompt
    config: FireCircleConfig
    circumstances: Circumstances
    questions: Questions
    ledger: Ledger
    listener: events.Listener | None
    _peers: dict[tuple[str, int | None], Peer] = field(default_factory=dict)

    def is_extra(self, number: int) -> bool:
        """Whether a round takes place only because the voices are divided."""
        return number > self.config.max_rounds

    def prompt_for(
        self, page: RoundPage, model: str, history: Sequence[DialogueRound], *, joins: bool = False
    ) -> VoicePrompt:
        """The part of the question that is only for this voice; the chair has its own question.

        `history` has the rounds before this one; a voice that `joins` in it has no statement among them yet.
        """
        kind, is_chair = page.kind, model == page.chair
        if kind == "baseline":
            return VoicePrompt.assembled(model=model, is_chair=False, text="")
        last = self.ledger.last_said(model, before=page.number)
        closing = self.questions.closing(model, kind, last, is_chair=is_chair, joins=joins)
        if not is_chair:
            return VoicePrompt.assembled(model=model, is_chair=False, text=writable(f"\n\n{closing}"))
        question = self.questions.chair(kind, history, closing, opposed=self.is_extra(page.number))
        return VoicePrompt.assembled(model=model, is_chair=True, text=writable(question))

    def turn(self, page: RoundPage, asked: VoicePrompt) -> Turn:
        """The complete turn for one voice."""
        model = asked.model
        question = asked.question(page.question)
        schema = reply_schema(page.kind, is_chair=asked.is_chair, templates=self.circumstances.templates)
        turn = self.questions.turn(
            model, question, self.config, schema, number=page.number, seed=self.config.seed
        )
        return turn._replace(
            plain_question=not self.circumstances.asks_in_other_words(is_chair=asked.is_chair),
            is_chair=asked.is_chair,
            own_last=self.ledger.last_said(model, before=page.number),
            peers=() if page.number == 1 else PeersOnDemand(partial(self._peers_of, model, page.number)),
            opens_again=self.config.max_rounds > 1,
            on_retry=partial(self._tell_retry, page.number, model),
        )

    def _tell_retry(self, number: int, model: str, retry: Retry) -> None:
        if self.listener is not None:
            self.listener(
                events.VoiceRetried(
                    round_number=number,
                    model=model,
                    attempt=retry.attempt,
                    reason=retry.reason,
                    wait_seconds=retry.wait_seconds,
                )
            )

    def _peers_of(self, model: str, before: int) -> tuple[Peer, ...]:
        """The last evaluation of every other voice, under its label, with its quotes found in the prompt."""
        labels = self.questions.labels
        others = [other for other in sorted(labels, key=labels.__getitem__) if other != model]
        return tuple(self._peer(evaluation) for evaluation in self.ledger.last_words(others, before))

    def _peer(self, evaluation: NeutrosophicEvaluation) -> Peer:
        """A voice with this evaluation, as all others see it."""
        key = (evaluation.model, evaluation.round_number)
        if key not in self._peers:
            quotes = peer_quotes(evaluation, self.prompt)
            shown = self.questions.without_names(evaluation)
            self._peers[key] = Peer(self.questions.labels[evaluation.model], shown, quotes)
        return self._peers[key]


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks the voices of a judgement, and checks every question against the remaining budget."""

    voices: Mapping[str, Voice]
    budget: Budget
    turn: Callable[[RoundPage, VoicePrompt], Turn]
    """Makes the turn of a question to one voice."""
    calls: Callable[[], Sequence[CallRecord]]
    """Returns every call of this judgement so far."""
    clarify: Callable[[str, float, float], str]
    strict: bool = False
    on_heard: Callable[[Hearing, int], None] = lambda heard, number: None
    """Receives each finished hearing and the number of its round."""

    def shortage(self, page: RoundPage, questions: Iterable[VoicePrompt]) -> str | None:
        """What is spent and needed, if the rest of the budget is too small for these questions."""
        coming = ((self.voices[asked.model], self.turn(page, asked)) for asked in questions)
        return self.budget.shortage_for(coming, self.calls)

    async def ask(self, page: RoundPage, model: str) -> Hearing:
        """Ask one voice the question on the page. Records every failure; only a cancellation is raised."""
        heard = page.hearings[model] = Hearing(model)
        turn = self.turn(page, page.prompts[model])
        asked_at = time.time()
        waits: dict[int, float] = {}

        def retrying(retry: Retry) -> None:
            under_way = len(heard.calls)
            waits[under_way] = waits.get(under_way, 0.0) + retry.wait_seconds
            turn.on_retry(retry)

        try:
            await hear(
                heard,
                self.voices[model],
                turn.told_of(retrying, lambda more: self._affords(page, heard, more)),
                strict=self.strict,
                clarify=self.clarify,
                may_ask=lambda again: self._may_ask_again(page, model, again),
            )
        finally:
            heard.calls[:] = _with_times(heard.calls, asked_at, waits)
        self.on_heard(heard, page.number)
        return heard

    def _may_ask_again(self, page: RoundPage, model: str, again: Turn) -> bool:
        """Whether the budget covers a further question besides the answers in progress."""
        if not self.budget.limited:
            return True
        others = self._under_way(page, but=model)
        return self.budget.shortage(self.calls(), [*others, estimate_of(self.voices[model], again)]) is None

    def _affords(self, page: RoundPage, heard: Hearing, more: Usage) -> bool:
        """Whether the budget covers a further attempt besides everything in progress; if so, reserves it."""
        if not self.budget.limited:
            return True
        fits = self.budget.shortage(self.calls(), [*self._under_way(page), more]) is None
        if fits:
            heard.retries_granted.append(more)
        return fits

    def _under_way(self, page: RoundPage, but: str | None = None) -> Iterable[Usage]:
        """The most that answers in progress may consume, with their granted retries."""
        for asked in page.under_way:
            if asked.model != but:
                yield estimate_of(self.voices[asked.model], self.turn(page, asked))
                if asked.model in page.hearings:
                    yield from page.hearings[asked.model].retries_granted


def _with_times(calls: Iterable[CallRecord], asked_at: float, waits: Mapping[int, float]) -> list[CallRecord]:
    """One voice's consecutive calls with the start of each, and its waits for retries."""
    timed = []
    for number, call in enumerate(calls):
        waited = min(waits.get(number, 0.0), call.latency_seconds)
        timed.append(call.model_copy(update={"started_at": asked_at, "waited_seconds": waited}))
        asked_at += call.latency_seconds
    return timed


async def hear_all(
    asking: Iterable[Coroutine[Any, Any, Hearing]], *, until_one_fails: bool = False, in_turn: bool = False
) -> None:
    """Ask all at once and wait for all, or until the first failure; leaves no task behind.

    `in_turn` asks one after another, which is faster if no voice has to be waited for.
    """
    if in_turn:
        await asyncio.sleep(0)  # let other tasks run between two rounds
        for answering in asking:
            if (await answering).failure and until_one_fails:
                break
        return
    hearings = [asyncio.create_task(hearing) for hearing in asking]
    try:
        under_way = set(hearings)
        # Waiting for all needs no wake-up for each.
        when = asyncio.FIRST_COMPLETED if until_one_fails else asyncio.FIRST_EXCEPTION
        while under_way:
            over, under_way = await asyncio.wait(under_way, return_when=when)
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
    """Ask each voice the baseline question once. Raises `EvaluationError` if no voice could answer.

    `listener` receives the panel in either case. `guidance` tells language models what to look out for;
    embedded readers only read the prompt.
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
    is_plain = not guidance and not circumstances.asks_in_other_words()
    schema = reply_schema("baseline")

    def turn_of(_: RoundPage, asked: VoicePrompt) -> Turn:
        turn = questions.turn(asked.model, question, config, schema, seed=config.seed)
        return turn._replace(plain_question=is_plain)

    page = RoundPage(1, "baseline", None, question)
    page.prompts = {model: VoicePrompt(model=model, text="") for model in models}
    asker = Asker(voices, Budget.of(config), turn_of, lambda: page.calls, questions.clarify)
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
        raise EvaluationError(
            f"no voice could answer: {losses}",
            model=panel.failures[0].model,
            failures=panel.failures,
            accounting=account(panel.calls),
        )
    return panel
