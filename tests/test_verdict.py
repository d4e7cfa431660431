"""The verdict in one word: one function, and the same word on every surface."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle import (
    EvaluationConfig,
    Filters,
    FireCircleConfig,
    FireCircleResult,
    MultiNeutrosophicPrompt,
    PromptGuard,
    ReciprocityMetrics,
    fire_circle_evaluate,
    open_store,
)
from firecircle.cli.evaluate.compact import compact_result
from firecircle.cli.main import run
from firecircle.metrics import metrics_of_circle
from firecircle.telling.notebook import circle_html
from firecircle.verdict import SHOWN, VERDICT_WORDS, is_right, mistake_of, verdict_word
from firecircle.web.rendering import templates
from tests.circle.test_calibrated import calibration
from tests.scripted import PROMPT, Script, circle, says
from tests.web.serving import judged, lost

HINDI = "कृपया मुझे बताइए कि आज मौसम कैसा है और कल कैसा रहेगा"
LINES: dict[str, dict[str, list[Any]]] = {
    "alarm": {"a": [0.9] * 3, "b": [0.1] * 3},
    "unsure": {"a": [0.35] * 3, "b": [0.1] * 3},
    "no_alarm": {"a": [0.3] * 3, "b": [0.1] * 3},
}


@pytest.mark.parametrize(
    ("value", "given", "word"),
    [
        (None, {}, "no_verdict"),
        (None, {"unread": True}, "no_verdict"),
        (0.7, {}, "alarm"),
        (0.9, {"unread": True}, "alarm"),
        (0.1, {"unread": True}, "unread"),
        (0.6, {"unread": True}, "unread"),
        (0.35, {}, "unsure"),
        (0.1, {"indeterminacy": 0.7}, "unsure"),
        (0.34, {"indeterminacy": 0.69}, "no_alarm"),
    ],
)
def test_the_word_follows_from_the_number_that_decides(
    value: float | None, given: dict[str, Any], word: str
) -> None:
    assert verdict_word(value, 0.7, **given) == word


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_only_a_number_at_the_threshold_is_an_alarm(
    f: float, i: float, threshold: float, unread: bool
) -> None:
    word = verdict_word(f, threshold, indeterminacy=i, unread=unread)
    assert (word == "alarm") == (f >= threshold - 1e-9)
    assert word != "no_verdict"


def test_only_verdicts_that_judged_the_prompt_are_right_or_wrong() -> None:
    assert {word: is_right(word, "attack:x") for word in VERDICT_WORDS} == {
        "alarm": True,
        "unsure": False,
        "no_alarm": False,
        "unread": None,
        "no_verdict": None,
    }
    assert {word: mistake_of(word, "benign") for word in VERDICT_WORDS} == {
        "alarm": "false alarm",
        "unsure": None,
        "no_alarm": None,
        "unread": None,
        "no_verdict": None,
    }
    assert is_right("alarm", "nobody knows") is None


async def _held(word: str) -> FireCircleResult:
    """A circle that comes to this verdict, by the library's own entry point."""
    if word == "unread":
        prompt = MultiNeutrosophicPrompt(user=HINDI, turns=())
        return await fire_circle_evaluate(prompt, FireCircleConfig.embedded())
    return await fire_circle_evaluate(PROMPT, circle("a", "b"), caller=Script(LINES[word]))


@pytest.mark.parametrize("word", ["alarm", "unsure", "no_alarm", "unread"])
async def test_library_files_and_pages_say_the_same_word(word: str) -> None:
    result = await _held(word)
    assert (result.verdict, result.alarm) == (word, word == "alarm")
    assert (result.unread is not None) == (word == "unread")
    assert repr(result).startswith(f"<FireCircleResult {word}, F ")
    assert FireCircleResult.model_validate_json(result.model_dump_json()) == result
    metrics = metrics_of_circle(result)
    assert (metrics.verdict, metrics.to_row()["verdict"]) == (word, word)
    assert (metrics.unread, metrics.reason, metrics.advisories) == (
        result.unread,
        result.reason,
        result.advisories,
    )
    assert compact_result(metrics, 0.7).verdict == word
    assert f"<b>{SHOWN[result.verdict]}, F " in circle_html(result)


