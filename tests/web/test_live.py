"""Circles followed while they sit: in this process, in another, over broken connections, to their end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from firecircle.store.finding import Filters
from firecircle.store.opening import Store
from firecircle.web.api.shapes import LONGEST_FOLLOWED
from tests.cli.running import endpoint
from tests.loopback import completion
from tests.scripted import says
from tests.web.serving import PATIENCE, VOICES, Running, held, judged

Event = tuple[int | None, str, Any]

ANOTHER_PROCESS = """
import sys
from firecircle.store.opening import open_store
from tests.web.serving import Held
import threading
with open_store(sys.argv[1]) as store:
    sitting = Held(store)
    thread = threading.Thread(target=sitting.hold)
    thread.start()
    for line in sys.stdin:
        sitting.let(int(line))
    sitting.let_all() if sys.argv[2] == "end" else None
    thread.join()
    print(sitting.outcome.stopped)
"""


def _until(found: Callable[[], Any]) -> Any:
    import time

    for _ in range(400):
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it never came")


def _sitting(store: Store) -> str:
    return str(_until(lambda: store.circles.find(Filters(status="sitting")).circles)[0].id)


@contextmanager
def _stream(server: Running, circle_id: str, **headers: str) -> Iterator[Iterator[Event]]:
    with (
        server.client(**headers) as client,
        client.stream("GET", f"/api/v1/circles/{circle_id}/events") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer)


def _events(answer: httpx.Response) -> Iterator[Event]:
    told: dict[str, str] = {}
    for line in answer.iter_lines():
        if not line and "event" in told:
            yield (int(told["id"]) if "id" in told else None, told["event"], json.loads(told["data"]))
        if not line:
            told = {}
            continue
        name, _, value = line.partition(": ")
        told[name] = value


def test_a_circle_is_told_as_it_goes_on_and_then_closed(server: Running, store: Store) -> None:
    with held(store) as sitting:
        name = _sitting(store)
        with _stream(server, name) as events:
            assert [next(events)[1] for _ in range(2)] == ["circle_convened", "round_started"]
            sitting.let(1)
            assert next(events)[1] == "voice_answered"
            page = httpx.get(f"{server.url}/circles/{name}", timeout=PATIENCE).text
            assert "asked …" in page
            assert "live:" in page
            sitting.let_all()
            kinds = [kind for _, kind, _ in events]
            assert kinds[-1] == "closed"
    assert store.circles.summary(name).status == "all_rounds_held"


def test_a_broken_connection_goes_on_where_it_was(server: Running, store: Store) -> None:
    with held(store) as sitting:
        name = _sitting(store)
        sitting.let(2)
        with _stream(server, name) as events:
            first = [next(events)[0] for _ in range(3)]
        with _stream(server, name, **{"last-event-id": str(first[-1])}) as events:
            following = next(events)[0]
        assert [*first, following] == [0, 1, 2, 3]


def test_who_comes_late_learns_that_it_is_over(server: Running, store: Store) -> None:
    kept = judged(store)
    with _stream(server, kept.circle_id, **{"last-event-id": "7"}) as events:
        (last,) = list(events)
    assert last[1] == "closed"
    assert last[2]["status"] == "all_rounds_held"


@pytest.mark.parametrize("given", ["x", "-2", "99999999999"])
def test_a_wrong_place_is_refused(client: httpx.Client, store: Store, given: str) -> None:
    kept = judged(store)
    answer = client.get(f"/api/v1/circles/{kept.circle_id}/events", headers={"last-event-id": given})
    assert answer.status_code == 422


@contextmanager
def _process(store: Store, end: str) -> Iterator[subprocess.Popen[str]]:
    """A circle held by a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER_PROCESS, store.name, end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_circle_of_another_process_is_seen_live(server: Running, store: Store) -> None:
    with _process(store, "end") as other:
        name = _sitting(store)
        assert other.stdin is not None
        with _stream(server, name) as events:
            assert [next(events)[1] for _ in range(2)] == ["circle_convened", "round_started"]
            other.stdin.write("1\n")
            other.stdin.flush()
            _, kind, told = next(events)
            assert kind == "voice_answered"
            assert told["evaluation"]["falsehood"] == 0.8
            other.stdin.close()
            assert [kind for _, kind, _ in events][-1] == "closed"
        assert other.stdout is not None
        assert other.stdout.read().strip() == "all_rounds_held"


