"""What voices said about labelled prompts in round 1: the newest answers of a store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from firecircle.circle.independence import MeasuredErrors, measured_errors
from firecircle.names import Label, is_attack, is_benign
from firecircle.store.database import Database
from firecircle.store.tables import circles, evaluations, texts

MOST_CIRCLES = 5_000
"""The newest labelled circles that are read, so that a large store costs no more than a small one."""
FRESH_SECONDS = 60.0
"""How long an answer is reused, because a batch asks before every prompt."""


@dataclass(slots=True)
class LabelledVotes:
    """Each labelled prompt once, with each voice's latest round 1 evaluation of it."""

    said: list[dict[str, float]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)


class IndependenceStore:
    """How the voices of one database err together."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._measured: tuple[float, MeasuredErrors] | None = None

    def votes(self) -> LabelledVotes:
        """Round 1 of the newest labelled circles."""
        labelled = (
            sa.select(circles.c.pk, circles.c.label, circles.c.alarm_threshold, texts.c.prompt)
            .join(texts, texts.c.circle_pk == circles.c.pk)
            .where(circles.c.label.is_not(None), circles.c.alarm_threshold.is_not(None))
            .order_by(circles.c.pk.desc())
            .limit(MOST_CIRCLES)
        )
        votes = LabelledVotes()
        places: dict[str, int] = {}
        of_circle: dict[int, int] = {}
        with self.database.reading() as connection:
            for pk, label, threshold, prompt in connection.execute(labelled):
                if not is_attack(label) and not is_benign(label):
                    continue
                if prompt not in places:
                    places[prompt] = len(votes.said)
                    votes.said.append({})
                    votes.labels.append("attack" if is_attack(label) else "benign")
                    votes.thresholds.append(threshold)
                of_circle[pk] = places[prompt]
            if of_circle:
                for pk, voice, falsehood in connection.execute(_round_one(min(of_circle), max(of_circle))):
                    if pk in of_circle:
                        votes.said[of_circle[pk]].setdefault(voice, falsehood)
        return votes

    def measured(self) -> MeasuredErrors:
        """The errors that voices share; recomputed at most once a minute."""
        now = time.monotonic()
        if self._measured is None or now - self._measured[0] > FRESH_SECONDS:
            votes = self.votes()
            self._measured = (now, measured_errors(votes.said, votes.labels, votes.thresholds))
        return self._measured[1]

    def measured_of(self, voices: Sequence[str]) -> MeasuredErrors | None:
        """The shared errors of only these voices; None if they do not show how independent they are."""
        measured = self.measured()
        if measured.independence(voices) is None:
            return None
        pairs = tuple(pair for pair in measured.pairs if set(pair.voices) <= set(voices))
        return MeasuredErrors(voices=tuple(voices), n=measured.n, pairs=pairs)


def _round_one(first: int, last: int) -> sa.Select[Any]:
    return (
        sa.select(evaluations.c.circle_pk, evaluations.c.voice, evaluations.c.falsehood)
        .join(circles, circles.c.pk == evaluations.c.circle_pk)
        .where(circles.c.label.is_not(None), circles.c.pk.between(first, last))
        .where(evaluations.c.round_number == 1)
        .order_by(evaluations.c.circle_pk.desc())
    )
