"""Which store is meant when nobody names one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle import ConfigError
from firecircle.errors import StoreError
from firecircle.store.opening import open_store
from firecircle.store.place import STORE_VARIABLE, place_of

Write = Callable[[str], Path]


def test_the_name_wins_over_the_environment_over_the_settings_over_the_user_s_own(
    settings_file: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert place_of() == tmp_path / "data" / "firecircle" / "circles.sqlite"
    file = settings_file('[store]\npath = "mine.sqlite"\n')
    assert place_of() == file.parent / "mine.sqlite"
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "env.sqlite"))
    assert place_of() == tmp_path / "env.sqlite"
    assert place_of(tmp_path / "named.sqlite") == tmp_path / "named.sqlite"


def test_urls() -> None:
    assert place_of("postgres://me@h/d") == "postgresql+psycopg://me@h/d"
    assert place_of("postgresql+asyncpg://h/d?sslmode=require") == "postgresql+psycopg://h/d?sslmode=require"
    assert place_of("sqlite:////tmp/a%20b.sqlite") == Path("/tmp/a b.sqlite")
    assert place_of("sqlite:///a.sqlite") == Path("a.sqlite").absolute()


@pytest.mark.parametrize("url", ["postgresql://me:hush@h/d", "postgresql://h/d?user=me&password=hush"])
def test_a_password_does_not_belong_into_the_settings(settings_file: Write, url: str) -> None:
    settings_file(f'[store]\npath = "{url}"\n')
    with pytest.raises(
        ConfigError, match=r"\[store\] path: a password does not belong into a file"
    ) as refused:
        place_of()
    assert "hush" not in str(refused.value)


def test_a_url_without_a_password_may_stand_there(settings_file: Write) -> None:
    settings_file('[store]\npath = "postgresql://me@h:5432/d"\n')
    assert place_of() == "postgresql+psycopg://me@h:5432/d"
    settings_file('[store]\npath = "mysql://h/d"\n')
    with pytest.raises(ConfigError, match=r"\[store\] path: no such kind of database"):
        place_of()


def test_a_server_that_wants_a_password_is_answered_with_where_to_put_it() -> None:
    pytest.importorskip("psycopg", reason="PostgreSQL needs the extra `postgres`", exc_type=ImportError)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=ask_for_a_password, args=(server,), daemon=True).start()
        url = (
            f"postgresql://ada@127.0.0.1:{server.getsockname()[1]}/circles?sslmode=disable&passfile=/dev/null"
        )
        with pytest.raises(StoreError, match=r"no password supplied; put it into ~/\.pgpass"):
            open_store(url)


def ask_for_a_password(server: socket.socket) -> None:
    """What PostgreSQL does first with somebody who is not trusted."""
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big"))
        connection.recv(1000)
