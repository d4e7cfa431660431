"""`firecircle evaluate --dry-run` prices a judgement without asking anybody; budgets on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.cli.running import ATTACK, TRIO, Ran, assert_one_line_of_trouble, steady
from tests.loopback import LoopbackServer, Script, completion

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]
PRICES = "".join(
    f'[prices."{model}"]\ninput = 3\ncached_input = 0.3\noutput = 15\n' for model in TRIO.split(",")[:2]
)


@pytest.fixture(autouse=True)
def _known_prices(settings_file: Callable[[str], Path]) -> None:
    settings_file(PRICES + '[prices."vllm:free"]\ninput = 0\noutput = 0\n')


def test_calls_tokens_and_price_by_round_and_voice(cli: Cli, hosted: Host) -> None:
    server = hosted(lambda _: completion())
    ran = cli("evaluate", "--example", ATTACK, "--models", TRIO, "--dry-run", "--seed", "1")
    assert ran.status == 0
    assert server.requests == []
    assert steady(ran.out) == snapshot("""\
Fire Circle: 3 voices, up to 3 rounds
Prompt: example temporal_inconsistency-01-attack; system 267, user 190 characters; turn 1

                          calls  tokens in  tokens out    price
round 1                       3      2,946       6,000  $0.0466
round 2                       3      7,099       6,000  $0.0559
round 3                       3      8,595       6,000  $0.0591
anthropic/claude…onnet-4      3      6,154       3,000  $0.0635
qwen/qwen-2.5-72…nstruct      3      6,251       3,000  $0.0638
deepseek/deepseek-r1          3      6,235      12,000  $0.0344
all, at most                  9     18,640      18,000  $0.1616

No prompt was sent. Input is estimated from bytes (three a token), output is all that an answer may take; rounds after the first assume answers of typical length.
A circle that agrees early runs fewer rounds; a contradiction adds a question.
""")


def test_no_key_is_needed_to_learn_the_price(cli: Cli) -> None:
    ran = cli("evaluate", "hello", "--models", TRIO, "--dry-run", "--json")
    assert ran.status == 0
    told = json.loads(ran.out)
    assert told["dry_run"] is True
    assert told["calls"] == 9
    assert set(told["by_round"]) == {"1", "2", "3"}
    priced = told["by_voice"][TRIO.split(",")[0]]
    assert priced["cost_usd"] == pytest.approx((priced["tokens_in"] * 3 + priced["tokens_out"] * 15) / 1e6)
    assert priced["tokens_out"] == 3 * 1000
    assert told["total"]["tokens_in"] == sum(one["tokens_in"] for one in told["by_round"].values())


def test_an_unknown_price_stays_unknown(cli: Cli) -> None:
    arguments = ("hello", "--models", "nobody/knows,vllm:free", "--no-quorum", "--dry-run")
    told = json.loads(cli("evaluate", *arguments, "--json").out)
    assert told["by_voice"]["nobody/knows"]["cost_usd"] is None
    assert told["by_voice"]["vllm:free"]["cost_usd"] == 0.0
    assert told["total"]["cost_usd"] is None
    assert "free + 3 unknown" in cli("evaluate", *arguments).out
    assert_one_line_of_trouble(
        cli("evaluate", *arguments, "--budget-usd", "1"),
        "--budget-usd: the price of 'nobody/knows' is unknown",
        '[prices."nobody/knows"]',
        "or use --set budget_tokens=N",
    )


@pytest.mark.parametrize(
    ("mode", "models", "calls"), [("single", TRIO.split(",")[0], 1), ("parallel", TRIO, 3)]
)
def test_the_other_modes(cli: Cli, mode: str, models: str, calls: int) -> None:
    told = json.loads(cli("evaluate", "hi", "--mode", mode, "--models", models, "--dry-run", "--json").out)
    assert told["calls"] == calls
    assert set(told["by_round"]) == {"1"}


def test_the_estimate_is_near_what_a_circle_sends(cli: Cli, hosted: Host) -> None:
    server = hosted(lambda _: completion())
    arguments = ("evaluate", "--example", ATTACK, "--models", TRIO, "--json", "--seed", "1")
    told = json.loads(cli(*arguments, "--dry-run").out)
    cli(*arguments)
    sent = sum(len(words.encode()) for request in server.requests for words in request.words)
    rounds = len(server.requests) // 3
    estimated = sum(told["by_round"][str(number)]["tokens_in"] for number in range(1, rounds + 1))
    assert sent / 4 < estimated < sent


def test_the_built_in_voices_are_free(cli: Cli) -> None:
    ran = cli("evaluate", "hello", "--dry-run")
    assert "all, at most" in ran.out
    assert "$" not in ran.out


def test_where_a_budget_would_end_it(cli: Cli) -> None:
    arguments = ("evaluate", "hello", "--models", TRIO, "--dry-run", "--budget-tokens", "14000")
    assert "The budget would end it before round 2." in cli(*arguments).out
    assert json.loads(cli(*arguments, "--json").out)["over_budget_in_round"] == 2


def test_a_budget_ends_a_circle_with_what_was_heard(cli: Cli, hosted: Host) -> None:
    server = hosted(lambda _: completion(usage={"prompt_tokens": 900, "completion_tokens": 100}))
    ran = cli("evaluate", "hello", "--models", TRIO, "--budget-tokens", "14000")
    assert ran.status == 2
    assert len(server.requests) == 3
    assert ran.trouble.startswith("error: over_budget: 3,000 of 14,000 tokens are spent")
    assert "the budget is spent" in ran.out


@pytest.mark.parametrize(
    ("option", "value"), [("--budget-usd", "0"), ("--budget-usd", "-1"), ("--set", "budget_tokens=0")]
)
def test_a_budget_is_positive(cli: Cli, option: str, value: str) -> None:
    assert_one_line_of_trouble(cli("evaluate", "hi", *option.split(), value), f"error: {option}")


def test_a_mistake_in_the_circle_table_names_it(cli: Cli, settings_file: Callable[[str], Path]) -> None:
    for text, words in (
        ("max_rounds = 9", "[circle] max_rounds: Input should be less than or equal to 4"),
        ("rounds = 2", "[circle] rounds: no such key"),
        ("models = ['embedded:time']", "[circle] models: a circle has 2 to 10 models"),
        ("model_characteristics = {}", "[circle] model_characteristics: declare models under [models."),
    ):
        path = settings_file(f"[circle]\n{text}\n")
        assert_one_line_of_trouble(cli("evaluate", "hi"), f"error: {path}: {words}")


def test_the_file_says_what_the_command_line_does_not(cli: Cli, settings_file: Callable[[str], Path]) -> None:
    settings_file(
        "[circle]\nmodels = ['embedded:time', 'embedded:layers', 'embedded:ngrams']\nmax_rounds = 2\nseed = 5\n"
    )
    told = json.loads(cli("evaluate", "hello", "--seed", "7", "--json=full").out)
    assert told["config"]["models"] == ["embedded:time", "embedded:layers", "embedded:ngrams"]
    assert (told["config"]["max_rounds"], told["config"]["seed"]) == (2, 7)
    assert "3 voices, up to 2 rounds" in cli("evaluate", "hello").out
    told = json.loads(cli("evaluate", "hello", "--mode", "parallel", "--json=full").out)
    assert [said["model"] for said in told["evaluations"]] == [
        "embedded:time",
        "embedded:layers",
        "embedded:ngrams",
    ]
