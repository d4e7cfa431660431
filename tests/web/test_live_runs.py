"""A run of another process in the viewer: its circles while they sit, and where they are found afterwards."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from firecircle.store.opening import Store, open_store
from tests.lab.live_runs import PLAN, Gate, finish, gated, running, until
from tests.web import serving
from tests.web.serving import Running

pytest.importorskip("duckdb", reason="runs need the extra `lab`")


@pytest.fixture
def store() -> Iterator[Store]:
    """The user's own: where a run writes."""
    with open_store() as opened:
        yield opened


@pytest.fixture
def server(store: Store) -> Iterator[Running]:
    with serving.running(store) as started:
        yield started


def events_of(lines: Iterator[str]) -> Iterator[str]:
    """The names of server-sent events as they come."""
    for line in lines:
        if line.startswith("event: "):
            yield line.removeprefix("event: ")


def test_a_run_s_circle_is_seen_live_and_found_again(client: httpx.Client, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("sample = 2", "sample = 1"))
    with gated() as (hosted, gate), running(hosted, plan, tmp_path / "one") as process:
        query = {"run_id": "one", "status": "sitting"}
        (one,) = until(lambda: client.get("/api/v1/circles", params=query).json()["circles"])
        address = f"/circles/{one['id']}"
        assert (one["arm"], one["run_id"]) == ("circle", "one")
        assert f'href="{address}"' in client.get("/runs/one").text
        assert "Running now" in client.get("/runs/one").text
        watch_it_fill_in(client, address, gate)
        refused(client, address)
        gate.open = True
        finish(process)

    over = client.get(address).text
    assert 'href="/runs/one"' in over
    assert f"arm circle, record {one['record_id']}" in over
    page = client.get("/runs/one").text
    assert "Running now" not in page
    judgements = page.partition('id="judgements"')[2]
    assert f'<a href="{address}">{html.escape(one["record_id"])}</a>' in judgements
    assert address in client.get("/circles?run_id=one").text
    assert address not in client.get("/circles?run_id=other").text
    assert address in client.get("/circles?in_run=true").text
    assert address not in client.get("/circles?in_run=false").text
    again = f"/runs/one/circle?arm=circle&dataset=examples&record={one['record_id']}&repeat=0"
    assert f'href="{address}"' in client.get(again).text
    assert len(client.get("/api/v1/circles").json()["circles"]) == 1


def watch_it_fill_in(client: httpx.Client, address: str, gate: Gate) -> None:
    with client.stream("GET", f"/api/v1{address}/events") as answer:
        told = events_of(answer.iter_lines())
        assert [next(told), next(told)] == ["circle_convened", "round_started"]
        gate.let(1)
        assert next(told) == "voice_answered"
        gate.let(2)
        assert "round_closed" in [next(told) for _ in range(4)]
    until(lambda: "Round 2" in client.get(address).text)
    page = client.get(address).text
    assert 'id="cancel"' not in page
    assert "stop the run where it was started" in page


def refused(client: httpx.Client, address: str) -> None:
    for method, way in (("POST", f"/api/v1{address}/cancel"), ("DELETE", f"/api/v1{address}")):
        answer = client.request(method, way)
        assert answer.status_code == 409
        assert answer.headers["content-type"] == "application/problem+json"
        assert re.search("stop that run where it runs|wait until it is over", answer.json()["detail"])
    assert json.loads(client.get(f"/api/v1{address}").text)["summary"]["status"] == "sitting"


def test_a_judgement_leads_to_a_kept_circle_only_when_that_is_whole(
    client: httpx.Client, store: Store, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("sample = 2", "sample = 1"))
    query = {"run_id": "one"}
    with gated() as (hosted, gate):
        with running(hosted, plan, tmp_path / "one") as process:
            (one,) = until(lambda: client.get("/api/v1/circles", params=query).json()["circles"])
            with closing(sqlite3.connect(store.name, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                gate.open = True
                until(lambda: "1 of 1" in client.get("/runs/one").text)
                process.kill()
                process.wait()
        (left,) = client.get("/api/v1/circles", params=query).json()["circles"]
        assert left["status"] == "interrupted"
        again = f"/runs/one/circle?arm=circle&amp;dataset=examples&amp;record={one['record_id']}&amp;repeat=0"
        assert f'<a href="{again}">' in client.get("/runs/one").text.partition('id="judgements"')[2]
        assert f'href="/circles/{one["id"]}"' not in client.get(html.unescape(again)).text
        with running(hosted, plan, tmp_path / "one") as process:
            finish(process)
    judgements = client.get("/runs/one").text.partition('id="judgements"')[2]
    assert f'<a href="/circles/{one["id"]}">' in judgements
    assert f'href="/circles/{one["id"]}"' in client.get(html.unescape(again)).text
