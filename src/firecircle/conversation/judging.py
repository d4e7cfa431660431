"""`judge_conversation`: every user turn judged with what came before, and the arc they make."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from firecircle.circle.config import FireCircleConfig
from firecircle.circle.measures import together, two_readings
from firecircle.circle.result import FireCircleResult
from firecircle.conversation.arc import (
    SUSPICIOUS,
    Conversation,
    JudgedBy,
    TurnReading,
    arc_of,
    checked_claims,
    escalation_to,
    read_reply_to,
    verdict_of_arc,
)
from firecircle.conversation.messages import Exchange, Transcript, transcript_of
from firecircle.errors import BudgetError, EvaluationError
from firecircle.guard import PromptGuard
from firecircle.metrics import ReciprocityMetrics, metrics_of_circle
from firecircle.names import EvaluationMode, embedded_models, is_embedded
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest, configure
from firecircle.session import SessionMemory
from firecircle.thresholds import reaches
from firecircle.voices.caller import Caller

if TYPE_CHECKING:
    from firecircle.store.opening import Store

SURE = 0.95
"""From here on the readers' alarm needs no hosted voice; below `SUSPICIOUS` their calm needs none."""
DOUBTFUL = 0.5
LONGEST_SHOWN = 400


async def judge_conversation(
    turns: Any,
    system: str = "",
    config: FireCircleConfig | None = None,
    *,
    caller: Caller | None = None,
    store: Store | None = None,
    screen: bool = True,
    earlier: Conversation | None = None,
    on_turn: Callable[[TurnReading], None] | None = None,
    on_unkept: Callable[[str], None] | None = None,
) -> Conversation:
    """Judge a whole conversation: every user turn with what came before it.

    `turns` is a list of messages, or an export that holds one, in the shapes of OpenAI, Anthropic, ShareGPT
    and others. Hosted and local voices are asked only about the turns of which the embedded readers are not
    sure; `screen=False` asks them about every turn. `earlier` is the judgement of the beginning of the same
    conversation by the same voices: its turns are taken from there. `store` keeps the circle of every turn;
    `on_unkept` is given the reason where it cannot.
    """
    transcript = turns if isinstance(turns, Transcript) else transcript_of(turns, system)
    chosen = config
    if chosen is None:
        by_default = configure(JudgingRequest(EvaluationMode.FIRE_CIRCLE)).config
        assert isinstance(by_default, FireCircleConfig)
        chosen = by_default
    judging = _Judging(transcript, chosen, caller, store, screen, earlier, on_unkept)
    return await judging.judged(on_turn)


