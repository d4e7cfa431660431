"""Replies that somebody wrote to break the reader or the classifier: read or refused, never raised, at a bounded price.

Each is a seeded mix of what both look for, whole, cut, nested and repeated: quotes that never close, braces, numbers
no float holds, half surrogates, thoughts, templates, drafts. `pytest tests/chaos --long` tries 3,000 instead of 30.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from math import isfinite
from time import process_time

import pytest

from firecircle import FireCircleResult, fire_circle_evaluate
from firecircle.circle.pattern_types import read_classification
from firecircle.circle.reading import Reading, Refused, Unreadable, read_reply, read_thinking
from firecircle.names import PatternType
from tests.scripted import PROMPT, Script, circle, pattern, says

FEW, MANY = 30, 3000
CIRCLES = 4, 150
SIZES, LONG_SIZES = (4_000, 64_000), (20_000, 320_000)
"""Characters of a reply, and of the same sixteen times as long: the largest reply that is read has 500,000."""
MAY_GROW = 4.0
"""Times more for each character of the longer one: work that grows with the square would take 16 times more."""
NOTHING = 0.005
"""Seconds below which a figure is noise."""

WORDS = (
    "{ } [ ] \" ' : , \\ 0. .7 1 -1 NaN true null /10 % <think> </think> ``` = | ( ) ? . “ ” // /* {{ }} → - — ** ## > # *"
    " falsehood truth F T I score is of to from rises scale 0-10 0..10 out not no if mean threshold Evaluator B"
    " violation no_violation attack attacked sorry, i cannot help 1e999 -Infinity 0.5 7/10 **Truth (T):** .7 é ﷺ 😀"
).split()
BITS = [
    *WORDS,
    *(
        "\n",
        " ",
        "\t",
        "\n\n",
        "  \n",
        "\ud800",
        "\udc00",
        "\x00",
        "\u202e",
        "\u200b",
        "9" * 60,
        "1e" + "9" * 30,
    ),
    *(
        '"falsehood":',
        '{"F":',
        '{"a":',
        '{"falsehood": 0.5}',
        '"verdict": "violation"',
        '"reasoning": "',
        "\\u",
        '\\"',
    ),
    *(
        '"patterns_observed": [',
        '{"type": "x", "quote": "',
        '"1": "false_authority"',
        '"2":',
        "'falsehood': 1,",
        "| --- |",
    ),
]
DESCRIPTIONS = [f"somebody claims rank number {number}" for number in range(25)]
TYPES = {*(kind.value for kind in PatternType), "unclassified"}


def hostile(seed: int, size: int) -> str:
    """A reply of about this many characters; the same for the same seed, and alike for another size."""
    chance = random.Random(seed)

    def unit() -> str:
        return "".join(
            chance.choice(("", "", " ", "\n")) + chance.choice(BITS) for _ in range(chance.randint(1, 5))
        )

    match chance.choice(("one thing", "one thing", "nested", "cut", "objects", "anything")):
        case "one thing":
            thing = unit()
            return unit() + thing * (size // len(thing)) + unit()
        case "nested":
            opening, closing = unit(), unit()
            deep = size // (len(opening) + len(closing))
            return opening * deep + unit() + closing * deep
        case "cut":
            whole = says(
                0.4, reasoning=unit() * (size // 8), patterns_observed=[pattern(unit())] * (size // 400)
            )
            return unit() + whole[: chance.randrange(len(whole) // 2, len(whole))]
        case "objects":
            said = json.dumps(
                {chance.choice(("truth", "falsehood", "1", "F")): chance.choice((1, "0.5", None, [[]]))}
            )
            return (unit() + said) * (size // (len(said) + 8))
    return "".join(unit() for _ in range(size // 20))


def read(text: str) -> Reading | None:
    """What the reader makes of it."""
    try:
        return read_reply(text, evidence=["some text", text[:2_000]])
    except (Refused, Unreadable):
        return None


READERS: dict[str, Callable[[str], object]] = {
    "reply": read,
    "thinking": lambda text: read_thinking(text, evidence=["some text"]),
    "classifier": lambda text: read_classification(text, DESCRIPTIONS),
}


@pytest.mark.parametrize("reader", READERS)
def test_whatever_is_said_is_read_or_refused_at_a_bounded_price(reader: str, is_long: bool) -> None:
    short, long = LONG_SIZES if is_long else SIZES
    look = READERS[reader]
    for seed in range(MANY if is_long else FEW):
        short_text, long_text = hostile(seed, short), hostile(seed, long)
        grown = [price(look, long_text, seed) / price(look, short_text, seed)]
        while grown[-1] > MAY_GROW and len(grown) < 4:  # a busy machine is no failure
            grown.append(price(look, long_text, seed) / price(look, short_text, seed))
        assert min(grown) <= MAY_GROW, f"seed {seed}: the price grows with the square"


def check(found: object, seed: int) -> None:
    """Nothing but numbers between 0 and 1, words that can be written, and types that there are."""
    if isinstance(found, Reading):
        figures = (found.truth, found.indeterminacy, found.falsehood)
        assert all(isfinite(figure) and 0 <= figure <= 1 for figure in figures), seed
        found.reasoning.encode()
        assert all(note.model_dump_json() for note in (*found.patterns_observed, *found.consensus_patterns))
    elif found is not None:
        assert isinstance(found, dict)
        assert {*found} <= {*DESCRIPTIONS}, seed
        assert {*found.values()} <= TYPES, seed


def price(look: Callable[[str], object], text: str, seed: int) -> float:
    """Seconds for each character."""
    began = process_time()
    found = look(text)
    spent = process_time() - began
    check(found, seed)
    return max(NOTHING, spent) / len(text)


async def test_a_circle_with_such_a_member_and_classifier_ends_in_a_result(is_long: bool) -> None:
    for seed in range(CIRCLES[is_long]):
        reply, types = hostile(seed, 3_000), hostile(seed + 10_000, 3_000)
        odd = {**pattern("something odd"), "description": "it speaks in riddles"}
        script = Script(
            {
                "hostile": [0.2, *[reply] * 5],
                "b": [0.9, says(0.9, patterns_observed=[odd])],
                "c": [0.1, 0.1],
                "classifier": [types] * 5,
            }
        )
        config = circle(
            "hostile", "b", "c", max_rounds=2, pattern_classification="llm", classifier_model="classifier"
        )
        result = await fire_circle_evaluate(PROMPT, config, caller=script)
        assert result.alarm, seed
        assert result.consensus is not None
        assert 0.9 <= result.consensus.falsehood <= 1.0, seed
        assert FireCircleResult.model_validate_json(result.model_dump_json()) == result, seed
