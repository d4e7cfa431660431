"""Voices on HTTP endpoints: one call, with retries within the round's time and budget."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from firecircle.circle.voice import Message, Reply, Retry, Turn, Usage, carry_usage
from firecircle.errors import VoiceError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.control_tokens import as_written
from firecircle.voices.hosted.adaptation import Change, change_for
from firecircle.voices.hosted.answers import holds_logprobs, reply_in
from firecircle.voices.hosted.chat import ChatRequest, Quirks, known_quirks, remember
from firecircle.voices.hosted.connections import (
    AnswerUnreadable,
    ConnectionLost,
    Connections,
    HttpAnswer,
    NoSlot,
    connections_to,
)
from firecircle.voices.hosted.error_bodies import NO_CHAT_MODEL, RESPONSES_ONLY
from firecircle.voices.hosted.prices import (
    Tariff,
    load_price_list,
    price_of,
    require_price,
    saved_by_cache,
    stated_tariff,
    tariff_of,
)
from firecircle.voices.hosted.providers import Provider, key_for, locate, provider_of
from firecircle.voices.hosted.waits import Setback, presentable, without_key
from firecircle.voices.hosted.wires import WIRES
from firecircle.voices.outages import Lost, current_outages
from firecircle.voices.rehearsal import estimated_usage

if TYPE_CHECKING:
    from pydantic import SecretStr

    from firecircle.circle.base_config import BaseEvaluationConfig
    from firecircle.names import WireName

MOST_ADAPTATIONS = 8
"""Changes to a request for one answer that do not count as attempts."""
FEW_TOKENS = 16
"""The smallest limit that every endpoint accepts."""

__all__ = ["Backoff", "HostedVoice", "hosted_voice", "provider_of"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often a call is retried, and how long it waits."""

    attempts: int = 5
    attempts_if_busy: int = 10
    """Attempts of a call that the endpoint had no room for, which is not the call's fault."""
    first_seconds: float = 0.5
    longest_seconds: float = 20.0
    patience_seconds: float = 120.0
    """The longest wait to accept from an endpoint when the turn has no deadline."""
    longest_pause: float = 20.0
    """The longest pause of other calls after one call's 429."""

    def seconds_after(self, attempt: int, retry_after: float | None) -> float:
        """The wait after a failed attempt: as requested, otherwise doubling, both with jitter."""
        if retry_after is not None:
            return retry_after + self.first_seconds * random.random()
        doubled = self.first_seconds * 2.0 ** (attempt - 1)
        return min(doubled, self.longest_seconds) * random.uniform(0.5, 1.0)


@dataclass(slots=True)
class _Spent:
    """What the attempts of one call consumed, as far as known."""

    metered: list[Usage] = field(default_factory=list)
    unmetered: list[Turn] = field(default_factory=list)
    """The question of each attempt that was sent but has no usage."""
    trouble: Lost | None = None
    """The reason for another attempt, if it is temporary."""

    def note(self, usage: Usage | None, turn: Turn, *, was_sent: bool) -> bool:
        """Add an attempt; returns whether it consumed anything."""
        if usage is not None:
            self.metered.append(usage)
        if was_sent and (usage is None or not _is_metered(usage)):
            self.unmetered.append(turn)
        return usage is not None or was_sent


def _is_metered(usage: Usage) -> bool:
    return usage.cost_usd is not None or (usage.tokens_in is not None and usage.tokens_out is not None)


