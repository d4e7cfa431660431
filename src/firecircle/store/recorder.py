"""Writing circles down while they sit, beside the circles and never in their way.

One thread writes for all circles of a process. It takes whatever has been told since it last wrote and keeps
it in one transaction, so that many circles cost few; a circle that is over before that is written once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from firecircle.circle.alone import Panel
from firecircle.circle.events import CircleClosed, CircleConvened, Event
from firecircle.errors import StoreError
from firecircle.store.circles import add_events, add_kept, close_circle, open_circle
from firecircle.store.database import Database
from firecircle.store.tables import circles

PATIENCE = 0.05
"""Seconds that news may wait for more news; as much is lost at worst when the process is killed."""
SIGN_OF_LIFE = 2.0
"""Seconds between two signs of life of a sitting circle, and between looks whether it shall be cancelled."""


class Recording:
    """One circle or panel being written down. Its methods may be called on any thread; none waits."""

    def __init__(
        self,
        recorder: Recorder,
        label: str | None,
        run_id: str | None,
        on_cancel: Callable[[], None] | None = None,
    ) -> None:
        self._recorder = recorder
        self._label, self._run_id = label, run_id
        self._on_cancel = on_cancel
        self._news: list[Event] = []
        self._panel: Panel | None = None
        self._told = 0
        self._pk: int | None = None
        self._id: str | None = None
        self._over = False
        self.kept: Future[str] = Future()
        """The id under which it is kept, or the `StoreError` that prevented it."""

    @property
    def id(self) -> str | None:
        """The id under which it is kept; None while it is not, or when it could not be."""
        return self.kept.result() if self.kept.done() and not self.kept.exception() else None

    def tell(self, event: Event) -> None:
        """Take note of an event; a listener of a circle."""
        self._recorder._take(self, event)

    def tell_panel(self, panel: Panel) -> None:
        """Take note of a panel that is over."""
        self._recorder._take(self, panel)

    async def settled(self) -> str | None:
        """The id, once everything is written; None when nothing was told, or the end never was."""
        if not self._over:
            self._recorder._leave(self)
            return None
        return await asyncio.shield(asyncio.wrap_future(self.kept))

    def _write(self, connection: Connection, news: list[Event], panel: Panel | None) -> None:
        if panel is not None:
            self._id = add_kept(connection, panel, label=self._label, run_id=self._run_id)
            return
        last = news[-1] if news else None
        if isinstance(last, CircleClosed):
            if self._pk is None:
                self._id = add_kept(connection, last.result, label=self._label, run_id=self._run_id)
            else:
                close_circle(connection, self._pk, last.result)
            return
        if self._pk is None and news and isinstance(news[0], CircleConvened):
            self._pk, self._id = open_circle(connection, news[0], label=self._label, run_id=self._run_id)
        if self._pk is not None and news:
            add_events(connection, self._pk, list(enumerate(news, self._told)))


class Recorder:
    """The thread that writes, started when there is something to write and gone when there is not."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._sitting: list[Recording] = []
        self._waiting_since: float | None = None
        self._thread: threading.Thread | None = None

    def recording(
        self,
        *,
        label: str | None = None,
        run_id: str | None = None,
        on_cancel: Callable[[], None] | None = None,
    ) -> Recording:
        """A circle or panel to be written down. `on_cancel` is called, on another thread, when asked to."""
        return Recording(self, label, run_id, on_cancel)

    def _take(self, recording: Recording, news: Event | Panel) -> None:
        with self._changed:
            if recording not in self._sitting:
                self._sitting.append(recording)
            if isinstance(news, Panel):
                recording._panel = news
            else:
                recording._news.append(news)
            recording._over = isinstance(news, Panel | CircleClosed)
            if self._waiting_since is None:
                self._waiting_since = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="circle-recorder", daemon=True)
                self._thread.start()
            elif recording._over:
                self._changed.notify()

    def _leave(self, recording: Recording) -> None:
        """Nothing more will be told of this one."""
        with self._changed:
            if recording in self._sitting:
                self._sitting.remove(recording)

    def _work(self) -> None:
        last_sign = time.monotonic()
        while True:
            with self._changed:
                if not self._sitting:
                    self._thread = None
                    return
                self._wait(last_sign + SIGN_OF_LIFE)
                batch = [
                    (one, one._news, one._panel, one._over)
                    for one in self._sitting
                    if one._news or one._panel
                ]
                for one, *_ in batch:
                    one._news = []
                self._sitting = [one for one in self._sitting if not one._over]
                self._waiting_since = None
                alive = tuple(self._sitting)
            self._keep(batch)
            if time.monotonic() - last_sign >= SIGN_OF_LIFE:
                last_sign = time.monotonic()
                self._give_sign_of_life([one for one in alive if one._pk is not None])

    def _wait(self, until: float) -> None:
        """Until a circle is over, or news have waited long enough, or a sign of life is due."""
        while not any(one._over for one in self._sitting):
            due = until if self._waiting_since is None else min(until, self._waiting_since + PATIENCE)
            left = due - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _keep(self, batch: list[tuple[Recording, list[Event], Panel | None, bool]]) -> None:
        if not batch:
            return
        try:
            with self._database.writing() as connection:
                for one, news, panel, _ in batch:
                    one._write(connection, news, panel)
        except Exception as trouble:  # noqa: BLE001 - whoever waits for the recording is told
            if len(batch) > 1:  # one that cannot be written must not take the others with it
                for single in batch:
                    self._keep([single])
                return
            one, news, _, over = batch[0]
            if not over:
                self._put_back(one, news)
            elif not one.kept.done():
                error = trouble if isinstance(trouble, StoreError) else StoreError(f"store: {trouble}")
                one.kept.set_exception(error)
            return
        for one, news, _, over in batch:
            one._told += len(news)
            if over and not one.kept.done():
                one.kept.set_result(one._id or "")

    def _put_back(self, recording: Recording, news: list[Event]) -> None:
        """What could not be written is tried again with the next news."""
        with self._changed:
            recording._news = [*news, *recording._news]

    def _give_sign_of_life(self, alive: list[Recording]) -> None:
        if not alive:
            return
        keys = {one._pk: one for one in alive}
        mine = circles.c.pk.in_([key for key in keys if key is not None])
        try:
            with self._database.writing() as connection:
                connection.execute(sa.update(circles).where(mine).values(heard_at=time.time()))
                asked = connection.execute(sa.select(circles.c.pk).where(mine, circles.c.cancel_asked)).all()
        except StoreError:
            return  # the next writing will tell
        for (pk,) in asked:
            if cancel := keys[pk]._on_cancel:
                cancel()
