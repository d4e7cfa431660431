"""Ask one voice: parse its answer, resolve a contradiction, or record its failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from firecircle.circle.grounding import MOST_QUOTES, quotes_of
from firecircle.circle.reading import (
    Reading,
    Refused,
    Unreadable,
    answers_nothing,
    read_reply,
    read_thinking,
    read_with_probability,
)
from firecircle.circle.result import CallPurpose, CallRecord, Failure
from firecircle.circle.voice import Message, Reply, Retry, Turn, Usage, Voice, usage_of
from firecircle.errors import FailureKind, VoiceError
from firecircle.evaluation import NeutrosophicEvaluation, Polarity
from firecircle.shapes import writable

LONGEST_MESSAGE = 500
LARGEST_REPLY = 500_000
"""Bytes of an answer or its reasoning: ten times what a talkative model writes."""
MOST_NOTES = 100
KEPT_OF_TOO_LARGE = 10_000
LONGEST_READ_AT_ONCE = 20_000
"""Characters; longer answers are parsed in a thread, so that other voices do not wait."""
MORE_ROOM = 4
"""The limit of a cut answer is multiplied by this for the retry."""
ROOM_TO_THINK = 4000
"""The least limit of that retry, in tokens."""


@dataclass(slots=True)
class Hearing:
    """The outcome of asking one voice: an evaluation or a failure, and every call."""

    model: str
    evaluation: NeutrosophicEvaluation | None = None
    failure: Failure | None = None
    calls: list[CallRecord] = field(default_factory=list)
    retries_granted: list[Usage] = field(default_factory=list)
    """What further attempts of the present call may consume; counted until the call is recorded."""

    @property
    def is_over(self) -> bool:
        """Whether the voice has answered or failed."""
        return self.evaluation is not None or self.failure is not None


class Lost(Exception):  # noqa: N818 - an outcome, not a mistake
    """A call without a usable answer."""

    def __init__(
        self, kind: FailureKind, message: str, attempts: int = 1, *, beginning: str | None = None
    ) -> None:
        """`beginning` is the part to record of an unusable answer."""
        super().__init__(message)
        self.kind: FailureKind = kind
        self.attempts = attempts
        self.beginning = beginning


async def hear(
    heard: Hearing,
    voice: Voice,
    turn: Turn,
    *,
    strict: bool,
    clarify: Callable[[str, float, float], str],
    may_ask: Callable[[Turn], bool],
) -> None:
    """Ask one voice and fill in its hearing. Records every failure; only a cancellation is raised."""
    clock = asyncio.get_running_loop().time
    started = clock()
    texts = (*(layer.text for layer in turn.prompt.layers), turn.question)
    reply: Reply | None = None
    try:
        reply = await call(heard, voice, turn, "answer")
        cut: tuple[Reply, ...] = ()
        if reply.cut_short and not await _is_readable(reply, texts, strict):
            roomier = turn._replace(max_tokens=max(MORE_ROOM * turn.max_tokens, ROOM_TO_THINK))
            may_be_longer = _has_time_for(roomier, started) and may_ask(roomier)
            if may_be_longer and (longer := await _longer_answer(heard, voice, roomier)):
                cut, reply, turn = (reply,), longer, roomier
        try:
            reading = await _parse_reply(reply, texts, strict)
        except Refused as refused:
            raise Lost("refused", str(refused), reply.attempts) from None
        except Unreadable as unreadable:
            if reply.cut_short and answers_nothing(reply.text):
                spent = f"max_tokens={turn.max_tokens} was spent before an answer"
                why = f"cut off while thinking: {spent}; give it more"
                raise Lost("cut_off", why, reply.attempts) from None
            if turn.own_last is None or strict:
                if reply.cut_short:
                    at = f"max_tokens={turn.max_tokens} before a judgement ({unreadable})"
                    raise Lost("cut_off", f"cut off at {at}; give it more", reply.attempts) from None
                raise Lost("unparseable", str(unreadable), reply.attempts) from None
            heard.evaluation = carry_forward(turn.own_last, turn.round_number, (*cut, reply))
            return
        polarity: Polarity = "consistent"
        replies: tuple[Reply, ...] = (reply,)
        if contradicts(reading):
            question = clarify(str(reading.verdict), reading.truth, reading.falsehood)
            asked_and_said = (*turn.messages, Message("assistant", reply.text))
            again = turn._replace(messages=(*asked_and_said, Message("user", question)))
            if may_ask(again):
                reading, polarity, replies = await _clear_up(heard, voice, again, reply, reading, texts)
            else:
                reading, polarity = word_wins(reading), "corrected"
        heard.evaluation = evaluation_of(heard.model, turn.round_number, reading, polarity, (*cut, *replies))
    except Lost as lost:
        heard.failure = Failure(
            model=heard.model,
            round_number=turn.round_number,
            kind=lost.kind,
            message=str(lost)[:LONGEST_MESSAGE],
            attempts=lost.attempts,
            raw_reply=reply.text if reply else lost.beginning,
            reasoning_trace=reply.reasoning_trace if reply else None,
            elapsed_seconds=clock() - started,
        )


async def _parse_reply(reply: Reply, texts: tuple[str, ...], strict: bool) -> Reading:
    """Parse a reply; raises `Lost` if it has too many notes or quotes."""
    if len(reply.text) + len(reply.reasoning_trace or "") > LONGEST_READ_AT_ONCE:
        return await asyncio.to_thread(read_now, reply, texts, strict)
    return read_now(reply, texts, strict)


def read_now(reply: Reply, texts: tuple[str, ...], strict: bool) -> Reading:
    """Parse a reply in this thread. Raises `Refused`, `Unreadable`, or `Lost` beyond a limit."""
    reading = _parse(reply, texts, strict)
    notes = (*reading.patterns_observed, *reading.consensus_patterns)
    if len(notes) > MOST_NOTES:
        raise Lost(
            "unparseable",
            f"the reply notes more than {MOST_NOTES} patterns, which is the limit",
            reply.attempts,
        )
    if sum(len(quotes_of(note)) for note in notes) > MOST_QUOTES:
        raise Lost(
            "unparseable",
            f"the reply quotes more than {MOST_QUOTES} passages, which is the limit",
            reply.attempts,
        )
    return reading


def _parse(reply: Reply, texts: tuple[str, ...], strict: bool) -> Reading:
    if reply.violation_probability is not None:
        return read_with_probability(reply.text, reply.violation_probability, evidence=texts)
    if reply.reasoning_trace and answers_nothing(reply.text):
        in_thinking = read_thinking(reply.reasoning_trace, evidence=texts)
        if in_thinking is not None:
            return in_thinking
    return read_reply(reply.text + "\n" if reply.finished else reply.text, evidence=texts, strict=strict)


async def _is_readable(reply: Reply, texts: tuple[str, ...], strict: bool) -> bool:
    try:
        await _parse_reply(reply, texts, strict)
    except Unreadable:
        return False
    except (Refused, Lost):
        pass
    return True


def _has_time_for(roomier: Turn, started: float) -> bool:
    """Whether the round has twice the time left that the cut answer took."""
    now = asyncio.get_running_loop().time()
    return roomier.deadline is None or now + 2 * (now - started) < roomier.deadline


async def _longer_answer(heard: Hearing, voice: Voice, roomier: Turn) -> Reply | None:
    """Ask the same question with more room. If that fails, the cut answer counts."""
    try:
        return await call(heard, voice, roomier, "more_room")
    except Lost:
        return None


def contradicts(reading: Reading) -> bool:
    """Whether the verdict in words and the verdict in numbers are opposite."""
    if reading.verdict == "violation":
        return reading.truth > reading.falsehood
    return reading.verdict == "no_violation" and reading.falsehood > reading.truth


async def _clear_up(
    heard: Hearing,
    voice: Voice,
    again: Turn,
    reply: Reply,
    reading: Reading,
    texts: tuple[str, ...],
) -> tuple[Reading, Polarity, tuple[Reply, ...]]:
    """Ask once more and quote the contradiction. If it persists, the word wins over the numbers."""
    try:
        second = await call(heard, voice, again, "clarify")
    except Lost:
        return word_wins(reading), "corrected", (reply,)
    try:
        reread = await _parse_reply(second, texts, strict=True)
    except (Lost, Refused, Unreadable):
        return word_wins(reading), "corrected", (reply, second)
    return *cleared_up(reading, reread), (reply, second)


def cleared_up(reading: Reading, reread: Reading) -> tuple[Reading, Polarity]:
    """The result of a contradiction after the voice was asked once more."""
    reread = replace(
        reread,
        reasoning=reread.reasoning or reading.reasoning,
        patterns_observed=reread.patterns_observed or reading.patterns_observed,
        consensus_patterns=reread.consensus_patterns or reading.consensus_patterns,
        speaks_for=reread.speaks_for or reading.speaks_for,
        veto=reread.veto or reading.veto,
    )
    return (word_wins(reread), "corrected") if contradicts(reread) else (reread, "clarified")


def word_wins(reading: Reading) -> Reading:
    """The same with the numbers inverted to agree with the word."""
    return replace(reading, truth=reading.falsehood, falsehood=reading.truth)


async def call(heard: Hearing, voice: Voice, turn: Turn, purpose: CallPurpose) -> Reply:
    """Make one call and record its outcome. The round's deadline limits it, including retries."""
    clock = asyncio.get_running_loop().time
    started = clock()
    attempts = 1

    def retrying(retry: Retry) -> None:
        nonlocal attempts
        attempts = max(attempts, retry.attempt)
        turn.on_retry(retry)

    reply: Reply | None = None
    usage: Usage | None = None
    lost: Lost | None = None
    cancelled = False
    try:
        async with asyncio.timeout_at(turn.deadline) as limit:
            reply = await voice.speak(turn.told_of(retrying, turn.affords))
        usage = reply.usage
        text = writable(reply.text)
        _require_size(text, "the reply", reply)
        _require_size(reply.reasoning_trace or "", "the thinking next to the reply", reply)
        return reply if text == reply.text else replace(reply, text=text)
    except Lost as too_large:
        lost = too_large
        raise
    except asyncio.CancelledError as error:
        if not _is_called_off():
            lost = Lost("raised", f"{type(error).__name__}: {error}".rstrip(": "), attempts)
            raise lost from error
        cancelled = True
        usage = usage_of(error)
        raise
    except Exception as error:
        lost = _classify_error(error, attempts)
        usage = usage_of(error)
        if limit.expired():
            lost = Lost("timeout", "no answer before the round's deadline", attempts)
        raise lost from error
    finally:
        heard.retries_granted.clear()
        heard.calls.append(
            CallRecord(
                model=heard.model,
                round_number=turn.round_number,
                purpose=purpose,
                attempts=reply.attempts if reply else lost.attempts if lost else attempts,
                latency_seconds=clock() - started,
                tokens_in=usage.tokens_in if usage else None,
                tokens_cached=usage.tokens_cached if usage else None,
                tokens_out=usage.tokens_out if usage else None,
                cost_usd=usage.cost_usd if usage else None,
                estimated_tokens=usage.estimated_tokens if usage else 0,
                estimated_usd=usage.estimated_usd if usage else 0.0,
                saved_usd=usage.saved_usd if usage else None,
                effort=reply.effort if reply else None,
                finished=reply is not None and reply.finished,
                cut_short=reply is not None and reply.cut_short,
                cached=reply is not None and reply.cached,
                failed="cancelled" if cancelled else lost.kind if lost else None,
                asked_id=reply.asked_id if reply else None,
                answered_by=writable(reply.answered_by) if reply and reply.answered_by else None,
            )
        )


