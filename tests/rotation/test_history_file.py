"""A history travels as one JSON document, and a damaged one is refused as a whole and left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firecircle.errors import ConfigError
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import MemoryHistory, export_history, import_history, read_history
from tests.rotation.pools import Clock, alike, hear, tracker_at


def some_history() -> MemoryHistory:
    history, clock = MemoryHistory(), Clock()
    tracker = tracker_at(clock, history)
    selector = WeightedVoiceSelector(tracker, characteristics=alike(5))
    for sitting in range(4):
        drawn = selector.draw(list(alike(5)), 3, session_id=str(sitting))
        for voice in drawn.selected:
            hear(tracker, voice, str(sitting), chair=voice == drawn.chair)
        clock.pass_days(2)
    return history


def everything_in(history: MemoryHistory) -> tuple[list[Any], list[Any]]:
    return list(history.participations()), list(history.draws())


def test_what_is_exported_is_imported(tmp_path: Path) -> None:
    history, other = some_history(), MemoryHistory()
    export_history(history, tmp_path / "history.json")
    taken = import_history(tmp_path / "history.json", other)
    assert (taken.participations, taken.draws, taken.known) == (12, 4, 0)
    assert everything_in(other) == everything_in(history)
    assert everything_in(read_history(tmp_path / "history.json")) == everything_in(history)
    assert [path.name for path in tmp_path.iterdir()] == ["history.json"]


def test_importing_again_takes_nothing_over(tmp_path: Path) -> None:
    history = some_history()
    export_history(history, tmp_path / "history.json")
    rows = list(history.participations())
    interrupted = MemoryHistory(rows[:5])
    taken = import_history(tmp_path / "history.json", interrupted)
    assert (taken.participations, taken.known) == (7, 5)
    again = import_history(tmp_path / "history.json", interrupted)
    assert (again.participations, again.draws, again.known) == (0, 0, 16)


def cut_off(text: str) -> str:
    return text[: len(text) // 2]


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[str], str]:
    def damage(text: str) -> str:
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_off, "EOF"),
        (lambda text: "", "EOF"),
        (lambda text: "\x00" * 40, "expected value"),
        (lambda text: "[]", "is not a history"),
        (changed(lambda d: d.update(schema_version=2)), "schema_version"),
        (changed(lambda d: d["participations"][7].update(contribution_quality=1.5)), "between 0 and 1"),
        (changed(lambda d: d["participations"][7].pop("voice_id")), "participations.7.voice_id"),
        (changed(lambda d: d["participations"][7].update(at="never")), "participations.7.at"),
        (changed(lambda d: d["participations"].append(d["participations"][0])), "stands 2 times in sitting '0'"),
        (changed(lambda d: d["draws"][1].update(candidates=None)), "draws.1.candidates"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_as_a_whole(
    damage: Callable[[str], str], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.json"
    export_history(some_history(), path)
    path.write_text(damage(path.read_text("utf-8")), encoding="utf-8")
    before, into = path.read_bytes(), MemoryHistory()
    with pytest.raises(ConfigError) as refused:
        import_history(path, into)
    told = str(refused.value)
    assert words in told
    assert "\n" not in told
    assert "the file is unchanged" in told
    assert path.read_bytes() == before
    assert everything_in(into) == ([], [])


def test_a_file_that_contradicts_what_is_kept_is_refused(tmp_path: Path) -> None:
    history = some_history()
    export_history(history, tmp_path / "history.json")
    rows = list(history.participations())
    contrary = MemoryHistory([rows[-1].model_copy(update={"was_empty_chair": not rows[-1].was_empty_chair})])
    with pytest.raises(ConfigError, match=r"differs for 'voice-.' in sitting '3'"):
        import_history(tmp_path / "history.json", contrary)
    assert len(list(contrary.participations())) == 1


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*: No such file"):
        import_history(tmp_path / "nothing.json", MemoryHistory())
    with pytest.raises(ConfigError, match="cannot write"):
        export_history(MemoryHistory(), tmp_path / "no folder" / "history.json")


def test_a_row_that_cannot_be_is_refused_in_one_line() -> None:
    tracker = tracker_at(Clock())
    with pytest.raises(ConfigError, match=r"participation\.contribution_quality: must be between 0 and 1"):
        tracker.record_participation("v", "s", "general", "voice", 1.5, False)
    with pytest.raises(ConfigError, match=r"participation\.voice_id"):
        tracker.record_participation("", "s", "general", "voice", 0.5, False)
    with pytest.raises(ConfigError, match="decision_domain"):
        tracker.record_participation("v", "s", "", "voice", 0.5, False)
    assert list(tracker.history.participations()) == []


def test_what_the_tracker_tells_of_a_voice() -> None:
    clock = Clock()
    tracker = tracker_at(clock)
    for sitting, (domain, quality, chair) in enumerate(
        [("legal", 0.5, False), ("legal", 1.0, True), ("finance", None, False)]
    ):
        tracker.record_participation("v", str(sitting), domain, "voice", quality, chair)
        tracker.record_participation("w", str(sitting), domain, "voice", 0.0, False)
        clock.pass_days(1)
    told = tracker.stats_of("v")
    assert (told.count, told.chair_count) == (3, 1)
    assert told.last_heard == clock.now - 86_400
    assert told.last_chair == clock.now - 2 * 86_400
    assert (told.domains["legal"].quality, told.domains["legal"].measured) == (0.75, 2)
    assert (told.domains["finance"].quality, told.domains["finance"].count) == (None, 1)
    assert tracker.stats(["v", "nobody"]) == {"v": told, "nobody": tracker.stats_of("nobody")}
    assert set(tracker.stats()) == {"v", "w"}
    assert len(list(tracker.history.participations(decision_domain="finance"))) == 2
