"""Where circles convened from the page sit: a thread of their own, so that pages stay quick meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from firecircle.catalog import original_of
from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.circumstances import Seating
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, FireCircleResult
from firecircle.circle.voice import Voice
from firecircle.convene import rehearse
from firecircle.errors import EvaluationError
from firecircle.judge import Job, judge
from firecircle.names import is_person
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.store.opening import Store
from firecircle.store.recorder import Recording
from firecircle.telling.safe_text import with_codes
from firecircle.voices.person import Answer
from firecircle.web.access import is_same
from firecircle.web.problems import Judged, RequestError
from firecircle.web.seats import SEAT_ENDED, PersonSeat

MOST_AT_ONCE = 32
SECONDS_TO_LEAVE = 10.0

T = TypeVar("T")
Config = FireCircleConfig | EvaluationConfig


class Convener:
    """Holds circles and panels for the server and knows them by the id they are kept under."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="firecircle-convener", daemon=True)
        self._sitting: set[asyncio.Task[None]] = set()
        self._by_id: dict[str, asyncio.Task[None]] = {}
        self._seats: dict[asyncio.Task[None], tuple[PersonSeat, ...]] = {}
        self._thread.start()

    async def convene(
        self,
        prompt: MultiNeutrosophicPrompt,
        config: Config,
        label: str | None,
        seating: Seating | None = None,
    ) -> str:
        """Begin to judge; the id, as soon as there is one. A panel is kept when it is over."""
        if len(self._sitting) >= MOST_AT_ONCE:
            raise RequestError(
                429, f"{MOST_AT_ONCE} circles are running already; wait for one to end, or cancel one"
            )
        named: Future[str] = Future()
        self._loop.call_soon_threadsafe(self._begin, prompt, config, label, seating, named)
        return await asyncio.shield(asyncio.wrap_future(named))

    async def rehearse(self, prompt: MultiNeutrosophicPrompt, config: Config) -> tuple[CallRecord, ...]:
        """What judging this may take; no voice is asked."""
        return await self._here(rehearse(prompt, config))

    def seats(self, circle_id: str) -> tuple[PersonSeat, ...]:
        """The people who sit in a circle that is held here."""
        task = self._by_id.get(circle_id)
        return self._seats.get(task, ()) if task else ()

    def seat(self, token: str) -> PersonSeat:
        """The seat behind a link."""
        for seats in list(self._seats.values()):
            for seat in seats:
                if is_same(token, seat.token):
                    return seat
        raise RequestError(404, SEAT_ENDED)

    async def take(self, seat: PersonSeat, round_number: int, answer: Answer) -> None:
        """Pass a person's answer on to the circle."""

        async def give() -> None:
            seat.take(round_number, answer)

        await self._here(give())

    def cancel(self, circle_id: str) -> bool:
        """Call a circle off; False when it does not sit here."""
        task = self._by_id.get(circle_id)
        if task is None:
            return False
        self._loop.call_soon_threadsafe(task.cancel)
        return True

    def close(self) -> None:
        """Call every circle off, let each be written down, and end the thread."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._sitting])
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._all_gone(), self._loop).result(SECONDS_TO_LEAVE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS_TO_LEAVE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _all_gone(self) -> None:
        if self._sitting:
            await asyncio.wait(self._sitting)

    async def _here(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # -- on the convener's own thread ----------------------------------------------------------------------

    def _begin(
        self,
        prompt: MultiNeutrosophicPrompt,
        config: Config,
        label: str | None,
        seating: Seating | None,
        named: Future[str],
    ) -> None:
        task = self._loop.create_task(self._hold(prompt, config, label, seating, named))
        self._sitting.add(task)
        task.add_done_callback(lambda done: self._leave(done, named))

    def _leave(self, task: asyncio.Task[None], named: Future[str]) -> None:
        self._sitting.discard(task)
        self._seats.pop(task, None)
        self._by_id = {name: holder for name, holder in self._by_id.items() if holder is not task}
        error = None if task.cancelled() else task.exception()
        if not named.done():
            named.set_exception(error or RequestError(503, "cancelled before anything was saved"))

    async def _hold(
        self,
        prompt: MultiNeutrosophicPrompt,
        config: Config,
        label: str | None,
        seating: Seating | None,
        named: Future[str],
    ) -> None:
        me = asyncio.current_task()
        assert me is not None
        people = {model: PersonSeat(model) for model in config.named_models if is_person(original_of(model))}
        self._seats[me] = tuple(people.values())
        recordings: list[Recording] = []
        judged: FireCircleResult | Panel | None = None
        unkept: list[str] = []

        def seated(model: str, voice: Voice) -> Voice:
            return people[model].voice if model in people else voice

        def take(recording: Recording) -> None:
            recordings.append(recording)
            recording.opened.add_done_callback(partial(self._tell_name, me, named))

        try:
            judged, _ = await judge(
                Job(
                    prompt=prompt,
                    config=config,
                    seating=seating,
                    store=self._store,
                    label=label,
                    watched=seated,
                    on_recording=take,
                    on_unkept=unkept.append,
                )
            )
        except EvaluationError:
            if not recordings or recordings[0].id is None:
                raise  # nothing was heard; otherwise what was heard is kept, with the reason
        finally:
            if named.done():  # whoever asked has gone on; the terminal is all that is left
                for why in unkept:
                    print(f"warning: not saved: {with_codes(why)}", file=sys.stderr)
        if not named.done():
            raise _not_kept("; ".join(unkept), judged)

    def _name(self, circle_id: str, holder: asyncio.Task[None], named: Future[str]) -> None:
        self._by_id[circle_id] = holder
        if not named.done():
            named.set_result(circle_id)

    # -- on the thread that writes circles down --------------------------------------------------------

    def _tell_name(self, holder: asyncio.Task[None], named: Future[str], opened: Future[str]) -> None:
        """The id is the store's: a circle repeated with its seed gets a number behind it."""
        with suppress(RuntimeError):  # the convener was closed meanwhile
            self._loop.call_soon_threadsafe(self._name, opened.result(), holder, named)


def _not_kept(why: str, judged: FireCircleResult | Panel | None) -> RequestError:
    """The refusal for a judgement that is nowhere to be looked up: it brings the verdict itself."""
    consensus = judged.consensus if judged else None
    if judged is None or consensus is None:
        return RequestError(503, f"the judgement could not be saved: {why}")
    verdict = Judged(
        verdict=judged.verdict,
        alarm=judged.alarm,
        falsehood=consensus.falsehood,
        decided_by=consensus.model,
    )
    return RequestError(503, f"judged ({verdict.words}), but it could not be saved: {why}", verdict=verdict)