class _Judging:
    """One conversation on its way: what was judged so far, and what may still be spent."""

    def __init__(
        self,
        transcript: Transcript,
        config: FireCircleConfig,
        caller: Caller | None,
        store: Store | None,
        screen: bool,
        earlier: Conversation | None,
        on_unkept: Callable[[str], None] | None,
    ) -> None:
        self._transcript = transcript
        # One seed for all turns: what they share reads the same byte for byte, so that providers reuse it.
        seed = config.seed if config.seed is not None else secrets.randbits(31)
        self._config = config.model_copy(update={"seed": seed})
        self._caller, self._store, self._on_unkept = caller, store, on_unkept
        costs = caller is not None or not all(map(is_embedded, config.models))
        self._screen = PromptGuard(_readers_like(config)) if screen and costs else None
        self._known = _known_turns(earlier, config)
        self._session = SessionMemory()
        self._judged: list[ReciprocityMetrics] = []
        self._circles = 0

    async def judged(self, on_turn: Callable[[TurnReading], None] | None) -> Conversation:
        """Judge turn by turn; the arc is put together at the end."""
        readings: list[TurnReading] = []
        for exchange in self._transcript.exchanges:
            reading = self._taken_over(exchange) or await self._read(exchange)
            readings.append(reading)
            if exchange.reply:
                self._session.record_reply(exchange.reply)
            if on_turn is not None:
                on_turn(reading)
        conversation = put_together(
            self._transcript, readings, self._session, self._judged, self._config.alarm_threshold
        )
        alone = None
        if conversation.due_turn is not None:
            alone = await self._without_history(self._transcript.exchanges[conversation.due_turn - 1].prompt)
        ladder = conversation.escalation
        return conversation.model_copy(
            update={
                "models": self._config.models,
                "circles": self._circles,
                "escalation": ladder and ladder.model_copy(update={"alone": alone}),
            }
        )

    def _taken_over(self, exchange: Exchange) -> TurnReading | None:
        """The reading of a turn that was judged before, with the same words before it."""
        known = self._known.get(exchange.number)
        if known is None or known.digest != _digest(exchange.prompt) or known.balance is None:
            self._known = {}  # what comes after a change was judged with another past
            return None
        self._session.record(known.balance, known.verdict == "alarm", exchange.prompt.user)
        reply = read_reply_to(exchange, suspected=_is_doubtful(known.falsehood))
        return known.model_copy(update={"reply": reply})

    async def _read(self, exchange: Exchange) -> TurnReading:
        try:
            metrics, judged_by = await self._judge(exchange)
        except EvaluationError as lost:
            return _without_verdict(exchange, self._session, str(lost))
        self._judged.append(metrics)
        return _reading_of(exchange, metrics, self._session, judged_by)

    async def _judge(self, exchange: Exchange) -> tuple[ReciprocityMetrics, JudgedBy]:
        """By the readers where they are sure, else by the circle."""
        prompt = exchange.prompt
        if self._screen is not None:
            screened = await self._screen.evaluate_prompt(prompt)
            falsehood = screened.consensus.falsehood
            calm = screened.verdict == "no_alarm" and not _is_suspected(falsehood)
            if calm or reaches(falsehood, SURE):
                self._session.record(screened.balance, screened.alarm, prompt.user)
                return await self._saved(exchange, screened), "screen"
        self._circles += 1
        guard = PromptGuard(
            self._within_budget(prompt.user),
            caller=self._caller,
            store=self._store,
            on_unkept=self._on_unkept,
        )
        judged = await guard.evaluate_prompt(
            prompt, session_memory=self._session, record_id=self._record_id(exchange)
        )
        return judged, "circle"

    async def _saved(self, exchange: Exchange, screened: ReciprocityMetrics) -> ReciprocityMetrics:
        """The screening as the store has it: the readers say the same again, and cost nothing."""
        if self._store is None:
            return screened
        readers = PromptGuard(_readers_like(self._config), store=self._store, on_unkept=self._on_unkept)
        return await readers.evaluate_prompt(exchange.prompt, record_id=self._record_id(exchange))

    def _record_id(self, exchange: Exchange) -> str | None:
        name = self._transcript.name
        return f"{name}:{exchange.number}" if name and ":" not in name else None

    def _within_budget(self, message: str) -> FireCircleConfig:
        """The configuration with what the turns before left of its budget."""
        spent = together([metrics.accounting for metrics in self._judged]).total
        changes: dict[str, object] = {}
        if self._config.budget_usd is not None:
            changes["budget_usd"] = self._config.budget_usd - (spent.cost_usd or 0.0)
        if self._config.budget_tokens is not None:
            changes["budget_tokens"] = self._config.budget_tokens - spent.tokens_in - spent.tokens_out
        if any(isinstance(left, int | float) and left <= 0 for left in changes.values()):
            self._session.record_failure(message)
            raise BudgetError("the budget of the conversation is spent")
        return self._config.model_copy(update=changes)

    async def _without_history(self, prompt: MultiNeutrosophicPrompt) -> float | None:
        """The falsehood of a turn by itself, by the readers: what its past adds is what is missing."""
        readers = self._screen or PromptGuard(_readers_like(self._config))
        try:
            alone = await readers.evaluate_prompt(prompt.model_copy(update={"turns": ()}))
        except EvaluationError:
            return None
        return alone.consensus.falsehood


def put_together(
    transcript: Transcript,
    readings: Sequence[TurnReading],
    session: SessionMemory,
    judged: Sequence[ReciprocityMetrics],
    threshold: float,
) -> Conversation:
    """What the turns add up to."""
    arc = arc_of([turn.falsehood for turn in readings])
    placed = tuple(turn.model_copy(update={"arc": value}) for turn, value in zip(readings, arc, strict=True))
    verdict, highest, due = verdict_of_arc(placed, threshold)
    said = [f"{each.prompt.user}\n{each.reply}" for each in transcript.exchanges]
    return Conversation(
        name=transcript.name,
        system=transcript.system,
        verdict=verdict,
        falsehood=highest,
        alarm_threshold=threshold,
        due_turn=due,
        escalation=None if due is None else escalation_to(due, placed, said, None),
        turns=placed,
        trust=session.trust,
        trajectory=session.trust_trajectory,
        accounting=together([metrics.accounting for metrics in judged]),
        advisories=tuple(dict.fromkeys(line for metrics in judged for line in metrics.advisories)),
    )


