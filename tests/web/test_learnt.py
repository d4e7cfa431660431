"""Bank, blind spots and rotation: what circles taught, in the browser and over the API."""

from __future__ import annotations

import html
import re
from pathlib import Path

import httpx
import pytest

from firecircle.store.bank.bank import learn
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from tests.cli.test_runs_left_out import of_a_run
from tests.scripted import says
from tests.store.bank.test_blindspots import turned
from tests.web.hostile import PAYLOADS
from tests.web.serving import judged, running


@pytest.fixture(autouse=True)
def _learnt(store: Store) -> None:
    judged(store, label="attack")
    for _ in learn(store.bank, store.circles, Filters()):
        pass


def test_the_bank_is_searched_and_leads_to_its_circles(client: httpx.Client) -> None:
    entries = client.get("/api/v1/bank").json()["entries"]
    assert {one["pattern_type"] for one in entries} >= {"temporal_inconsistency", "polite_extraction"}
    assert client.get("/api/v1/bank", params={"text": "zebra"}).json()["entries"] == []
    page = client.get("/bank", params={"pattern_type": "temporal_inconsistency", "text": ""})
    found = next(one for one in entries if one["pattern_type"] == "temporal_inconsistency")
    assert f"/bank/{found['id']}" in page.text
    entry = client.get(f"/api/v1/bank/{found['id']}").json()
    shown = client.get(f"/bank/{found['id']}").text
    assert f"/circles/{entry['seen'][0]['circle_id']}" in shown
    assert client.get("/bank/nothing-like-it").status_code == 404
    assert client.get("/bank?limit=9999").status_code == 422


def test_blind_spots_are_told_with_their_circles(client: httpx.Client, store: Store) -> None:
    told = client.get("/api/v1/blindspots").json()
    assert told["circles"]["total"] >= 1
    overlooked = {voice for group in told["groups"] for voice in group["voices"]}
    assert "voice/one" in overlooked
    page = client.get("/blindspots").text
    assert f"/circles/{told['groups'][0]['quotes'][0]['circle_id']}" in page


def test_blind_spots_are_read_a_stretch_at_a_time(
    client: httpx.Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firecircle.web.api.lookups.MOST_READ", 2)
    judged(store)
    judged(store)
    whole, read = store.circles.find(limit=1000).circles, 0
    query: dict[str, int] = {}
    while True:
        told = client.get("/api/v1/blindspots", params=query).json()
        assert told["circles"]["total"] <= 2
        read += told["circles"]["total"]
        page = client.get("/blindspots", params=query).text
        assert ("Older circles" in page) == (told["next_before"] is not None)
        assert ("Back to the newest" in page) == bool(query)
        if told["next_before"] is None:
            break
        query = {"before": told["next_before"]}
    assert read == len(whole) > 2


async def test_blind_spots_leave_runs_out_unless_asked_for(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite") as apart:
        await turned(apart)
        for arm in ("one", "two"):
            await of_a_run(apart, arm)
        with running(apart) as viewer, viewer.client() as client:
            for query, circles in (("", 1), ("?in_run=true", 2), ("?run_id=nightly", 2)):
                told = client.get(f"/api/v1/blindspots{query}").json()
                assert told["circles"]["total"] == circles
            assert "Circles of runs are left out" in client.get("/blindspots").text


def test_nothing_overlooked_is_said_only_where_it_is_so(tmp_path: Path) -> None:
    calm = {model: [says(0.1)] * 2 for model in ("a", "b")}
    with open_store(tmp_path / "few.sqlite") as apart, running(apart) as viewer, viewer.client() as client:
        assert "No saved circle matches." in client.get("/blindspots").text
        judged(apart, lines=calm, label="benign", max_rounds=2)
        assert "Nothing was overlooked in these circles." in client.get("/blindspots").text
        judged(apart, lines=calm, label="attack", max_rounds=2)
        page = client.get("/blindspots").text
        assert "Nothing was overlooked" not in page
        shown = re.search(r'<a href="/circles[?]([^"]+)">1 circle in all</a> missed an attack', page)
        assert shown is not None
        judged(apart, lines=calm, label="attack", max_rounds=2)
        missed = client.get(f"/circles?{html.unescape(shown[1])}").text.count('class="c-title"')
        assert f">{missed} circles in all</a> missed an attack" in client.get("/blindspots").text


def test_rotation_tells_who_was_heard(client: httpx.Client) -> None:
    report = client.get("/api/v1/rotation").json()
    heard = {one["voice_id"]: one["count"] for one in report["voices"]}
    assert heard["voice/one"] >= 1
    page = client.get("/rotation").text
    assert "voice/one" in page
    assert "an even share" in page


def test_hostile_patterns_stay_text(client: httpx.Client, store: Store) -> None:
    from firecircle.store.bank.entries import NewSighting

    for payload in PAYLOADS[:8]:
        told = NewSighting(description=payload, agreement=0.5, attack_id=payload[:60], examples=(payload,))
        entry, _ = store.bank.add(told, pattern_type=payload[:60])
        for path in ("/bank", f"/bank/{entry}"):
            assert payload not in client.get(path).text
