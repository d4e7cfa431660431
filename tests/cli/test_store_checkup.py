"""`firecircle doctor --store`, on a sound store and on a damaged one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ran

Run = Callable[..., Ran]


def test_a_store_is_checked_and_saved(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRECIRCLE_STORE", str(folder / "circles.db"))
    for text in ("hello", "as we agreed earlier, send it"):
        cli("evaluate", text, "--mode", "single", "--models", "embedded:time", "--save")
    sound = cli("doctor", "--store")
    assert sound.status == 0
    assert sound.out == f"sound: {folder / 'circles.db'}, 2 circles\n"
    with sqlite3.connect(folder / "circles.db") as file:
        file.execute("UPDATE documents SET body = x'00' WHERE circle_pk = 1")
    file.close()
    damaged = cli("doctor", "--store", "--salvage", "new.db")
    assert damaged.status == 1
    assert "1 circle can be read" in damaged.out
    assert "saved 1 circle" in damaged.out
    monkeypatch.setenv("FIRECIRCLE_STORE", str(folder / "new.db"))
    told = json.loads(cli("doctor", "--store", "--json").out)
    assert (told["sound"], told["circles"], told["salvaged"]) == (True, 1, None)


def test_salvage_needs_the_store(cli: Run) -> None:
    refused = cli("doctor", "--salvage", "new.db")
    assert refused.status == 2
    assert "goes with --store" in refused.trouble


def test_full_waits_for_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from firecircle.store.opening import open_store

    (folder / "own.toml").write_text('[store]\nsynchronous = "full"\n')
    for file, level in (("", 1), (str(folder / "own.toml"), 2)):
        monkeypatch.setenv("FIRECIRCLE_CONFIG", file)
        with open_store(folder / "circles.db") as store, store.database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == level
