"""Circles, panels, what was said in them, who took part, and the index for searching their words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

SEARCH_IN_SQLITE = (
    "CREATE VIRTUAL TABLE texts_index USING fts5(prompt, reasoning, content='texts',"
    " content_rowid='circle_pk', tokenize='unicode61 remove_diacritics 2')",
    "CREATE TRIGGER texts_added AFTER INSERT ON texts BEGIN"
    " INSERT INTO texts_index(rowid, prompt, reasoning)"
    " VALUES (new.circle_pk, new.prompt, new.reasoning); END",
    "CREATE TRIGGER texts_removed AFTER DELETE ON texts BEGIN"
    " INSERT INTO texts_index(texts_index, rowid, prompt, reasoning)"
    " VALUES ('delete', old.circle_pk, old.prompt, old.reasoning); END",
    "CREATE TRIGGER texts_changed AFTER UPDATE ON texts BEGIN"
    " INSERT INTO texts_index(texts_index, rowid, prompt, reasoning)"
    " VALUES ('delete', old.circle_pk, old.prompt, old.reasoning);"
    " INSERT INTO texts_index(rowid, prompt, reasoning)"
    " VALUES (new.circle_pk, new.prompt, new.reasoning); END",
)
# A text vector holds a megabyte at most; what is longer is searched by its beginning.
SEARCH_IN_POSTGRESQL = (
    "ALTER TABLE texts ADD COLUMN words tsvector GENERATED ALWAYS AS"
    " (to_tsvector('simple', left(prompt, 150000) || ' ' || left(reasoning, 150000))) STORED",
    "CREATE INDEX texts_by_words ON texts USING gin (words)",
)


def upgrade() -> None:
    """Make the tables and the search index."""
    op.create_table(
        "circles",
        sa.Column("pk", KEY, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("heard_at", sa.Double(), nullable=False),
        sa.Column("held_by", sa.Text(), nullable=False),
        sa.Column("cancel_asked", sa.Boolean(), nullable=False),
        sa.Column("duration_seconds", sa.Double()),
        sa.Column("label", sa.Text()),
        sa.Column("run_id", sa.Text()),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("alarm", sa.Boolean()),
        sa.Column("truth", sa.Double()),
        sa.Column("indeterminacy", sa.Double()),
        sa.Column("falsehood", sa.Double()),
        sa.Column("round1_falsehood", sa.Double()),
        sa.Column("decided_by", sa.Text()),
        sa.Column("decided_in_round", sa.Integer()),
        sa.Column("voices", sa.Text(), nullable=False),
        sa.Column("pattern_types", sa.Text(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("tokens_in", sa.BigInteger()),
        sa.Column("tokens_out", sa.BigInteger()),
        sa.Column("cost_usd", sa.Double()),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("circles_by_alarm", "circles", ["alarm", "pk"])
    op.create_index("circles_by_label", "circles", ["label", "pk"])
    op.create_index("circles_by_run", "circles", ["run_id", "pk"])
    op.create_index("circles_by_status", "circles", ["status", "pk"])
    op.create_index("circles_by_time", "circles", ["started_at", "pk"])
    op.create_table(
        "draws",
        sa.Column("pk", KEY, nullable=False),
        sa.Column("draw_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("draw_id"),
    )
    op.create_table(
        "participations",
        sa.Column("pk", KEY, nullable=False),
        sa.Column("voice_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("decision_domain", sa.Text(), nullable=False),
        sa.Column("role_played", sa.Text(), nullable=False),
        sa.Column("contribution_quality", sa.Double()),
        sa.Column("was_empty_chair", sa.Boolean(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("session_id", "voice_id"),
    )
    op.create_index("participations_by_time", "participations", ["at", "pk"])
    op.create_index("participations_by_voice", "participations", ["voice_id", "at", "pk"])
    op.create_table(
        "calls",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("voice", sa.Text(), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("latency_seconds", sa.Double(), nullable=False),
        sa.Column("tokens_in", sa.BigInteger()),
        sa.Column("tokens_cached", sa.BigInteger()),
        sa.Column("tokens_out", sa.BigInteger()),
        sa.Column("cost_usd", sa.Double()),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("failed", sa.Text()),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "seq"),
    )
    op.create_table(
        "documents",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk"),
    )
    op.create_table(
        "evaluations",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("voice", sa.Text(), nullable=False),
        sa.Column("truth", sa.Double(), nullable=False),
        sa.Column("indeterminacy", sa.Double(), nullable=False),
        sa.Column("falsehood", sa.Double(), nullable=False),
        sa.Column("verdict", sa.Text()),
        sa.Column("read_as", sa.Text(), nullable=False),
        sa.Column("polarity", sa.Text(), nullable=False),
        sa.Column("is_chair", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "round_number", "voice"),
    )
    op.create_table(
        "events",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "seq"),
    )
    op.create_table(
        "failures",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("voice", sa.Text(), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "seq"),
    )
    op.create_table(
        "patterns",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("pattern_type", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("agreement", sa.Double(), nullable=False),
        sa.Column("grounded_agreement", sa.Double(), nullable=False),
        sa.Column("grounded", sa.Boolean(), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("first_observed_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "seq"),
    )
    op.create_index("patterns_by_type", "patterns", ["pattern_type", "circle_pk"])
    op.create_table(
        "rounds",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("empty_chair", sa.Text()),
        sa.Column("f_mean", sa.Double()),
        sa.Column("f_stddev", sa.Double()),
        sa.Column("chair_influence", sa.Double()),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("duration_seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "round_number"),
    )
    op.create_table(
        "seats",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("voice", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("lost_in_round", sa.Integer()),
        sa.Column("contribution", sa.Double()),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk", "voice"),
    )
    op.create_index("seats_by_voice", "seats", ["voice", "circle_pk"])
    op.create_table(
        "texts",
        sa.Column("circle_pk", KEY, nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["circle_pk"], ["circles.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("circle_pk"),
    )

    by_dialect = {"sqlite": SEARCH_IN_SQLITE, "postgresql": SEARCH_IN_POSTGRESQL}
    for statement in by_dialect[op.get_bind().dialect.name]:
        op.execute(sa.text(statement.replace(":", "\\:")))
