"""The database: find, open, and migrate it, or refuse it; never damage it.

By default SQLite in the user's data folder (write-ahead log, foreign keys, one writer at a time while others
wait), PostgreSQL by URL. Migrations run inside one transaction that only one process can have.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from firecircle.errors import ConfigError, StoreError, install_command
from firecircle.settings import current_settings
from firecircle.store.place import STORE_VARIABLE, Where, place_of
from firecircle.store.tables import ONLY_IN, metadata

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

Written = TypeVar("Written")

SECONDS_TO_WAIT = 30
"""For another process to finish writing."""
SECONDS_TO_RECONNECT, SECONDS_BETWEEN_TRIES = 10.0, 0.2
"""For a server that restarts."""
EMPTY_BEFORE_SHRINKING = 0.25
"""The empty share of a file that triggers compaction."""
BEFORE_THE_FIRST_RELEASE = frozenset(f"{step:04}" for step in range(1, 11))
"""Database versions that no released Fire Circle wrote; they are not migrated."""
VERSION = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)
MIGRATION_LOCK, BANK_LOCK, IMPORT_LOCK = range(7_046_218_903, 7_046_218_906)
"""PostgreSQL locks, each for one transaction at a time; see `be_the_only_one`."""
POOL = {"pool_size": 5, "max_overflow": 10, "pool_timeout": 30, "pool_recycle": 1800, "pool_use_lifo": True}
"""Connections to a server that a process keeps open, and how many more it opens under load.

The last one used is taken first, so an idle process soon has one instead of five.
"""
ADVICE = {
    "database is locked": "another process is writing; try again",
    "file is not a database": "it is something else; name another file",
    "attempt to write a readonly database": "make it writable, or name another file",
    "malformed": "`firecircle doctor --store` shows what can be saved",
    "database or disk is full": "make room and try again",
    "disk I/O error": "free space or repair the disk, and try again",
    "no password supplied": "put it into ~/.pgpass (host:port:database:user:password) or PGPASSWORD",
    "password authentication failed": "check ~/.pgpass, PGPASSWORD or the URL",
    "root certificate file": "name the file of the authority with &sslrootcert=FILE, or =system",
    "certificate verify failed": "name the file of its authority with &sslrootcert=FILE",
    "no encryption": "it wants TLS: add ?sslmode=verify-full to the URL",
}
"""Advice by words of the driver's error."""


class Database:
    """An open database of this version."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        """Where it is, without any password."""
        self._is_away = False
        """Whether the server did not come back in time; later calls do not wait until it has."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one consistent state."""
        with database_errors(self.name), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that other writers wait for: all of it is saved, or nothing."""
        with database_errors(self.name), self.engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def write(self, work: Callable[[Connection], Written]) -> Written:
        """Run `work` in a transaction, and again if the connection to a server breaks.

        If the connection breaks during the commit, ask the server whether it succeeded.
        """
        until = time.monotonic() + (0 if self._is_away else SECONDS_TO_RECONNECT)
        unsure: tuple[int, Written] | None = None
        while True:
            try:
                with self.writing() as connection:
                    if unsure is not None and _was_committed(connection, unsure[0]):
                        return unsure[1]
                    written = work(connection)
                    if not self.is_sqlite:
                        number = connection.scalar(sa.text("SELECT txid_current()"))
                        unsure = (int(number or 0), written)
            except StoreError as trouble:
                if not _is_lost(trouble):
                    raise
                self._is_away = time.monotonic() > until
                if self._is_away:
                    raise
                time.sleep(SECONDS_BETWEEN_TRIES)
            else:
                self._is_away = False
                return written

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a SQLite file rather than a PostgreSQL server."""
        return self.engine.dialect.name == "sqlite"

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _is_lost(trouble: StoreError) -> bool:
    cause = trouble.__cause__
    return isinstance(cause, sa.exc.OperationalError) and not isinstance(cause.orig, sqlite3.Error)


