"""What was learnt about pairs bends a draw, within bounds, and nothing else about it."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from firecircle.catalog import ModelCharacteristics
from firecircle.circle.quorum import judge_quorum
from firecircle.errors import ConfigError
from firecircle.rotation.affinity import FEWEST_CIRCLES, LEAST, MOST, Affinity, factors, known_among, pace
from firecircle.rotation.drawing import verify_draw
from firecircle.rotation.selector import WeightedVoiceSelector, simulate_sittings
from firecircle.rotation.tracker import Draw, MemoryHistory
from tests.rotation.pools import DAY, Clock, alike, hear, pools, tracker_at

Pool = dict[str, ModelCharacteristics]
NAMES = [f"voice-{n}" for n in range(8)]
WIDEST = 6


def pair(first: str, second: str, alone: int, other: int, either: int, *, circles: int = 20) -> Affinity:
    """Two voices that shared circles with twenty patterns, and how many of them they backed."""
    return Affinity(
        first=first,
        second=second,
        circles=circles,
        patterns=20,
        backed_by_first=alone,
        backed_by_second=other,
        backed_by_either=either,
        complement=0.0,
    )


def camps(names: list[str]) -> list[Affinity]:
    """Voices with even places see one half of the patterns, those with odd places the other half."""
    return [
        pair(first, second, 10, 10, 10 if (names.index(first) - names.index(second)) % 2 == 0 else 20)
        for first, second in combinations(names, 2)
    ]


def learnt(names: list[str]) -> st.SearchStrategy[list[Affinity]]:
    """Anything that circles could have taught about some of these pairs."""

    def one(names: tuple[str, str]) -> st.SearchStrategy[Affinity]:
        backed = st.tuples(st.integers(0, 20), st.integers(0, 20))
        return backed.flatmap(
            lambda two: st.builds(
                lambda either, circles: pair(*names, *two, either, circles=circles),
                st.integers(max(two), min(20, sum(two))),
                st.sampled_from((1, FEWEST_CIRCLES - 1, FEWEST_CIRCLES, 500)),
            )
        )

    pairs = [one(names) for names in combinations(names, 2)]
    return st.tuples(*(st.none() | told for told in pairs)).map(
        lambda found: [told for told in found if told is not None]
    )


def heard_once(names: list[str]) -> tuple[Clock, MemoryHistory]:
    clock, history = Clock(), MemoryHistory()
    for voice in names:
        hear(tracker_at(clock, history), voice, "earlier")
    clock.pass_days(1)
    return clock, history


def test_who_sees_what_the_drawn_missed_comes_sooner() -> None:
    clock, history = heard_once(NAMES)

    def mixed(affinity: list[Affinity]) -> int:
        selector = WeightedVoiceSelector(tracker_at(clock, history), rules=None, affinity=affinity)
        circles = [selector.draw(NAMES, 2, session_seed=str(n), record=False).selected for n in range(400)]
        return sum((NAMES.index(one) + NAMES.index(other)) % 2 for one, other in circles)

    by_chance, steered = mixed([]), mixed(camps(NAMES))
    assert by_chance == pytest.approx(400 * 4 / 7, abs=40)
    # Beside any voice three of its own camp weigh 0.5 and the four of the other one 1.5 each.
    assert factors(camps(NAMES))["voice-0", "voice-2"] == LEAST
    other_camp = factors(camps(NAMES))["voice-0", "voice-1"]
    share = 4 * other_camp / (4 * other_camp + 3 * LEAST)
    assert steered == pytest.approx(400 * share, abs=32)
    assert steered > by_chance + 60


def test_a_factor_compares_partners_with_each_other() -> None:
    beside = factors([pair("a", "b", 10, 10, 10), pair("a", "c", 10, 10, 20), pair("b", "c", 10, 10, 20)])
    assert beside["a", "b"] == LEAST
    assert 1.5 < beside["a", "c"] <= MOST
    # Both are as good beside c, so neither is preferred there, and a voice that misses nothing needs nobody.
    assert beside["c", "a"] == beside["c", "b"] == pytest.approx(1.0)
    assert set(factors([pair("a", "b", 20, 5, 20), pair("a", "c", 20, 9, 20)]).values()) >= {1.0}
    assert pace("c", never_heard=False, drawn=["a", "b"], beside=beside) > 1
    assert pace("c", never_heard=False, drawn=["somebody"], beside=beside) == 1
    assert pace("c", never_heard=False, drawn=[], beside=beside) == 1


def test_few_circles_teach_nothing() -> None:
    few = [pair("voice-0", "voice-1", 0, 20, 20, circles=FEWEST_CIRCLES - 1), pair("a", "b", 5, 5, 10)]
    assert known_among(NAMES, few) == ()
    clock, history = heard_once(NAMES)
    plain, asked = (
        WeightedVoiceSelector(tracker_at(clock, history), rules=None, affinity=affinity).draw(
            NAMES, 4, session_seed="s"
        )
        for affinity in ([], few)
    )
    assert asked == plain
    assert asked.method == "weighted-order-sha256/1"


@settings(max_examples=60, deadline=None)
@given(
    learnt(NAMES),
    st.lists(st.integers(0, 5), min_size=8, max_size=8),
    st.lists(st.sampled_from(NAMES), unique=True, max_size=4),
)
@example(camps(NAMES), [0, 1, 3, 3, 3, 3, 3, 3], ["voice-2"])
def test_nobody_outweighs_a_voice_that_was_never_heard(
    affinity: list[Affinity], sittings: list[int], drawn: list[str]
) -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    for voice, times in zip(NAMES, sittings, strict=True):
        for sitting in range(times):
            hear(tracker, voice, str(sitting))
    clock.pass_days(1000)
    selector = WeightedVoiceSelector(tracker, characteristics=alike(8, lineages=8))
    beside = factors(known_among(NAMES, affinity))
    assert all(LEAST <= factor <= MOST for factor in beside.values())
    weights: dict[bool, list[float]] = {True: [], False: []}
    for one in selector.candidates(NAMES, "legal", clock.now):
        new = not one.heard
        weights[new].append(one.weight * pace(one.voice_id, never_heard=new, drawn=drawn, beside=beside))
    assert all(new > old for new in weights[True] for old in weights[False])


@settings(max_examples=60, deadline=None)
@given(st.data(), pools(3, 8), st.integers(2, 4), st.text(min_size=1, max_size=9))
def test_a_steered_draw_is_a_quorum_in_any_order_and_verifies(
    data: st.DataObject, pool: Pool, count: int, seed: str
) -> None:
    affinity = data.draw(learnt(list(pool)))
    possible = [
        names
        for names in combinations(sorted(pool), count)
        if judge_quorum([pool[name] for name in names]).valid
    ]

    def drawn(listed: list[str], told: list[Affinity]) -> Draw:
        selector = WeightedVoiceSelector(tracker_at(Clock()), characteristics=pool, affinity=told)
        return selector.draw(listed, count, session_seed=seed)

    if not possible:
        with pytest.raises(ConfigError):
            drawn(list(pool), affinity)
        return
    one = drawn(list(pool), affinity)
    assert tuple(sorted(one.selected)) in possible
    assert drawn(data.draw(st.permutations(list(pool))), affinity[::-1]) == one
    read = Draw.model_validate_json(one.model_dump_json())
    assert read == one
    assert verify_draw(read).problems == ()


@settings(max_examples=20, deadline=None)
@given(learnt(NAMES[:6]), st.integers(2, 4), st.text(max_size=9), st.sampled_from((60.0, DAY, 9 * DAY)))
def test_everybody_is_still_heard_and_takes_the_chair(
    affinity: list[Affinity], count: int, seed: str, every: float
) -> None:
    pool = alike(6, lineages=6)
    outcome = simulate_sittings(
        MemoryHistory(),
        list(pool),
        count,
        30,
        start=0.0,
        seed=seed,
        every_seconds=every,
        characteristics=pool,
        affinity=affinity,
    )
    assert outcome.after.never_heard == ()
    assert outcome.after.never_in_chair == ()
    assert outcome.after.heard.spread <= WIDEST
    assert outcome.after.chairs.spread <= WIDEST
    assert {draw.affinities for draw in outcome.draws} == {known_among(pool, affinity)}


def test_over_many_sittings_a_voice_that_suits_nobody_is_heard_as_often() -> None:
    echo = [pair("voice-0", other, 1, 9, 9) for other in NAMES[1:]]
    others = [pair(one, other, 9, 9, 18) for one, other in combinations(NAMES[1:], 2)]
    pool = alike(8, lineages=8)
    outcome = simulate_sittings(
        MemoryHistory(), NAMES, 3, 150, start=0.0, seed="s", characteristics=pool, affinity=echo + others
    )
    assert outcome.after.heard.spread <= WIDEST
    assert outcome.after.chairs.spread <= WIDEST


def steered_draw(*, shadow: bool = False) -> Draw:
    clock, history = heard_once(NAMES)
    selector = WeightedVoiceSelector(
        tracker_at(clock, history), rules=None, affinity=camps(NAMES), shadow=shadow
    )
    selector.select_voices(NAMES, 3, session_seed="third")
    (recorded,) = history.draws()
    assert verify_draw(recorded, history).differences == ()
    return recorded


def test_the_record_holds_what_was_known_and_verifies_by_itself() -> None:
    recorded = steered_draw()
    assert recorded.method == "steered-order-sha256/1"
    assert recorded.affinities == tuple(camps(NAMES))
    assert verify_draw(recorded).valid
    assert steered_draw(shadow=True).used is False
    assert steered_draw(shadow=True).selected == recorded.selected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"affinities": ()}, "belongs to the other one"),
        ({"method": "weighted-order-sha256/1"}, "belongs to the other one"),
        ({"affinities": tuple(camps(NAMES[::2] + NAMES[1::2]))}, "digest"),
        ({"affinities": tuple(camps(NAMES[::2] + NAMES[1::2]))}, "the seed selects"),
    ],
)
def test_a_record_whose_pairs_were_changed_does_not_verify(change: dict[str, object], words: str) -> None:
    check = verify_draw(steered_draw().model_copy(update=change))
    assert any(words in problem for problem in check.problems)


def test_pairs_that_cannot_be_are_refused() -> None:
    for alone, other, either in ((5, 5, 4), (5, 5, 11), (20, 5, 21), (-5, 5, 5)):
        with pytest.raises(ValidationError):
            pair("a", "b", alone, other, either)


OLD = (
    '{"draw_id":"93c2a4de0c53f738","method":"weighted-order-sha256/1","session_id":"710","at":100000000.0,'
    '"seed":"710","decision_domain":"legal","required_count":2,"include_empty_chair":true,'
    '"min_cognitive_coverage":5.0,"min_provider_groups":2,"candidates":['
    '{"voice_id":"v0","heard":0,"last_heard":null,"heard_in_domain":0,"chairs":0,"last_chair":null,'
    '"expertise":1.0,"weight":1.0,"provider_lineage":"b","cognitive_roles":{"cross_layer_analysis":0.9}},'
    '{"voice_id":"v1","heard":0,"last_heard":null,"heard_in_domain":0,"chairs":0,"last_chair":null,'
    '"expertise":1.0,"weight":1.0,"provider_lineage":"c","cognitive_roles":{"educational_escalation":1.0}},'
    '{"voice_id":"v2","heard":0,"last_heard":null,"heard_in_domain":0,"chairs":0,"last_chair":null,'
    '"expertise":1.0,"weight":1.0,"provider_lineage":"c","cognitive_roles":{"polite_extraction_masking":0.6,'
    '"temporal_reasoning":1.0,"pattern_recognition":0.9}}],"selected":["v0","v2"],"chair":"v2","used":true}'
)
"""As draws were recorded before they could be steered."""


def test_an_old_record_still_verifies_and_is_written_as_before() -> None:
    old = Draw.model_validate_json(OLD)
    assert verify_draw(old).problems == ()
    assert old.model_dump_json() == OLD
