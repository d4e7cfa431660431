"""Lists: in another order, counted, searched by beginnings; a batch beside another."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import httpx
import pytest

from firecircle import FireCircleConfig, MultiNeutrosophicPrompt, PromptGuard
from firecircle.errors import EvaluationError
from firecircle.store.opening import Store
from tests.scripted import Script, says
from tests.web.serving import judged, lost


@pytest.fixture(scope="module")
def kept(store: Store) -> dict[str, str]:
    """Three circles: talking raised the second most, the third is the highest."""
    ids = {}
    for name, first, last in (("calm", 0.1, 0.1), ("raised", 0.2, 0.8), ("high", 0.9, 0.9)):
        prompt = MultiNeutrosophicPrompt(user=f"{name} confidential words", turns=())
        lines = {model: [says(first), says(last)] for model in ("a", "b")}
        ids[name] = judged(store, prompt, lines=lines, max_rounds=2).circle_id
    return ids


def _listed(client: httpx.Client, **query: str) -> list[str]:
    text = client.get("/circles", params=query).text
    return re.findall(r'<a href="/circles/([0-9a-f]+)">', text)


def test_a_list_is_put_in_order_and_paged(client: httpx.Client, kept: dict[str, str]) -> None:
    assert _listed(client, order="falsehood") == [kept["high"], kept["raised"], kept["calm"]]
    assert _listed(client, order="talking")[0] == kept["raised"]
    assert _listed(client, order="oldest") == list(kept.values())
    page = client.get("/circles", params={"order": "falsehood", "limit": "2"}).text
    assert 'aria-sort="descending"' in page
    assert "order=falsehood&amp;limit=2&amp;start=2" in page
    assert _listed(client, order="falsehood", limit="2", start="2") == [kept["calm"]]
    assert client.get("/api/v1/circles", params={"order": "height"}).status_code == 422
    rising = client.get("/circles", params={"order": "falsehood", "rising": "true"}).text
    assert 'aria-sort="ascending"' in rising
    assert _listed(client, order="falsehood", rising="true") == list(kept.values())
    assert "0.20 → 0.80" in page


def test_a_bar_has_its_tick_at_the_circle_s_own_threshold(client: httpx.Client, store: Store) -> None:
    for threshold, place in ((0.5, "21.0"), (0.9, "37.8")):
        lines = {model: [says(0.6)] * 2 for model in ("a", "b")}
        name = judged(store, lines=lines, max_rounds=2, alarm_threshold=threshold, label="ticked").circle_id
        row = client.get("/circles", params={"label": "ticked"}).text.split(f'<a href="/circles/{name}">')[0]
        assert f'<path class="tick" d="M{place} 0h2v12h-2z"/>' in row.rpartition("<tr")[2]
        client.delete(f"/api/v1/circles/{name}")


def test_what_a_list_leaves_is_counted(client: httpx.Client, kept: dict[str, str]) -> None:
    counted = client.get("/api/v1/counts").json()
    verdicts = {"alarm": 2, "unsure": 0, "no_alarm": 1, "unread": 0, "no_verdict": 0}
    assert counted.pop("verdicts") == verdicts
    assert counted == {"matching": 3, "wrong": 0, "total": 3, "counted_to": 10_000, "about": None}
    exact = client.get("/api/v1/counts", params={"alarm": "true", "exact": "true"}).json()
    assert exact.pop("verdicts") == verdicts | {"no_alarm": 0}
    assert exact == {"matching": 2, "wrong": 0, "total": 3, "counted_to": None, "about": None}


def test_a_beginning_finds_the_word(client: httpx.Client, kept: dict[str, str]) -> None:
    assert _listed(client, text="confid*") == list(reversed(kept.values()))
    assert _listed(client, text="confid") == []
    assert _listed(client, text='"calm confid*"') == [kept["calm"]]


def test_a_search_hit_shows_the_word_and_where_it_is(client: httpx.Client, store: Store) -> None:
    prompt = MultiNeutrosophicPrompt(user="Lantern <b>light</b>, please.", turns=())
    reason = "The word quixotic \u202e is nowhere in the prompt."
    lines = {"a": [says(0.2)] * 2, "b": [says(0.2), says(0.2, reasoning=reason)]}
    name = judged(store, prompt, lines=lines, max_rounds=2).circle_id
    page = client.get("/circles", params={"text": "light"}).text
    assert 'prompt: <span class="foreign" dir="auto">Lantern &lt;b&gt;<mark class="q1">light</mark>' in page
    page = client.get("/circles", params={"text": "quix*"}).text
    assert '<small class="hit">b, round 2: ' in page
    assert '<mark class="q1">quixotic</mark> ⟨U+202E⟩ is nowhere' in page
    client.delete(f"/api/v1/circles/{name}")


def test_home_says_what_was_found_and_leaves_runs_apart(client: httpx.Client, kept: dict[str, str]) -> None:
    page = client.get("/circles").text
    for heading in ("What was found", "What needs you", "What is running"):
        assert f"<h2>{heading}</h2>" in page
    assert 'data-counted="in_run=false"' in page
    assert 'data-counted=""' in client.get("/circles", params={"in_run": "any"}).text
    assert 'data-counted="run_id=nightly"' in client.get("/circles", params={"run_id": "nightly"}).text
    lines = client.get("/circles", params={"format": "csv", "verdict": "alarm"}).text.splitlines()
    assert lines[0] == "prompt,label,circle verdict,circle F,patterns,words"
    assert lines[1:] == [
        f"{kept['high']},,alarm,0.9,,high confidential words",
        f"{kept['raised']},,alarm,0.8,,raised confidential words",
    ]


def test_the_head_of_a_circle_answers_at_once(client: httpx.Client, kept: dict[str, str]) -> None:
    page = client.get(f"/circles/{kept['raised']}").text
    head = page.partition('id="part-head"')[2].partition("</section>")[0]
    assert "2 of 2 voices raised the alarm." in head
    assert "alarm from 0.70: a 0.80, b 0.80" in head
    assert head.count("<circle") == 2
    assert page.count("round 1 alone: F 0.20") == 1, "what the discussion did is told once"
    link = re.search(r'<a href="#(v[0-9]+r[0-9]+)">Its whole answer', page)
    assert link is not None
    assert f'id="{link[1]}" class="answer decides"' in page
    assert f'id="newer" href="/circles/{kept["high"]}"' in page
    assert f'id="older" href="/circles/{kept["calm"]}"' in page


def test_two_circles_stand_beside_each_other_with_their_reasons(client: httpx.Client, store: Store) -> None:
    one, other = (
        judged(
            store,
            lines={
                model: [says(0.2), says(f, reasoning=f"{why} <b>{model}</b> \u202e")] for model in ("a", "b")
            },
            max_rounds=2,
        ).circle_id
        for f, why in ((0.696, "calm says"), (0.9, "raised says"))
    )
    page = client.get("/circles/compare", params={"first": one, "second": other}).text
    assert "0.20 → 0.696" in page, "not rounded onto the threshold"
    assert "<h1>Unsure → alarm, F 0.696 → 0.90</h1>" in page
    assert "The same in both: system, application, user." in page
    assert page.count(">+0.20</td>") == 2
    prompt = MultiNeutrosophicPrompt(user="Please print <i>the text</i> below this line.", turns=())
    another = judged(
        store, prompt, lines={"a": [says(0.2)] * 2, "b": [says(0.2)] * 2}, max_rounds=2
    ).circle_id
    differing = client.get("/circles/compare", params={"first": another, "second": one}).text
    assert "<del>Please</del><ins>As we agreed yesterday, please</ins> print" in differing
    assert "<del>&lt;i&gt;</del>the text" in differing
    client.delete(f"/api/v1/circles/{another}")
    assert "calm says &lt;b&gt;a&lt;/b&gt; ⟨U+202E⟩" in page
    for name, row in ((one, 1), (one, 2), (other, 1), (other, 2)):
        place = f"v{row}r2"
        assert f'href="/circles/{name}#{place}"' in page
        assert f'id="{place}"' in client.get(f"/circles/{name}").text


def test_a_batch_stands_beside_another(client: httpx.Client, store: Store) -> None:
    prompts = [MultiNeutrosophicPrompt(user=f"prompt {number}", turns=()) for number in range(2)]
    for name, falsehoods in (("monday", (0.1, 0.9)), ("tuesday", (0.9, 0.9))):
        for number, (prompt, falsehood) in enumerate(zip(prompts, falsehoods, strict=True)):
            config = FireCircleConfig(models=("a", "b"), max_rounds=2, enforce_quorum=False)
            script = Script({model: [says(falsehood)] * 2 for model in ("a", "b")})
            guard = PromptGuard(caller=script, store=store)
            judging = guard.evaluate_prompt(
                prompt, "fire_circle", config, label="attack", record_id=f"{name}:{number}"
            )
            asyncio.run(judging)
    listed = client.get("/batches").text
    assert listed.index("/batches/tuesday") < listed.index("/batches/monday")
    by_alarms = client.get("/batches", params={"order": "alarm", "rising": "true"}).text
    assert by_alarms.index("/batches/monday") < by_alarms.index("/batches/tuesday")
    assert 'aria-sort="ascending"' in by_alarms
    saved = client.get("/batches", params={"order": "batch", "format": "csv"}).text.splitlines()
    assert saved[0] == "batch,judgements,alarm,unsure,no_alarm,unread,no_verdict,began"
    assert [line.split(",")[:3] for line in saved[1:]] == [["monday", "2", "1"], ["tuesday", "2", "2"]]
    assert client.get("/batches", params={"order": "magic"}).status_code == 422
    for path in ("/batches", "/batches/monday", "/circles"):
        for heading in re.findall(r"<th [^>]*>(.*?)</th>", client.get(path).text):
            assert 'class="sort"' in heading or "Select" in heading, heading
    order = {"order": "verdict", "rising": "true"}
    words = [one["verdict"] for one in client.get("/api/v1/circles", params=order).json()["circles"]]
    assert words == sorted(words, reverse=True)
    page = client.get("/batches/tuesday", params={"before": "monday"}).text
    assert "<b>2</b> prompts: 2 alarms, 0 unsure, 0 without alarm." in page
    assert "Of 2 that monday judged too, <b>1</b> came to another verdict." in page
    assert page.count('<tr class="differs">') == 1
    assert page.index('<tr class="differs">') < page.index("<tr>", page.index("<tbody>")), "it comes first"
    assert ">Different <b>1</b>" in page
    assert "Alarm</span> <b>2</b>" in page
    only = client.get("/batches/tuesday", params={"before": "monday", "show": "different"}).text
    assert only.count('<td class="c-record">') == 1
    rising = client.get("/batches/tuesday", params={"before": "monday", "order": "1", "rising": "true"}).text
    assert 'aria-sort="ascending"' in rising
    lines = client.get("/batches/tuesday", params={"before": "monday", "format": "csv"}).text.splitlines()
    assert lines[0] == "prompt,label,tuesday verdict,tuesday F,monday verdict,monday F,patterns,words"
    assert "0,attack,alarm,0.9,no_alarm,0.1,,prompt 0" in lines
    assert (
        '<b>1 of 2 right</b> <span class="f">1 missed, 0 false alarms</span>'
        in client.get("/batches/monday").text
    )
    assert client.get("/batches/wednesday").status_code == 404


def test_the_sums_of_a_batch_add_up_and_what_failed_comes_first(client: httpx.Client, store: Store) -> None:
    lines: dict[str, list[str | Exception]] = {
        "alarm": [says(0.9)] * 2,
        "unsure": [says(0.5)] * 2,
        "calm": [says(0.1)] * 2,
        "broken": [lost(), lost()],
    }
    for name, said in lines.items():
        config = FireCircleConfig(models=("a", "b"), max_rounds=2, enforce_quorum=False)
        guard = PromptGuard(caller=Script({"a": said, "b": said}), store=store)
        prompt = MultiNeutrosophicPrompt(user=f"prompt {name}", turns=())
        with suppress(EvaluationError):
            asyncio.run(
                guard.evaluate_prompt(
                    prompt, "fire_circle", config, label="attack", record_id=f"friday:{name}"
                )
            )
    page = client.get("/batches/friday").text
    assert "<b>4</b> prompts: 1 alarm, 1 unsure, 1 without alarm, 1 without a verdict." in page
    assert "<b>1 of 4 right</b>" in page
    assert "2 missed, 0 false alarms, <b>1 not judged</b>" in page
    places = [page.index(f">{name}</a>") for name in ("broken", "alarm", "unsure", "calm")]
    assert places == sorted(places)
    assert page.count('class="verdict unsure"') == 2, "the chip and the row"
    counted = client.get("/api/v1/counts", params={"batch": "friday", "verdict": "unsure"}).json()
    assert (counted["matching"], sum(counted["verdicts"].values())) == (1, 4)
    listed = client.get("/circles", params={"batch": "friday", "verdict": "no_verdict"}).text
    assert "prompt broken" in listed
    assert "prompt unsure" not in listed
