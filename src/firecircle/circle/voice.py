"""Questions and answers of a circle: the one protocol that every kind of voice implements."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload, runtime_checkable

from firecircle.evaluation import NeutrosophicEvaluation, Verdict
from firecircle.names import Effort, Focus
from firecircle.prompt import MultiNeutrosophicPrompt

Role = Literal["system", "user", "assistant"]
Number = TypeVar("Number", int, float)


class Message(NamedTuple):
    """One chat message, exactly as it is sent."""

    role: Role
    content: str


class PeerQuote(NamedTuple):
    """A quote of a peer that was found in the prompt, with the type it gave."""

    pattern: str | None
    layer: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Peer:
    """A fellow evaluator as a voice sees it: a label, its last evaluation, and its checked quotes."""

    label: str
    evaluation: NeutrosophicEvaluation
    quotes: tuple[PeerQuote, ...] = ()


class PeersOnDemand(Sequence[Peer]):
    """Peers that are built on access: language models read them in the messages instead."""

    def __init__(self, gather: Callable[[], tuple[Peer, ...]]) -> None:
        self._gather = gather

    @cached_property
    def _peers(self) -> tuple[Peer, ...]:
        return self._gather()

    @overload
    def __getitem__(self, place: int) -> Peer: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Peer, ...]: ...
    def __getitem__(self, place: int | slice) -> Peer | tuple[Peer, ...]:
        """One of them, or several."""
        return self._peers[place]

    def __len__(self) -> int:
        return len(self._peers)


@dataclass(frozen=True, slots=True)
class Retry:
    """A voice about to try again, and why."""

    attempt: int
    reason: str
    wait_seconds: float


def _ignore_retry(_: Retry) -> None:
    return None


def _no_limit(_: Usage) -> bool:
    return True


class Turn(NamedTuple):
    """One question to one voice. Language models read `messages`; readers may use the parts (prompt, round,
    peers) instead.
    """

    messages: tuple[Message, ...]
    prompt: MultiNeutrosophicPrompt
    question: str = ""
    """The text after the evidence. Numbers that a reply only repeats from it are not a vote."""
    round_number: int = 1
    focus: Focus = "prompt"
    turn_number: int | None = None
    """The number of the conversation turn to judge, if known."""
    is_chair: bool = False
    own_last: NeutrosophicEvaluation | None = None
    peers: Sequence[Peer] = ()
    reply_schema: Mapping[str, Any] | None = None
    """The JSON schema of the answer, for endpoints that can enforce one."""
    max_tokens: int = 1000
    temperature: float | None = 0.7
    """None leaves it to the endpoint."""
    seed: int | None = None
    attempt_seconds: float = 30.0
    deadline: float | None = None
    """When the round ends, on the event loop's clock; no retry starts after it."""
    on_retry: Callable[[Retry], None] = _ignore_retry
    plain_question: bool = True
    """Whether the question is the circle's own. Otherwise it includes guidance or a user's text, so that a
    voice with its own prompts must read the messages.
    """
    affords: Callable[[Usage], bool] = _no_limit
    """Whether the budget covers a further attempt that may consume this much; if so, reserves it."""
    side: Verdict | None = None
    """The side the voice must argue for, whatever its own view; None to ask for its own view."""
    effort: Effort = "default"
    opens_again: bool = False
    """Whether other questions of this circle share the opening, so that a provider's cache pays."""

    def told_of(self, on_retry: Callable[[Retry], None], affords: Callable[[Usage], bool]) -> Turn:
        """The same with these callbacks; faster than `_replace`."""
        return Turn._make((*self[:_ON_RETRY], on_retry, self[_ON_RETRY + 1], affords, *self[_ON_RETRY + 3 :]))

    def digest(self, *asked: object) -> bytes:
        """Digest of the voice and everything that shapes the answer: the same digest may have the same
        answer.

        Caches and journals on users' disks use it as a key, so its input must not change.
        """
        shaping = (*asked, self.messages, self.max_tokens, self.temperature, self.seed, self.reply_schema)
        shaping = shaping if self.effort == "default" else (*shaping, self.effort)
        return hashlib.sha256(json.dumps(shaping, sort_keys=True, default=dict).encode()).digest()


