"""Circles are written down while they sit, and never at the cost of the verdict."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle import ConfigError, EvaluationError, fire_circle_evaluate, partial_result_of
from firecircle.errors import NotKeptWarning
from firecircle.store.finding import Filters
from firecircle.store.opening import Store
from firecircle.store.tables import circles
from tests.scripted import PROMPT, After, Script, circle
from tests.store.samples import VOICES, held, script


async def sitting_in(store: Store) -> str:
    """The id of the circle that sits, as soon as it is written down with what was said first."""
    async with asyncio.timeout(20):
        while True:
            for one in store.circles.find(Filters(status="sitting")).circles:
                if len(store.circles.events_after(one.pk)) >= 5:
                    return one.id
            await asyncio.sleep(0.02)


async def test_a_sitting_circle_can_be_read(store: Store) -> None:
    quick_then_slow = [0.3, After(60, 0.4)]
    config = circle(*VOICES, max_rounds=2)
    lines = Script(dict.fromkeys(VOICES, quick_then_slow))
    judging = asyncio.create_task(fire_circle_evaluate(PROMPT, config, caller=lines, store=store))
    name = await sitting_in(store)
    partial = store.circles.load(name)
    assert len(partial.calls) == 3
    store.circles.set_label(name, "live")
    judging.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await judging
    summary = store.circles.summary(name)
    assert (summary.status, summary.label) == ("cancelled", "live")
    assert store.circles.load(name) == partial_result_of(cancelled.value)
    assert store.circles.events_after(summary.pk) == []


async def test_a_circle_can_be_called_off_through_the_store(store: Store) -> None:
    lines = Script({voice: [0.3, After(60, 0.4)] for voice in VOICES})
    config = circle(*VOICES, max_rounds=2)
    judging = asyncio.create_task(fire_circle_evaluate(PROMPT, config, caller=lines, store=store))
    name = await sitting_in(store)
    assert sum(store.circles.prune(Filters())) == 0  # one that sits stays
    store.circles.ask_to_cancel(name)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(judging, 20)
    assert store.circles.summary(name).status == "cancelled"


async def test_an_aborted_circle_is_kept(store: Store) -> None:
    lines = Script({"ash": [0.3], "birch": [ValueError("no")], "cedar": [0.2]})
    config = circle(*VOICES, failure_mode="strict")
    with pytest.raises(EvaluationError) as failed:
        await fire_circle_evaluate(PROMPT, config, caller=lines, store=store)
    (summary,) = store.circles.find(Filters(status="aborted")).circles
    assert (summary.alarm, summary.failures, summary.partial) == (None, 1, True)
    assert store.circles.load(summary.id) == failed.value.partial_result


async def test_many_circles_at_once(store: Store) -> None:
    results = await asyncio.gather(*(held(store, 0.1, 0.2, label=str(number)) for number in range(30)))
    assert store.circles.count() == 30
    for number, result in enumerate(results):
        assert store.circles.load(result.circle_id) == result
        assert store.circles.summary(result.circle_id).label == str(number)


async def test_a_circle_that_sits_cannot_be_deleted(store: Store) -> None:
    lines = Script({voice: [0.3, After(60, 0.4)] for voice in VOICES})
    judging = asyncio.create_task(
        fire_circle_evaluate(PROMPT, circle(*VOICES, max_rounds=2), caller=lines, store=store)
    )
    name = await sitting_in(store)
    with pytest.raises(ConfigError, match="still running; cancel it first"):
        store.circles.delete(name)
    judging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await judging
    assert store.circles.summary(name).status == "cancelled"


async def test_one_that_is_gone_nevertheless_stays_away_and_disturbs_nobody(store: Store) -> None:
    """As when a circle was taken for interrupted and pruned, and its machine wakes up again."""
    lines = Script({voice: [0.3, After(1.0, 0.4)] for voice in VOICES})
    config = circle(*VOICES, max_rounds=2)
    judging = asyncio.create_task(fire_circle_evaluate(PROMPT, config, caller=lines, store=store))
    gone = await sitting_in(store)
    with store.database.writing() as connection:
        connection.execute(sa.delete(circles).where(circles.c.id == gone))
    # The next circle may get the key that became free.
    longer = Script({voice: [0.9, After(1.5, 0.8)] for voice in VOICES})
    other = asyncio.create_task(
        fire_circle_evaluate(PROMPT, config, caller=longer, store=store, label="other")
    )
    with pytest.warns(NotKeptWarning, match="deleted from the store while it ran"):
        assert (await judging).consensus
    result = await other
    (kept,) = store.circles.find().circles
    assert (kept.id, kept.label) == (result.circle_id, "other")
    assert store.circles.load(kept.id) == result
    assert store.circles.events_after(kept.pk) == []


async def test_a_store_that_cannot_be_used_costs_a_warning_and_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(NotKeptWarning, match="cannot use"):
        result = await fire_circle_evaluate(
            PROMPT,
            circle(*VOICES, max_rounds=1),
            caller=script(0.9),
            store=Store(tmp_path / "file" / "circles.sqlite"),
        )
    assert result.alarm


async def test_the_database_is_opened_when_it_is_needed(place: str) -> None:
    with Store(place) as store:
        result = await held(store, 0.1)
        assert store.recorder.latest == result.circle_id
        assert store.circles.load(result.circle_id) == result
