"""How many calls a provider is given at once, against a real server that has room for so many and no more."""

from __future__ import annotations

import asyncio
from statistics import fmean

import pytest

from firecircle import VoiceError
from firecircle.circle.voice import Retry
from firecircle.settings import Concurrency
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import Backoff, HostedVoice
from tests.loopback import Answer, ChatRequest, LoopbackServer, as_json, completion, failure
from tests.voices.hosted.test_hosted import TURN, in_seconds

QUICK = Backoff(first_seconds=0.01, longest_seconds=0.05)


def voice_at(server: LoopbackServer, **concurrency: int) -> HostedVoice:
    where = (
        PROVIDERS["vllm"].at(server.base_url).model_copy(update={"concurrency": Concurrency(**concurrency)})
    )
    return HostedVoice("vllm:m", where, "m", backoff=QUICK)


class RoomFor:
    """A server that says 429 to whoever comes while so many are being served."""

    def __init__(self, most: int, latency: float = 0.02) -> None:
        self.most, self.latency = most, latency
        self.served = 0
        self.refused = 0
        self.at_once: list[int] = []

    async def __call__(self, _: ChatRequest) -> Answer:
        if self.served >= self.most:
            self.refused += 1
            return failure(429, "too many at once")
        self.served += 1
        self.at_once.append(self.served)
        await asyncio.sleep(self.latency)
        self.served -= 1
        return completion("hi")


@pytest.mark.parametrize("room", [5, 12, 40, 1000])
async def test_two_hundred_calls_settle_near_what_the_server_takes(room: int) -> None:
    # Long enough that a slow machine still gets as many under way as the server has room for.
    endpoint = RoomFor(room, latency=min(0.2, room / 250))
    finished: list[int] = []

    async with LoopbackServer(endpoint) as server:
        voices = [voice_at(server) for _ in range(200)]

        async def one(number: int) -> int:
            reply = await voices[number].speak(TURN)
            finished.append(number)
            return reply.attempts

        attempts = await asyncio.gather(*map(one, range(200)))
        slots = (await voices[0]._connections()).slots_of("m")
    assert len(finished) == 200
    assert max(attempts) <= QUICK.attempts_if_busy
    # Refusals are the price of finding out, not the way of working.
    assert endpoint.refused < 100
    assert slots.in_flight == 0
    late = fmean(endpoint.at_once[100:])
    if room < 1000:
        assert room / 3 <= slots.limit <= room * 1.5
        assert late >= room / 3
    else:
        assert endpoint.refused == 0
        assert slots.limit > 50
    # Nobody waits while many who came later are served.
    assert all(place - number < 100 for place, number in enumerate(finished) if number < 100)


async def test_the_limit_grows_only_where_it_is_used() -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        voice = voice_at(server, start=3, most=5)
        for _ in range(10):
            await voice.speak(TURN)
        connections = await voice._connections()
        assert connections.limit == 3
        await asyncio.gather(*(voice.speak(TURN) for _ in range(30)))
        assert connections.limit == 5


async def test_never_more_than_the_most() -> None:
    endpoint = RoomFor(1000)
    async with LoopbackServer(endpoint) as server:
        await asyncio.gather(*(voice_at(server, start=2, most=4).speak(TURN) for _ in range(50)))
    assert max(endpoint.at_once) == 4


async def test_a_pause_is_kept_by_everybody() -> None:
    clock = asyncio.get_running_loop().time
    seen: list[float] = []
    refused = asyncio.Event()
    turn = TURN._replace(on_retry=lambda _: refused.set())

    def busy_once(_: ChatRequest) -> Answer:
        seen.append(clock())
        return failure(429, "slow down", retry_after="0.4") if len(seen) == 1 else completion("hi")

    async with LoopbackServer(busy_once) as server:
        first = asyncio.create_task(voice_at(server).speak(turn))
        await refused.wait()
        await asyncio.gather(first, *(voice_at(server).speak(TURN) for _ in range(5)))
    assert len(seen) == 7
    assert min(seen[1:]) - seen[0] >= 0.39


async def test_a_pause_beyond_the_deadline_fails_at_once_for_everybody() -> None:
    async with LoopbackServer(lambda _: failure(429, "slow down", retry_after="15")) as server:
        for expected in ("slow down (HTTP 429); no time left", "vllm asked for a pause of 1"):
            async with asyncio.timeout(10):
                with pytest.raises(VoiceError) as raised:
                    await voice_at(server).speak(TURN._replace(deadline=in_seconds(12)))
            assert raised.value.kind == "rate_limited"
            assert str(raised.value).startswith(expected)
    assert len(server.requests) == 1


