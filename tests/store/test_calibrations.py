"""What a calibration has counted stays counted, for each voice on its own."""

from __future__ import annotations

from firecircle.store.opening import Store, open_store


def test_a_circle_counts_for_a_voice_once(store: Store, place: str) -> None:
    assert store.calibrations.counted_for("circle-1") == frozenset()
    store.calibrations.record([("circle-1", "ash"), ("circle-1", "birch"), ("circle-2", "ash")])
    store.calibrations.record([("circle-1", "ash"), ("circle-2", "cedar")])
    store.calibrations.record([])
    with open_store(place) as again:
        assert again.calibrations.counted_for("circle-1") == {"ash", "birch"}
        assert again.calibrations.counted_for("circle-2") == {"ash", "cedar"}
