"""From which F on each circle raises its alarm, for the tick on the bars of lists."""

from __future__ import annotations

import re
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

AT_ONCE = 500
# In the JSON of a document a quote inside a text is escaped, so no text can pass for the setting.
SETTING = re.compile(rb'"alarm_threshold":([0-9.eE+-]+)')


def upgrade() -> None:
    """Add the column and fill it from the documents; one that cannot be read has no tick."""
    op.add_column("circles", sa.Column("alarm_threshold", sa.Double()))
    connection = op.get_bind()
    circles = sa.table("circles", sa.column("pk"), sa.column("alarm_threshold"))
    documents = sa.table("documents", sa.column("circle_pk"), sa.column("body"))
    last = 0
    while True:
        query = sa.select(documents.c.circle_pk, documents.c.body).where(documents.c.circle_pk > last)
        rows = connection.execute(query.order_by(documents.c.circle_pk).limit(AT_ONCE)).all()
        if not rows:
            return
        found = [{"of": pk, "value": value} for pk, body in rows if (value := _threshold(body)) is not None]
        if found:
            statement = sa.update(circles).where(circles.c.pk == sa.bindparam("of"))
            connection.execute(statement.values(alarm_threshold=sa.bindparam("value")), found)
        last = rows[-1][0]


def _threshold(body: object) -> float | None:
    try:
        written = SETTING.search(zlib.decompress(bytes(body)))  # type: ignore[call-overload]
        return float(written[1]) if written else None
    except (zlib.error, TypeError, ValueError):
        return None