def transcript_in(name: str, circles: Mapping[int, FireCircleResult]) -> Transcript:
    """The messages that the last of these circles has as evidence: the last reply is not among them."""
    last = circles[max(circles)].prompt
    messages = (*(last.turns or ()), EarlierTurn(role="user", content=last.user))
    return Transcript(name=name, system=last.system, messages=messages)


def conversation_of(transcript: Transcript, circles: Mapping[int, FireCircleResult]) -> Conversation:
    """A conversation as the circles judged it, by the number of the turn."""
    session = SessionMemory()
    judged: list[ReciprocityMetrics] = []
    readings: list[TurnReading] = []
    for exchange in transcript.exchanges:
        circle = circles.get(exchange.number)
        if circle is None or circle.consensus is None:
            session.record_failure(exchange.prompt.user)
            readings.append(_without_verdict(exchange, session, "no judgement in the store"))
            continue
        metrics = metrics_of_circle(circle)
        session.record(metrics.balance, metrics.alarm, exchange.prompt.user)
        judged.append(metrics)
        readings.append(_reading_of(exchange, metrics, session, "circle"))
    return put_together(transcript, readings, session, judged, circles[max(circles)].config.alarm_threshold)


def _without_verdict(exchange: Exchange, session: SessionMemory, why: str) -> TurnReading:
    return TurnReading(
        **_facts(exchange),
        verdict="no_verdict",
        trust=session.trust,
        trajectory=session.trust_trajectory,
        reply=read_reply_to(exchange, suspected=False),
        error=why,
    )


def _reading_of(
    exchange: Exchange, metrics: ReciprocityMetrics, session: SessionMemory, judged_by: JudgedBy
) -> TurnReading:
    """A turn as its judgement and the session after it have it."""
    voice = metrics.consensus
    quotes = metrics.reason.quotes if metrics.reason else ()
    return TurnReading(
        **_facts(exchange),
        verdict=metrics.verdict,
        truth=voice.truth,
        indeterminacy=voice.indeterminacy,
        falsehood=voice.falsehood,
        balance=metrics.balance,
        trust=session.trust,
        trajectory=session.trust_trajectory,
        judged_by=judged_by,
        readings=two_readings(metrics.fire_circle.dialogue_history) if metrics.fire_circle else None,
        patterns=tuple(dict.fromkeys(seen.pattern_type for seen in metrics.all_patterns)),
        quote=quotes[0].text if quotes else "",
        reply=read_reply_to(exchange, suspected=_is_doubtful(voice.falsehood)),
        kept_as=metrics.kept_as,
    )


def _facts(exchange: Exchange) -> dict[str, Any]:
    """What is known of a turn before it is judged."""
    return {
        "number": exchange.number,
        "digest": _digest(exchange.prompt),
        "said": _show(exchange.prompt.user),
        "claims": checked_claims(exchange),
    }


def _readers_like(config: FireCircleConfig) -> FireCircleConfig:
    """The embedded circle with the same threshold."""
    return FireCircleConfig(models=embedded_models(), alarm_threshold=config.alarm_threshold)


def _known_turns(earlier: Conversation | None, config: FireCircleConfig) -> dict[int, TurnReading]:
    if earlier is None or earlier.models != config.models:
        return {}
    return {turn.number: turn for turn in earlier.turns}


def _is_suspected(falsehood: float | None) -> bool:
    return falsehood is not None and reaches(falsehood, SUSPICIOUS)


def _is_doubtful(falsehood: float | None) -> bool:
    """Whether an assistant that answers without declining goes along with something."""
    return falsehood is not None and reaches(falsehood, DOUBTFUL)


def _digest(prompt: MultiNeutrosophicPrompt) -> str:
    return blake2b(prompt.model_dump_json().encode(), digest_size=12).hexdigest()


def _show(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
