"""The tables. A new store is made from them.

A change here needs a step in `migrations/versions`, which migrates older stores.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

Key = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a plain integer column."""
Id = Text().with_variant(Text(collation="C"), "postgresql")
"""Ids are compared byte by byte in every database, so that an index finds a prefix."""


def _of_a_circle(*, primary: bool = True) -> Column[int]:
    owner = ForeignKey("circles.pk", ondelete="CASCADE")
    return Column("circle_pk", Key, owner, primary_key=primary, nullable=False)


_IN_A_BATCH = text("run_id IS NULL AND record_id IS NOT NULL")

circles = Table(
    "circles",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("id", Id, nullable=False, unique=True),
    Column("mode", Text, nullable=False),  # fire_circle, parallel or single
    Column("status", Text, nullable=False),  # sitting, or how it ended
    Column("started_at", Double, nullable=False),
    Column("heard_at", Double, nullable=False),  # the last heartbeat
    Column("held_by", Text, nullable=False, default=""),  # host and process
    Column("cancel_asked", Boolean, nullable=False, default=False),
    Column("duration_seconds", Double),
    Column("label", Text),
    Column("note", Text),  # of those who reviewed it, may be empty; NULL: not reviewed
    Column("ratings", Text),  # JSON: each reviewer's label and note
    Column("run_id", Text),
    Column("arm", Text),  # of the run
    Column("record_id", Text),  # in the run's dataset or the batch
    Column("title", Text, nullable=False, default=""),
    Column("verdict", Text),  # one of VERDICT_WORDS; NULL while it runs
    Column("alarm", Boolean),
    Column("alarm_threshold", Double),  # NULL if the document cannot be read
    Column("unread", Boolean),  # whether no voice reads its language
    Column("truth", Double),
    Column("indeterminacy", Double),
    Column("falsehood", Double),
    Column("round1_falsehood", Double),
    Column("decided_by", Text),
    Column("decided_in_round", Integer),
    Column("voices", Text, nullable=False, default=""),  # names, one a line
    Column("pattern_types", Text, nullable=False, default=""),  # of grounded patterns, one a line
    Column("rounds", Integer, nullable=False, default=0),
    Column("failures", Integer, nullable=False, default=0),
    Column("partial", Boolean, nullable=False, default=False),
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    Column("cost_usd", Double),
    # Lists are in the order of saving, so that a page costs the same however many circles there are.
    Index("circles_by_time", "started_at", "pk"),
    Index("circles_by_alarm", "alarm", "pk"),
    Index("circles_by_verdict", "verdict", "pk"),
    Index("circles_by_label", "label", "pk"),
    Index("circles_by_run", "run_id", "pk"),
    Index("circles_by_status", "status", "pk"),
    # Prefixes compare bytes, whatever the database's collation.
    Index(
        "circles_by_batch",
        "record_id",
        "pk",
        postgresql_ops={"record_id": "text_pattern_ops"},
        postgresql_where=_IN_A_BATCH,
        sqlite_where=_IN_A_BATCH,
    ),
)

documents = Table(
    "documents",
    metadata,
    _of_a_circle(),
    Column("kind", Text, nullable=False),  # circle or panel
    Column("schema_version", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),  # JSON, deflated
)

