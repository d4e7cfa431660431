"""Draws that heed what kept circles taught about pairs, from the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from firecircle import MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.cli import rotation
from firecircle.request import JudgingRequest
from firecircle.rotation.drawing import verify_draw
from firecircle.store.opening import open_store
from tests.cli.running import Ran, assert_one_line_of_trouble, flowing
from tests.rotation.pools import SIX
from tests.scripted import PROMPT, Script, circle, pattern, says

Cli = Callable[..., Ran]
POOL = ("a", "b", "c", "d")
SIMULATE = ("rotation", "simulate", "2", "--models", ",".join(POOL), "--no-quorum", "--seed", "x")


async def keep_circles(count: int, voices: tuple[str, ...] = POOL) -> None:
    """Circles in which the first two see one thing, the others another."""
    temporal, polite = pattern("temporal_inconsistency"), pattern("polite_extraction", "thank you so much")
    lines = {
        voice: [0.2, says(0.9, patterns_observed=[temporal if voice in voices[:2] else polite])]
        for voice in voices
    }
    config = circle(*voices, max_rounds=2, pattern_threshold=0.0)
    with open_store() as store:
        for _ in range(count):
            result = await fire_circle_evaluate(PROMPT, config, caller=Script(lines), store=store)
            assert len(result.patterns) == 2


async def test_nothing_learnt_yet_is_said_and_draws_as_without(cli: Cli) -> None:
    await keep_circles(4)
    plain, asked = cli(*SIMULATE, "--json"), cli(*SIMULATE, "--affinity", "--json")
    assert asked.status == 0
    assert "nothing learnt yet, drawn without it" in asked.err
    assert plain.err == ""
    circles = [[draw["selected"] for draw in json.loads(ran.out)["draws"]] for ran in (plain, asked)]
    assert circles[0] == circles[1]
    assert "affinities" not in json.loads(asked.out)["draws"][0]


async def test_simulated_draws_heed_what_was_learnt(cli: Cli) -> None:
    await keep_circles(8)
    arguments = (*SIMULATE, "--sittings", "100", "--json")
    asked = cli(*arguments, "--affinity")
    assert "affinity: 6 pairs of these voices known from saved circles" in flowing(asked.err)
    told = json.loads(asked.out)

    def alike(draws: list[dict[str, list[str]]]) -> int:
        return sum(set(draw["selected"]) in ({"a", "b"}, {"c", "d"}) for draw in draws)

    assert {len(draw["affinities"]) for draw in told["draws"]} == {6}
    assert alike(told["draws"]) < alike(json.loads(cli(*arguments).out)["draws"])
    assert told["after"]["heard"]["spread"] <= 6


async def test_a_recorded_draw_tells_its_pairs_and_verifies(
    cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    await keep_circles(8)
    pool = JudgingRequest(settings={"models": POOL, "enforce_quorum": False})
    prompt = MultiNeutrosophicPrompt(user="Hello")
    for shadow in (False, True):
        drawn = rotation.draw_circle(pool, prompt, "3", affinity=True, shadow=shadow).draw
        assert drawn is not None
        assert drawn.used is not shadow
        assert "6 pairs of these voices" in flowing(capsys.readouterr().err)
        ran = cli("rotation", "show", drawn.draw_id)
        assert ran.status == 0
        assert "Affinity 6 pairs known among the candidates" in flowing(ran.out)
        assert f"{drawn.selected[0]} beside {drawn.selected[1]}" in ran.out
    with rotation.open_history() as kept:
        assert [verify_draw(draw, kept).valid for draw in kept.draws()] == [True, True]
    assert drawn is not None
    # What was learnt is in the record: without the circles it verifies all the same.
    assert cli("circles", "prune", "--all", "--yes").status == 0
    assert cli("rotation", "show", drawn.draw_id).status == 0


async def test_circles_that_teach_nothing_are_not_read(cli: Cli) -> None:
    await keep_circles(6)
    with open_store() as store:
        await fire_circle_evaluate(
            PROMPT, circle("a", "b", max_rounds=1), caller=Script({"a": [0.1], "b": [0.1]}), store=store
        )
        learnt = rotation.pairs_learnt(store.circles, POOL)
        assert {pair.circles for pair in learnt} == {6}
        assert rotation.pairs_learnt(store.circles, ("a", "stranger")) == ()
        with store.database.writing() as connection:
            connection.execute(sa.text("UPDATE documents SET body = x'00' WHERE circle_pk = 1"))
        assert {pair.circles for pair in rotation.pairs_learnt(store.circles, POOL)} == {5}


def test_an_exported_history_has_no_circles(cli: Cli) -> None:
    ran = cli(*SIMULATE, "--affinity", "--history", "history.json")
    assert_one_line_of_trouble(ran, "--affinity: an exported history has no circles")


def test_a_simulation_matches_expertise_when_asked(cli: Cli) -> None:
    arguments = (
        "rotation",
        "simulate",
        "3",
        "--models",
        ",".join(SIX),
        "--domain",
        "software",
        "--sittings",
        "9",
        "--json",
    )
    plain, matched = cli(*arguments), cli(*arguments, "--match-expertise")
    expertise = [
        {one["expertise"] for one in json.loads(ran.out)["draws"][-1]["candidates"]}
        for ran in (plain, matched)
    ]
    assert expertise[0] == {1.0}
    assert len(expertise[1]) > 1
    assert max(expertise[1]) <= 1.0, "nobody outweighs a voice that was never heard"


def test_judging_by_a_draw_that_heeds_affinity(cli: Cli) -> None:
    pool = ("embedded:time", "embedded:layers", "embedded:ngrams", "embedded:hidden")
    arguments = ("evaluate", "Hello", "--models", ",".join(pool))
    assert_one_line_of_trouble(cli(*arguments, "--affinity"), "--rotate: how many are to be drawn")
    asyncio.run(keep_circles(5, pool))
    ran = cli(*arguments, "--rotate", "3", "--affinity")
    assert ran.status == 0
    assert "affinity: 6 pairs of these voices known from saved circles" in flowing(ran.err)