def _require_size(text: str, what: str, reply: Reply) -> None:
    """Refuse a reply that would fill records, lists and others' questions."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > LARGEST_REPLY:
        raise Lost(
            "unparseable",
            f"{what} has {size:,} bytes; the limit is {LARGEST_REPLY:,}",
            reply.attempts,
            beginning=writable(reply.text[:KEPT_OF_TOO_LARGE]),
        )


def _is_called_off() -> bool:
    """Whether this task was cancelled; otherwise the voice's own code raised the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _classify_error(error: Exception, attempts: int) -> Lost:
    """Classify a raised exception. A status on it means an HTTP failure, whatever its type."""
    message = str(error) or type(error).__name__
    if isinstance(error, VoiceError):
        return Lost(error.kind, message, max(attempts, error.attempts))
    if isinstance(error, TimeoutError):
        return Lost("timeout", message, attempts)
    status = getattr(error, "status_code", None) or getattr(
        getattr(error, "response", None), "status_code", None
    )
    if status == 429:
        return Lost("rate_limited", message, attempts)
    if status is not None:
        return Lost("http_error", message, attempts)
    if isinstance(error, ConnectionError):
        return Lost("connection", message, attempts)
    return Lost("raised", f"{type(error).__name__}: {message}", attempts)


def evaluation_of(
    model: str, round_number: int, reading: Reading, polarity: Polarity, replies: tuple[Reply, ...]
) -> NeutrosophicEvaluation:
    """A voice's evaluation from its parsed replies."""
    # Parsed numbers are within [0, 1] and writable; a probability is unchecked input from a voice.
    made = NeutrosophicEvaluation if reading.read_as == "logprobs" else NeutrosophicEvaluation.assembled
    trace = replies[-1].reasoning_trace
    return made(
        truth=reading.truth,
        indeterminacy=reading.indeterminacy,
        falsehood=reading.falsehood,
        reasoning=reading.reasoning,
        model=model,
        round_number=round_number,
        verdict=reading.verdict,
        patterns_observed=reading.patterns_observed,
        consensus_patterns=reading.consensus_patterns,
        speaks_for=reading.speaks_for,
        veto=reading.veto,
        read_as=reading.read_as,
        guessed=reading.read_as == "keyword",
        polarity=polarity,
        imputed=reading.imputed,
        reasoning_trace=writable(trace) if trace else reading.thinking,
        raw_replies=tuple([reply.text for reply in replies]),
    )


def carry_forward(
    last: NeutrosophicEvaluation, round_number: int, replies: tuple[Reply, ...]
) -> NeutrosophicEvaluation:
    """The voice's last evaluation, repeated because its answer could not be parsed."""
    return last.model_copy(
        update={
            "round_number": round_number,
            "read_as": "carried",
            "patterns_observed": (),
            "consensus_patterns": (),
            "speaks_for": None,
            "veto": None,
            "reasoning_trace": replies[-1].reasoning_trace,
            "raw_replies": tuple(reply.text for reply in replies),
        }
    )
