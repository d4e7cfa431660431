"""Write circles to the store while they run, without slowing them down.

One thread writes for all circles of a process. Each time, it writes everything new in one transaction, so
that many circles cost few; a circle that ends before is written once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from firecircle.circle.events import CircleClosed, CircleConvened, Event
from firecircle.circle.panel import Panel
from firecircle.circle.result import FireCircleResult
from firecircle.errors import FireCircleError, StoreError
from firecircle.store.sitting import InBatch, InRun

# The writing thread imports the database modules, so that the screen does not wait for them.
if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from firecircle.store.database import Database

PATIENCE = 0.05
"""Seconds that new events may wait for more; at worst, killing the process loses this much."""
LONGEST_HOLD_UP = 3.0
"""Seconds that a circle waits at most for its first write when the database is slow."""
HEARTBEAT_SECONDS = 2.0
"""Seconds between two heartbeats of a circle, and between checks for cancellation."""


class _Known(NamedTuple):
    pk: int | None = None
    id: str | None = None
    gone: bool = False
    """Whether it was deleted meanwhile; then it stays deleted."""


class Recording:
    """The recording of one circle or panel. `tell` and `tell_panel` may be called on any thread."""

    def __init__(
        self,
        recorder: Recorder,
        label: str | None,
        place: InRun | InBatch | None,
        on_cancel: Callable[[], None] | None = None,
    ) -> None:
        self._recorder = recorder
        self._label, self._place = label, place
        self._on_cancel = on_cancel
        self._news: list[Event] = []
        self._panel: Panel | None = None
        self._events_written = 0
        self._known = _Known()
        self._over = False
        self._hurried = False
        self._attempted: Future[None] = Future()
        self.opened: Future[str] = Future()
        """The id, once the database has one: for a circle while it runs, for a panel when it is over."""
        self.written: Future[str] = Future()
        """The same id once everything is written, or the `StoreError` that prevented it."""
        self.result: FireCircleResult | None = None

    @property
    def id(self) -> str | None:
        """The id in the store; None until it has one, or if it could not be saved."""
        if self.written.done() and self.written.exception():
            return None
        return self._known.id

    def tell(self, event: Event) -> None:
        """Record an event; a listener of a circle."""
        if isinstance(event, CircleClosed):
            self.result = event.result
        self._recorder._take(self, event)

    def tell_panel(self, panel: Panel) -> None:
        """Record a finished panel."""
        self._recorder._take(self, panel)

    async def begun(self) -> None:
        """Wait until everything so far is written, or failed to be; `settled` tries again.

        A circle waits for this before it asks any voice, so that every paid call is saved.
        """
        self._recorder._hurry(self)
        # A caller that stops waiting must not cancel the future that the writing thread completes.
        await asyncio.wait([asyncio.wrap_future(self._attempted)], timeout=LONGEST_HOLD_UP)

    async def settled(self) -> str | None:
        """The id, once everything is written; None if nothing came in, or not the end."""
        if not self._over:
            self._recorder._leave(self)
            return None
        return await asyncio.shield(asyncio.wrap_future(self.written))

    def _note_attempt(self) -> None:
        if not self._attempted.done():
            self._attempted.set_result(None)

    def _write(self, connection: Connection, news: list[Event], panel: Panel | None) -> _Known:
        """Write the news; returns what is known of the circle if the transaction commits."""
        from firecircle.store.writing import add_events, add_unopened, close_circle, is_stored, open_circle

        pk, name, _ = self._known
        if pk is not None and name is not None and not is_stored(connection, pk, name):
            return _Known(pk, name, gone=True)
        last = news[-1] if news else None
        judged = panel or (last.result if isinstance(last, CircleClosed) else None)
        if judged is not None and pk is None:
            return _Known(None, add_unopened(connection, judged, label=self._label, place=self._place))
        if isinstance(judged, FireCircleResult) and pk is not None:
            close_circle(connection, pk, judged)
            return self._known
        if pk is None and isinstance(news[0], CircleConvened):
            pk, name = open_circle(connection, news[0], label=self._label, place=self._place)
        if pk is not None:
            add_events(connection, pk, list(enumerate(news, self._events_written)))
        return _Known(pk, name)


class Recorder:
    """The writing thread, which runs only while there is something to write."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """`database` opens the database if necessary; only the writing thread calls it."""
        self._database = database
        self.latest: str | None = None
        """The id of the last finished circle or panel that was saved."""
        self._changed = threading.Condition()
        self._sitting: list[Recording] = []
        self._waiting_since: float | None = None
        self._thread: threading.Thread | None = None

    def recording(
        self,
        *,
        label: str | None = None,
        place: InRun | InBatch | None = None,
        on_cancel: Callable[[], None] | None = None,
    ) -> Recording:
        """Start recording a circle or panel. `on_cancel` is called, on another thread, to cancel it."""
        return Recording(self, label, place, on_cancel)

    def _take(self, recording: Recording, news: Event | Panel) -> None:
        with self._changed:
            if recording not in self._sitting:
                self._sitting.append(recording)
            if isinstance(news, Panel):
                recording._panel = news
            else:
                recording._news.append(news)
            recording._over = isinstance(news, Panel | CircleClosed)
            is_first = self._waiting_since is None
            if is_first:
                self._waiting_since = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="circle-recorder", daemon=True)
                self._thread.start()
            elif is_first or recording._over:
                self._changed.notify()

    def _hurry(self, recording: Recording) -> None:
        """Write this recording's news at once, and those of all others with it."""
        with self._changed:
            if recording._news:
                recording._hurried = True
                self._changed.notify()

    def _leave(self, recording: Recording) -> None:
        """Drop a recording that gets no more news."""
        with self._changed:
            if recording in self._sitting:
                self._sitting.remove(recording)

    def _work(self) -> None:
        last_heartbeat = time.monotonic()
        while True:
            with self._changed:
                if not self._sitting:
                    self._thread = None
                    return
                self._wait(last_heartbeat + HEARTBEAT_SECONDS)
                batch = [
                    (recording, recording._news, recording._panel, recording._over)
                    for recording in self._sitting
                    if recording._news or recording._panel
                ]
                for recording, *_ in batch:
                    recording._news, recording._hurried = [], False
                self._sitting = [recording for recording in self._sitting if not recording._over]
                self._waiting_since = None
                alive = tuple(self._sitting)
            self._keep(batch)
            if time.monotonic() - last_heartbeat >= HEARTBEAT_SECONDS:
                last_heartbeat = time.monotonic()
                self._send_heartbeat(alive)

    def _wait(self, until: float) -> None:
        """Wait until a circle is over or waited for, news have waited long enough, or a heartbeat is due."""
        while not any(recording._over or recording._hurried for recording in self._sitting):
            due = until if self._waiting_since is None else min(until, self._waiting_since + PATIENCE)
            left = due - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _keep(self, batch: list[tuple[Recording, list[Event], Panel | None, bool]]) -> None:
        if not batch:
            return
        try:
            known = self._database().write(
                lambda connection: [
                    recording._write(connection, news, panel) for recording, news, panel, _ in batch
                ]
            )
        except Exception as trouble:  # noqa: BLE001 - the future passes the error on
            if len(batch) > 1:  # one that cannot be written must not affect the others
                for single in batch:
                    self._keep([single])
                return
            recording, news, _, over = batch[0]
            recording._note_attempt()
            if not over:
                self._put_back(recording, news)
            elif not recording.written.done():
                ours = isinstance(trouble, FireCircleError)
                recording.written.set_exception(StoreError(str(trouble) if ours else f"store: {trouble!r}"))
            return
        for (recording, news, _, over), its in zip(batch, known, strict=True):
            recording._events_written += len(news)
            recording._known = its
            recording._note_attempt()
            if its.id is not None and not recording.opened.done():
                recording.opened.set_result(its.id)
            if over and not recording.written.done():
                if its.gone:
                    recording.written.set_exception(
                        StoreError(f"{its.id} was deleted from the store while it ran")
                    )
                    continue
                self.latest = its.id
                recording.written.set_result(its.id or "")

    def _put_back(self, recording: Recording, news: list[Event]) -> None:
        """Keep what could not be written for the next attempt."""
        with self._changed:
            recording._news = [*news, *recording._news]

    def _send_heartbeat(self, alive: Sequence[Recording]) -> None:
        holders = {recording._known.pk: recording for recording in alive if recording._known.pk is not None}
        if not holders:
            return
        from firecircle.store.writing import heartbeat

        try:
            with self._database().writing() as connection:
                asked = heartbeat(
                    connection, [(pk, recording._known.id or "") for pk, recording in holders.items()]
                )
        except FireCircleError:
            return  # the next write will report it
        for pk in asked:
            cancel, holders[pk]._on_cancel = holders[pk]._on_cancel, None  # once is enough
            if cancel is not None:
                cancel()
