"""What a circle's page draws: the chart and the time line."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any

import httpx
import pytest

from firecircle import EvaluationError, FireCircleResult, ModelCharacteristics
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.voice import Reply, Retry, Turn
from firecircle.store.opening import Store
from firecircle.web.rendering import templates
from firecircle.web.shown.charts import convergence, waterfall
from firecircle.web.shown.page import CirclePage, caption_of, page_of
from tests.scripted import PROMPT, circle, pattern, says
from tests.web.serving import judged, lost

SEES_TIME = {"temporal_reasoning": 0.9, "cross_layer_analysis": 0.6}
SEES_LAYERS = {"cross_layer_analysis": 0.9, "pattern_recognition": 0.8, "temporal_reasoning": 0.2}


def _page(store: Store, result: FireCircleResult) -> CirclePage:
    page = page_of(caption_of(store.circles.summary(result.circle_id)), result)
    assert isinstance(page, CirclePage)
    return page


def _losing_a_lens(store: Store) -> FireCircleResult:
    lines: dict[str, list[Any]] = {
        "a": [says(0.3), lost("gone for today"), says(0.3)],
        "b": [says(0.5), says(0.6), says(0.9)],
        "c": [says(0.5), "no words", says(0.6)],
    }
    characteristics = {
        "a": ModelCharacteristics("a", SEES_TIME, "north"),
        "b": ModelCharacteristics("b", SEES_LAYERS, "south"),
        "c": ModelCharacteristics("c", SEES_LAYERS, "south"),
    }
    return judged(store, lines=lines, model_characteristics=characteristics)


def test_the_chart_stays_inside_its_frame_and_its_labels_apart(store: Store) -> None:
    lines = {f"voice/{place}": [says(0.5)] * 4 for place in range(10)}
    page = _page(store, judged(store, lines=lines, max_rounds=4))
    assert page.chart is not None
    heights = sorted(line.label_y for line in page.chart.lines)
    assert all(later - earlier >= 12.9 for earlier, later in pairwise(heights))
    assert heights[0] >= 0
    assert heights[-1] <= page.chart.height
    for line in page.chart.lines:
        for dot in line.dots:
            assert page.chart.left <= dot.x <= page.chart.right
            assert 0 <= dot.y <= page.chart.bottom


def test_every_call_has_its_place_on_the_time_line(store: Store) -> None:
    result = _losing_a_lens(store)
    page = _page(store, result)
    assert page.calls is not None
    assert [bar.call for bar in page.calls.bars] == list(result.calls)
    assert all(bar.x >= 0 and bar.x + bar.width <= 1000.1 for bar in page.calls.bars)
    starts = [bar.start_seconds for bar in page.calls.bars if bar.call.model == "b"]
    assert starts == sorted(starts)


def test_patterns_that_fell_short_are_shown_right_below_those_agreed_on(store: Store) -> None:
    agreed = pattern("temporal_inconsistency")
    both = says(0.5, patterns_observed=[agreed])
    more = says(0.9, patterns_observed=[agreed, pattern("polite_extraction", "thank you so much")])
    result = judged(
        store, lines={"a": [says(0.1), more], "b": [says(0.1), both], "c": [says(0.1), both]}, max_rounds=2
    )
    page = templates().get_template("circle_body.html").render(page=_page(store, result), standalone=True)
    below = page[page.index("<h2>Patterns</h2>") :]
    assert below.index("temporal inconsistency") < below.index("Also seen, not agreed on")
    assert (
        below.index("Also seen, not agreed on")
        < below.index("polite extraction")
        < below.index("seen by too few")
    )
    assert 'data-p="2"' in page[: page.index("<h2>Patterns</h2>")], "its words are lit in the prompt"


def test_no_template_trusts_what_it_is_given() -> None:
    from importlib import resources

    for file in resources.files("firecircle.web").joinpath("templates").iterdir():
        text = file.read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup\(", text), file.name
        assert not re.search(r"""\son\w+\s*=|\sstyle\s*=|javascript:""", text), file.name
        assert re.findall(r"own\((\w+)\)", text) in ([], ["style", "script"]), file.name


def test_calls_stand_where_they_were_made(store: Store) -> None:
    result = _losing_a_lens(store)
    page = _page(store, result)
    assert page.calls is not None
    first = result.dialogue_history[0].timestamp
    for bar in page.calls.bars:
        assert bar.call.started_at is not None
        assert bar.start_seconds == max(0.0, bar.call.started_at - first)
    spoken = [call.started_at or 0.0 for call in result.calls if call.model == "b"]
    opened = [held.timestamp for held in result.dialogue_history]
    assert all(at >= round_at - 0.01 for at, round_at in zip(spoken, opened, strict=True))


async def test_waiting_to_try_again_is_told_apart() -> None:
    class Hesitates:
        async def speak(self, turn: Turn) -> Reply:
            turn.on_retry(Retry(2, "busy", 0.02))
            await asyncio.sleep(0.03)
            return Reply(says(0.1), attempts=2)

    voices = {name: Hesitates() for name in ("a", "b")}
    result = await Dialogue(PROMPT, circle("a", "b", max_rounds=1), voices).run()
    assert all(call.waited_seconds == 0.02 for call in result.calls)
    assert all(call.latency_seconds >= 0.03 for call in result.calls)
    waterfall_of = waterfall(result)
    assert waterfall_of is not None
    assert all(0 < bar.waited < bar.width for bar in waterfall_of.bars)


def test_a_dialogue_reads_from_top_to_bottom(client: httpx.Client, store: Store) -> None:
    script = "<script>alert(1)</script> \u202e"
    notes = [pattern("temporal_inconsistency", "As we agreed yesterday")]
    lines: dict[str, list[str | Exception]] = {
        "one": [says(0.2, reasoning="first of one"), says(0.8, reasoning=script, patterns_observed=notes)],
        "two": [
            says(0.3, reasoning="first of two"),
            says(0.4, reasoning="then of two", veto="Ada was not asked"),
        ],
        "three": [says(0.3, reasoning="first of three"), lost("HTTP 429 too many")],
    }
    name = judged(store, lines=lines, max_rounds=2).circle_id
    page = client.get(f"/circles/{name}/dialogue").text
    assert f'href="/circles/{name}/dialogue"' in client.get(f"/circles/{name}").text
    order = [
        "Round 1",
        "first of one",
        "first of two",
        "first of three",
        "Round 2",
        "then of two",
        'Grounds for a veto:</b> <span dir="auto">Ada was not asked',
        "429 too many",
    ]
    places = [page.index(words, page.index("part-round1")) for words in order]
    assert places == sorted(places)
    assert "F 0.20 → <b>0.80</b>" in page
    assert "empty chair</span>" in page
    assert "<script>alert" not in page
    assert "⟨U+202E⟩" in page
    assert 'href="#:~:text=As%20we%20agreed%20yesterday"' in page
    assert page.count("What one was asked") + page.count("What two was asked") == 2


def test_the_mean_of_a_round_is_of_the_voices_that_stayed(store: Store) -> None:
    """A voice that is lost took its low F out of the mean, which then seemed to rise."""
    lines: dict[str, list[Any]] = {
        "a": [says(0.6), says(0.6)],
        "b": [says(0.8), says(0.8)],
        "c": [says(0.1), lost("gone")],
    }
    drawn = convergence(judged(store, lines=lines, max_rounds=2))
    assert drawn is not None
    assert [one.words for one in drawn.averaged] == ["0.70 ± 0.10"] * 2
    with pytest.raises(EvaluationError) as broken:
        judged(store, lines={"a": [says(0.6), says(0.6)], "c": [says(0.1), lost("gone")]}, max_rounds=2)
    assert broken.value.partial_result is not None
    alone = convergence(broken.value.partial_result)
    assert alone is not None
    assert {one.words for one in alone.averaged} == {"0.60"}, "a spread of one voice is none"