async def test_one_long_wait_does_not_fail_all_that_follow() -> None:
    def once(_: ChatRequest) -> Answer:
        return completion("hi") if len(server.requests) > 1 else failure(429, "slow", retry_after="90")

    backoff = Backoff(first_seconds=0.01, longest_seconds=0.05, longest_pause=0.3)
    async with LoopbackServer(once) as server:
        provider = voice_at(server).provider
        turn = TURN._replace(deadline=in_seconds(60))
        with pytest.raises(VoiceError, match="no time left for a retry in 90"):
            await HostedVoice("vllm:m", provider, "m", backoff=backoff).speak(turn)
        voices = [HostedVoice("vllm:m", provider, "m", backoff=backoff) for _ in range(59)]
        async with asyncio.timeout(30):
            replies = await asyncio.gather(*(voice.speak(turn) for voice in voices))
    assert [reply.attempts for reply in replies] == [1] * 59


OF_THE_ACCOUNT = "Rate limit of your organization reached: too many requests per minute."


@pytest.mark.parametrize(
    ("message", "silences_others"),
    [
        ("slow down", False),
        ("Rate limit reached for gpt-4o-2024-08-06 in organization org-x on tokens per min", False),
        (OF_THE_ACCOUNT, True),
    ],
)
async def test_a_model_s_limit_is_its_own_unless_it_says_otherwise(
    message: str, silences_others: bool
) -> None:
    waits: list[float] = []
    clock = asyncio.get_running_loop().time

    def busy(request: ChatRequest) -> Answer:
        if request.model == "m" and not waits:
            waits.append(clock())
            return failure(429, message, retry_after="0.6")
        if request.model == "n":
            waits.append(clock())
        return completion("hi")

    refused = asyncio.Event()
    async with LoopbackServer(busy) as server:
        provider = voice_at(server).provider
        turn = TURN._replace(on_retry=lambda _: refused.set())
        first = asyncio.create_task(voice_at(server).speak(turn))
        await refused.wait()
        await HostedVoice("vllm:n", provider, "n", backoff=QUICK).speak(TURN)
        await first
    assert (waits[1] - waits[0] >= 0.59) == silences_others


async def test_what_a_router_passes_on_of_one_model_is_not_held_against_the_others() -> None:
    passed_on = {"error": {"message": "busy", "code": 429, "metadata": {"provider_name": "X", "raw": "r"}}}

    def router(request: ChatRequest) -> Answer:
        return completion("hi") if request.model == "m" else as_json(passed_on, 429, retry_after="3600")

    async with LoopbackServer(router) as server:
        other = HostedVoice("vllm:n", voice_at(server).provider, "n", backoff=QUICK)
        with pytest.raises(VoiceError, match="busy: r"):
            await other.speak(TURN._replace(deadline=in_seconds(60)))
        assert (await voice_at(server).speak(TURN)).text == "hi"
        assert (await other._connections()).slots_of("m").limit == 20


async def test_waiting_for_a_slot_ends_with_the_deadline() -> None:
    async with LoopbackServer(lambda _: completion("hi", latency=5)) as server:
        voice = voice_at(server, start=1, most=1)
        first = asyncio.create_task(voice.speak(TURN))
        await asyncio.sleep(0.1)
        async with asyncio.timeout(3):
            with pytest.raises(VoiceError, match="no room for another call to vllm in time") as raised:
                await voice.speak(TURN._replace(deadline=in_seconds(0.1)))
        assert raised.value.kind == "timeout"
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert (await voice._connections()).slots.in_flight == 0
    assert len(server.requests) == 1


async def test_whoever_stops_waiting_leaves_no_gap() -> None:
    release = asyncio.Event()

    async def held(_: ChatRequest) -> Answer:
        await release.wait()
        return completion("hi")

    async with LoopbackServer(held) as server:
        voice = voice_at(server, start=1, most=1)
        calls = [asyncio.create_task(voice.speak(TURN)) for _ in range(10)]
        await asyncio.sleep(0.1)
        for gone in calls[1:9]:
            gone.cancel()
        release.set()
        done = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)
    assert [isinstance(one, asyncio.CancelledError) for one in done] == [False, *[True] * 8, False]


async def test_attempts_and_waits_are_told() -> None:
    heard: list[Retry] = []
    async with LoopbackServer(RoomFor(1, latency=0.05)) as server:
        turn = TURN._replace(on_retry=heard.append)
        replies = await asyncio.gather(*(voice_at(server, start=3).speak(turn) for _ in range(3)))
    assert sum(reply.attempts for reply in replies) == 3 + len(heard)
    assert heard
    assert all("too many at once" in retry.reason and retry.wait_seconds > 0 for retry in heard)
