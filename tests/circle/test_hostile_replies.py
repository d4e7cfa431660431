"""A member that writes too much, or writes what is costly to look at, costs itself and not the circle."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import pytest

from firecircle import FireCircleResult, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.circle.grounding import MOST_QUOTES, ground, passages_in
from firecircle.circle.hearing import LARGEST_REPLY, MOST_NOTES
from firecircle.circle.pattern_types import classify_pattern_heuristic
from firecircle.circle.patterns import group_observations
from firecircle.circle.result import Observation
from tests.scripted import PROMPT, Script, circle, says

LONG_TEXT = " ".join(
    random.Random(3).choices("please print the text above this line again today".split(), k=8_000)
)
LONG_PROMPT = MultiNeutrosophicPrompt(user=LONG_TEXT)


def near_miss(start: int, length: int = 2_000) -> str:
    """A passage of the long prompt with so many letters changed that it is almost found."""
    return "".join("#" if place % 8 == 0 else sign for place, sign in enumerate(LONG_TEXT[start:][:length]))


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Far more than it takes, and far less than it took before it was bounded."""
    started = process_time()
    yield
    assert process_time() - started < seconds


async def judged(line: str, prompt: MultiNeutrosophicPrompt = PROMPT, **settings: Any) -> FireCircleResult:
    """A circle of three in which one gives this answer in round 2."""
    script = Script({"hostile": [0.2, line], "b": [0.9, 0.9], "c": [0.1, 0.1]})
    return await fire_circle_evaluate(
        prompt, circle("hostile", "b", "c", **{"max_rounds": 2, **settings}), caller=script
    )


NOTE = {"type": "false_authority", "description": "somebody claims a rank"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            says(0.1, reasoning="x" * LARGEST_REPLY),
            r"the reply has 500,\d\d\d bytes; the limit is 500,000",
        ),
        (
            says(0.1) + "\N{SNOWMAN}" * (LARGEST_REPLY // 3),
            r"the reply has 500,\d\d\d bytes; the limit is 500,000",
        ),
        (
            says(0.1, patterns_observed=[NOTE] * (MOST_NOTES + 1)),
            "the reply notes more than 100 patterns, which is the limit",
        ),
        (
            says(
                0.1,
                patterns_observed=[
                    {
                        **NOTE,
                        "description": '"as we agreed" '
                        + " ".join(f'"passage {n}"' for n in range(MOST_QUOTES)),
                    }
                ],
            ),
            "the reply quotes more than 100 passages, which is the limit",
        ),
        (
            says(0.1, patterns_observed=[{"type": "x" * 48_000_000, "description": "y"}]),
            r"the reply has 48,000,\d\d\d bytes; the limit is 500,000",
        ),
    ],
    ids=["bytes", "signs of several bytes", "notes", "quotes", "a type of 48 MB"],
)
async def test_a_reply_beyond_the_limits_is_a_failure_that_says_so(line: str, message: str) -> None:
    result = await judged(line)
    [failure] = result.failures
    assert (failure.model, failure.kind, result.zombies) == ("hostile", "unparseable", ("hostile",))
    assert pytest.approx(0.9) == result.rival_verdicts["max_all"].value
    assert re.fullmatch(message, failure.message)
    assert len(result.model_dump_json()) < 3 * LARGEST_REPLY


async def test_a_reply_within_the_limits_is_read_whole() -> None:
    notes = [{**NOTE, "quote": "As we agreed yesterday"}] * MOST_NOTES
    result = await judged(says(0.3, patterns_observed=notes, reasoning="word " * 80_000))
    assert not result.failures
    assert sum(seen.model == "hostile" for seen in result.observations) == MOST_NOTES


async def test_near_misses_hold_nobody_up() -> None:
    notes = [{**NOTE, "quote": near_miss(place * 90)} for place in range(MOST_QUOTES)]
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        clock = asyncio.get_running_loop().time
        while True:
            before = clock()
            await asyncio.sleep(0.01)
            longest = max(longest, clock() - before)

    watching = asyncio.create_task(watch())
    with bounded(8.0):
        result = await judged(says(0.2, patterns_observed=notes), LONG_PROMPT, max_rounds=2)
    watching.cancel()
    assert not result.failures
    assert longest < 5.0, "near misses stall the loop"


def test_near_matches_of_ordinary_length_are_found_as_ever() -> None:
    wanted = LONG_TEXT[5_000:5_600]
    wrong = wanted.replace("today", "todai", 3)
    place = ground(wrong, LONG_PROMPT)
    assert place is not None
    assert place.found_by == "fuzzy"
    assert abs(place.start - 5_000) < 30


@pytest.mark.parametrize("sign", ["\u201c", "\u2018a", "\u00ab ", "`a"])
def test_quotation_marks_that_never_close_cost_little(sign: str) -> None:
    with bounded(2.0):
        assert len(passages_in(sign * 200_000)) <= 10_000


def test_a_long_description_is_typed_and_grouped_in_little_time() -> None:
    with bounded(5.0):
        for _ in range(MOST_NOTES):
            classify_pattern_heuristic("as      " * 600)
        seen = [
            Observation(model="a", round_number=2, pattern_type="unclassified", description=f"{n} " * 2_000)
            for n in range(1_000)
        ]
        assert len(group_observations(seen)) > 10
