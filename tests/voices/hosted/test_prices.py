"""What a call costs: as told by the provider, by the user's file, by the price list, or by nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from firecircle import FireCircleConfig
from firecircle.catalog import families, family_of
from firecircle.circle.voice import Usage
from firecircle.voices.hosted.prices import FREE, Rates, listed_rates, price_of, rates_of, tariff_of
from firecircle.voices.hosted.providers import PROVIDERS, locate, provider_of
from firecircle.voices.hosted.voice import HostedVoice
from tests.loopback import LoopbackServer, completion
from tests.voices.hosted.test_hosted import TURN

Write = Callable[[str], Path]
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 600},
}


def rates(model: str) -> Rates | None:
    provider, name = provider_of(model, "openrouter")
    tariff = tariff_of(model, locate(provider, FireCircleConfig.embedded()), name)
    return rates_of(tariff) if tariff else None


async def cost_of_a_call(model: str, **usage: object) -> float | None:
    provider, name = provider_of(model, "openrouter")
    async with LoopbackServer(lambda _: completion("hi", usage={**USAGE, **usage})) as server:
        voice = HostedVoice(model, provider.at(server.base_url), name, SecretStr("sk"))
        return (await voice.speak(TURN)).usage.cost_usd


def test_the_list_knows_the_well_known() -> None:
    claude = rates("anthropic/claude-sonnet-4")
    assert claude is not None
    assert claude.input > claude.cached_input > 0
    assert claude.output > claude.input
    # A dated name, which the list has only without its date.
    assert rates("anthropic/claude-sonnet-4-20250514") == claude
    assert rates("openai:gpt-4o#2") == rates("openai:gpt-4o") != None  # noqa: E711


@pytest.mark.parametrize("model", ["nobody/nothing", "openai:nothing", "openai:tts-1", "google:gemma-3"])
def test_what_the_list_does_not_know_is_unknown_and_not_free(model: str) -> None:
    assert rates(model) is None


def test_free_is_free() -> None:
    assert rates("deepseek/deepseek-r1:free") == Rates(0, 0, 0)
    assert rates("ollama:anything") == Rates(0, 0, 0)


def test_a_server_elsewhere_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", "https://gpu.example/v1")
    assert rates("vllm:m") is None


def test_an_address_of_the_list_has_the_list_s_prices(settings_file: Write) -> None:
    settings_file("[providers.mine]\nbase_url = 'https://api.openai.com/v1'\nkey_variable = 'MINE'")
    assert rates("mine:gpt-4o") == rates("openai:gpt-4o")


async def test_cached_input_is_accounted_for() -> None:
    known = rates("openai:gpt-4o")
    assert known is not None
    expected = (400 * known.input + 600 * known.cached_input + 100 * known.output) / 1e6
    assert await cost_of_a_call("openai:gpt-4o") == pytest.approx(expected)


async def test_the_user_s_price_wins_over_the_list(settings_file: Write) -> None:
    settings_file("""
        [prices."openai:gpt-4o"]
        input = 10
        output = 100
        [prices."nobody/nothing"]
        input = 10
        cached_input = 1
        output = 100
        [prices."openrouter:some/thing"]
        input = 0
        output = 0
        """)
    assert await cost_of_a_call("openai:gpt-4o#2") == pytest.approx((1000 * 10 + 100 * 100) / 1e6)
    assert await cost_of_a_call("nobody/nothing") == pytest.approx((400 * 10 + 600 + 100 * 100) / 1e6)
    assert await cost_of_a_call("some/thing") == 0.0


async def test_what_the_provider_says_wins_over_both(settings_file: Write) -> None:
    settings_file("[prices.'openai:gpt-4o']\ninput = 10\noutput = 100")
    assert await cost_of_a_call("openai:gpt-4o", cost=0.125) == 0.125


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": None},
        {"completion_tokens": "many"},
    ],
)
async def test_unknown_tokens_have_no_price(usage: dict[str, object]) -> None:
    assert await cost_of_a_call("openai:gpt-4o", **usage) is None


async def test_a_server_of_one_s_own_costs_nothing_whatever_it_counts() -> None:
    async with LoopbackServer(lambda _: completion("hi")) as server:
        voice = HostedVoice("vllm:m", PROVIDERS["vllm"].at(server.base_url), "m")
        reply = await voice.speak(TURN)
    estimate = voice.estimate(TURN)
    tokens = (estimate.tokens_in or 0) + (estimate.tokens_out or 0)
    assert reply.usage == Usage(cost_usd=0.0, estimated_tokens=tokens, estimated_usd=0.0)


def test_more_cached_than_sent_is_no_discount() -> None:
    assert price_of(Usage(100, 500, 0), FREE) == 0.0
    known = tariff_of("openai:gpt-4o", PROVIDERS["openai"], "gpt-4o")
    assert price_of(Usage(100, 500, 0), known) == price_of(Usage(100, 100, 0), known)


def test_a_family_s_prices_are_those_of_its_own_models() -> None:
    gemini = family_of("google/gemini-2.5-pro")
    assert gemini is not None
    low, high = listed_rates(gemini) or (None, None)
    assert low is not None
    assert high is not None
    assert 0 < low.input <= high.input
    assert low.output <= high.output
    assert all(listed_rates(one) is None for one in families() if one.match[0].startswith("embedded:"))


def test_the_price_list_is_loaded_only_when_a_price_is_asked_for() -> None:
    code = "import sys, firecircle.voices.hosted.voice, firecircle.cli.voices; print('genai_prices' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