def _was_committed(connection: Connection, transaction: int) -> bool:
    """Whether a transaction with a broken connection was committed; waits until the server has noticed."""
    while True:
        state = connection.scalar(sa.text("SELECT txid_status(:number)"), {"number": transaction})
        if state != "in progress":
            return bool(state == "committed")
        time.sleep(SECONDS_BETWEEN_TRIES)


def open_database(where: Where | None = None) -> Database:
    """Open the database at a path or URL; by default that of environment, settings or user folder."""
    place = place_of(where)
    if isinstance(place, Path):
        name = str(place)
        _require_file(place, name)
        engine = _sqlite_engine(place, only_reading=_is_only_readable(place))
    else:
        address = _url(place)
        name = address.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
        engine = _postgresql_engine(address)
    database = Database(engine, name)
    try:
        _bring_up_to_date(database)
    except BaseException:
        engine.dispose()
        raise
    return database


def _url(text: str) -> URL:
    try:
        return sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError("store", "the URL cannot be read", "postgresql://user@host/name") from None


def _require_file(path: Path, name: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            # Prompts are private, so only the user can read the file, from its creation on.
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as refused:
        raise StoreError(
            f"store: cannot use {name}: {refused.strerror or refused}; name another with {STORE_VARIABLE}"
        ) from None


def _is_only_readable(path: Path) -> bool:
    """Whether the file can be read but not written, as on a read-only medium or in another user's folder."""
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _sqlite_engine(path: Path, *, only_reading: bool = False) -> Engine:
    query = {"mode": "ro", "uri": "true"} if only_reading else {}
    if only_reading and not path.with_name(f"{path.name}-wal").exists():
        query["immutable"] = "1"  # no process writes, and no lock file could be created next to it
    engine = sa.create_engine(
        URL.create("sqlite", database=f"file:{quote(str(path))}" if only_reading else str(path), query=query),
        connect_args={"timeout": SECONDS_TO_WAIT, "check_same_thread": False},
    )
    synchronous = current_settings().store.synchronous
    sa.event.listen(engine, "connect", lambda connection, _: _prepare_sqlite(connection, synchronous))
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql_engine(address: URL) -> Engine:
    try:
        return sa.create_engine(
            address,
            pool_pre_ping=True,  # a restarted server causes no error
            connect_args={"connect_timeout": 10, "application_name": "firecircle"},
            **POOL,
        )
    except ModuleNotFoundError:
        raise ConfigError(
            "store", f"PostgreSQL needs the extra `postgres`: {install_command('postgres')}"
        ) from None


def _prepare_sqlite(connection: sqlite3.Connection, synchronous: str) -> None:
    connection.isolation_level = None  # transactions begin where this module begins them
    # Deleted content is overwritten: a deleted prompt must not remain in free pages of the file.
    for pragma in ("foreign_keys=ON", f"synchronous={synchronous}", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def revisions() -> tuple[str, ...]:
    """Every database version that can be migrated, the present one last."""
    steps = resources.files("firecircle.store.migrations").joinpath("versions").iterdir()
    return tuple(sorted(step.name[1:5] for step in steps if step.name.startswith("v")))


def _bring_up_to_date(database: Database) -> None:
    known = revisions()
    with database.reading() as connection:
        revision = _revision(connection, known, database.name)
    if database.is_sqlite and database.engine.url.query:  # read-only
        if revision != known[-1]:
            raise StoreError(
                f"store: {database.name} is of an older version and cannot be changed; make it writable"
            )
        return
    # Only now, because even the journal mode is part of a file that may not be ours.
    if database.is_sqlite:
        _use_write_ahead_log(database)
    if revision == known[-1]:
        return
    with database.writing() as connection:
        be_the_only_one(connection, MIGRATION_LOCK)
        # Another process may have migrated it while this one waited.
        revision = _revision(connection, known, database.name)
        if revision is None:
            metadata.create_all(connection, checkfirst=False)
            for statement in ONLY_IN[connection.dialect.name]:
                connection.exec_driver_sql(statement)
            VERSION.create(connection, checkfirst=False)
            connection.execute(VERSION.insert().values(version_num=known[-1]))
        elif revision != known[-1]:
            _migrate(connection)


def _use_write_ahead_log(database: Database) -> None:
    """Let readers and a writer work at the same time. The file remembers it, so this matters only once."""
    patience = time.monotonic() + SECONDS_TO_WAIT
    with database_errors(database.name):
        while True:
            try:
                with database.engine.connect() as connection:
                    raw = connection.connection.driver_connection
                    assert isinstance(raw, sqlite3.Connection)
                    raw.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as trouble:
                # Another process opened the new file at the same moment; SQLite does not wait here.
                if "locked" not in str(trouble) or time.monotonic() > patience:
                    raise
                time.sleep(0.02)


def _revision(connection: Connection, known: tuple[str, ...], name: str) -> str | None:
    """The version of this database, None if it is empty; refuses a foreign or newer one."""
    tables = sa.inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        if tables and connection.dialect.name == "sqlite":
            raise StoreError(f"store: {name} is a database of something else; name another file")
        if "circles" in tables:
            raise StoreError(
                f"store: {name} has a table `circles` of something else; use a schema of its own"
            )
        return None
    revision = connection.execute(sa.select(VERSION)).scalar()
    if revision in BEFORE_THE_FIRST_RELEASE:
        raise StoreError(
            f"store: {name} was made before the first release (version {revision}) and is left untouched:"
            " save its circles with the Fire Circle that made it (`firecircle circles export`), import them"
            " into a new store (`firecircle circles import`), or name another database"
        )
    if revision is not None and revision not in known:
        raise StoreError(
            f"store: {name} has version {revision}, this Fire Circle knows {known[-1]} and older;"
            " it is left untouched: upgrade firecircle, or name another database"
        )
    return revision


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", "firecircle.store:migrations")
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")


def be_the_only_one(connection: Connection, lock: int) -> None:
    """Make other processes wait here until this transaction ends. SQLite has only one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})


def storable(text: str) -> str:
    """The text without NUL, which PostgreSQL rejects and SQLite stops at; the document still has it."""
    return text.replace("\0", "\ufffd")


@cache
def insert_unless_there(dialect: str, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """A statement that adds a row unless one with the same key exists."""
    # Each dialect is slow to import, and a process needs only one.
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql

        return insert_in_postgresql(table).on_conflict_do_nothing()
    from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite

    return insert_in_sqlite(table).on_conflict_do_nothing()


def shrink_file(database: Database) -> None:
    """Shrink a SQLite file after large deletions.

    A server does this by itself. Waits while others write, and gives up in the end.
    """
    if not database.is_sqlite:
        return
    with suppress(sqlite3.OperationalError), database.engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        free, pages = (
            raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
        )
        if free > pages * EMPTY_BEFORE_SHRINKING:
            raw.execute("INSERT INTO texts_index(texts_index) VALUES ('optimize')")
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def database_errors(name: str) -> Iterator[None]:
    """Turn database errors into one line with the database's name, the driver's message and no password."""
    try:
        yield
    except sa.exc.TimeoutError as busy:
        most = POOL["pool_size"] + POOL["max_overflow"]
        raise StoreError(
            f"store: {name}: all {most} connections of this process were busy for {POOL['pool_timeout']} s;"
            " try again"
        ) from busy
    except (DBAPIError, sqlite3.Error) as trouble:
        original = trouble.orig if isinstance(trouble, DBAPIError) else trouble
        message = (str(original).strip().splitlines() or [type(original).__name__])[0]
        usual = f"check it, or name another with {STORE_VARIABLE}"
        advice = next((advice for words, advice in ADVICE.items() if words in message), usual)
        raise StoreError(f"store: {name}: {message}; {advice}") from trouble
