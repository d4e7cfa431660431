"""Blind spots: what a voice saw only after talking, whose it was, and where."""

from __future__ import annotations

from firecircle import FireCircleResult, fire_circle_evaluate
from firecircle.store.bank.blindspots import find_blindspots
from firecircle.store.finding import Filters
from firecircle.store.opening import Store
from tests.scripted import PROMPT, Script, circle, pattern, says
from tests.store.samples import VOICES, asked_apart, held

QUOTE = "As we agreed yesterday"
SEEN = says(0.9, patterns_observed=[pattern("temporal_inconsistency")])


async def turned(
    store: Store,
    after: float = 0.9,
    *,
    kinds: tuple[str, ...] = ("temporal_inconsistency",),
    label: str = "attack",
) -> FireCircleResult:
    """A circle whose voices saw nothing alone, and these patterns once they talked."""
    said = says(after, patterns_observed=[pattern(kind) for kind in kinds])
    script = Script({voice: [0.1, said] for voice in VOICES})
    return await fire_circle_evaluate(
        PROMPT, circle(*VOICES, max_rounds=2), caller=script, store=store, label=label
    )


async def test_a_turned_verdict_is_told_by_pattern_voice_and_layer(store: Store) -> None:
    result = await turned(store)
    await held(store, 0.1, 0.2, label="benign")
    await asked_apart(store, 0.9)
    found = find_blindspots(store.circles)
    assert (found.circles.circles, found.circles.attacks, found.circles.benign) == (2, 1, 1)
    assert (found.turned.circles, found.turned.attacks) == (1, 1)
    assert [(one.pattern_type, one.voice, one.layer) for one in found.groups] == [
        ("temporal_inconsistency", voice, "user") for voice in ("ash", "birch", "cedar")
    ]
    spot = found.groups[0]
    assert spot.overlooked == spot.unnoticed == spot.turned == found.turned
    assert [(shown.quote, shown.circle_id) for shown in spot.quotes] == [(QUOTE, result.circle_id)]
    assert spot.addition
    assert QUOTE not in spot.addition


async def test_whoever_saw_it_alone_overlooked_nothing(store: Store) -> None:
    pointing = says(0.3, reasoning=f"the words “{QUOTE.lower()}” look odd")
    script = Script({"sure": [0.9, SEEN], "pointing": [pointing, SEEN], "blind": [0.1, SEEN]})
    config = circle("sure", "pointing", "blind", max_rounds=2)
    await fire_circle_evaluate(PROMPT, config, caller=script, store=store)
    (spot,) = find_blindspots(store.circles).groups
    assert spot.voice == "blind"
    assert spot.overlooked.circles == 1
    assert spot.unnoticed.circles == spot.turned.circles == 0


async def test_another_threshold_turns_other_verdicts(store: Store) -> None:
    await turned(store, 0.5)
    assert find_blindspots(store.circles).turned.circles == 0
    assert find_blindspots(store.circles, threshold=0.4).turned.circles == 1


async def test_filters_narrow_circles_and_patterns(store: Store) -> None:
    await turned(store, kinds=("temporal_inconsistency", "role_confusion"))
    told = find_blindspots(store.circles, Filters(pattern="role_confusion"))
    assert {one.pattern_type for one in told.groups} == {"role_confusion"}
    assert find_blindspots(store.circles, Filters(label="other")).circles.circles == 0


async def test_what_has_no_type_gets_no_addition(store: Store) -> None:
    odd = says(0.9, patterns_observed=[{"description": "quaint wording overall", "quote": QUOTE}])
    script = Script({"a": [0.1, odd], "b": [0.1, odd]})
    await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script, store=store)
    assert {(one.pattern_type, one.addition) for one in find_blindspots(store.circles).groups} == {
        ("unclassified", None)
    }
