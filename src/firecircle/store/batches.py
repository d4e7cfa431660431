"""Batches: prompts that one command judged together, saved as circles under `NAME:id`."""

from __future__ import annotations

import sqlalchemy as sa

from firecircle.shapes import Shape
from firecircle.store.circles import CircleStore
from firecircle.store.database import Database
from firecircle.store.finding import CircleSummary, Filters, batch_query
from firecircle.verdict import VERDICT_WORDS, VerdictWord

MOST_IN_A_BATCH = 5_000
"""Most judgements read for one page."""


class BatchLine(Shape):
    """A batch and its outcome."""

    name: str
    verdicts: dict[VerdictWord, int]
    began: float


class Change(Shape):
    """One prompt of a batch, and the same prompt in another batch."""

    after: CircleSummary
    before: CircleSummary | None

    @property
    def turned(self) -> bool:
        """Whether the two verdicts differ."""
        return self.before is not None and self.before.verdict != self.after.verdict


def list_batches(database: Database) -> tuple[BatchLine, ...]:
    """The saved batches, newest first."""
    with database.reading() as connection:
        of = batch_query(connection).c
        colon = (
            sa.func.instr(of.record_id, ":")
            if connection.dialect.name == "sqlite"
            else sa.func.strpos(of.record_id, ":")
        )
        name = sa.func.substr(of.record_id, 1, colon - 1).label("batch")
        query = (
            sa.select(
                name,
                *(
                    sa.func.sum(sa.case((sa.func.coalesce(of.verdict, "no_verdict") == word, 1), else_=0))
                    for word in VERDICT_WORDS
                ),
                sa.func.min(of.started_at),
            )
            .where(of.record_id.like("%_:%"))
            .group_by("batch")
            .order_by(sa.func.max(of.pk).desc())
        )
        return tuple(
            BatchLine(
                name=str(batch),
                verdicts=dict(zip(VERDICT_WORDS, map(int, numbers), strict=True)),
                began=float(began),
            )
            for batch, *numbers, began in connection.execute(query)
        )


def judgements_of(store: CircleStore, name: str) -> dict[str, CircleSummary]:
    """The newest judgement of every prompt of a batch, by the prompt's id.

    Those without a verdict come first, then the others in the order of judging.
    """
    newest: dict[str, CircleSummary] = {}
    before = None
    while len(newest) < MOST_IN_A_BATCH:
        page = store.find(Filters(batch=name), before=before, limit=1000)
        for summary in page.circles:
            newest.setdefault((summary.record_id or "").removeprefix(f"{name}:"), summary)
        before = page.next_before
        if before is None:
            break
    oldest_first = reversed(newest.items())
    return dict(sorted(oldest_first, key=lambda one: one[1].verdict != "no_verdict"))


def pair_batches(store: CircleStore, name: str, other: str | None = None) -> dict[str, Change]:
    """The prompts of a batch, each with its judgement in another batch."""
    before = judgements_of(store, other) if other else {}
    return {
        record_id: Change(after=summary, before=before.get(record_id))
        for record_id, summary in judgements_of(store, name).items()
    }
