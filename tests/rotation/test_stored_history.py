"""The history in the store: it survives the process, whatever ends it, and several may write at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from firecircle.rotation.drawing import verify_draw
from firecircle.rotation.tracker import Draw, Participation
from firecircle.store.opening import open_store

SITTINGS = """
import sys
from firecircle.rotation.tracker import Draw, Participation
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import VoiceHistoryTracker
from firecircle.store.opening import open_store
from tests.rotation.pools import SIX

where, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_store(where) as store:
    tracker = VoiceHistoryTracker(store.participation.read_as(Participation, Draw))
    selector = WeightedVoiceSelector(tracker)
    for number in range(count):
        drawn = selector.draw(SIX, 4, session_id=f"{name}-{number}")
        for voice in drawn.selected:
            tracker.record_participation(
                voice, drawn.session_id, "general", "voice", None, voice == drawn.chair
            )
        print(drawn.session_id, flush=True)
"""


def sitting_process(where: Path, name: str, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", SITTINGS, str(where), name, str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_two_processes_record_at_once(tmp_path: Path) -> None:
    where = tmp_path / "store.sqlite"
    processes = [sitting_process(where, name, 8) for name in ("a", "b")]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with open_store(where) as store:
        history = store.participation.read_as(Participation, Draw)
        rows = list(history.participations())
        assert len(rows) == 2 * 8 * 4
        assert {row.session_id for row in rows} == {f"{name}-{n}" for name in "ab" for n in range(8)}
        drawn = list(history.draws())
        assert len(drawn) == 16
        assert all(verify_draw(one).valid for one in drawn)


def test_a_killed_process_loses_nothing_it_had_recorded(tmp_path: Path) -> None:
    where = tmp_path / "store.sqlite"
    process = sitting_process(where, "a", 100_000)
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(5)]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=60)
    told += rest.split()
    with open_store(where) as store:
        history = store.participation.read_as(Participation, Draw)
        kept: dict[str, int] = {}
        for row in history.participations():
            kept[row.session_id] = kept.get(row.session_id, 0) + 1
        assert all(kept[sitting] == 4 for sitting in told)
        assert {one.session_id for one in history.draws()} >= set(kept)
