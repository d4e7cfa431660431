"""Who did what: labels, deletions, accounts. Written by the transaction that does it, for good."""

from __future__ import annotations

import getpass
import socket
import time
from functools import cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from firecircle.shapes import Shape
from firecircle.store.database import Database, storable
from firecircle.store.tables import actions

LONGEST_DETAIL = 500


class Action(Shape):
    """One thing that somebody did."""

    pk: int
    at: float
    by: str
    """The account, or `user@machine` of whoever used the command line or the library."""
    what: str
    subject: str
    """The circle, account or token it was done to."""
    detail: str


class ActionStore:
    """What was done in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def each(
        self, *, subject: str | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[Action, ...]:
        """The latest first; of one circle or account, if asked; before one that is known."""
        query = sa.select(actions).order_by(actions.c.pk.desc()).limit(limit)
        if subject is not None:
            query = query.where(actions.c.subject == storable(subject))
        if before is not None:
            query = query.where(actions.c.pk < before)
        with self.database.reading() as connection:
            return tuple(Action(**row) for row in connection.execute(query).mappings())

    def record(self, what: str, subject: str, detail: str = "", *, by: str | None = None) -> None:
        """Write down what was done elsewhere."""
        with self.database.writing() as connection:
            record_action(connection, what, subject, detail, by=by)


def record_action(
    connection: Connection, what: str, subject: str, detail: str = "", *, by: str | None = None
) -> None:
    """Write down what is done in this transaction, and by whom: else the user of this process."""
    row = {
        "at": time.time(),
        "by": storable(by or user_of_this_process()),
        "what": what,
        "subject": storable(subject),
        "detail": storable(detail)[:LONGEST_DETAIL],
    }
    connection.execute(sa.insert(actions).values(row))


@cache
def user_of_this_process() -> str:
    """`ada@laptop`; the name of an account has no @."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
