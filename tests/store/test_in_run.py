"""A judgement of a run has one circle in the store, however often it is held."""

from __future__ import annotations

from pathlib import Path

from firecircle import FireCircleResult, fire_circle_evaluate
from firecircle.circle.events import Event
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from firecircle.store.sitting import InRun
from tests.scripted import PROMPT, circle
from tests.store.samples import VOICES, script
from tests.store.test_transfer import lines_of, taken_from

HERE = InRun("nightly", "no chair", "r-7")


async def told_by(*falsehoods: float) -> tuple[list[Event], FireCircleResult]:
    """Everything that a circle tells; the same seed gives the same id."""
    told: list[Event] = []
    config = circle(*VOICES, max_rounds=len(falsehoods), seed=5)
    result = await fire_circle_evaluate(
        PROMPT, config, caller=script(*falsehoods, reasoning="plain words"), on_event=told.append
    )
    return told, result


async def keep(store: Store, told: list[Event], in_run: InRun | None, label: str | None = None) -> None:
    recording = store.recorder.recording(label=label, place=in_run)
    for event in told:
        recording.tell(event)
    await recording.begun()
    await recording.settled()


async def test_what_was_interrupted_is_replaced_and_its_label_stays(store: Store) -> None:
    told, result = await told_by(0.2, 0.3)
    await keep(store, told[:4], HERE, label="attack")
    (before,) = store.circles.find(Filters(run_id="nightly")).circles
    assert (before.arm, before.record_id, before.label) == ("no chair", "r-7", "attack")
    store.circles.set_label(before.id, "benign")
    for _ in range(2):  # opened and closed as before, and over before it could be opened
        await keep(store, told, HERE, label="attack")
        (after,) = store.circles.find().circles
        assert (after.pk, after.id, after.label) == (before.pk, before.id, "benign")
        assert after.status == "all_rounds_held"
        assert store.circles.load(after.id) == result
        assert store.circles.events_after(after.pk) == []
    assert store.circles.count(Filters(text="plain words")) == 1


async def test_other_circles_of_that_id_stay(store: Store) -> None:
    told, result = await told_by(0.2)
    await keep(store, told, None)
    await keep(store, told, InRun("earlier", "no chair", "r-7"))
    await keep(store, told, HERE)
    kept = {one.id: one.run_id for one in store.circles.find().circles}
    name = result.circle_id
    assert kept == {name: None, f"{name}-2": "earlier", f"{name}-3": "nightly"}


async def test_which_judgement_it_is_is_carried_elsewhere(store: Store, tmp_path: Path) -> None:
    told, _ = await told_by(0.2)
    await keep(store, told, HERE, label="attack")
    with open_store(tmp_path / "other.sqlite") as other:
        taken_from(other, *lines_of(store))
        (there,) = other.circles.find().circles
        assert (there.run_id, there.arm, there.record_id, there.label) == (
            "nightly",
            "no chair",
            "r-7",
            "attack",
        )
