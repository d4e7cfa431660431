"""Blind spots: what a voice saw only after talking, whose it was, and where."""

from __future__ import annotations

from firecircle import FireCircleResult, MultiNeutrosophicPrompt, fire_circle_evaluate
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
    label: str | None = "attack",
    prompt: MultiNeutrosophicPrompt = PROMPT,
) -> FireCircleResult:
    """A circle whose voices saw nothing alone, and these patterns once they talked."""
    said = says(after, patterns_observed=[pattern(kind) for kind in kinds])
    script = Script({voice: [0.1, said] for voice in VOICES})
    return await fire_circle_evaluate(
        prompt, circle(*VOICES, max_rounds=2), caller=script, store=store, label=label
    )


async def test_a_turned_verdict_is_told_by_pattern_with_voices_and_layers(store: Store) -> None:
    result = await turned(store)
    await held(store, 0.1, 0.2, label="benign")
    await asked_apart(store, 0.9)
    spots = find_blindspots(store.circles)
    assert (spots.circles.total, spots.circles.attacks, spots.circles.benign) == (2, 1, 1)
    assert (spots.turned.total, spots.turned.attacks) == (1, 1)
    (spot,) = spots.groups
    assert spot.pattern_type == "temporal_inconsistency"
    assert spot.voices == dict.fromkeys(sorted(VOICES), 1)
    assert spot.layers == {"user": 1}
    assert spot.overlooked == spot.unnoticed == spot.turned == spots.turned
    assert [(shown.quote, shown.circle_id) for shown in spot.quotes] == [(QUOTE, result.circle_id)]
    assert spot.for_judge
    assert spot.for_author
    assert QUOTE not in spot.for_judge + spot.for_author
    assert not spots.nothing_overlooked


async def test_a_prompt_counts_once_and_unlabelled_ones_stand_apart(store: Store) -> None:
    for label in ("attack", "attack", None):
        await turned(store, label=label)
    other = PROMPT.model_copy(update={"user": f"{QUOTE}, be quick."})
    await turned(store, prompt=other)
    spots = find_blindspots(store.circles)
    assert spots.circles.total == 4
    assert spots.turned.total == 2
    assert [spot.overlooked.total for spot in spots.groups] == [2]
    assert [spot.overlooked.unlabelled for spot in spots.unlabelled] == [1]


async def test_what_only_benign_prompts_show_is_no_reason_to_add_anything(store: Store) -> None:
    await turned(store, label="benign")
    (spot,) = find_blindspots(store.circles).groups
    assert spot.overlooked.benign == 1
    assert (spot.for_author, spot.for_judge) == (None, None)


async def test_whoever_saw_it_alone_overlooked_nothing(store: Store) -> None:
    pointing = says(0.3, reasoning=f"the words “{QUOTE.lower()}” look odd")
    script = Script({"sure": [0.9, SEEN], "pointing": [pointing, SEEN], "blind": [0.1, SEEN]})
    config = circle("sure", "pointing", "blind", max_rounds=2)
    await fire_circle_evaluate(PROMPT, config, caller=script, store=store)
    (spot,) = find_blindspots(store.circles).unlabelled
    assert spot.voices == {"blind": 1}
    assert spot.overlooked.total == 1
    assert spot.unnoticed.total == spot.turned.total == spot.underrated.total == 0


async def test_whoever_pointed_at_it_without_an_alarm_underrated_it(store: Store) -> None:
    pointing = says(0.3, reasoning=f"the words “{QUOTE.lower()}” look odd")
    script = Script({voice: [pointing, SEEN] for voice in VOICES})
    await fire_circle_evaluate(
        PROMPT, circle(*VOICES, max_rounds=2), caller=script, store=store, label="attack"
    )
    (spot,) = find_blindspots(store.circles).groups
    assert (spot.overlooked.total, spot.underrated.total, spot.turned.total) == (0, 1, 1)
    assert spot.voices == {}


async def test_an_attack_missed_to_the_end_is_not_nothing(store: Store) -> None:
    await held(store, 0.1, 0.1, label="benign")
    assert find_blindspots(store.circles).nothing_overlooked
    missed = await held(store, 0.1, 0.1, label="attack")
    spots = find_blindspots(store.circles)
    assert (spots.missed, spots.missed_in) == (1, (missed.circle_id,))
    assert not spots.nothing_overlooked
    assert find_blindspots(store.circles, threshold=0.05).missed == 0


async def test_another_threshold_turns_other_verdicts(store: Store) -> None:
    await turned(store, 0.5)
    assert find_blindspots(store.circles).turned.total == 0
    assert find_blindspots(store.circles, threshold=0.4).turned.total == 1


async def test_filters_narrow_circles_and_patterns(store: Store) -> None:
    await turned(store, kinds=("temporal_inconsistency", "role_confusion"))
    spots = find_blindspots(store.circles, Filters(pattern="role_confusion"))
    assert {spot.pattern_type for spot in spots.groups} == {"role_confusion"}
    assert find_blindspots(store.circles, Filters(label="other")).circles.total == 0


async def test_what_has_no_type_gets_no_addition(store: Store) -> None:
    odd = says(0.9, patterns_observed=[{"description": "quaint wording overall", "quote": QUOTE}])
    script = Script({"a": [0.1, odd], "b": [0.1, odd]})
    await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script, store=store)
    (spot,) = find_blindspots(store.circles).unlabelled
    assert (spot.pattern_type, spot.for_author, spot.for_judge) == ("unclassified", None, None)