texts = Table(
    "texts",
    metadata,
    _of_a_circle(),
    Column("prompt", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    _of_a_circle(),
    Column("seq", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    _of_a_circle(),
    Column("round_number", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("empty_chair", Text),
    Column("f_mean", Double),
    Column("f_stddev", Double),
    Column("chair_influence", Double),
    Column("started_at", Double, nullable=False),
    Column("duration_seconds", Double, nullable=False),
)

evaluations = Table(
    "evaluations",
    metadata,
    _of_a_circle(),
    Column("round_number", Integer, primary_key=True),
    Column("voice", Text, primary_key=True),
    Column("truth", Double, nullable=False),
    Column("indeterminacy", Double, nullable=False),
    Column("falsehood", Double, nullable=False),
    Column("verdict", Text),
    Column("read_as", Text, nullable=False),
    Column("polarity", Text, nullable=False),
    Column("is_chair", Boolean, nullable=False),
)

seats = Table(
    "seats",
    metadata,
    _of_a_circle(),
    Column("voice", Text, primary_key=True),
    Column("active", Boolean, nullable=False),
    Column("lost_in_round", Integer),
    Column("contribution", Double),
    Index("seats_by_voice", "voice", "circle_pk"),
)

calls = Table(
    "calls",
    metadata,
    _of_a_circle(),
    Column("seq", Integer, primary_key=True),
    Column("voice", Text, nullable=False),
    Column("round_number", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("latency_seconds", Double, nullable=False),
    Column("tokens_in", BigInteger),
    Column("tokens_cached", BigInteger),
    Column("tokens_out", BigInteger),
    Column("cost_usd", Double),
    Column("cached", Boolean, nullable=False),
    Column("failed", Text),
)

failures = Table(
    "failures",
    metadata,
    _of_a_circle(),
    Column("seq", Integer, primary_key=True),
    Column("voice", Text, nullable=False),
    Column("round_number", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
)

patterns = Table(
    "patterns",
    metadata,
    _of_a_circle(),
    Column("seq", Integer, primary_key=True),
    Column("pattern_type", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("agreement", Double, nullable=False),
    Column("grounded_agreement", Double, nullable=False),
    Column("grounded", Boolean, nullable=False),
    Column("round_number", Integer, nullable=False),
    Column("first_observed_by", Text, nullable=False),
    Index("patterns_by_type", "pattern_type", "circle_pk"),
)

participations = Table(
    "participations",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("voice_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("decision_domain", Text, nullable=False),
    Column("role_played", Text, nullable=False),
    Column("contribution_quality", Double),
    Column("was_empty_chair", Boolean, nullable=False),
    Column("at", Double, nullable=False),
    UniqueConstraint("session_id", "voice_id"),
    Index("participations_by_voice", "voice_id", "at", "pk"),
    Index("participations_by_time", "at", "pk"),
)

draws = Table(
    "draws",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("draw_id", Text, nullable=False, unique=True),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),  # JSON
    Column("newest_row", Key),  # of `participations` when it was drawn; unknown for an imported one
)

calibrated = Table(
    "calibrated",
    metadata,
    Column("circle_id", Text, primary_key=True),  # may be of a circle in a file, so not a key of `circles`
    Column("voice", Text, primary_key=True),
    Column("at", Double, nullable=False),
)

verdict_calibrations = Table(
    "verdict_calibrations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("voices", Text, nullable=False),  # sorted names, one a line
    Column("rounds", Integer, nullable=False),
    Column("fitted_at", Double, nullable=False),
    Column("body", Text, nullable=False),  # JSON
    Column("circles", Text, nullable=False),  # ids of the circles it was fitted on, one a line
)

runs = Table(
    "runs",
    metadata,
    Column("folder", Text, primary_key=True),  # folder of its records
    Column("run_id", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("arms", Text, nullable=False),  # names, one a line
    Column("judgements", BigInteger, nullable=False),  # over all arms and sittings
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
)


bank_entries = Table(
    "bank_entries",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("category", Text, nullable=False),
    Column("pattern_type", Text, nullable=False),
    Column("description", Text, nullable=False),  # the first wording; later ones are with their sightings
    Column("sightings", Integer, nullable=False),
    Column("attacks", Integer, nullable=False),  # how many different ones
    Column("highest_agreement", Double, nullable=False),
    Column("first_seen_at", Double, nullable=False),
    Column("last_seen_at", Double, nullable=False),
    Index("bank_entries_by_type", "category", "pattern_type"),
    Index("bank_entries_by_sightings", "sightings", "pk"),
)

bank_sightings = Table(
    "bank_sightings",
    metadata,
    Column("pk", Key, primary_key=True),
    Column("entry_pk", Key, ForeignKey("bank_entries.pk", ondelete="CASCADE"), nullable=False),
    Column("attack_id", Text, nullable=False),
    Column("circle_id", Text, nullable=False),  # empty if unknown
    Column("at", Double, nullable=False),
    Column("agreement", Double, nullable=False),
    Column("description", Text, nullable=False),
    Column("models", Text, nullable=False),  # names, one a line
    Column("layers", Text, nullable=False),  # names, one a line
    Column("examples", Text, nullable=False),  # a JSON list of quotes
    Column("words", Text, nullable=False),  # description and quotes, folded, for searching
    UniqueConstraint("entry_pk", "attack_id", "circle_id"),
    Index("bank_sightings_by_attack", "attack_id"),
    Index("bank_sightings_by_circle", "circle_id"),
)

bank_tags = Table(
    "bank_tags",
    metadata,
    Column("sighting_pk", Key, ForeignKey("bank_sightings.pk", ondelete="CASCADE"), primary_key=True),
    Column("tag", Text, primary_key=True),
    Index("bank_tags_by_tag", "tag", "sighting_pk"),
)

# The full-text index and some sort indexes differ between databases.
ONLY_IN = {
    "sqlite": (
        "CREATE INDEX circles_by_falsehood ON circles (falsehood, pk)",
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
    ),
    "postgresql": (
        # In list order, with NULL at the end.
        "CREATE INDEX circles_by_falsehood ON circles (falsehood DESC NULLS LAST, pk DESC)",
        'CREATE INDEX circles_by_kind ON circles (label COLLATE "C")',
        # A text vector has at most a megabyte; of a longer text only the beginning is searched.
        "ALTER TABLE texts ADD COLUMN words tsvector GENERATED ALWAYS AS"
        " (to_tsvector('simple', left(prompt, 150000) || ' ' || left(reasoning, 150000))) STORED",
        "CREATE INDEX texts_by_words ON texts USING gin (words)",
    ),
}
