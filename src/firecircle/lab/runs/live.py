"""A run's circles in the user's store: written down while they sit, to be watched, and found again later.

The journal is what a run goes by; the store is for whoever looks. Whatever is wrong with the store, and
however slow it is, the run goes on at its own pace, and what is not there is told once, at the end.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from concurrent.futures import wait

from firecircle.circle.classify import PatternType
from firecircle.circle.events import CircleClosed, CircleConvened, Event, Listener
from firecircle.lab.arms.arm import Case
from firecircle.lab.arms.cascade import FIRST, SECOND
from firecircle.lab.datasets import Record
from firecircle.lab.runs.folder import RunAbout
from firecircle.store.in_run import InRun
from firecircle.store.opening import Store
from firecircle.store.recorder import Recording

MOST_UNWRITTEN = 100
"""Circles that are over and not yet written. When a disk is slower than the run, further ones are left out of
the store rather than kept in memory."""
PAUSE = 30.0
"""Seconds without new circles in the store after one could not be written."""
SECONDS_TO_FINISH = 10.0
"""How long the end of a run waits for the store."""


class LiveCircles:
    """Has the circles of one run written into a store, one for each judgement, however often it is held."""

    def __init__(self, store: Store | None, about: RunAbout) -> None:
        """Without a store nothing is written."""
        self._store = store
        self._about = about
        self._open: list[Recording] = []
        self._left_out = 0
        self._trouble: str | None = None
        self._not_before = 0.0

    def listener(self, circle: str, case: Case) -> Listener | None:
        """Who is to be told what happens in a circle of a case; nobody when nothing is kept."""
        if self._store is None:
            return None
        name = kept_id(self._about, circle, case.dataset, case.record.id, case.repeat)
        recorder = self._store.recorder
        recording: Recording | None = None

        def tell(event: Event) -> None:
            nonlocal recording
            if isinstance(event, CircleConvened) and self._has_room():
                where = InRun(self._about.run_id, circle, case.record.id)
                recording = recorder.recording(label=_label(case.record), in_run=where)
                self._open.append(recording)
            if recording is not None:
                recording.tell(_renamed(event, name))

        return tell

    def _has_room(self) -> bool:
        """Whether another circle may be written down; one that may not is counted."""
        for one in self._open:
            if one.kept.done() and (trouble := one.kept.exception()):
                self._left_out += 1
                self._trouble = str(trouble)
                self._not_before = time.monotonic() + PAUSE
        self._open = [one for one in self._open if not one.kept.done()]
        waiting = sum(one.result is not None for one in self._open)
        if waiting < MOST_UNWRITTEN and time.monotonic() >= self._not_before:
            return True
        self._left_out += 1
        self._trouble = self._trouble or "it is slower than the run"
        return False

    async def written(self) -> str | None:
        """Once everything is written, or the store has been waited for long enough: what is not there."""
        if not self._open:
            return self._told()
        over = [one.kept for one in self._open if one.result is not None]
        for one in self._open:
            if one.result is None:  # the run broke off
                await one.settled()
        await asyncio.to_thread(wait, over, SECONDS_TO_FINISH)
        for kept in over:
            if not kept.done() or kept.exception():
                self._left_out += 1
                self._trouble = str(kept.exception()) if kept.done() else "it is slower than the run"
        self._open = []
        return self._told()

    def _told(self) -> str | None:
        if not self._left_out:
            return None
        return (
            f"{self._left_out:,} of this run's circles are not in the store: {self._trouble};"
            " the run itself has everything"
        )


def kept_id(about: RunAbout, circle: str, dataset: str, record_id: str, repeat: int) -> str:
    """The id under which a judgement's circle is kept: its own in this run, and the same whenever it is held.

    What the circle itself goes by follows from its settings and its seed, so it is the same in every run.
    """
    told = (about.run_id, about.started_at, circle, dataset, record_id, repeat)
    return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def kept_ids(about: RunAbout, arm: str, dataset: str, record_id: str, repeat: int) -> tuple[str, ...]:
    """The ids under which the circle of a judgement may be kept, the one that had the last word first."""
    names = (arm, arm + SECOND, arm + FIRST)
    return tuple(kept_id(about, name, dataset, record_id, repeat) for name in names)


def _renamed(event: Event, name: str) -> Event:
    if isinstance(event, CircleConvened):
        record = event.record.model_copy(update={"circle_id": name})
        return event.model_copy(update={"circle_id": name, "record": record})
    if isinstance(event, CircleClosed):
        return event.model_copy(update={"result": event.result.model_copy(update={"circle_id": name})})
    return event


_TYPES = frozenset(kind.value for kind in PatternType)


def _label(record: Record) -> str | None:
    """What the record is labelled; an attack with its type, where the family is one."""
    if record.label == "attack" and record.family in _TYPES:
        return f"attack:{record.family}"
    return record.label
