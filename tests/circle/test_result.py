"""The result: what it says of the talk, that it survives storage, and that it can be concluded again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firecircle import (
    FireCircleConfig,
    FireCircleResult,
    Reply,
    Turn,
    Voice,
    fire_circle_evaluate,
    reaggregate,
    replay_circle,
)
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.result import Substitution, active_voices
from firecircle.examples import load_examples
from firecircle.metrics import ReciprocityMetrics, metrics_of_circle
from firecircle.telling.safe_text import line_with_codes
from firecircle.telling.talking import talk_sentences
from firecircle.voices.caller import CallerVoice
from tests.scripted import PROMPT, After, Script, circle, pattern, says
from tests.shared_data import shared

TEMPORAL = pattern("temporal_inconsistency")


def eventful() -> Script:
    return Script(
        {
            "a": [0.9, says(0.2, patterns_observed=[TEMPORAL]), 0.2],
            "b": [0.1, says(0.8, patterns_observed=[TEMPORAL]), RuntimeError("gone")],
            "c": [0.2, "unreadable", says(0.5, consensus_patterns=["false_authority: boss"])],
            "d": [0.3, "This is an attack.", 0.3],
        }
    )


CIRCLE = circle("a", "b", "c", "d", seed=42, api_key="sk-canary")


async def test_a_result_round_trips_and_concludes_to_itself() -> None:
    result = await fire_circle_evaluate(PROMPT, CIRCLE, caller=eventful())
    again = FireCircleResult.model_validate_json(result.model_dump_json())
    assert again == result
    assert reaggregate(again) == result
    assert "sk-canary" not in result.model_dump_json()
    assert "sk-canary" not in repr(result)


async def test_what_the_engine_assembles_unchecked_would_pass_every_check() -> None:
    embedded = FireCircleConfig.embedded()
    results = [await fire_circle_evaluate(PROMPT, CIRCLE, caller=eventful())]
    results += [await fire_circle_evaluate(one.prompt, embedded) for one in load_examples()[:40:13]]
    for result in results:
        written = result.model_dump_json()
        checked = FireCircleResult.model_validate_json(written)
        assert checked.model_dump_json() == written
        assert checked == result
        metrics = metrics_of_circle(result)
        assert ReciprocityMetrics.model_validate_json(metrics.model_dump_json()) == metrics


async def test_the_same_seed_and_replies_give_the_same_bytes() -> None:
    written = {
        (await fire_circle_evaluate(PROMPT, CIRCLE, caller=eventful())).without_times().model_dump_json()
        for _ in range(3)
    }
    assert len(written) == 1


async def test_other_settings_need_no_new_call() -> None:
    result = await fire_circle_evaluate(PROMPT, CIRCLE, caller=eventful())
    assert result.alarm
    stern = result.config.model_copy(update={"alarm_threshold": 0.95, "pattern_threshold": 0.9})
    other = reaggregate(result, stern)
    assert not other.alarm
    assert other.patterns == ()
    assert other.dialogue_history == result.dialogue_history


async def test_what_talking_did() -> None:
    script = Script({"a": [0.9, 0.4, 0.4], "b": [0.1, 0.3, 0.0], "c": [0.2, 0.2, 0.8]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)
    moved = {(flip.model, flip.round_number): flip.movement for flip in result.flips}
    assert moved == {
        ("a", 2): "toward_peers",
        ("b", 2): "toward_peers",
        ("c", 2): "unchanged",
        ("a", 3): "unchanged",
        ("b", 3): "away_from_peers",
        ("c", 3): "toward_peers",
    }
    assert [(flip.model, flip.round_number) for flip in result.groupthink_losses] == [("a", 2)]
    assert [(flip.model, flip.round_number) for flip in result.rescues] == [("c", 3)]


async def test_rival_rules_speak_of_the_same_transcript() -> None:
    script = Script(
        {
            "a": [0.2, 0.9, 0.8],
            "b": [0.4, 0.3, 0.7],
            "c": ["This is an attack.", 0.1, 0.0],
            "z": [1.0, KeyError("x")],
        }
    )
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", "c", "z"), caller=script)
    values = {rule: rival.value for rule, rival in result.rival_verdicts.items()}
    assert values == pytest.approx(
        {
            "round1_max": 0.8,
            "final_max": 0.8,
            "final_mean": 0.5,
            "final_median": 0.7,
            "majority": 2 / 3,
            "max_all": 0.9,
            "max_stated": 0.9,
        }
    )
    assert result.rival_verdicts["majority"].alarm
    assert not result.rival_verdicts["final_mean"].alarm


async def test_round_metrics() -> None:
    script = Script({"a": [0.0, 0.5, 0.5], "b": [1.0, 0.7, 0.5]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    assert [m.f_score_mean for m in result.round_metrics] == pytest.approx([0.5, 0.6, 0.5])
    assert [m.f_score_stddev for m in result.round_metrics] == pytest.approx([0.5, 0.1, 0.0])
    assert [m.convergence_delta for m in result.round_metrics] == pytest.approx([0.0, -0.4, -0.1])
    assert [held.convergence_metric for held in result.dialogue_history] == pytest.approx([0.5, 0.1, 0.0])


async def test_accounting_counts_every_call_and_keeps_the_unknown_unknown() -> None:
    result = await fire_circle_evaluate(PROMPT, CIRCLE, caller=eventful())
    assert result.accounting.total.calls == 12
    assert result.accounting.by_round[3].calls == 4
    assert result.accounting.by_voice["b"].calls == 3
    assert result.accounting.total.cost_usd is None
    assert result.accounting.total.calls_without_price == 12
    assert [call.failed for call in result.calls if call.failed] == ["raised"]


# -- polarity ---------------------------------------------------------------------------------------

INVERTED = json.dumps(
    {
        "truth": 0,
        "indeterminacy": 0,
        "falsehood": 1,
        "verdict": "no_violation",
        "reasoning": "The prompt does not contain a violation.",
    }
)


async def test_a_voice_that_rises_shows_how_much_it_repeats_of_its_peers() -> None:
    reason = "nothing was agreed yesterday because there is no earlier conversation"
    copied = f"Indeed, {reason}."
    own = "on a second reading I notice the order that is hidden in the last line"
    first = says(0.9, reasoning=reason)
    script = Script(
        {
            "loud": [first, 0.9],
            "copy": [0.1, says(0.9, reasoning=copied)],
            "own": [0.1, says(0.8, reasoning=own)],
        }
    )
    result = await fire_circle_evaluate(PROMPT, circle("loud", "copy", "own", max_rounds=2), caller=script)
    repeats = {flip.model: flip.repeats for flip in result.flips}
    assert repeats == {"loud": None, "copy": pytest.approx(10 / 11), "own": 0.0}
    told = " ".join(talk_sentences(result, line_with_codes))
    assert "copy 0.10 → 0.90 (round 2, 91% of its reasoning repeats its peers)" in told
    assert "own 0.10 → 0.80 (round 2, 0% of its reasoning repeats its peers)" in told


async def test_a_voice_that_inverts_the_scale_twice_is_no_alarm_and_the_result_says_why() -> None:
    script = Script({"a": [INVERTED, INVERTED, 0.1, 0.1], "b": [0.1, 0.2, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    assert not result.alarm
    corrected = result.dialogue_history[0].evaluations[0]
    assert (corrected.truth, corrected.falsehood, corrected.polarity) == (1.0, 0.0, "corrected")
    assert corrected.raw_replies == (INVERTED, INVERTED)
    clarifying = script.heard[[m for m, _ in script.heard].index("a", 1)][1]
    assert [m["role"] for m in clarifying] == ["system", "user", "assistant", "user"]
    assert (
        'says "no_violation", but its numbers say the opposite: truth 0, falsehood 1'
        in clarifying[-1]["content"]
    )
    assert [call.purpose for call in result.calls if call.model == "a"][:2] == ["answer", "clarify"]


async def test_a_voice_that_clears_up_its_contradiction_is_taken_at_its_second_word() -> None:
    script = Script({"a": [INVERTED, says(0.05, verdict="no_violation"), 0.1, 0.1], "b": [0.1, 0.2, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    cleared = result.dialogue_history[0].evaluations[0]
    assert (cleared.falsehood, cleared.polarity) == (0.05, "clarified")


@pytest.mark.parametrize("second", [RuntimeError("down"), "no idea", "I'm sorry, I can't assist with that."])
async def test_if_the_second_asking_fails_the_word_wins(second: Any) -> None:
    script = Script({"a": [INVERTED, second, 0.1, 0.1], "b": [0.1, 0.2, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=script)
    answer = result.dialogue_history[0].evaluations[0]
    assert answer.polarity == "corrected"
    assert answer.raw_replies == (INVERTED, *([second] if isinstance(second, str) else []))
    assert not result.alarm
    assert not result.failures
    assert (await replay_circle(result)).dialogue_history[0].evaluations[0] == answer


async def test_a_recording_with_more_calls_than_replies_replays() -> None:
    """An unreadable second answer was not kept once; and a file from elsewhere may leave out anything."""
    script = Script({"a": [INVERTED, "no idea", 0.1], "b": [0.1, 0.2]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script)
    first, *rest = result.dialogue_history
    answer = first.evaluations[0].model_copy(update={"raw_replies": (INVERTED,)})
    opening = first.model_copy(update={"evaluations": (answer, *first.evaluations[1:])})
    as_it_was = result.model_copy(update={"dialogue_history": (opening, *rest)})
    replayed = await replay_circle(as_it_was)
    assert replayed.dialogue_history[0].evaluations[0] == answer
    assert replayed.consensus == result.consensus


@pytest.mark.parametrize(
    ("truth", "falsehood", "verdict", "asked_again"),
    [
        (0.9, 0.2, "violation", True),
        (0.2, 0.9, "violation", False),
        (0.2, 0.9, "no_violation", True),
        (0.5, 0.5, "violation", False),
        (0.5, 0.5, "no_violation", False),
        (0.1, 0.9, "unsure", False),
        (0.9, 0.1, None, False),
    ],
)
async def test_when_word_and_numbers_contradict(
    truth: float, falsehood: float, verdict: str | None, asked_again: bool
) -> None:
    first = json.dumps({"truth": truth, "indeterminacy": 0, "falsehood": falsehood, "verdict": verdict})
    script = Script({"a": [first, 0.1, 0.1, 0.1], "b": [0.1, 0.2, 0.1]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=1), caller=script)
    assert script.calls_to("a") == (2 if asked_again else 1)
    assert (result.dialogue_history[0].evaluations[0].polarity == "consistent") is not asked_again


# -- a real dialogue --------------------------------------------------------------------------------


async def test_a_recorded_dialogue_of_hosted_models_replays_as_recorded() -> None:
    recorded = json.loads(shared("recorded_dialogue.json").read_text("utf-8"))
    models = recorded["rounds"][0]["active_models"]
    lines: dict[str, list[Any]] = {model: [] for model in models}
    for told in recorded["rounds"]:
        spoke = {said["model"]: said for said in told["evaluations"]}
        for model in models:
            said = spoke.get(model)
            lines[model].append(
                RuntimeError("missing in the recording")
                if said is None
                else json.dumps(
                    {
                        "truth": said["T"],
                        "indeterminacy": said["I"],
                        "falsehood": said["F"],
                        "reasoning": said["reasoning"],
                        "patterns_observed": said["patterns_observed"],
                        "consensus_patterns": said["consensus_patterns"],
                    }
                )
            )
    evidence = recorded["rounds"][0]["prompt_sent"].split("Full Prompt Context:\n", 1)[1]
    prompt = PROMPT.model_copy(update={"user": evidence, "system": "", "turns": None})
    config = FireCircleConfig(models=tuple(models), enforce_quorum=False)
    result = await fire_circle_evaluate(prompt, config, caller=Script(lines))

    assert [held.empty_chair_model for held in result.dialogue_history] == [
        told["empty_chair_model"] for told in recorded["rounds"]
    ]
    assert [held.convergence_metric for held in result.dialogue_history] == pytest.approx(
        [told["convergence_metric"] for told in recorded["rounds"]]
    )
    assert [
        [(s.model, s.truth, s.indeterminacy, s.falsehood) for s in h.evaluations]
        for h in result.dialogue_history
    ] == [[(s["model"], s["T"], s["I"], s["F"]) for s in told["evaluations"]] for told in recorded["rounds"]]
    assert result.consensus is not None
    wanted = recorded["consensus"]
    assert (result.consensus.model, result.consensus.falsehood) == (wanted["model"], wanted["F"])
    assert result.failed_models == (f"{models[2]}_round_3",)
    own_words = [seen for seen in result.observations if "SPECIAL ROLE" in seen.description]
    assert own_words
    assert not any(seen.grounded for seen in result.observations)
    assert result.patterns == ()


async def test_slow_voices_do_not_reorder_the_record() -> None:
    script = Script({"a": [After(0.02, 0.2), 0.9], "b": [0.2, After(0.02, 0.3)]})
    result = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script)
    assert [[s.model for s in held.evaluations] for held in result.dialogue_history] == [["a", "b"]] * 2


@pytest.mark.parametrize("finished", [True, False])
async def test_a_last_number_is_whole_only_if_the_provider_says_the_voice_came_to_its_end(
    finished: bool,
) -> None:
    class Prose:
        async def speak(self, turn: Turn) -> Reply:
            return Reply("Truth: 0.3\nFalsehood: 0.7", finished=finished)

    script = Script({"b": [0.1, 0.2], "c": [0.3, 0.9]})
    voices: dict[str, Voice] = {model: CallerVoice(model, script) for model in "bc"}
    config = circle("a", "b", "c", max_rounds=2)
    result = await Dialogue(PROMPT, config, {"a": Prose(), **voices}).run()
    if finished:
        assert [held.evaluations[0].falsehood for held in result.dialogue_history] == [0.7, 0.7]
    else:
        assert [failure.label for failure in result.failures] == ["a_round_1"]
    assert (await replay_circle(result)).without_times() == result.without_times()


async def test_what_a_voice_was_asked_is_what_it_was_sent() -> None:
    script = eventful()
    result = await fire_circle_evaluate(PROMPT, CIRCLE, caller=script)
    for held in result.dialogue_history:
        for model in held.active_models:
            question = held.question_to(model)
            assert question == result.question_to(model, held.round_number)
            assert question is not None
            assert script.question_to(model, held.round_number).endswith(question)
    first = result.dialogue_history[0]
    assert first.question_to("nobody") is None
    with pytest.raises(LookupError, match="nobody was not asked in round 1"):
        result.question_to("nobody", 1)


async def test_who_is_active_follows_from_who_was_seated_and_who_was_lost() -> None:
    result = await fire_circle_evaluate(PROMPT, CIRCLE, caller=eventful())
    by_round = [
        active_voices(
            CIRCLE.models,
            result.substitutions,
            (failure for failure in result.failures if failure.round_number < held.round_number),
        )
        for held in result.dialogue_history
    ]
    assert by_round == [held.asked_models for held in result.dialogue_history]
    assert active_voices(CIRCLE.models, result.substitutions, result.failures) == result.active_models
    reserve = Substitution(model="e", round_number=3, replaces=("b",))
    assert active_voices(("a", "b"), (reserve,), result.failures) == ("a", "e")
