"""Runs in the store: known from their beginning, found wherever they lie."""

from __future__ import annotations

from firecircle.store.figures import KnownRun
from firecircle.store.opening import Store


def run(name: str, at: float) -> KnownRun:
    return KnownRun(
        folder=f"/somewhere/{name}",
        run_id=name,
        plan="dialogue",
        digest="d1",
        arms=("circle", "single"),
        judgements=360,
        started_at=at,
    )


def test_runs_are_listed_newest_first_and_finish_once(store: Store) -> None:
    store.runs.begin(run("first", 1.0))
    store.runs.begin(run("second", 2.0))
    assert [known.run_id for known in store.runs.each()] == ["second", "first"]
    assert store.runs.each()[1] == run("first", 1.0)
    store.runs.finish("/somewhere/first")
    finished = {known.run_id: known.finished_at for known in store.runs.each()}
    assert finished["first"] is not None
    assert finished["second"] is None


def test_a_run_that_is_taken_up_again_is_known_already(store: Store) -> None:
    store.runs.begin(run("first", 1.0))
    store.runs.begin(run("first", 9.0))
    assert store.runs.each() == (run("first", 1.0),)
