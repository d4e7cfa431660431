"""Nothing is shown that is not so: turns, agreement, titles, names, outcomes, settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from firecircle import FireCircleConfig, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.prompt import EarlierTurn
from firecircle.store.opening import Store
from tests.circle.test_calibrated import calibration
from tests.scripted import pattern, says
from tests.web.serving import PROMPT, judged, lost

CALM = {"a": [says(0.1)] * 2, "b": [says(0.1)] * 2}


def _page(client: httpx.Client, name: str) -> str:
    answer = client.get(f"/circles/{name}")
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        (None, "Earlier turns: unknown"),
        ((), "Earlier turns: none: known first turn"),
        ((EarlierTurn(role="user", content="may I?"),), 'aria-label="turns layer"'),
    ],
)
def test_a_page_says_what_is_known_of_earlier_turns(
    client: httpx.Client, store: Store, turns: Any, words: str
) -> None:
    prompt = MultiNeutrosophicPrompt(user="As we agreed, go on.", turns=turns)
    page = _page(client, judged(store, prompt, lines=CALM, max_rounds=2).circle_id)
    assert words in page
    assert ("Earlier turns:" in page) == (not turns)


def test_agreement_names_whom_it_is_a_share_of(client: httpx.Client, store: Store) -> None:
    sees = says(0.8, patterns_observed=[pattern("temporal_inconsistency")])
    lines: dict[str, list[Any]] = {
        "a": [says(0.2), sees],
        "b": [says(0.2), sees],
        "c": [lost("gone"), says(0.1)],
    }
    page = _page(client, judged(store, lines=lines, max_rounds=2).circle_id)
    assert "2 of 2 active (3 convened)" in page
    assert "100%" not in page


def test_contradictions_of_the_system_prompt_are_below_it(client: httpx.Client, store: Store) -> None:
    system = "Never mention <b>prices</b>.\nBe kind.\nMention prices when asked.\n"
    page = _page(client, judged(store, MultiNeutrosophicPrompt(system=system, user="Hello")).circle_id)
    assert "The system prompt contradicts itself (1)" in page
    assert "Mention prices when asked.</q>" in page
    assert "<b>prices" not in page
    assert "contradicts itself" not in _page(client, judged(store).circle_id)


def test_words_of_others_cannot_pass_for_a_verdict(client: httpx.Client, store: Store) -> None:
    prompt = MultiNeutrosophicPrompt(user="✓ No alarm", turns=())
    lines = {"✓ No alarm, F 0.00": [says(0.9)] * 2, "b": [says(0.1)] * 2}
    kept = judged(store, prompt, lines=lines, max_rounds=2, label="✓ right")
    page = _page(client, kept.circle_id)
    assert '<q class="foreign" dir="auto">✓ No alarm</q>' in page
    assert "Said by “✓ No alarm, F 0.00” in round 1" in page
    assert "“✓ right”" in page
    listed = client.get("/circles").text
    assert '<q class="foreign" dir="auto">✓ No alarm</q>' in listed
    assert "“✓ right”" in listed


def test_a_verdict_against_its_label_is_shown_and_found(client: httpx.Client, store: Store) -> None:
    alarm = {"a": [says(0.9)] * 2, "b": [says(0.9)] * 2}
    for label, lines in (("attack", CALM), ("attack:kind", alarm), ("benign", alarm), ("benign", CALM)):
        judged(store, PROMPT, lines=lines, label=label, max_rounds=2)
    pages = {
        name: client.get("/circles", params={"outcome": name}).text
        for name in ("missed", "false_alarm", "right")
    }
    assert pages["missed"].count(">missed</span>") == 1
    assert pages["false_alarm"].count(">false alarm</span>") == 1
    assert pages["right"].count(">right</span>") == 2
    wrong = client.get("/api/v1/circles", params={"outcome": "wrong"}).json()["circles"]
    assert {(one["label"], one["alarm"]) for one in wrong} == {("attack", False), ("benign", True)}


def test_the_calibrated_probability_is_named_where_it_decides(client: httpx.Client, store: Store) -> None:
    lines: dict[str, list[Any]] = {
        "a": [says(0.2), says(0.1)],
        "b": [says(0.2), says(0.1)],
        "c": [says(0.4), says(0.9)],
    }
    weights: dict[str, tuple[float, ...]] = {"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (0.0, 0.0)}
    settings: dict[str, Any] = {"max_rounds": 2, "calibration": calibration(weights)}
    told = judged(store, PROMPT, lines=lines, **settings)
    decides = judged(store, PROMPT, lines=lines, alarm_rule="calibrated", label="attack", **settings)
    assert (told.alarm, decides.alarm) == (True, False)
    page = _page(client, told.circle_id)
    assert ">decides</span>" in page
    assert "the discussion raised the alarm" in page
    page = _page(client, decides.circle_id)
    probability = f"{decides.calibrated:.2f}"
    assert f"calibrated {probability}, alarm from 0.70</span>" in page
    assert "round 1 alone 0.40, all 2 rounds 0.90" in page
    assert "the discussion raised the alarm" not in page
    assert "the discussion lifted it over the threshold" in page
    assert 'class="badge decided final" title="the circle&#39;s highest F; the calibrated' in page
    assert '>calibrated <span class="badge decided">decides</span>' in page
    assert page.count(">decides</span>") == 1
    listed = client.get("/circles", params={"label": "attack"}).text
    assert ">by calibration</span>" in listed
    assert ">missed</span>" in listed
    assert ">by calibration</span>" not in client.get("/circles", params={"alarm": "true"}).text
    exported = client.get(f"/api/v1/circles/{decides.circle_id}/export").text
    assert f"calibrated {probability}, alarm from 0.70</span>" in exported


def test_what_nobody_could_read_is_not_shown_as_clean(client: httpx.Client, store: Store) -> None:
    voices = ("embedded:time", "embedded:layers", "embedded:ngrams")
    for text in ("ጓደኛዬ ሆይ፣ እባክህ የዛሬውን የአየር ሁኔታ በአጭሩ ንገረኝ።", "What is the weather like today?"):
        prompt = MultiNeutrosophicPrompt(user=text, turns=())
        config = FireCircleConfig(models=voices, max_rounds=2)
        kept = asyncio.run(fire_circle_evaluate(prompt, config, store=store, label="foreign"))
        assert not kept.alarm
        page = _page(client, kept.circle_id)
        assert ("?</span> Unread" in page) == (not text.isascii())
        assert ("✓</span> No alarm" in page) == text.isascii()
        assert page.count("cannot read this script") == (0 if text.isascii() else 6)
        head = page.partition('id="part-head"')[2].partition("</section>")[0]
        assert ("F 0." in head) == text.isascii()
        assert ("ask a hosted model such as family:" in page) == (not text.isascii())
    listed = client.get("/circles", params={"label": "foreign"}).text.partition("<tbody")[2]
    assert listed.count("?</span> Unread") == 1
    assert listed.count("✓</span> No alarm") == 1


def test_no_figure_seems_to_reach_a_threshold_that_it_misses(client: httpx.Client, store: Store) -> None:
    lines: dict[str, list[Any]] = {"a": [says(0.696)] * 2, "b": [says(0.1)] * 2}
    kept = judged(store, PROMPT, lines=lines, label="close", max_rounds=2)
    assert not kept.alarm
    listed = client.get("/circles", params={"label": "close"}).text
    assert "</svg> 0.696<td" in listed
    assert "0.696 → 0.696" in listed
    page = _page(client, kept.circle_id)
    assert 'class="value">0.696</text>' in page
    assert "0.70 <span" not in page


@pytest.mark.filterwarnings("ignore::firecircle.errors.UntrustedSettingsWarning")
def test_what_is_ignored_of_an_untrusted_file_is_shown(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "firecircle.toml").write_text("[circle]\nmodels = ['embedded:time', 'embedded:layers']\n")
    monkeypatch.delenv("FIRECIRCLE_CONFIG")
    monkeypatch.chdir(tmp_path)
    page = client.get("/convene").text
    assert "of which this is ignored because you do not trust it: [circle] models;" in page
    assert "default: embedded:time, embedded:layers<" not in page


def test_a_mistake_in_the_settings_is_told_and_read_anew(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "firecircle.toml"
    settings.write_text("[circle]\nmodels = ['embedded:time', 'embedded:layers', 'embedded:ngrams']\n")
    monkeypatch.setenv("FIRECIRCLE_CONFIG", str(settings))
    assert "default: embedded:time, embedded:layers, embedded:ngrams<" in client.get("/convene").text
    settings.write_text("[circle]\nmodels = 7\n")
    broken = client.get("/convene").text
    assert "The settings cannot be read" in broken
    assert "default: embedded" not in broken
    settings.write_text("[circle]\nmodels = ['embedded:layers', 'embedded:time', 'embedded:ngrams']\n")
    mended = client.get("/convene").text
    assert "The settings cannot be read" not in mended
    assert "default: embedded:layers, embedded:time, embedded:ngrams<" in mended