class HostedVoice:
    """A model on an HTTP endpoint, in the endpoint's wire format."""

    def __init__(
        self,
        model: str,
        provider: Provider,
        name: str,
        key: SecretStr | None = None,
        *,
        backoff: Backoff | None = None,
        by_word: bool = False,
    ) -> None:
        self.model = model
        self.provider = provider
        self.name = name
        """The provider's name for the model."""
        self.by_word = by_word
        """Whether falsehood is the probability of the verdict word, if the endpoint gives it."""
        self.needs_cost = False
        """Whether a money budget depends on the cost that every answer states."""
        self._dearest: float | None = None
        self._key = key
        self._backoff = backoff or Backoff()
        self._headers: dict[str, Mapping[str, str]] = {}
        self._stated_tariff = stated_tariff(model, provider, name)
        self._needs_price_list = self._stated_tariff is None

    def __repr__(self) -> str:
        return f"HostedVoice({self.model!r} at {self.provider.base_url})"

    @cached_property
    def tariff(self) -> Tariff | None:
        """What its tokens cost; None if the price is unknown."""
        return self._stated_tariff or tariff_of(self.model, self.provider, self.name)

    def estimate(self, turn: Turn) -> Usage:
        """The most that answering may consume; where answers state costs, that of the dearest so far."""
        usage = estimated_usage(turn, self.tariff)
        return usage.at_a_cost(self._dearest) if self.needs_cost else usage

    @property
    def quirks(self) -> Quirks:
        """How requests to this model differ from the usual ones, as found so far."""
        return known_quirks(self.provider, self.name)

    def request(self, turn: Turn) -> ChatRequest:
        """The turn as a request to this model, with its known differences."""
        return ChatRequest(turn, self.name, self.provider, self.quirks, by_word=self.by_word)

    @property
    def request_path(self) -> str:
        """The path of its questions, as a batch names it."""
        return f"/v1{WIRES[self.quirks.wire or self.provider.wire].path}"

    @property
    def shown_headers(self) -> Mapping[str, str]:
        """The headers for other requests to its provider."""
        return self._request_headers(self.quirks.wire or self.provider.wire)

    def heard(self, answer: HttpAnswer, share: float) -> Reply:
        """The reply in a batch's answer, at a share of the price; raises a `Setback` if there is none."""
        reply = self._restore(reply_in(answer, 1))
        usage = self._add_price(reply.usage)
        return reply.at_a_cost(usage if usage.cost_usd is None else usage.at_a_cost(usage.cost_usd * share))

    async def gives_logprobs(self) -> bool:
        """Whether the endpoint gives log-probabilities; found out by a call of a few tokens."""
        turn = Turn(
            messages=(Message("user", "Answer with one word, yes or no: is fire hot?"),),
            prompt=MultiNeutrosophicPrompt(user="is fire hot?"),
            max_tokens=FEW_TOKENS,
            temperature=None,
        )
        request = ChatRequest(turn, self.name, self.provider, self.quirks)
        fields = {**request.fields(), "logprobs": True, "top_logprobs": 2}
        body = json.dumps(request.wire.spelled(fields)).encode()
        try:
            answer = await (await self._connections()).post(
                request.url, self._request_headers(request.wire.name), body
            )
        except (ConnectionLost, AnswerUnreadable) as lost:
            raise VoiceError(str(lost), kind="connection", model=self.model) from None
        return holds_logprobs(answer)

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn, with as many attempts as its deadline allows, and state the cost."""
        price_list = None
        if self._needs_price_list:
            price_list = asyncio.get_running_loop().run_in_executor(None, load_price_list)
            self._needs_price_list = False
        spent = _Spent()
        began = time.monotonic()
        try:
            reply = await self._answer(turn, spent)
        except VoiceError as failure:
            if failure.may_pass:
                self._report_loss(Lost(failure.kind, str(failure), failure.retry_after), began)
            if price_list and (spent.metered or spent.unmetered):
                await price_list
            failure.usage = self._cost_of(spent)
            raise
        except asyncio.CancelledError as cancelled:
            if spent.trouble:
                self._report_loss(spent.trouble, began)
            carry_usage(cancelled, self._cost_of(spent))
            raise
        if outages := current_outages():
            outages.answered(self.provider.name, self.model)
        if price_list and not (len(spent.metered) == 1 and spent.metered[0].cost_usd is not None):
            await price_list
        usage = self._cost_of(spent)
        if usage.cost_usd is not None:
            self._dearest = max(usage.cost_usd, self._dearest or 0.0)
        elif self.needs_cost:
            untold = f"{self.provider.name} reported no cost, and the budget cannot be enforced without it"
            lost = VoiceError(untold, kind="over_budget", model=self.model, attempts=reply.attempts)
            lost.usage = usage
            raise lost
        return reply if usage is reply.usage else reply.at_a_cost(usage)

    def _report_loss(self, loss: Lost, began: float) -> None:
        if outages := current_outages():
            outages.lost(self.provider.name, self.model, loss, began=began)

    def _cost_of(self, spent: _Spent) -> Usage:
        """Everything a call consumed: stated usage with its price, and an estimate of the rest."""
        known = [self._add_price(usage) for usage in spent.metered]
        if len(known) == 1 and not spent.unmetered:
            return known[0]
        total = sum(known, start=Usage())
        for turn in spent.unmetered:
            total += self.estimate(turn).as_estimate()
        if not spent.metered and spent.unmetered:
            # The user's own server is free, whether or not it counts tokens.
            total = total.at_a_cost(price_of(total, self.tariff))
        return total

    def _add_price(self, usage: Usage) -> Usage:
        # A cost stated by the provider needs no price list.
        if usage.tokens_cached or usage.tokens_written:
            usage = replace(usage, saved_usd=saved_by_cache(usage, self.tariff))
        if usage.cost_usd is not None or (cost := price_of(usage, self.tariff)) is None:
            return usage
        return usage.at_a_cost(cost)

    async def _answer(self, turn: Turn, spent: _Spent) -> Reply:
        connections = await self._connections()
        request = self.request(turn)
        body = request.body()
        guessed: Quirks | None = None
        attempt = adaptations = 0
        while True:
            attempt += 1
            try:
                reply = await self._attempt(connections, request, body, attempt, spent)
            except Setback as raised:
                setback = raised
            else:
                if guessed is not None:
                    remember(self.provider, self.name, guessed)
                spent.note(reply.usage, turn, was_sent=True)
                return self._restore(replace(reply, effort=request.effort) if request.effort else reply)
            was_paid = spent.note(setback.usage, turn, was_sent=setback.unmetered)
            change = change_for(request, setback.complaint) if setback.complaint else None
            if change is not None:
                request, wait = request.with_quirks(change.quirks, change.names), 0.0
                body = request.body()
                guessed = self._remember_change(change, guessed)
                adaptations += 1
            elif setback.worth_retrying:
                if setback.may_pass:
                    spent.trouble = Lost(
                        setback.kind, self._presentable(setback.message), setback.retry_after
                    )
                wait = self._backoff.seconds_after(attempt, setback.retry_after)
            else:
                raise self._failure(setback, attempt)
            self._require_room(turn, setback, attempt, wait, adaptations)
            if was_paid and not turn.affords(self.estimate(turn)):
                raise self._failure(setback, attempt, "; the budget has no room for a retry")
            turn.on_retry(Retry(attempt + 1, self._presentable(setback.message), wait))
            await asyncio.sleep(wait)

    def _remember_change(self, change: Change, guessed: Quirks | None) -> Quirks | None:
        """Remember what the endpoint asked for; return a guess, which must work first."""
        if change.this_time_only:
            return guessed
        if change.lasting:
            remember(self.provider, self.name, change.quirks)
            return guessed
        return change.quirks if guessed is None else guessed | change.quirks

    async def _connections(self) -> Connections:
        return await connections_to(self.provider.base_url, self.provider.concurrency)

    async def _attempt(
        self, connections: Connections, request: ChatRequest, body: bytes, attempt: int, spent: _Spent
    ) -> Reply:
        """One attempt, when model and provider have a free slot; its outcome adjusts their limits."""
        clock, turn = asyncio.get_running_loop().time, request.turn
        of_model, of_provider = connections.slots_of(self.name), connections.slots
        until = clock() + self._backoff.patience_seconds if turn.deadline is None else turn.deadline
        again = attempt > 1
        try:
            await of_model.take(until, again=again)
            try:
                await of_provider.take(until, again=again)
                started = clock()
                try:
                    reply = reply_in(await self._post(connections, request, body, spent), attempt)
                    of_model.went_well()
                    of_provider.went_well()
                    return reply
                except Setback as setback:
                    if setback.worth_retrying and (setback.kind == "rate_limited" or setback.of_everybody):
                        limited = of_provider if setback.of_everybody else of_model
                        pause = min(setback.retry_after or 0.0, self._backoff.longest_pause)
                        limited.turned_away(started, pause)
                    raise
                finally:
                    of_provider.give_back()
            finally:
                of_model.give_back()
        except NoSlot as pause:
            raise Setback(
                "rate_limited",
                f"{self.provider.name} {pause}",
                retry_after=pause.wait_seconds,
                never_sent=True,
            ) from None
        except TimeoutError:
            raise Setback(
                "timeout",
                f"no room for another call to {self.provider.name} in time"
                f" ({max(of_model.in_flight, of_provider.in_flight)} under way)",
                never_sent=True,
            ) from None

    async def _post(
        self, connections: Connections, request: ChatRequest, body: bytes, spent: _Spent
    ) -> HttpAnswer:
        """One request: from connecting to the answer's last byte, within its time."""
        turn = request.turn
        now = asyncio.get_running_loop().time()
        seconds = turn.attempt_seconds
        if turn.deadline is not None:
            seconds = min(seconds, turn.deadline - now)
        if seconds <= 0:
            raise Setback("timeout", "the round's deadline has passed", never_sent=True)
        try:
            async with asyncio.timeout_at(now + seconds):
                return await connections.post(request.url, self._request_headers(request.wire.name), body)
        except asyncio.CancelledError:
            spent.note(None, turn, was_sent=True)
            raise
        except TimeoutError:
            message = f"no complete answer within {seconds:.3g} s"
            raise Setback("timeout", message, worth_retrying=True, unmetered=True) from None
        except ConnectionLost as lost:
            raise Setback(
                "connection",
                f"{_why_lost(lost)} ({self.provider.name} at {self.provider.base_url})",
                worth_retrying=True,
                of_everybody=lost.no_room,
                unmetered=lost.was_reached,
            ) from None
        except AnswerUnreadable as unreadable:
            message = f"the answer cannot be read: {unreadable}"
            raise Setback("http_error", message, unmetered=True) from None

    def _request_headers(self, wire: WireName) -> Mapping[str, str]:
        if wire not in self._headers:
            self._headers[wire] = {
                "content-type": "application/json",
                "accept": "application/json",
                "accept-encoding": "gzip",
                "user-agent": "firecircle",
                **WIRES[wire].headers,
                **self.provider.headers,
                **self.provider.auth.headers(self._key),
            }
        return self._headers[wire]

    def _require_room(
        self, turn: Turn, setback: Setback, attempt: int, wait: float, adaptations: int
    ) -> None:
        """Fail if no attempt or time is left; a changed request does not count as another attempt."""
        busy = setback.kind == "rate_limited"
        tried = attempt - min(adaptations, MOST_ADAPTATIONS)
        if tried >= (self._backoff.attempts_if_busy if busy else self._backoff.attempts):
            raise self._failure(setback, attempt)
        if turn.deadline is None:
            late = wait > self._backoff.patience_seconds
        else:
            late = asyncio.get_running_loop().time() + wait >= turn.deadline
        if late:
            raise self._failure(setback, attempt, f"; no time left for a retry in {wait:.1f} s")

    def _failure(self, setback: Setback, attempts: int, why_final: str = "") -> VoiceError:
        message = self._presentable(setback.message) + why_final
        if advice := remedy(setback, self.provider, self.name):
            message += f"; {advice}"
        return VoiceError(
            message,
            kind=setback.kind,
            model=self.model,
            attempts=attempts,
            unknown_model=setback.unknown_model,
            may_pass=setback.may_pass,
            retry_after=setback.retry_after,
        )

    def _presentable(self, message: str) -> str:
        return presentable(message, self._key.get_secret_value() if self._key else None)

    def _restore(self, reply: Reply) -> Reply:
        """The reply with quoted control tokens restored, and without the key if it has it."""
        text = self._restore_text(reply.text)
        trace = self._restore_text(reply.reasoning_trace) if reply.reasoning_trace else None
        probability = reply.violation_probability if self.by_word else None
        if (text, trace, probability) == (reply.text, reply.reasoning_trace, reply.violation_probability):
            return reply
        return replace(reply, text=text, reasoning_trace=trace, violation_probability=probability)

    def _restore_text(self, text: str) -> str:
        text = as_written(text) if self.provider.reads_control_tokens else text
        return without_key(text, self._key.get_secret_value()) if self._key else text


