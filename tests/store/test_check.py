"""A store that a disk or a crash damaged: what is found, and what is saved into a new one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from firecircle.errors import ConfigError, StoreError
from firecircle.store.check import check_store, salvage
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from tests.store.samples import held


async def _filled(place: Path, circles: int) -> dict[str, object]:
    with open_store(place) as store:
        return {
            result.circle_id: result for result in [await held(store, 0.1 + n / 100) for n in range(circles)]
        }


def _spoil(place: Path, table: str) -> int:
    """Overwrite a page in the middle of a table; how many pages it has."""
    file = sqlite3.connect(place)
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = file.execute("PRAGMA page_size").fetchone()[0]
    leaves = [
        page
        for (page,) in file.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno", (table,)
        )
    ]
    file.close()
    with place.open("r+b") as spoilt:
        spoilt.seek((leaves[len(leaves) // 2] - 1) * size)
        spoilt.write(b"\xa5" * size)
    return len(leaves)


def _has_page_statistics() -> bool:
    try:
        sqlite3.connect(":memory:").execute("SELECT * FROM dbstat")
    except sqlite3.Error:
        return False
    return True


needs_pages = pytest.mark.skipif(not _has_page_statistics(), reason="SQLite was built without dbstat")


async def test_a_sound_store_is_called_so(store: Store, place: str) -> None:
    await held(store, 0.1)
    found = check_store(place)
    assert (found.sound, found.circles, found.damage, found.unreadable) == (True, 1, (), ())


@needs_pages
@pytest.mark.parametrize("table", ["documents", "circles", "evaluations"])
async def test_what_can_be_read_is_saved_into_a_new_store(tmp_path: Path, table: str) -> None:
    place, new = tmp_path / "circles.db", tmp_path / "new.db"
    known = await _filled(place, 24)
    assert _spoil(place, table) > 1
    before = place.read_bytes()
    found = check_store(place)
    assert found.damage
    saved = salvage(place, new)
    assert place.read_bytes() == before, "the damaged store stays as it is"
    with open_store(new) as opened:
        listed = list(opened.circles.each_summary(Filters()))
        assert len(listed) == saved.circles
        assert all(opened.circles.load(each) == known[each.id] for each in listed)
    assert 0 < saved.circles == found.circles
    assert saved.circles + len(saved.lost) == len(known) or table == "circles"
    assert check_store(new).sound


async def test_a_circle_whose_document_was_changed_is_named(tmp_path: Path) -> None:
    place = tmp_path / "circles.db"
    first, second = await _filled(place, 2)
    with sqlite3.connect(place) as file:
        file.execute("UPDATE documents SET body = x'00' WHERE circle_pk = 1")
    file.close()
    found = check_store(place)
    assert not found.sound
    assert [name for name, _ in found.unreadable] == [first]
    saved = salvage(place, tmp_path / "new.db")
    assert (saved.circles, [name for name, _ in saved.lost]) == (1, [first])
    with open_store(tmp_path / "new.db") as opened:
        assert [each.id for each in opened.circles.each_summary(Filters())] == [second]


async def test_everything_else_comes_along(tmp_path: Path) -> None:
    place, new = tmp_path / "circles.db", tmp_path / "new.db"
    await _filled(place, 3)
    assert salvage(place, new).circles == 3
    files = [sqlite3.connect(file) for file in (place, new)]
    tables = [
        name
        for (name,) in files[0].execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'texts_index%'"
        )
    ]
    for table in tables:
        old, copied = ([*file.execute(f"SELECT * FROM {table}")] for file in files)
        assert old == copied, table
    found = "SELECT count(*) FROM texts_index WHERE texts_index MATCH 'agreed OR the OR a'"
    assert files[0].execute(found).fetchone() == files[1].execute(found).fetchone()
    for file in files:
        file.close()


def test_no_store_is_made_or_replaced(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        check_store(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "other.db").write_text("mine")
    with open_store(tmp_path / "circles.db"):
        pass
    with pytest.raises(ConfigError, match="is already there"):
        salvage(tmp_path / "circles.db", tmp_path / "other.db")
    (tmp_path / "broken.db").write_bytes(b"\0" * 4096)
    assert not check_store(tmp_path / "broken.db").sound
