"""The database: found, opened, brought up to this version or refused, never damaged.

SQLite in the user's data folder by default (write-ahead log, foreign keys, one writer at a time while others
wait), PostgreSQL by URL. Migrations run inside one transaction that only one process can hold.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from firecircle.errors import ConfigError, StoreError
from firecircle.settings import user_folder

STORE_VARIABLE = "FIRECIRCLE_STORE"
"""Names the database: the path of a SQLite file, or the URL of a PostgreSQL database."""
FILE_NAME = "circles.sqlite"
SECONDS_TO_WAIT = 30
"""For another process to finish writing."""
MIGRATION_LOCK = 7_046_218_903


class Database:
    """An open database of this version."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        """Where it is, without any password."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with told_in_one_line(self.name), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that others wait for: all of it is kept, or nothing."""
        with told_in_one_line(self.name), self.engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file of SQLite, rather than a PostgreSQL server."""
        return self.engine.dialect.name == "sqlite"

    def close(self) -> None:
        """Let go of every connection."""
        self.engine.dispose()


def open_database(where: str | os.PathLike[str] | None = None) -> Database:
    """The database at a path or URL; else the one the environment names; else the user's own file."""
    address = _address(where)
    name = address.render_as_string(hide_password=True) if address.host else str(address.database)
    if address.get_backend_name() == "sqlite":
        _require_folder(Path(str(address.database)), name)
    engine = _engine(address)
    database = Database(engine, name)
    try:
        _bring_up_to_date(database)
    except BaseException:
        engine.dispose()
        raise
    return database


def _address(where: str | os.PathLike[str] | None) -> URL:
    told = os.fspath(where) if where is not None else os.environ.get(STORE_VARIABLE) or ""
    if "://" not in told:
        path = Path(told).expanduser() if told else user_folder("data") / FILE_NAME
        return URL.create("sqlite", database=str(path.absolute()))
    try:
        address = sa.make_url(told)
    except sa.exc.ArgumentError:
        raise ConfigError("store: the URL cannot be read; postgresql://user@host/name") from None
    backend = address.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return address.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and address.database:
        return URL.create("sqlite", database=str(Path(address.database).absolute()))
    raise ConfigError(f"store: {backend} is not supported; use a file's path or a postgresql:// URL")


def _require_folder(path: Path, name: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            # What people judge is nobody else's business; the file is theirs alone from the start.
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as refused:
        raise StoreError(
            f"store: cannot use {name}: {refused.strerror or refused}; name another with {STORE_VARIABLE}"
        ) from None


def _engine(address: URL) -> Engine:
    if address.get_backend_name() == "sqlite":
        engine = sa.create_engine(
            address, connect_args={"timeout": SECONDS_TO_WAIT, "check_same_thread": False}
        )
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return sa.create_engine(address, pool_pre_ping=True, connect_args={"connect_timeout": 10})
    except ModuleNotFoundError:
        raise ConfigError(
            "store: PostgreSQL needs the extra `postgres`: pip install 'firecircle[postgres]'"
        ) from None


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


# -- versions ----------------------------------------------------------------------------------------------


def revisions() -> tuple[str, ...]:
    """Every version of the database there ever was, the present one last."""
    steps = resources.files("firecircle.store.migrations").joinpath("versions").iterdir()
    return tuple(sorted(step.name[1:5] for step in steps if step.name.startswith("v")))


def _bring_up_to_date(database: Database) -> None:
    known = revisions()
    with database.reading() as connection:
        if _revision(connection, known, database.name) == known[-1]:
            return
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        # Somebody else may have done it while we waited.
        if _revision(connection, known, database.name) != known[-1]:
            _migrate(connection)


def _revision(connection: Connection, known: tuple[str, ...], name: str) -> str | None:
    """The version of this database, None when it is empty; a foreign or newer one is refused."""
    tables = sa.inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        if tables and connection.dialect.name == "sqlite":
            raise StoreError(f"store: {name} is a database of something else; name another file")
        if "circles" in tables:
            raise StoreError(
                f"store: {name} has a table `circles` of something else; use a schema of its own"
            )
        return None
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and found not in known:
        raise StoreError(
            f"store: {name} has version {found}, this Fire Circle knows {known[-1]} and older;"
            " it is left untouched: upgrade firecircle, or name another database"
        )
    return found


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", "firecircle.store:migrations")
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")


# -- errors ------------------------------------------------------------------------------------------------


@contextmanager
def told_in_one_line(name: str) -> Iterator[None]:
    """Trouble with the database in one line that names it; the driver's own words, never a password."""
    try:
        yield
    except DBAPIError as trouble:
        said = str(trouble.orig).strip().splitlines()[0] if trouble.orig else str(trouble)
        advice = {
            "database is locked": "another process is writing; try again",
            "file is not a database": "it is something else; name another file",
            "attempt to write a readonly database": "make it writable, or name another file",
            "database or disk is full": "make room and try again",
        }.get(said, f"check it, or name another with {STORE_VARIABLE}")
        raise StoreError(f"store: {name}: {said}; {advice}") from trouble
