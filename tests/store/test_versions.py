"""A database is created, brought up to this version or refused; never damaged."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle import ConfigError
from firecircle.errors import StoreError
from firecircle.store.database import revisions
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from tests.store.postgres import new_schema
from tests.store.samples import held


async def test_a_store_that_is_opened_again_has_everything(store: Store, place: str) -> None:
    result = await held(store, 0.1)
    with open_store(place) as again:
        assert again.circles.load(result.circle_id) == result


async def test_a_store_from_before_the_first_release_is_refused_and_left_untouched(
    store: Store, place: str
) -> None:
    await held(store, 0.1)
    _set_version(store, "0007")
    before = _contents(place)
    with pytest.raises(StoreError) as refused:
        open_store(place)
    assert "was made before the first release (version 0007) and is left untouched" in str(refused.value)
    assert "`firecircle circles export`" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert _contents(place) == before


async def test_a_store_with_accounts_is_brought_up_to_date(store: Store, place: str) -> None:
    result = await held(store, 0.1)
    with store.database.writing() as connection:
        connection.execute(sa.text("CREATE TABLE accounts (name TEXT PRIMARY KEY, password TEXT)"))
        connection.execute(sa.text("INSERT INTO accounts VALUES ('ada', 'a digest')"))
        for table in ("sessions", "tokens"):
            reference = "TEXT REFERENCES accounts (name) ON DELETE CASCADE"
            connection.execute(
                sa.text(f"CREATE TABLE {table} (digest TEXT PRIMARY KEY, account {reference})")
            )
        connection.execute(sa.text("CREATE TABLE actions (pk INTEGER PRIMARY KEY)"))
        connection.execute(sa.text("ALTER TABLE draws DROP COLUMN newest_row"))
        connection.execute(sa.text("ALTER TABLE circles DROP COLUMN note"))
        connection.execute(sa.text("ALTER TABLE circles DROP COLUMN ratings"))
    _set_version(store, "0011")
    with open_store(place) as opened:
        assert opened.circles.load(result.circle_id) == result
    contents = _contents(place)
    assert not {"accounts", "sessions", "tokens", "actions"} & contents.keys()
    assert contents["alembic_version"][1] == [f"('{revisions()[-1]}',)"]


def _set_version(store: Store, version: str) -> None:
    with store.database.writing() as connection:
        connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{version}'"))
    store.close()


def _engine(place: str) -> sa.Engine:
    return sa.create_engine(place.replace(":", "+psycopg:", 1) if "://" in place else f"sqlite:///{place}")


async def test_a_newer_database_is_refused_and_left_untouched(store: Store, place: str) -> None:
    await held(store, 0.1)
    _set_version(store, "9999")
    before, file_before = _contents(place), _file_of(place)
    assert before["alembic_version"][1] == ["('9999',)"]
    assert len(before["circles"][1]) == 1
    with pytest.raises(StoreError, match=r"has version 9999, .* left untouched: upgrade firecircle"):
        open_store(place)
    assert _file_of(place) == file_before
    assert _contents(place) == before


def _file_of(place: str) -> bytes | None:
    """Every byte of a SQLite file; a server has none to look at."""
    return None if "://" in place else Path(place).read_bytes()


def _contents(place: str) -> dict[str, tuple[list[str], list[str]]]:
    """The columns and the rows of every table in a database, whoever described it."""
    engine = _engine(place)
    with engine.connect() as connection:
        there = sa.MetaData()
        there.reflect(connection)
        contents = {
            table.name: (
                [f"{column.name} {column.type} {column.nullable}" for column in table.columns],
                sorted(str(row) for row in connection.execute(sa.select(table))),
            )
            for table in there.sorted_tables
        }
    engine.dispose()
    return contents


def test_a_database_of_something_else_is_refused_and_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a database of something else; name another file"):
        open_store(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.sqlite"]


def test_a_server_s_table_of_something_else_is_refused(postgresql_server: str) -> None:
    place = new_schema(postgresql_server, "of_something_else")
    engine = sa.create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE circles (radius int)"))
    engine.dispose()
    with pytest.raises(StoreError, match="a table `circles` of something else"):
        open_store(place)


@pytest.mark.parametrize("content", [b"just some text, long enough to be no header\n" * 50, b"PK\3\4" * 300])
def test_what_is_no_database_is_refused_and_left_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError) as refused:
        open_store(path)
    assert (
        str(refused.value)
        == f"store: {path}: file is not a database; it is something else; name another file"
    )
    assert path.read_bytes() == content


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder that this process can read and not write, also when root runs it."""
    with tempfile.TemporaryDirectory(prefix="firecircle-") as name:
        folder = Path(name)
        open_store(folder / "circles.sqlite").close()
        (folder / "circles.sqlite").chmod(0o444)
        folder.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            if not os.access(__file__, os.R_OK, effective_ids=True):
                pytest.skip("root runs this, and nobody else may read the code")
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are write-protected otherwise there")
def test_a_place_that_cannot_be_written_is_told_in_one_line(nobody: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot use .*new.sqlite: Permission denied; name another"):
        open_store(nobody / "new.sqlite")
    with pytest.raises(StoreError) as refused:
        open_store(nobody / "circles.sqlite").circles.set_label("abcd", "x")
    assert "\n" not in str(refused.value)
    assert str(nobody) in str(refused.value)


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="unable to open database file"):
        open_store(tmp_path)


@pytest.mark.parametrize("name", ["mysql://h/d", "sqlite://", "http://x", "", " "])
def test_a_name_that_can_be_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^store: .*use a file's path or|^store: an empty name"):
        Store(name)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(StoreError) as refused:
        open_store("postgresql://me:hush@127.0.0.1:9/circles")
    assert "hush" not in str(refused.value)
    assert "postgresql://me:***@127.0.0.1:9/circles" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_file_is_the_user_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "circles.sqlite"
    open_store(path).close()
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0


async def test_what_is_deleted_does_not_linger_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "circles.sqlite"
    with open_store(path) as store:
        kept = await held(store, 0.1, reasoning="remains")
        for _ in range(20):
            await held(store, 0.1, 0.1, 0.1, reasoning="xylophones", label="zanzibar")
        assert sum(store.circles.prune(Filters(label="zanzibar"))) == 20
    data = path.read_bytes()
    assert b"xylophones" not in data
    assert b"zanzibar" not in data
    assert b"remains" in data
    assert kept.circle_id.encode() in data


def test_many_processes_may_make_the_same_store_at_once(place: str) -> None:
    code = "import sys; from firecircle.store.opening import open_store; open_store(sys.argv[1]).close()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, place], stderr=subprocess.PIPE) for _ in range(3)
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint.decode()
