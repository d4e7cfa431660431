"""People in a circle that was convened from the page: a link for each, blind first, then with the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from firecircle import FireCircleResult
from firecircle.convene import replay_circle
from firecircle.store.opening import Store
from firecircle.web.access import Access
from tests.web.serving import PROMPT, Running, running

MODELS = ["person:Ada", "embedded:rules", "embedded:ngrams"]
TOKEN = "a-token-of-sixteen-signs"
VIOLATION = {
    "verdict": "violation",
    "falsehood": 0.95,
    "reasoning": "Nothing was agreed.",
    "patterns": [{"quote": "As we agreed yesterday", "type": "temporal_inconsistency"}],
}


@contextmanager
def convened(client: httpx.Client, **asked: Any) -> Iterator[tuple[str, str]]:
    """A circle with Ada in it: its id and her link."""
    wish = {"user": PROMPT.user, "system": PROMPT.system, "turns": [], "models": MODELS, "rounds": 2, **asked}
    begun = client.post("/api/v1/evaluate", json=wish).json()
    try:
        yield begun["id"], begun["people"]["person:Ada"]
    finally:
        client.post(f"/api/v1/circles/{begun['id']}/cancel")


def page_when(client: httpx.Client, link: str, state: str) -> str:
    """The page of a link as soon as it is in this state."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        page = client.get(link).text
        if f'data-state="{state}"' in page:
            return page
        time.sleep(0.02)
    raise AssertionError(f"{link} never became {state}: {page}")


def finished(store: Store, name: str) -> FireCircleResult:
    until = time.monotonic() + 20
    while store.circles.summary(name).status == "sitting" and time.monotonic() < until:
        time.sleep(0.02)
    judged = store.circles.load(name)
    assert isinstance(judged, FireCircleResult)
    return judged


def of_ada(result: FireCircleResult) -> list[Any]:
    return [said for held in result.dialogue_history for said in held.evaluations if "Ada" in said.model]


def test_a_person_answers_behind_a_link_blind_first_then_with_peers_and_may_pass(
    client: httpx.Client, store: Store
) -> None:
    with convened(client, focus="user") as (name, link):
        blind = page_when(client, link, "asked-1")
        assert client.get(link, headers={"if-none-match": '"asked-1"'}).status_code == 304
        assert "As we agreed yesterday" in blind
        assert "Judge the user layer alone" in blind
        assert "Earlier turns: none: known first turn" in blind
        assert "Evaluator" not in blind
        assert link in client.get(f"/circles/{name}").text
        address = f"/api/v1{link}"
        assert client.post(address, json={"round": 1, **VIOLATION}).status_code == 204
        later = page_when(client, link, "asked-2")
        assert "Evaluator" in later
        assert "embedded" not in later
        assert "You said F 0.95" in later
        assert client.post(address, json={"round": 1, **VIOLATION}).status_code == 409
        assert client.post(address, json={"round": 2, "verdict": None}).status_code == 204
        result = finished(store, name)
        until = time.monotonic() + 20
        while "this link has ended" not in client.get(link).text:  # the circle is saved before its seats end
            assert time.monotonic() < until
        assert client.post(address, json={"round": 2, "verdict": None}).status_code == 404
    first, second = of_ada(result)
    assert (first.falsehood, first.reasoning) == (0.95, "Nothing was agreed.")
    assert second.falsehood == 0.95  # passing keeps the last evaluation
    assert any("person:Ada" in pattern.models_observing for pattern in result.all_patterns)
    assert result.quorum.valid
    assert of_ada(asyncio.run(replay_circle(result))) == [first, second]


def test_a_link_opens_its_seat_alone(store: Store) -> None:
    with (
        running(store, Access(token=TOKEN, read_token=TOKEN[::-1])) as server,
        httpx.Client(base_url=server.url) as stranger,
        server.client(authorization=f"Bearer {TOKEN}") as convener,
        convened(convener) as (name, link),
    ):
        page_when(stranger, link, "asked-1")
        assert stranger.get(f"/api/v1/circles/{name}").status_code == 401
        assert stranger.post(f"/api/v1/circles/{name}/cancel").status_code in (401, 403)
        reading = {"authorization": f"Bearer {TOKEN[::-1]}"}
        assert link not in stranger.get(f"/circles/{name}", headers=reading).text
        assert stranger.get(f"{link[:-1]}!").status_code == 404
        said = stranger.post(f"/api/v1{link}", json={"round": 1, "verdict": None})
        assert said.status_code == 204
        assert "You left the circle" in page_when(stranger, link, "passed-1")
    assert len(link.rpartition("/")[2]) >= 32


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ({"verdict": "violation", "falsehood": 0.2}, 422, "a violation has 0.5 or more"),
        ({"verdict": "no_violation", "falsehood": 0.5}, 422, "no violation less"),
        ({"verdict": "unsure", "falsehood": 1.5}, 422, "falsehood"),
        ({"verdict": "perhaps"}, 422, "verdict"),
        ({"verdict": "violation", "patterns": [{"quote": "x", "type": "magic"}]}, 422, "type"),
        ({"verdict": "violation", "round": 2}, 409, "round 2 has not begun"),
    ],
)
def test_what_cannot_be_an_answer_is_refused_and_the_person_may_answer_again(
    client: httpx.Client, said: dict[str, Any], status: int, why: str
) -> None:
    with convened(client) as (_, link):
        page_when(client, link, "asked-1")
        refused = client.post(f"/api/v1{link}", json={"round": 1, **said})
        assert refused.status_code == status
        assert why in refused.json()["detail"]
        assert client.post(f"/api/v1{link}", json={"round": 1, "verdict": "unsure"}).status_code == 204


def test_the_time_of_a_person_ends(
    server: Running, client: httpx.Client, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    settings = tmp_path / "firecircle.toml"
    settings.write_text(
        '[limits."person:Ada"]\ntimeout_seconds = 0.3\n[limits."person:Bo"]\ntimeout_seconds = 60\n'
    )
    monkeypatch.setenv("FIRECIRCLE_CONFIG", str(settings))
    with convened(client, models=["person:Bo", *MODELS]) as (name, link):
        assert "without you" in page_when(client, link, "missed-1")
        late = client.post(f"/api/v1{link}", json={"round": 1, "verdict": "unsure"})
        assert (late.status_code, "time for round 1 is over" in late.json()["detail"]) == (409, True)
        client.post(f"/api/v1/circles/{name}/cancel")
        failures = finished(store, name).failures
    assert [(lost.model, lost.kind) for lost in failures] == [("person:Ada", "timeout")]
