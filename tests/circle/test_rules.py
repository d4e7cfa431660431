"""The registry of verdict rules: every entry is complete, and whatever lists rules takes it from there."""

from __future__ import annotations

from typing import get_args

import pytest

from firecircle.circle.rules import BY_NAME, DECIDING, RULES, AlarmRule, VerdictRule, Words, values_by_rule
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.telling.safe_text import line_with_codes
from tests.scripted import Script, circle

SAID = {"a": (0.2, 0.6), "b": (0.9, 0.4), "c": (0.1, 0.8)}


def words(**said: tuple[float, ...]) -> Words:
    evaluations = [
        NeutrosophicEvaluation(
            model=model, truth=0.1, indeterminacy=0.1, falsehood=falsehoods[at], round_number=at + 1
        )
        for at in range(2)
        for model, falsehoods in (said or SAID).items()
    ]
    return Words.of(evaluations, 0.7, calibrated=0.3)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_complete(rule: VerdictRule) -> None:
    assert BY_NAME[rule.name] is rule
    assert rule.meaning
    assert rule.phrase
    value = rule.value(words())
    assert value is not None
    assert 0 <= value <= 1


def test_what_may_decide_is_what_the_option_takes() -> None:
    assert tuple(DECIDING) == get_args(AlarmRule)


def test_each_rule_by_hand() -> None:
    assert values_by_rule(words()) == pytest.approx(
        {
            "max_all": 0.9,
            "round1_max": 0.9,
            "final_max": 0.8,
            "final_mean": 0.6,
            "final_median": 0.6,
            "majority": 1 / 3,
            "max_stated": 0.9,
            "calibrated": 0.3,
        }
    )


def test_a_share_must_be_above_one_half_and_all_else_reach_the_threshold() -> None:
    share, highest = BY_NAME["majority"], BY_NAME["max_all"]
    assert not share.alarms(0.5, 0.7)
    assert share.alarms(0.6, 0.7)
    assert highest.alarms(0.7, 0.7)
    assert share.threshold(0.7) > 0.5
    assert highest.threshold(0.7) == 0.7


async def test_a_rule_that_is_added_reaches_result_viewer_and_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from firecircle import MultiNeutrosophicPrompt, fire_circle_evaluate
    from firecircle.circle import rules
    from firecircle.telling import talking

    weighted = VerdictRule("first", "F of the first voice", "the first voice", lambda said: said.last[0])
    monkeypatch.setattr(rules, "RULES", (*RULES, weighted))
    monkeypatch.setattr(talking, "RULES", (*RULES, weighted))
    monkeypatch.setitem(rules.BY_NAME, "first", weighted)
    lines = {model: list(falsehoods) for model, falsehoods in SAID.items()}
    config = circle(*lines, max_rounds=2, enforce_quorum=False, early_stop_convergence=0.0)
    result = await fire_circle_evaluate(MultiNeutrosophicPrompt(user="hello"), config, caller=Script(lines))
    assert result.rival_verdicts["first"].value == 0.6
    (row,) = (row for row in talking.replay_of(result, line_with_codes).rules if row.rule is weighted)
    assert [verdict.value for verdict in row.verdicts if verdict] == [0.2, 0.6]
    assert "the first voice" in " ".join(talking.talk_sentences(result, line_with_codes))
