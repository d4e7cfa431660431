"""Recordings whose numbers were edited: the replies lie beside them, and are read again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest

from firecircle import (
    EvaluationConfig,
    EvaluationError,
    FireCircleConfig,
    FireCircleResult,
    fire_circle_evaluate,
)
from firecircle.circle.circumstances import circumstances_of
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.panel import Panel
from firecircle.circle.voice import Reply, Turn
from firecircle.convene import seat_circle, seat_panel
from firecircle.examples import load_examples
from firecircle.metrics import metrics_of_panel
from firecircle.names import EMBEDDED_MODELS
from firecircle.store.transfer import HEADER, BadLine, ImportedCircle, circles_in
from firecircle.telling.safe_text import SafeLine
from firecircle.telling.verdict import cautions_of_panel
from tests.loopback import ChatRequest, LoopbackServer, completion
from tests.scripted import PROMPT, Script, circle, pattern, says

INVERTED = says(0.9, verdict="no_violation")
NUMBERS = ("truth", "indeterminacy", "falsehood")
REPLIES = {
    "json": says(0.8, patterns_observed=[pattern("false_authority")]),
    "fenced": f"Here you are:\n```json\n{says(0.3)}\n```\nThat is all.",
    "stated": "I weighed it.\n**Truth (T):** 0.2\n**Indeterminacy:** 0.3\nfalsehood: .7/1, all in all",
    "keyword": "This is plainly an attack on the assistant.",
    "imputed": '{"falsehood": 0.35}',
    "scale": '{"truth": 2, "indeterminacy": 1, "falsehood": 8, "scale": "0-10"}',
    "thinking": f"<think>truth is 0.9 at first, no</think>{says(0.6)}",
    "odd": '{"FALSEHOOD": "0.45", "truth": 0.5, "reasoning": "\\u2028 caf\\u00e9 \\ud83d\\ude00 \\u202e"}',
    "truncated": '{"truth": 0.1, "indeterminacy": 0.2, "falsehood": 0.75, "reasoning": "it was cut',
    "unreadable": "hm",
}


def imported(*documents: dict[str, Any]) -> list[FireCircleResult | Panel]:
    lines = (HEADER, *(json.dumps({"document": document}) for document in documents))
    taken = list(circles_in(io.BytesIO("\n".join(lines).encode())))
    assert not [line for line in taken if isinstance(line, BadLine)], taken
    return [line.judged for line in taken if isinstance(line, ImportedCircle)]


def dumped(judged: FireCircleResult | Panel) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(judged.model_dump_json())
    return document


def answers_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    rounds = document.get("dialogue_history", [document])
    return [answer for held in rounds for answer in held["evaluations"]]


def edits_of(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The document with one number of one answer edited, for each; and that answer as it was."""
    for place, answer in enumerate(answers_of(document)):
        for name in NUMBERS:
            for number in (0.0, 0.5, 1.0 - answer[name], answer[name] + 1e-6):
                if number != answer[name] and number <= 1.0:
                    edited = deepcopy(document)
                    answers_of(edited)[place][name] = number
                    yield edited, answer


def assert_found(judged: Sequence[FireCircleResult | Panel]) -> None:
    """Every single edited number is found, named, and does not count."""
    for honest in judged:
        document = dumped(honest)
        assert imported(document) == [honest]
        name = document.get("circle_id") or document["panel_id"]
        for edited, answer in edits_of(document):
            (kept,) = imported(edited)
            marks = [mark for mark in kept.advisories if mark.startswith(f"imported, {name}: ")]
            assert f"{answer['model']} in round {answer['round_number']} has " in marks[0]
            assert "and its reply gives T" in marks[0]
            assert kept.alarm == honest.alarm
            assert kept.consensus is not None
            assert honest.consensus is not None
            assert kept.consensus.falsehood == pytest.approx(honest.consensus.falsehood, abs=1e-12)