async def test_what_no_voice_reads_has_no_probability() -> None:
    config = FireCircleConfig.embedded()
    weights = dict.fromkeys(config.models, (1.0,) * config.max_rounds)
    config = FireCircleConfig.embedded(calibration=calibration(weights))
    english = await fire_circle_evaluate(MultiNeutrosophicPrompt(user="What is the time?", turns=()), config)
    assert english.calibrated is not None
    unread = await fire_circle_evaluate(MultiNeutrosophicPrompt(user=HINDI, turns=()), config)
    assert unread.calibrated is None
    assert unread.verdict == "unread"


async def test_a_result_from_before_the_word_was_kept_has_it_when_it_is_read() -> None:
    for word in ("alarm", "unsure", "no_alarm", "unread"):
        result = await _held(word)
        old = json.loads(result.model_dump_json())
        for name in ("verdict", "unread", "reason", "single_voice_patterns"):
            del old[name]
        read = FireCircleResult.model_validate_json(json.dumps({**old, "schema_version": 2}))
        assert (read.verdict, read.unread) == (result.verdict, result.unread)


async def test_a_circle_without_a_consensus_has_no_verdict(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.sqlite") as store:
        with pytest.raises(Exception, match="below minimum"):
            judged(store, lines={"a": [says(0.9), lost("gone")], "b": [says(0.9), lost("gone")]})
        (summary,) = store.circles.find(Filters(verdict="no_verdict")).circles
        kept = store.circles.load(summary.id)
    assert isinstance(kept, FireCircleResult)
    assert (kept.verdict, summary.verdict, summary.is_right) == ("no_verdict", "no_verdict", None)


def test_a_list_filters_by_verdict_and_counts_only_what_was_judged(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.sqlite") as store:
        for word, lines in LINES.items():
            shown = {model: [says(line) for line in said] for model, said in lines.items()}
            judged(store, lines=shown, label="attack")
            (found,) = store.circles.find(Filters(verdict=word)).circles
            assert (found.verdict, found.is_right) == (word, word == "alarm")
        unread = PromptGuard(store=store).evaluate_sync(user=HINDI, mode="fire_circle")
        assert unread.kept_as is not None
        store.circles.set_label(unread.kept_as, "attack")
        (found,) = store.circles.find(Filters(verdict="unread")).circles
        assert found.is_right is None
        missed = store.circles.find(Filters(outcome="missed")).circles
        assert {one.verdict for one in missed} == {"unsure", "no_alarm"}
        assert "Unread" in templates().from_string("{{ one|decision }}").render(one=found)


@pytest.mark.parametrize(
    ("text", "word", "status"), [(HINDI, "unread", 3), ("What is the capital of France?", "no_alarm", 0)]
)
def test_the_command_line_says_the_word_in_every_form(
    text: str, word: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)

    def out(*arguments: str) -> str:
        assert run(["evaluate", *arguments]) == status
        return capsys.readouterr().out

    assert json.loads(out(text, "--json"))["verdict"] == word
    assert json.loads(out(text, "--json=full"))["verdict"] == word
    assert SHOWN[word] in out(text)  # type: ignore[index]
    Path("prompts.jsonl").write_text(json.dumps({"user": text, "label": "attack"}) + "\n", "utf-8")
    batch = [
        "--batch",
        "prompts.jsonl",
        "--out",
        "rows.csv",
        "--sarif",
        "found.sarif",
        "--junit",
        "tests.xml",
    ]
    assert SHOWN[word] in out(*batch)  # type: ignore[index]
    (row,) = csv.DictReader(Path("rows.csv").read_text("utf-8").splitlines())
    assert row["verdict"] == word
    results = json.loads(Path("found.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert [result["message"]["text"].startswith(word) for result in results] == [True] * (word == "unread")
    document = json.loads(out("--batch", "prompts.jsonl", "--json"))
    assert document["verdicts"] == {known: int(known == word) for known in VERDICT_WORDS}


async def test_panels_say_the_word_too() -> None:
    config = EvaluationConfig(models=("a", "b"), mode="parallel")
    words: dict[str, Callable[[], Script]] = {
        "alarm": lambda: Script({"a": [0.9], "b": [0.6]}),
        "unsure": lambda: Script({"a": [0.6], "b": [0.2]}),
        "no_alarm": lambda: Script({"a": [0.1], "b": [0.2]}),
    }
    for word, script in words.items():
        metrics = await PromptGuard(config, caller=script()).evaluate(user="hello")
        assert metrics.verdict == word
        assert ReciprocityMetrics.model_validate_json(metrics.model_dump_json()) == metrics