_ON_RETRY = Turn._fields.index("on_retry")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call consumed. None is unknown, never zero."""

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    estimated_tokens: int = 0
    """The estimated use of attempts that were sent but have no usage. Not part of the tokens above, but
    counted by a budget.
    """
    estimated_usd: float = 0.0
    tokens_written: int | None = None
    """The part of `tokens_in` written to the provider's cache, which may cost more than the rest."""
    saved_usd: float | None = None
    """What the provider's cache saved by tariff; below zero if writing to it cost more."""

    @property
    def charged_tokens(self) -> int:
        """The tokens that a budget counts."""
        return (self.tokens_in or 0) + (self.tokens_out or 0) + self.estimated_tokens

    @property
    def charged_usd(self) -> float | None:
        """The US dollars that a budget counts; None if unknown."""
        if self.cost_usd is None and not self.estimated_usd:
            return None
        return (self.cost_usd or 0.0) + self.estimated_usd

    def as_estimate(self) -> Usage:
        """The same as an estimate."""
        tokens = (self.tokens_in or 0) + (self.tokens_out or 0)
        return Usage(estimated_tokens=tokens, estimated_usd=self.cost_usd or 0.0)

    def at_a_cost(self, cost_usd: float | None) -> Usage:
        """The same at this price."""
        return replace(self, cost_usd=cost_usd)

    def __add__(self, other: Usage) -> Usage:
        """Add two; an unknown part adds nothing."""
        return Usage(
            _sum(self.tokens_in, other.tokens_in),
            _sum(self.tokens_cached, other.tokens_cached),
            _sum(self.tokens_out, other.tokens_out),
            _sum(self.cost_usd, other.cost_usd),
            self.estimated_tokens + other.estimated_tokens,
            self.estimated_usd + other.estimated_usd,
            _sum(self.tokens_written, other.tokens_written),
            _sum(self.saved_usd, other.saved_usd),
        )


def _sum(first: Number | None, second: Number | None) -> Number | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second


FREE = Usage(tokens_in=0, tokens_cached=0, tokens_out=0, cost_usd=0.0)


def carry_usage(cancelled: BaseException, usage: Usage) -> None:
    """Attach what a call consumed to the cancellation that ended it."""
    vars(cancelled)["usage"] = usage


def usage_of(error: BaseException) -> Usage | None:
    """What a call consumed before this error, cancellation or time-out, if known."""
    attached = (getattr(raised, "usage", None) for raised in (error, error.__cause__))
    return next((usage for usage in attached if isinstance(usage, Usage)), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a voice, word for word, with what it consumed."""

    text: str
    reasoning_trace: str | None = None
    usage: Usage = Usage()
    attempts: int = 1
    finished: bool = False
    """Whether the provider says that the answer is complete, so that a last number is whole."""
    cut_short: bool = False
    """Whether the provider says that `max_tokens` ended the answer."""
    cached: bool = False
    """Whether it is the saved answer of an identical earlier call."""
    asked_id: str | None = None
    """The model asked instead of the voice's own, which the provider did not have."""
    answered_by: str | None = None
    """The model that answered, as the endpoint names it: an alias may stand for many."""
    violation_probability: float | None = None
    """The probability that the voice's verdict word is `violation`, if log-probabilities were requested. It
    replaces the falsehood in the text.
    """
    effort: Effort | None = None
    """The requested reasoning effort; None if it was left out."""

    def at_a_cost(self, usage: Usage) -> Reply:
        """The same with its usage."""
        return replace(self, usage=usage)

    def dump(self) -> dict[str, Any]:
        """The reply as plain data."""
        return asdict(self)

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Reply:
        """Read a dumped reply, also of versions that wrote its usage as a list."""
        own = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        usage = data["usage"] if "usage" in data else data["tokens"]
        own["usage"] = Usage(**usage) if isinstance(usage, dict) else Usage(*usage)
        return cls(**own)


class Voice(Protocol):
    """Anyone who can answer a turn. A failure is raised, best as a `VoiceError` that says its kind."""

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn."""
        ...


def answers_at_once(voice: Voice) -> bool:
    """Whether a voice computes in this thread, as embedded readers do: asking several at once gains
    nothing.
    """
    return getattr(voice, "answers_at_once", False)


@runtime_checkable
class Priced(Protocol):
    """A voice that can estimate the cost of an answer. Any other counts as free."""

    def estimate(self, turn: Turn) -> Usage:
        """The most that answering this turn may consume, without a request."""
        ...
