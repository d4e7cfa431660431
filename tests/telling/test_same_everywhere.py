"""One circle, told once: terminal, viewer and exported page carry the same cautions and the same next step."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firecircle import EvaluationConfig, EvaluationError, PromptGuard
from firecircle.cli.main import run
from firecircle.store.opening import Store, open_store
from tests.cli.running import flowing
from tests.scripted import PROMPT, Script, pattern, says
from tests.web.serving import VOICES, Running, judged, lost, running

ONE, TWO, THREE = VOICES
CALM = [says(0.1)] * 3
OTHERWISE = {
    "with --verbose": "below",
    "run it again, or with --set failure_mode=strict,": "convene it again",
    "with --set reserves=A,B": "with `firecircle evaluate --set reserves=A,B`",
    "with --turns, or --turn 1 if nothing did,": "told which turn it is,",
    "name --models": "name other voices",
}
"""What a reader of a page does instead of giving an option."""

CIRCLES: dict[str, dict[str, Any]] = {
    "one voice alone": {"lines": {ONE: [says(0.9)] * 3, TWO: CALM, THREE: CALM}},
    "a keyword guess": {"lines": {ONE: ["This is an attack.", says(0.1), says(0.1)], TWO: CALM, THREE: CALM}},
    "a lost voice": {"lines": {ONE: CALM, TWO: [says(0.1), lost("quota spent")], THREE: CALM}},
    "a corrected alarm": {
        "lines": {ONE: CALM, TWO: CALM, THREE: [says(0.1), *[says(0.1, verdict="violation")] * 4]}
    },
    "a reserve": {
        "lines": {ONE: CALM, TWO: [says(0.1), lost("quota spent")], THREE: CALM},
        "reserves": (THREE,),
        "min_viable_models": 2,
    },
    "an unknown turn": {
        "prompt": PROMPT.model_copy(update={"turns": None}),
        "lines": dict.fromkeys(VOICES, CALM),
    },
    "patterns": {
        "lines": {
            model: [says(0.9, patterns_observed=[pattern("temporal_inconsistency")])] * 3 for model in VOICES
        }
    },
}
LABELS = ("Verdict", "Quorum", "Lost", "Next")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(Path(tmp_path_factory.mktemp("store")) / "circles.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Running]:
    with running(store) as started:
        yield started


@pytest.fixture(autouse=True)
def _80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def _sections(report: str) -> dict[str, list[str]]:
    """The paragraphs of a report by their label; what was wrapped is whole again."""
    sections: dict[str, list[str]] = {}
    label = ""
    for line in report.splitlines():
        named = re.match(r"([A-Z][a-z]+) +(\S.*)|", line)
        if named and named[1]:
            label = named[1]
            sections.setdefault(label, []).append(named[2])
        elif line.startswith(" " * 12) and label:
            sections[label][-1] += f" {line.strip()}"
        elif line.startswith(" " * 10) and label:
            sections[label].append(line.strip())
        else:
            label = ""
    return sections


def _cautions(report: str) -> list[str]:
    """What a reader of the terminal is warned of."""
    sections = _sections(report)
    notes = [
        line.removeprefix("Note: ") for line in sections["Verdict"] if line.startswith(("Note: ", "Why: "))
    ]
    quorum = [line for line in sections.get("Quorum", []) if not line.startswith("holds:")]
    return [*notes, *quorum, *sections.get("Lost", [])]


def _words(page: str) -> str:
    return flowing(html.unescape(re.sub(r"<[^>]*>", " ", page)))


@pytest.mark.parametrize("kind", CIRCLES)
def test_cautions_and_next_step_are_the_same_everywhere(
    store: Store, server: Running, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    circle_id = judged(store, **CIRCLES[kind]).circle_id
    _assert_same(store, server, capsys, circle_id, has_next=kind != "a reserve")


def test_a_circle_that_broke_off_says_why_everywhere(
    store: Store, server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: dict[str, list[Any]] = {ONE: [says(0.9)] * 3, TWO: [says(0.1), lost("quota spent")], THREE: CALM}
    with pytest.raises(EvaluationError) as broken:
        judged(store, lines=lines, failure_mode="strict")
    assert broken.value.partial_result is not None
    report = _assert_same(store, server, capsys, broken.value.partial_result.circle_id)
    assert any(line.startswith("Why: ") and "voice/two" in line for line in _sections(report)["Verdict"])


async def test_a_panel_tells_its_cautions_everywhere(
    store: Store, server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script({ONE: ["This is an attack."], TWO: [lost("quota spent")]})
    for mode, models in (("single", (ONE,)), ("parallel", (ONE, TWO))):
        config = EvaluationConfig(mode=mode, models=models)
        metrics = await PromptGuard(config, caller=script, store=store).evaluate(user="hello there")
        assert metrics.kept_as is not None
        _assert_same(store, server, capsys, metrics.kept_as, has_next=False)
        script.heard.clear()


def _assert_same(
    store: Store,
    server: Running,
    capsys: pytest.CaptureFixture[str],
    circle_id: str,
    *,
    has_next: bool = True,
) -> str:
    """Everything that the terminal warns of stands on both pages; what the terminal wrote."""
    assert run(("circles", "show", circle_id, "--store", store.name)) == 0
    report = capsys.readouterr().out
    cautions, step = _cautions(report), " ".join(_sections(report).get("Next", []))
    assert cautions
    assert bool(step) == has_next
    for terminal_words, page_words in OTHERWISE.items():
        step = step.replace(terminal_words, page_words)
    with server.client() as client:
        pages = [
            client.get(f"/circles/{circle_id}").text,
            client.get(f"/api/v1/circles/{circle_id}/export").text,
        ]
    for page in pages:
        words = _words(page)
        assert [caution for caution in cautions if caution.rstrip(".") not in words] == []
        assert f"Next {step}" in words if step else "<b>Next</b>" not in page
    return report
