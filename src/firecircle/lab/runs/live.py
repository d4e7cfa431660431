"""A run's circles in the user's store: written while they sit, without ever slowing the run down."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from firecircle.circle.events import CircleClosed, CircleConvened, Event, Listener
from firecircle.circle.result import FireCircleResult
from firecircle.errors import StoreError
from firecircle.lab.arms.arm import FIRST, SECOND, Case
from firecircle.lab.datasets import Record
from firecircle.names import PATTERN_TYPES
from firecircle.store.opening import Store
from firecircle.store.recorder import Recording
from firecircle.store.sitting import InRun

if TYPE_CHECKING:
    from firecircle.lab.runs.folder import RunAbout

Answer = TypeVar("Answer")


def on_thread(work: Callable[[], Answer]) -> Future[Answer]:
    """Do this on a daemon thread, which does not delay even the end of the process."""
    done: Future[Answer] = Future()
    done.set_running_or_notify_cancel()  # a caller that stops waiting cannot cancel it

    def do() -> None:
        try:
            answer = work()
        except BaseException as trouble:  # noqa: BLE001 - the error goes to who waits
            done.set_exception(trouble)
        else:
            done.set_result(answer)

    threading.Thread(target=do, name="store-question", daemon=True).start()
    return done


MOST_UNWRITTEN = 100
"""Circles that are over and not yet written. When a disk is slower than the run, further ones are left out of
the store rather than kept in memory."""
PAUSE = 30.0
"""Seconds without new circles in the store after one could not be written."""
SECONDS_TO_FINISH = 10.0
"""How long the end of a run waits for the store."""
A_MOMENT = 1.0
"""Seconds after which a store that takes nothing counts as locked."""
SAME = 1e-9
"""Two F no further apart are the same."""
SLOW = "it is slower than the run"
LOCKED = "it is locked: another process is writing"


class LiveCircles:
    """Writes the circles of one run into a store, one for each judgement, however often it is held."""

    def __init__(self, store: Store | None, about: RunAbout, *, embedded_too: bool = False) -> None:
        """Without a store nothing is written."""
        self.store = store
        self.embedded_too = embedded_too
        """Whether circles of embedded voices are written as well, once the run is over."""
        self.is_stuck = False
        """Whether the store took nothing any more when the run was over."""
        self.trouble: str | None = None
        """What was last wrong with the store."""
        self._about = about
        self._open: list[Recording] = []
        self._left_out = 0
        self._not_before = 0.0

    def listener(self, circle: str, case: Case) -> Listener | None:
        """The listener that writes a circle of a case to the store; None when nothing is stored."""
        if self.store is None:
            return None
        name = self._name(circle, case)
        store = self.store
        recording: Recording | None = None

        def tell(event: Event) -> None:
            nonlocal recording
            if isinstance(event, CircleConvened) and self._has_room():
                recording = self._recording(store, circle, case)
                self._open.append(recording)
            if recording is not None:
                recording.tell(_rename(event, name))

        return tell

    def keep(self, circle: str, case: Case, result: FireCircleResult) -> Future[str]:
        """Have a circle of a case written that is over, in the place of what was written before."""
        assert self.store is not None
        recording = self._recording(self.store, circle, case)
        recording.tell(_rename(CircleClosed(result=result), self._name(circle, case)))
        return recording.written

    def _name(self, circle: str, case: Case) -> str:
        return stored_id(self._about, circle, case.dataset, case.record.id, case.repeat)

    def _recording(self, store: Store, circle: str, case: Case) -> Recording:
        where = InRun(self._about.run_id, circle, case.record.id)
        return store.recorder.recording(label=_label(case.record), place=where)

    def _has_room(self) -> bool:
        """Whether another circle may be written down; one that may not is counted."""
        for recording in self._open:
            if recording.written.done() and (trouble := recording.written.exception()):
                self._left_out += 1
                self.trouble = str(trouble)
                self._not_before = time.monotonic() + PAUSE
        self._open = [recording for recording in self._open if not recording.written.done()]
        waiting = sum(recording.result is not None for recording in self._open)
        if waiting < MOST_UNWRITTEN and time.monotonic() >= self._not_before:
            return True
        self._left_out += 1
        self.trouble = self.trouble or SLOW
        return False

    async def written(self) -> None:
        """Back once everything is written, or the store has been waited for long enough."""
        over = [recording.written for recording in self._open if recording.result is not None]
        for recording in self._open:
            if recording.result is None:  # the run broke off
                await recording.settled()
        before = _done(over)
        await _waited_for(over)
        if before == _done(over) < len(over):  # nothing at all was written: is that the disk, or somebody?
            self.trouble = LOCKED if await self._is_locked() else None
            if self.trouble is None:  # the other process has just finished
                await _waited_for(over)
        self.is_stuck = _done(over) < len(over)
        if self.is_stuck:
            self.trouble = self.trouble or SLOW
        for writing in over:
            if not writing.done():
                self._left_out += 1
            elif trouble := writing.exception():
                self._left_out += 1
                self.trouble = self.trouble if self.is_stuck else str(trouble)
        self._open = []

    async def _is_locked(self) -> bool:
        """Whether nobody gets to write: a disk that is merely slow lets others in between two circles."""
        assert self.store is not None
        try:
            await asyncio.wait_for(
                asyncio.wrap_future(on_thread(partial(_try_to_write, self.store))), A_MOMENT
            )
        except TimeoutError:
            return True
        except StoreError:
            return False
        return False

    def left_out_note(self) -> str | None:
        """What was left out meanwhile; None when nothing was."""
        return missing_note(self._left_out, self.trouble or SLOW) if self._left_out else None


def _done(over: Sequence[Future[str]]) -> int:
    return sum(writing.done() for writing in over)


async def _waited_for(over: Sequence[Future[str]]) -> None:
    if over:
        await asyncio.to_thread(wait, over, SECONDS_TO_FINISH)


def _try_to_write(store: Store) -> None:
    with store.database.writing():
        pass


def missing_note(count: int | None, why: str) -> str:
    """That so many of a run's circles, or nobody knows how many, are not in the store."""
    many = "some" if count is None else f"{count:,}"
    return (
        f"{many} of this run's circles are not in the store: {why};"
        " the run itself has everything, and `firecircle lab run` tries again"
    )


