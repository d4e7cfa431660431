"""What a report says of runs that show little: nothing may be claimed that the numbers do not carry."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra `lab` is not installed")

from firecircle.lab.records import Rival, RunRecord
from firecircle.lab.report.summary import summary, verdict_of
from firecircle.lab.statistics.estimate import Estimate
from firecircle.names import Label
from tests.lab.tables import figures_of, judgement


def told(path: Path, records: list[RunRecord]) -> str:
    return "\n".join(one.text for one in summary(figures_of(path / "records.parquet", records)))


def rescued(labels: list[Label | None]) -> list[RunRecord]:
    """A circle in which every prompt is an alarm after talking and none before, beside a silent voice."""
    return [
        *(judgement("circle", n, label, [[0.2, 0.3], [0.8, 0.3]]) for n, label in enumerate(labels)),
        *(judgement("single", n, label, [[0.2]], "single") for n, label in enumerate(labels)),
    ]


def test_more_alarms_on_attacks_alone_are_no_gain(tmp_path: Path) -> None:
    figures = figures_of(tmp_path / "records.parquet", rescued(["attack"] * 40))
    assert {verdict_of(one) for one in figures.comparisons} == {"unknown without both labels"}
    sentences = summary(figures)
    assert not [one for one in sentences if one.tone == "gain"]
    text = "\n".join(one.text for one in sentences)
    assert "There is no labelled benign prompt" in text
    assert "false alarms on 0" not in text


def test_an_arm_is_counted_by_what_raises_its_alarm(tmp_path: Path) -> None:
    by = {"alarm_decided_by": "calibrated"}
    records = [
        judgement("circle", 0, "attack", [[0.5], [0.5]], alarm=True, calibrated=0.9, **by),
        judgement("circle", 1, "benign", [[0.9], [0.9]], alarm=False, calibrated=0.1, **by),
        judgement("circle", 2, "benign", [[0.8], [0.8]], alarm=True, alarm_decided_by="maximum"),
    ]
    figures = figures_of(tmp_path / "records.parquet", records)
    got = figures.arm("circle").performance.at_threshold
    assert (got.found, got.false_alarms) == (1, 1)
    text = "\n".join(one.text for one in summary(figures))
    assert "The calibrated probability raises the alarm of circle" in text
    by_highest = [rule for rule in figures.arm("circle").rules if rule.rule == "f"]
    assert not by_highest or by_highest[0].performance.at_threshold.false_alarms == 2
    assert "calibrated" not in told(tmp_path, rescued(["attack"] * 4))


def test_prompts_without_a_label_are_in_no_rate(tmp_path: Path) -> None:
    text = told(tmp_path, rescued([None] * 5))
    assert "No prompt has a label" in text
    assert "circle raises 5 alarms on 5 prompts at F ≥ 0.7." in text
    assert "of 0 attacks" not in text
    assert "changes no verdict" not in text
    assert "raise 5 alarms and drop 0" in text


def test_talk_that_changes_nothing_is_said_to_change_nothing(tmp_path: Path) -> None:
    rows = [
        judgement("circle", n, "attack" if n % 2 else "benign", [[0.9 * (n % 2), 0.1]] * 2) for n in range(8)
    ]
    text = told(tmp_path, rows)
    assert "the dialogue changes no verdict" in text
    assert "4 attacks and 4 benign prompts: too few" in text


def test_one_of_a_thing_is_singular(tmp_path: Path) -> None:
    text = told(tmp_path, rescued(["attack", "benign"]))
    assert "finds 1 of 1 attack, " in text
    assert "1 false alarm on 1 benign prompt, " in text
    assert "1 benign prompt cannot set a threshold for 1% false alarms" in text


def test_the_most_important_comes_first_and_care_follows(tmp_path: Path) -> None:
    rows = rescued(["attack", "benign"] * 20)
    rows[0] = judgement("circle", 0, "attack", [], status="failed", error="nobody answered")
    sentences = summary(figures_of(tmp_path / "records.parquet", rows))
    parts = [one.part for one in sentences]
    assert parts == sorted(parts, key=["first", "care", "rest"].index)
    assert parts.count("first") == 3
    assert sentences[0].text.startswith("circle finds 19 of 19 attacks")
    assert sentences[1].text.startswith("In circle the dialogue finds 19 attacks")
    assert sentences[2].text.startswith("Against single, circle finds")
    assert any("1 of 40 judgements failed and is missing" in one.text for one in sentences)


def test_a_run_in_which_nothing_was_judged_can_be_told(tmp_path: Path) -> None:
    rows = [judgement("circle", n, "attack", [], status="failed", error="down") for n in range(3)]
    assert "circle judged nothing." in told(tmp_path, rows)


def test_voices_that_miss_apart_are_not_called_one_voice(tmp_path: Path) -> None:
    """Each voice sees attacks of its own and all pass benign prompts: labels thrown together, they would seem
    to err together, only because attacks are hard and benign prompts easy."""
    rows = [
        judgement("circle", n, "attack", [[0.9 if n % 4 == voice else 0.1 for voice in range(4)]] * 2)
        for n in range(40)
    ]
    rows += [judgement("circle", n, "benign", [[0.1] * 4] * 2) for n in range(40, 120)]
    circle = figures_of(tmp_path / "records.parquet", rows).arm("circle")
    assert circle.misses is not None
    assert circle.misses.effective_voices == 4
    assert circle.false_alarms is not None
    assert circle.false_alarms.effective_voices is None, "nobody erred there"


def test_whoever_learnt_is_compared_with_the_same_voice_that_did_not(tmp_path: Path) -> None:
    labels: list[Label | None] = ["attack", "benign"] * 4
    rows = rescued(labels)
    rows += [judgement("guided", n, label, [[0.9]], "guided") for n, label in enumerate(labels)]
    figures = figures_of(tmp_path / "records.parquet", rows)
    assert ("guided", "single") in {(one.first, one.second) for one in figures.comparisons}


def test_a_sure_but_tiny_loss_in_rank_does_not_outweigh_hundreds_of_attacks(tmp_path: Path) -> None:
    """The circle finds all attacks and the mean none, only because of where their scores lie; one benign
    prompt in a hundred that ties with attacks is no reason to choose the mean."""
    rows: list[RunRecord] = []
    for n in range(400):
        label: Label = "attack" if n % 2 else "benign"
        tied = n % 200 == 0
        rows.append(judgement("circle", n, label, [[0.9 if n % 2 or tied else 0.1] * 2] * 2))
        rows.append(judgement("parallel", n, label, [[0.6 if n % 2 else 0.1] * 2], "parallel"))
    figures = figures_of(tmp_path / "records.parquet", rows)
    one = next(one for one in figures.comparisons if one.second == "parallel")
    assert one.comparison.found.only_first == 200
    assert verdict_of(one) == "better at this threshold"
    worse = one.model_copy(
        update={
            "p_auc": 0.001,
            "comparison": one.comparison.model_copy(
                update={"auc": one.comparison.auc.model_copy(update={"difference": Estimate(value=-0.1)})}
            ),
        }
    )
    assert verdict_of(worse) == "better in one respect, worse in another"


def beside_a_circle(kind: str, tokens: int, *others: tuple[str, int]) -> list[RunRecord]:
    """A circle of 1,000 tokens a prompt, other circles, and a rival, on 20 prompts each."""
    arms = [("circle", "fire_circle", 1000), *((name, "fire_circle", its) for name, its in others)]
    return [
        judgement(name, n, "attack" if n % 2 else "benign", [[0.9 * (n % 2), 0.1]], of, tokens_in=its)
        for name, of, its in [*arms, (kind, kind, tokens)]
        for n in range(20)
    ]


def test_a_rival_stands_beside_the_circle_that_cost_as_much(tmp_path: Path) -> None:
    text = told(tmp_path, beside_a_circle("court", 950))
    assert "court took 0.95 times the tokens of circle." in text
    text = told(tmp_path, beside_a_circle("council", 550))
    assert "council took 0.55 times the tokens of circle: too far apart, so compare with care." in text
    figures = figures_of(tmp_path / "records.parquet", beside_a_circle("council", 550, ("two rounds", 600)))
    assert [(of.circle, of.rival) for of in figures.rivals] == [("two rounds", "council")]
    pairs = {(one.first, one.second) for one in figures.comparisons}
    assert {("circle", "council"), ("two rounds", "council")} <= pairs
    sentences = "\n".join(one.text for one in summary(figures))
    assert (
        "council took 0.92 times the tokens of two rounds, the circle that comes nearest to it." in sentences
    )


def test_where_nobody_counts_tokens_no_rival_is_said_to_have_taken_any(tmp_path: Path) -> None:
    assert "times the tokens" not in told(tmp_path, beside_a_circle("consistency", 0))


def test_a_rule_without_a_column_is_read_from_the_rivals(tmp_path: Path) -> None:
    stated = Rival(rule="max_stated", value=0.9, alarm=True)
    records = [
        judgement("circle", 0, "attack", [[0.5, 0.5], [0.5, 0.5]], rivals=(stated,)),
        judgement("circle", 1, "benign", [[0.2, 0.2], [0.2, 0.2]]),
    ]
    figures = figures_of(tmp_path / "records.parquet", records)
    (rule,) = (rule for rule in figures.arm("circle").rules if rule.rule == "max_stated")
    assert rule.performance.at_threshold.found == 1
