"""A new SQLite file at once: what all the steps of the migrations come to, written down as SQL.

Loading alembic and taking every step takes a third of a second of each process that keeps its first circle.
A test holds the two to be the same. After a new step: `python -m firecircle.store.migrations.new_file`.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from importlib import resources
from pathlib import Path

END = "\n;\n"
"""Behind each statement; triggers have semicolons of their own."""
OF_SEARCH = "texts_index_"
"""Tables that SQLite makes by itself beside the index of words."""


def statements(revision: str) -> list[str]:
    """What makes a file of this version; nothing where it was not written down."""
    try:
        text = resources.files(__package__).joinpath(f"sqlite_{revision}.sql").read_text("utf-8")
    except FileNotFoundError:
        return []
    return text.removesuffix(END).split(END)


def _statements_of(file: sqlite3.Connection, revision: str) -> list[str]:
    made = file.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE ? || '%'", (OF_SEARCH,)
    )
    return [*(sql for (sql,) in made), f"INSERT INTO alembic_version VALUES ('{revision}')"]


def _write() -> None:
    import sqlalchemy as sa

    from firecircle.store.database import migrate, revisions

    revision = revisions()[-1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.sqlite"
        engine = sa.create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            migrate(connection)
        engine.dispose()
        with closing(sqlite3.connect(path)) as file:
            text = "".join(statement + END for statement in _statements_of(file, revision))
    here = Path(__file__).parent
    for old in here.glob("sqlite_*.sql"):
        old.unlink()
    (here / f"sqlite_{revision}.sql").write_text(text, "utf-8")


if __name__ == "__main__":
    _write()
