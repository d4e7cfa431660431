"""The calibrated verdict beside the highest F: what it says, when it decides, and that it travels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle import (
    ConfigError,
    FireCircleConfig,
    FireCircleResult,
    PromptGuard,
    fire_circle_evaluate,
    replay_circle,
)
from firecircle.circle.calibrated import Fit, TriedRule, VerdictCalibration, VoiceWeights
from firecircle.circle.conclude import reaggregate
from firecircle.store.opening import open_store
from tests.scripted import PROMPT, Script, circle

TRIED = TriedRule(
    auc=0.9,
    recall_at_1_percent=0.5,
    recall_at_5_percent=0.6,
    recall=0.7,
    false_alarm_rate=0.1,
    calibration_error=0.05,
)
VOICES = ("a", "b", "c")


def calibration(
    weights: dict[str, tuple[float, ...]] | None = None, offset: float = 0.0, name: str = "hand"
) -> VerdictCalibration:
    """Weights by hand, of voices that usually say one half."""
    given_weights = weights or {"a": (1.0, 0.0), "b": (0.0, 2.0), "c": (0.0, 0.0)}
    rounds = len(next(iter(given_weights.values())))
    return VerdictCalibration(
        voices={
            voice: VoiceWeights(weights=of_voice, means=(0.0,) * rounds, spreads=(1.0,) * rounds)
            for voice, of_voice in given_weights.items()
        },
        rounds=rounds,
        offset=offset,
        fit=Fit(
            id=name,
            fitted_at=1.0,
            version="0",
            origin="by hand",
            attacks=60,
            benign=60,
            folds="none",
            ridge=1.0,
            threshold=0.7,
            calibrated=TRIED,
            maximum=TRIED,
            auc_gain=(0.1, 0.05, 0.15),
        ),
    )


async def held(
    lines: dict[str, list[object]], known: VerdictCalibration | None = None, **settings: object
) -> FireCircleResult:
    """A circle of these voices in two rounds."""
    config = circle(*lines, max_rounds=2, calibration=known or calibration(), **settings)
    return await fire_circle_evaluate(PROMPT, config, caller=Script(lines))


async def test_the_probability_is_the_weighted_log_odds_of_each_round() -> None:
    result = await held({"a": [0.8, 0.1], "b": [0.1, 0.6], "c": [0.9, 0.9]})
    odds = (0.8 / 0.2) * (0.6 / 0.4) ** 2
    assert result.calibrated == pytest.approx(odds / (1 + odds), abs=1e-5)
    assert result.rival_verdicts["calibrated"].value == result.calibrated
    assert result.consensus is not None
    assert result.consensus.falsehood == 0.9, "the highest F stays the consensus"
    assert (result.alarm, result.alarm_decided_by) == (True, "maximum")


async def test_it_decides_when_it_is_asked_to_and_concluding_again_changes_only_the_rule() -> None:
    lines: dict[str, list[object]] = {"a": [0.5, 0.5], "b": [0.2, 0.2], "c": [0.9, 0.9]}
    by_maximum, by_weights = await held(lines), await held(lines, alarm_rule="calibrated")
    assert by_weights.calibrated == by_maximum.calibrated
    assert (by_maximum.alarm, by_weights.alarm) == (True, False)
    assert by_weights.alarm_decided_by == "calibrated"
    again = reaggregate(by_weights, by_weights.config.model_copy(update={"alarm_rule": "maximum"}))
    assert (again.alarm, again.alarm_decided_by, again.calibrated) == (True, "maximum", by_weights.calibrated)
    assert reaggregate(by_weights) == by_weights
    lowered = by_weights.config.model_copy(update={"alarm_threshold": by_weights.calibrated})
    assert reaggregate(by_weights, lowered).alarm, "an alarm at the threshold, not only above it"


async def test_it_travels_with_the_result_and_a_replay_needs_no_store() -> None:
    result = await held({"a": [0.8, 0.1], "b": [0.1, 0.6], "c": [0.9, 0.9]}, alarm_rule="calibrated")
    back = FireCircleResult.model_validate_json(result.model_dump_json())
    assert back == result
    assert back.config.calibration == calibration()
    replayed = await replay_circle(back)
    assert (replayed.calibrated, replayed.alarm_decided_by) == (result.calibrated, "calibrated")


async def test_a_lost_voice_is_stood_for_by_the_others_while_they_carry_half_of_the_weight() -> None:
    gone = ConnectionError("gone")
    even = calibration({"a": (1.0, 0.0), "b": (1.0, 0.0), "c": (1.0, 0.0)})
    result = await held(
        {"a": [0.8, 0.8], "b": [0.8, 0.8], "c": [gone]}, even, alarm_rule="calibrated", enforce_quorum=False
    )
    assert result.calibrated == pytest.approx(4**3 / (1 + 4**3), abs=1e-5), "as if c had said 0.8 too"
    assert result.alarm_decided_by == "calibrated"
    heavy = calibration({"a": (0.1, 0.0), "b": (0.1, 0.0), "c": (1.0, 0.0)})
    lost = await held(
        {"a": [0.8, 0.8], "b": [0.8, 0.8], "c": [gone]}, heavy, alarm_rule="calibrated", enforce_quorum=False
    )
    assert (lost.alarm_decided_by, lost.alarm) == ("maximum", True)


@given(
    st.dictionaries(st.sampled_from(VOICES), st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=1),
    st.sampled_from(VOICES),
    st.floats(0, 1),
)
def test_a_higher_word_never_lowers_it(said: dict[str, list[float]], voice: str, more: float) -> None:
    known = calibration({"a": (0.4, 0.2), "b": (0.0, 1.5), "c": (0.7, 0.0)}, offset=-0.3)
    before = known.probability(said)
    raised = {
        name: [max(word, more) if name == voice else word for word in words] for name, words in said.items()
    }
    after = known.probability(raised)
    assert before is not None
    assert after is not None
    assert 0 <= before <= after <= 1


async def test_a_circle_without_a_calibration_is_refused_where_it_should_decide(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRECIRCLE_STORE", f"{tmp_path}/none.sqlite")
    lines: dict[str, list[object]] = {"a": [0.5], "b": [0.2]}
    with pytest.raises(ConfigError, match=r"alarm_rule: no calibration is known.*calibrate --verdict"):
        await fire_circle_evaluate(
            PROMPT, circle(*lines, max_rounds=1, alarm_rule="calibrated"), caller=Script(lines)
        )
    result = await fire_circle_evaluate(PROMPT, circle(*lines, max_rounds=1), caller=Script(lines))
    assert (result.calibrated, result.alarm_decided_by) == (None, "maximum")
    with pytest.raises(ConfigError, match="calibration: it is for 2 rounds of a, b, c"):
        circle(*lines, max_rounds=2, calibration=calibration())


async def test_the_newest_in_the_store_is_used_for_these_voices_and_rounds(tmp_path: object) -> None:
    lines: dict[str, list[object]] = {"c": [0.9, 0.9], "b": [0.1, 0.6], "a": [0.8, 0.1]}
    with open_store(f"{tmp_path}/kept.sqlite") as store:
        store.verdicts.keep(calibration(name="first"), ["one", "two"])
        config = circle(*lines, max_rounds=2, alarm_rule="calibrated")
        guard = PromptGuard(caller=Script(lines), store=store)
        metrics = await guard.evaluate_prompt(PROMPT, fire_circle_config=config)
        assert metrics.fire_circle is not None
        assert metrics.fire_circle.config.calibration == calibration(name="first")
        assert metrics.alarm_decided_by == "calibrated"
        row = metrics.to_row()
        assert (row["calibrated"], row["alarm_decided_by"]) == (metrics.calibrated, "calibrated")
        kept = store.circles.load(str(metrics.kept_as))
        assert getattr(kept, "calibrated", None) == metrics.calibrated
        assert store.verdicts.fitted_on("first") == ("one", "two")
        assert store.verdicts.find(("a", "b", "c"), 1) is None, "it goes by two rounds"
        assert store.verdicts.find(("a", "b"), 2) is None
        with pytest.raises(ConfigError, match="--remove: x: no such calibration"):
            store.verdicts.remove("x")
        assert store.verdicts.remove("fi") == "first"
        assert store.verdicts.each() == ()


async def test_unsure_goes_by_the_rule_that_decides() -> None:
    lines: dict[str, list[object]] = {"a": [0.1, 0.1], "b": [0.1, 0.1], "c": [0.6, 0.6]}
    for rule, word in (("maximum", "unsure"), ("calibrated", "no_alarm")):
        config = circle(*lines, max_rounds=2, calibration=calibration(), alarm_rule=rule)
        metrics = await PromptGuard(caller=Script(lines)).evaluate_prompt(PROMPT, fire_circle_config=config)
        assert metrics.verdict == word


@pytest.mark.parametrize("rounds", [1, 3])
async def test_the_embedded_circle_says_the_same_with_and_without_it(rounds: int) -> None:
    config = FireCircleConfig.embedded(seed=1, max_rounds=rounds)
    result = await fire_circle_evaluate(PROMPT, config)
    assert result.consensus is not None
    without = reaggregate(result, result.config.model_copy(update={"calibration": None}))
    assert (without.consensus, without.alarm) == (result.consensus, result.alarm)
    assert without.calibrated is None