def _why_lost(lost: ConnectionLost) -> str:
    """The reason without host and TLS settings, which aiohttp puts first; the address follows anyway."""
    unreachable = re.fullmatch(r"Cannot connect to host .*? ssl:.*? \[(.*)\]", str(lost), re.DOTALL)
    if unreachable is None:
        return str(lost)
    why = unreachable[1]
    return "cannot connect" if why.startswith("Connect call failed") else f"cannot connect: {why}"


def hosted_voice(model: str, config: BaseEvaluationConfig, *, backoff: Backoff | None = None) -> HostedVoice:
    """The voice of this name. Raises a `ConfigError` if no provider hosts it, its key is missing, or a budget
    is set and its price is unknown.
    """
    provider, name = provider_of(model, config.provider)
    provider = locate(provider, config)
    by_word = config.verdict_from == "logprobs"
    voice = HostedVoice(model, provider, name, key_for(provider, config), backoff=backoff, by_word=by_word)
    if config.budget_usd is not None and voice.tariff is None and provider.states_cost:
        voice.needs_cost = True
    elif config.budget_usd is not None:
        require_price(model, voice.tariff)
    return voice


NO_ENDPOINT = re.compile(r"no endpoints found (that|matching)", re.IGNORECASE)
"""OpenRouter has the model, but no host that fits the user's settings."""
NOT_HERE = re.compile(r"(country|region|location|territory).{0,40}not supported", re.IGNORECASE)
NOT_PAID, UNKNOWN = 402, 404


def remedy(setback: Setback, provider: Provider, name: str) -> str:
    """What to do, in a few words; empty if only waiting may help."""
    if setback.kind == "connection":
        return f"is it running and reachable? its address can be set with {provider.address_variable}"
    if setback.kind == "refused":
        return ""
    if NO_CHAT_MODEL.search(setback.message):
        return f"{name!r} is there, but does not chat: name a model that does"
    if RESPONSES_ONLY.search(setback.message):
        return f'set wire = "responses" for {provider.name} in firecircle.toml'
    if setback.unknown_model or (setback.status == UNKNOWN and not NO_ENDPOINT.search(setback.message)):
        return f"check the name of the model, {name!r} at {provider.name}"
    if NOT_HERE.search(setback.message):
        return "choose a provider that serves your country"
    if setback.status in (401, 403):
        if provider.key_variable is None:
            return "it asks for a key: name a key_variable for it in firecircle.toml"
        return f"check the key in {provider.key_variable}: it may be wrong, expired or not for this model"
    if setback.status == NOT_PAID:
        return f"add credit at {provider.name}, or choose another model"
    if setback.status in (301, 302, 307, 308):
        return f"check the address {provider.base_url}; it can be set with {provider.address_variable}"
    return ""
