"""A session is saved whole or not at all, whoever else is saving it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firecircle import SessionMemory


def test_many_save_at_once_and_nothing_is_left_behind(tmp_path: Path) -> None:
    target = tmp_path / "session.json"
    sessions = [SessionMemory(turn_count=number) for number in range(1, 33)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda session: session.save(target), sessions))
    assert SessionMemory.load(target) in sessions
    assert [file.name for file in tmp_path.iterdir()] == ["session.json"]


def test_a_failed_save_leaves_the_old_session_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "session.json"
    SessionMemory(turn_count=3).save(target)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        SessionMemory(turn_count=4).save(target)
    assert SessionMemory.load(target).turn_count == 3
    assert [file.name for file in tmp_path.iterdir()] == ["session.json"]