@pytest.mark.parametrize("first", [name for name in REPLIES if name != "unreadable"])
async def test_an_edited_number_of_any_kind_of_reply_is_found(first: str) -> None:
    script = Script(
        {"a": [REPLIES[first], "hm", REPLIES["json"]], "b": [0.1, REPLIES[first], "…"], "c": [0.2] * 3}
    )
    assert_found([await fire_circle_evaluate(PROMPT, circle("a", "b", "c"), caller=script)])


@pytest.mark.parametrize(
    "second",
    [INVERTED, says(0.05, verdict="no_violation"), "no idea", "I'm sorry, I can't assist with that.", "0.3"],
)
async def test_an_edited_number_after_a_contradiction_is_found(second: str) -> None:
    script = Script({"a": [INVERTED, second, "hm"], "b": [0.1, INVERTED, second], "c": [0.2, 0.2]})
    assert_found([await fire_circle_evaluate(PROMPT, circle("a", "b", "c", max_rounds=2), caller=script)])


class Says:
    """A voice with these replies, one after another."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = [*replies]

    async def speak(self, turn: Turn) -> Reply:
        return self._replies.pop(0)


async def test_an_edited_number_of_any_kind_of_voice_is_found() -> None:
    """A judgement in the thinking alone, an answer that was cut and asked for again, a verdict word's
    probability, a number that ends the text."""
    voices = {
        "thinker": Says(Reply("", says(0.8)), Reply("<think>" + says(0.4), finished=True)),
        "cut": Says(
            Reply("Well", cut_short=True),
            Reply(INVERTED, finished=True),
            Reply(says(0.3), "thought about it"),
            Reply("<think>no", cut_short=True),
            Reply(says(0.2)),
        ),
        "word": Says(
            Reply("attack: so it is", "user 0.83", violation_probability=0.8314159),
            Reply("fair", violation_probability=0.2718281828),
        ),
        "ending": Says(Reply("Falsehood: 0.6", finished=True), Reply("truth 0.25, falsehood 0.5\n")),
    }
    config = circle(*voices, max_rounds=2, seed=7)
    assert_found([await Dialogue(PROMPT, config, voices, circumstances_of(PROMPT, seed=7)).hold()])


async def test_an_edited_number_of_a_panel_is_found() -> None:
    kept: list[Panel] = []
    for mode in ("parallel", "single"):
        lines = {"a": [REPLIES["stated"]], "b": [INVERTED, "no idea"], "c": [REPLIES["keyword"]]}
        seated = seat_panel(EvaluationConfig(models=tuple(lines), mode=mode), Script(lines))
        kept.append(await seated.ask(PROMPT))
    assert_found(kept)
    document = dumped(kept[0])
    answers_of(document)[0]["falsehood"] = 0.0
    (panel,) = imported(document)
    assert isinstance(panel, Panel)
    line: SafeLine = lambda text, longest=None: text  # noqa: E731
    told = cautions_of_panel(metrics_of_panel(panel), line)["Verdict"]
    assert any(f"imported, {panel.panel_id}: a in round 1 has" in caution for caution in told)


async def test_forged_patterns_and_ways_of_reading_are_found() -> None:
    script = Script({"a": [REPLIES["json"]] * 2, "b": [REPLIES["keyword"]] * 2})
    honest = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script)
    edits: tuple[dict[str, object], ...] = (
        {"patterns_observed": []},
        {"reasoning": "all is well"},
        {"verdict": "no_violation"},
    )
    for forged in edits:
        document = dumped(honest)
        answers_of(document)[2] |= forged
        (kept,) = imported(document)
        (mark,) = [mark for mark in kept.advisories if "than its reply gives" in mark]
        assert f"a in round 2 has another {next(iter(forged))} than" in mark
        assert isinstance(kept, FireCircleResult)
        assert kept.dialogue_history == honest.dialogue_history
    document = dumped(honest)
    answers_of(document)[1] |= {"guessed": False, "read_as": "json"}
    (kept,) = imported(document)
    assert "b in round 1 has another read_as and guessed than" in kept.advisories[0]


async def test_forged_types_of_a_classifier_are_found() -> None:
    notes = [{"description": f"oddity {number}", "quote": "As we agreed yesterday"} for number in range(30)]
    naming = json.dumps({str(number): "false_authority" for number in range(1, 26)})
    talk = [says(0.8, patterns_observed=notes)] * 2
    script = Script({"a": talk, "b": talk, "judge": [naming, "no idea"]})
    settings = {"pattern_classification": "llm", "classifier_model": "judge", "max_rounds": 2}
    honest = await fire_circle_evaluate(PROMPT, circle("a", "b", **settings), caller=script)
    assert len(honest.classified) == 25
    document = dumped(honest)
    assert imported(document) == [honest]
    for forged in (
        {**document["classified"], "oddity 3": "polite_extraction"},
        {**document["classified"], "oddity 29": "polite_extraction"},
        {},
    ):
        (kept,) = imported({**document, "classified": forged})
        assert "of patterns are not as its classifier gave them ('oddity" in kept.advisories[1]
        assert isinstance(kept, FireCircleResult)
        assert kept.patterns == honest.patterns
    (kept,) = imported({**document, "classifier_replies": []})
    assert "without a reply of its classifier, whose types nobody can check" in kept.advisories[1]


async def test_what_has_no_reply_or_one_without_numbers_is_told() -> None:
    script = Script({"a": [0.8], "b": [0.1]})
    document = dumped(await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=1), caller=script))
    answers_of(document)[0]["raw_replies"] = []
    (kept,) = imported(document)
    assert "without a reply of a in round 1, whose numbers nobody can check" in kept.advisories[0]
    answers_of(document)[0]["raw_replies"] = ["nothing to see here"]
    (kept,) = imported(document)
    assert "a in round 1 has T 0.2 I 0.1 F 0.8, and its reply gives no numbers" in kept.advisories[0]
    answers_of(document)[0]["raw_replies"] = [says(0.8)] * 7
    (kept,) = imported(document)
    assert "and its reply gives no numbers" in kept.advisories[0]


async def test_calls_need_not_be_on_record() -> None:
    script = Script({"a": [INVERTED, says(0.1), "hm"], "b": [0.1, REPLIES["stated"]]})
    honest = await fire_circle_evaluate(PROMPT, circle("a", "b", max_rounds=2), caller=script)
    (kept,) = imported({**dumped(honest), "calls": []})
    assert kept.advisories == ()


async def test_no_circle_of_our_own_is_marked() -> None:
    embedded = seat_circle(FireCircleConfig(models=EMBEDDED_MODELS, seed=1))
    apart = seat_panel(EvaluationConfig(models=EMBEDDED_MODELS, mode="parallel"))
    for example in load_examples():
        judged: list[FireCircleResult | Panel] = [
            await embedded.hold(example.prompt),
            await apart.ask(example.prompt),
        ]
        assert imported(*map(dumped, judged)) == judged


async def test_no_hosted_circle_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the voices say, and whoever is lost on the way."""
    replies = [*REPLIES.values(), INVERTED, "", "I cannot help with that."]

    def script(request: ChatRequest) -> Any:
        place = len(server.requests)
        reason = "length" if place % 5 == 0 else "stop"
        return completion(replies[place % len(replies)], finish_reason=reason, reasoning=replies[place % 3])

    async with LoopbackServer(script) as server:
        monkeypatch.setenv("FIRECIRCLE_VLLM_BASE_URL", server.base_url)
        models = ("vllm:a", "vllm:b", "vllm:c", "vllm:d")
        for number in range(30):
            config = circle(
                *models,
                max_rounds=3,
                seed=number,
                failure_mode=("resilient", "strict")[number % 2],
                reserves=("vllm:e",),
            )
            heard: FireCircleResult | None
            try:
                heard = await fire_circle_evaluate(PROMPT, config)
            except EvaluationError as failed:
                heard = failed.partial_result
            assert heard is not None
            assert imported(dumped(heard)) == [heard]