def is_same(there: Mapping[str, float | None], name: str, f: float | None) -> bool:
    """Whether the whole circle of this id that is there came to this F; without one, whether there is any."""
    if name not in there:
        return False
    stored = there[name]
    return f is None or (stored is not None and abs(stored - f) < SAME)


def stored_id(about: RunAbout, circle: str, dataset: str, record_id: str, repeat: int) -> str:
    """The id under which a judgement's circle is kept: its own in this run, and the same whenever it is held.

    What the circle itself goes by follows from its settings and its seed, so it is the same in every run.
    """
    identity = (about.run_id, about.started_at, circle, dataset, record_id, repeat)
    return hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def stored_ids(about: RunAbout, arm: str, dataset: str, record_id: str, repeat: int) -> tuple[str, ...]:
    """The ids under which the circle of a judgement may be kept, the one that had the last word first."""
    names = (arm, arm + SECOND, arm + FIRST)
    return tuple(stored_id(about, name, dataset, record_id, repeat) for name in names)


def _rename(event: Event, name: str) -> Event:
    if isinstance(event, CircleConvened):
        record = event.record.model_copy(update={"circle_id": name})
        return event.model_copy(update={"circle_id": name, "record": record})
    if isinstance(event, CircleClosed):
        return event.model_copy(update={"result": event.result.model_copy(update={"circle_id": name})})
    return event


def _label(record: Record) -> str | None:
    """What the record is labelled; an attack with its type, where the family is one."""
    if record.label == "attack" and record.family in PATTERN_TYPES:
        return f"attack:{record.family}"
    return record.label
