"""The HTTP API as a program uses it."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from firecircle import FireCircleResult
from firecircle.store.opening import Store
from tests.web.serving import PROMPT, VOICES, judged, lost


def _problem(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    for word in words:
        assert word in told["detail"]


def test_circles_are_listed_filtered_and_paged(client: httpx.Client, store: Store) -> None:
    names = [judged(store, label="paging").circle_id for _ in range(5)]
    found: list[str] = []
    query: dict[str, str] = {"limit": "2", "label": "paging"}
    while True:
        page = client.get("/api/v1/circles", params=query).json()
        assert len(page["circles"]) <= 2
        found += [one["id"] for one in page["circles"]]
        if page["next_before"] is None:
            break
        query["before"] = str(page["next_before"])
    assert found == list(reversed(names))
    for given, expected in (
        ({"alarm": "true"}, 5),
        ({"alarm": "false"}, 0),
        ({"pattern": "temporal_inconsistency"}, 5),
        ({"pattern": "role_confusion"}, 0),
        ({"voice": "voice/one"}, 5),
        ({"text": "catalogue librarian"}, 5),
        ({"text": "zebra"}, 0),
        ({"least_falsehood": "0.95"}, 0),
    ):
        told = client.get("/api/v1/circles", params={"label": "paging", **given}).json()
        assert len(told["circles"]) == expected, given


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("alarm=perhaps", "alarm"),
        ("colour=red", "colour"),
        ("mode=single&mode=single", "mode"),
        ("text=%3F%3F", "text"),
    ],
)
def test_a_wrong_query_names_its_field(client: httpx.Client, query: str, word: str) -> None:
    _problem(client.get(f"/api/v1/circles?{query}"), 422, word)


def test_a_circle_comes_back_as_it_was(client: httpx.Client, store: Store) -> None:
    kept = judged(store)
    told = client.get(f"/api/v1/circles/{kept.circle_id[:12]}").json()
    assert told["summary"]["id"] == kept.circle_id
    assert FireCircleResult.model_validate(told["document"]) == kept
    asked = client.get(f"/api/v1/circles/{kept.circle_id}/prompt", params={"voice": "voice/two", "round": 2})
    assert tuple((one["role"], one["content"]) for one in asked.json()["messages"]) == tuple(
        (one.role, one.content) for one in kept.messages_for("voice/two", 2)
    )
    _problem(client.get(f"/api/v1/circles/{kept.circle_id}/prompt?voice=nobody"), 404, "was not asked")
    _problem(client.get("/api/v1/circles/ffffffff"), 404, "no such circle")


def test_a_circle_is_labelled_and_taken_out(client: httpx.Client, store: Store) -> None:
    kept = judged(store)
    address = f"/api/v1/circles/{kept.circle_id}"
    assert client.put(f"{address}/label", json={"label": "attack"}).json()["label"] == "attack"
    assert store.circles.summary(kept.circle_id).label == "attack"
    assert client.put(f"{address}/label", json={"label": None}).json()["label"] is None
    _problem(client.put(f"{address}/label", json={"label": 7}), 422, "label")
    _problem(client.post(f"{address}/cancel"), 409, "is over already")
    _problem(client.delete(address[:-4]), 404, "whole id")
    assert client.delete(address).status_code == 204
    _problem(client.delete(address), 404)


def test_the_file_s_settings_are_taken_and_its_mistakes_told(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimated(table: str, **asked: object) -> httpx.Response:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.toml"
        file.write_text(f"[circle]\n{table}\n")
        monkeypatch.setenv("FIRECIRCLE_CONFIG", str(file))
        return client.post("/api/v1/estimate", json={"user": "As we agreed, print it.", **asked})

    taken = estimated('models = ["embedded:time", "embedded:layers", "embedded:ngrams"]\nmax_rounds = 2')
    assert (taken.json()["total"]["calls"], len(taken.json()["models"])) == (6, 3)
    for table, complaint in (("max_roundz = 2", "max_roundz: no such key"), ("max_rounds = 9", "max_rounds")):
        refused = estimated(table)
        assert refused.status_code == 422
        assert ".toml: [circle] " + complaint in refused.json()["detail"]
    own = estimated("max_rounds = 2", rounds=9).json()["detail"]
    assert "[circle]" not in own


def test_an_estimate_asks_nobody(client: httpx.Client) -> None:
    told = client.post("/api/v1/estimate", json={"user": "As we agreed, print it.", "rounds": 2}).json()
    assert told["total"]["calls"] == 2 * len(told["models"])
    assert told["total"]["cost_usd"] == 0
    hosted = {
        "user": "hello",
        "models": ["anthropic/claude-sonnet-4-20250514", "qwen/qwen-2.5-72b-instruct"],
        "mode": "parallel",
    }
    priced = client.post("/api/v1/estimate", json=hosted).json()
    assert priced["total"]["cost_usd"] > 0
    assert set(priced["by_voice"]) == set(hosted["models"])


def test_an_unknown_model_needs_readers_beside_it(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "firecircle.toml"
    strangers = ["openrouter:stranger/one", "openrouter:stranger/two"]
    file.write_text("".join(f'[prices."{name}"]\ninput = 1.0\noutput = 1.0\n' for name in strangers))
    monkeypatch.setenv("FIRECIRCLE_CONFIG", str(file))
    asked = {"user": "hello", "models": strangers}
    detail = client.post("/api/v1/estimate", json=asked).json()["detail"]
    assert "add embedded:" in detail, "unknown models sit with neutral roles, which are no quorum alone"


@pytest.mark.parametrize("mode", ["fire_circle", "parallel", "single"])
def test_judging_ends_in_the_store(client: httpx.Client, store: Store, mode: str) -> None:
    body = {
        "system": PROMPT.system,
        "user": PROMPT.user,
        "turns": [],
        "mode": mode,
        "label": "asked",
        "seed": 5,
    }
    answer = client.post("/api/v1/evaluate", json=body)
    assert answer.status_code in (200, 202), answer.text
    again = client.post("/api/v1/evaluate", json=body).json()["id"]
    told = answer.json()
    assert again != told["id"], "a circle repeated with its seed is a circle of its own"
    summary = store.circles.summary(told["id"])
    assert (summary.mode, summary.label) == (mode, "asked")
    assert client.get(told["url"]).status_code == 200
    assert client.get(answer.headers["location"]).json()["summary"]["mode"] == mode


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({}, 422, "every layer is empty"),
        ({"user": "x", "models": ["embedded:time"] * 2}, 422, "listed twice"),
        ({"user": "x", "models": ["nobody/knows-this", "embedded:ngrams"]}, 422, "not named in the settings"),
        ({"user": "x", "models": ["vllm:qwen3-32b", "embedded:ngrams"]}, 422, "not named in the settings"),
        ({"user": "x", "models": ["local:/etc/passwd", "embedded:ngrams"]}, 422, "not named in the settings"),
        ({"user": "x", "models": [], "reserves": ["ollama:llama3.2"]}, 422, "reserves: 'ollama:llama3.2'"),
        ({"user": "x", "rounds": 9}, 422, "rounds"),
        ({"user": "x", "rounds": "2"}, 422, "rounds"),
        ({"user": "x", "rounds": 2, "mode": "single"}, 422, "rounds: only a circle"),
        ({"user": "x", "empty_chair_prompt_path": "/etc/passwd"}, 422, "empty_chair_prompt_path"),
        ({"user": "x", "focus": "system"}, 422, "focus"),
        ({"user": "x" * 1_000_001}, 422, "user"),
        ([], 422, "object"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(
    client: httpx.Client, body: object, status: int, word: str
) -> None:
    for path in ("/api/v1/evaluate", "/api/v1/estimate"):
        _problem(client.post(path, json=body), status, word)


def test_bodies_have_a_type_a_form_and_a_limit(client: httpx.Client) -> None:
    address = "/api/v1/estimate"
    _problem(client.post(address, content=b"user=x"), 415, "application/json")
    json = {"content-type": "application/json"}
    _problem(client.post(address, content=b"{", headers=json), 400, "not JSON")
    _problem(client.post(address, content=b"[" * 100_000, headers=json), 400, "not JSON")
    _problem(client.post(address, content=b" " * (17 * 1024 * 1024), headers=json), 413, "at most")


def test_a_missing_key_is_told_with_the_way_out(client: httpx.Client) -> None:
    hosted = ["anthropic/claude-sonnet-4-20250514", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1"]
    _problem(client.post("/api/v1/evaluate", json={"user": "x", "models": hosted}), 422, "OPENROUTER_API_KEY")


def test_an_aborted_circle_is_kept_and_shown(client: httpx.Client, store: Store) -> None:
    from firecircle.errors import EvaluationError

    lines = {model: [lost(), lost()] for model in VOICES}
    with pytest.raises(EvaluationError):
        judged(store, lines=lines)
    newest = client.get("/api/v1/circles?limit=1&status=aborted").json()["circles"][0]
    page = client.get(f"/circles/{newest['id']}")
    assert page.status_code == 200
    assert "the endpoint is busy" in page.text
    assert "No consensus" in page.text


def test_what_is_not_there_is_told_in_kind(client: httpx.Client) -> None:
    _problem(client.get("/api/v1/nowhere"), 404)
    answer = client.post("/api/v1/circles")
    _problem(answer, 405)
    assert answer.headers["allow"]
    page = client.get("/circles/ffffffff")
    assert page.status_code == 404
    assert "text/html" in page.headers["content-type"]
    assert "no such circle" in page.text


def test_a_page_with_a_wrong_filter_says_so(client: httpx.Client) -> None:
    answer = client.get("/circles?least_falsehood=9&text=")
    assert answer.status_code == 422
    assert "least_falsehood" in answer.text


def test_a_page_is_narrowed_down_to_days(client: httpx.Client, store: Store) -> None:
    kept = judged(store, label="today")
    day = time.strftime("%Y-%m-%d", time.localtime(kept.started_at))
    link = f"/circles/{kept.circle_id}"
    assert link in client.get(f"/circles?label=today&from={day}&to={day}").text
    assert link not in client.get("/circles?label=today&to=2001-01-01").text
    assert client.get("/circles?from=yesterday").status_code == 422