def test_a_circle_of_another_process_is_called_off(
    server: Running, client: httpx.Client, store: Store
) -> None:
    with _process(store, "wait") as other:
        name = _sitting(store)
        assert other.stdin is not None
        assert client.delete(f"/api/v1/circles/{name}").status_code == 409
        with _stream(server, name) as events:
            assert client.post(f"/api/v1/circles/{name}/cancel").status_code == 202
            other.stdin.close()
            assert [kind for _, kind, _ in events][-1] == "closed"
        assert other.stdout is not None
        assert other.stdout.read().strip() == "cancelled"
    assert store.circles.summary(name).status == "cancelled"


def test_a_killed_process_leaves_what_was_heard(server: Running, client: httpx.Client, store: Store) -> None:
    with _process(store, "wait") as other:
        name = _sitting(store)
        assert other.stdin is not None
        with _stream(server, name) as events:
            other.stdin.write("1\n")
            other.stdin.flush()
            while next(events)[1] != "voice_answered":
                pass
            other.kill()
            other.wait()
            last = list(events)[-1]
        assert last[1] == "closed"
        assert last[2]["status"] == "interrupted"
    assert "0.80" in client.get(f"/circles/{name}").text


def test_a_circle_convened_here_is_called_off_at_once(
    server: Running, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(lambda _: completion(says(0.5), latency=30.0)) as hosted:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test-key")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", hosted.base_url)
        models = ["anthropic/claude-sonnet-4", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1"]
        begun = client.post("/api/v1/evaluate", json={"user": "hello there", "models": models})
        assert begun.status_code == 202, begun.text
        name = begun.json()["id"]
        with _stream(server, name) as events:
            assert next(events)[1] == "circle_convened"
            assert client.post(f"/api/v1/circles/{name}/cancel").status_code == 202
            assert [kind for _, kind, _ in events][-1] == "closed"
        assert server.store.circles.summary(name).status == "cancelled"


def test_voices_that_are_still_asked_are_told_apart_from_the_lost(server: Running, store: Store) -> None:
    with held(store) as sitting:
        name = _sitting(store)
        sitting.let(1)
        _until(lambda: "0.80" in httpx.get(f"{server.url}/circles/{name}", timeout=PATIENCE).text)
        page = httpx.get(f"{server.url}/circles/{name}", timeout=PATIENCE).text
        assert page.count("asked …") == len(VOICES) - 1
        assert "not asked" not in page


def test_a_circle_that_was_called_off_tells_who_had_not_answered(
    server: Running, client: httpx.Client, store: Store
) -> None:
    with held(store) as sitting:
        name = _sitting(store)
        sitting.let(1)
        _until(lambda: "0.80" in client.get(f"/circles/{name}").text)
        with _stream(server, name) as events:
            assert client.post(f"/api/v1/circles/{name}/cancel").status_code == 202
            assert [kind for _, kind, _ in events][-1] == "closed"
    for path in (f"/circles/{name}", f"/api/v1/circles/{name}/export?format=html"):
        page = client.get(path).text
        assert page.count("asked, no answer") == len(VOICES) - 1
        assert "not asked" not in page
    assert "lost</span>" not in client.get("/circles?status=cancelled").text


def test_nothing_is_told_before_there_is_something(client: httpx.Client, store: Store) -> None:
    early = ("<dt>Took</dt>", "<dt>Cost</dt>", "No voice changed its falsehood", "the empty chair saw")
    with held(store) as sitting:
        name = _sitting(store)
        page = client.get(f"/circles/{name}").text
        assert [words for words in early if words in page] == []
        sitting.let(1)
        _until(lambda: "<dt>Cost</dt>" in client.get(f"/circles/{name}").text)
    whole = client.get(f"/circles/{name}").text
    assert all(words in whole for words in (early[0], early[1], early[3]))


def test_as_many_circles_as_may_be_followed_fit_into_an_address(client: httpx.Client) -> None:
    followed = "\N{DESERET CAPITAL LETTER LONG I}" * LONGEST_FOLLOWED  # twelve bytes each in an address
    assert client.get("/api/v1/live", params={"follow": followed}).status_code == 200
    assert client.get("/api/v1/live", params={"follow": "-" * (LONGEST_FOLLOWED + 1)}).status_code == 422
