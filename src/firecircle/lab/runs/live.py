"""Adding to the store, once a run is over, every circle that only the journal has.

A judgement is journaled before the store has its circle, so `kill -9`, or a store that was locked meanwhile,
leaves judgements whose circle is not there, or open for ever. Such a circle is held again from the journal:
no voice is asked. One query covers some hundred judgements, so a run of which everything is
there hardly notices.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from firecircle.circle.events import CircleClosed, CircleConvened, Event, Listener
from firecircle.circle.result import FireCircleResult
from firecircle.engine.journal import Journal, JudgementRef
from firecircle.errors import ConfigError, FireCircleError, StoreError
from firecircle.lab.arms.arm import FIRST, SECOND, Arm, Case
from firecircle.lab.arms.circle import CascadeArm, CircleArm, Held
from firecircle.lab.datasets import Record
from firecircle.lab.records import unpack_record
from firecircle.lab.runs.folder import RunAbout, RunFolder
from firecircle.lab.runs.judging import ReplayedVoices
from firecircle.lab.runs.starting import ChosenRecord, chosen_records
from firecircle.names import PATTERN_TYPES, is_embedded
from firecircle.store.opening import Store
from firecircle.store.recorder import InRun, Recording

AT_ONCE = 500
"""Judgements in one question to the store; as many are in memory at a time."""
CIRCLES_AT_ONCE = 50
"""Circles held again before they are waited for."""
PATIENCE = 10.0
"""Seconds to wait for an answer of the store, or until it has taken some circles."""
LONGEST = 60.0
"""Seconds that are spent on holding circles again, unless somebody asked for all of them."""
SILENT = "it does not answer"


async def sync_store(
    folder: RunFolder, journal: Journal, arms: Sequence[Arm], live: LiveCircles
) -> str | None:
    """Have the store hold the circle of every judgement, as far as it takes them; what is still not there.

    A run never fails for this.
    """
    circles = {arm.name: parts for arm in arms if (parts := _stored_circles(arm, live))}
    if live.store is None or not circles:
        return None
    sync = _Sync(folder, journal, circles, live, live.store)
    try:
        await sync.everything()
    except TimeoutError:
        return live.left_out_note() or missing_note(None, live.trouble or SILENT)
    except Exception as trouble:  # noqa: BLE001 - the run has everything, and is over
        return live.left_out_note() or missing_note(None, _in_words(trouble))
    return missing_note(sync.left, sync.trouble) if sync.left else None


def _stored_circles(arm: Arm, live: LiveCircles) -> tuple[CircleArm, ...]:
    """The circles of an arm that are written down."""
    parts = (arm.first, arm.second) if isinstance(arm, CascadeArm) else (arm,)
    return tuple(
        circle
        for circle in parts
        if isinstance(circle, CircleArm) and (live.embedded_too or not all(map(is_embedded, circle.models)))
    )


def _in_words(trouble: Exception) -> str:
    return str(trouble) if isinstance(trouble, FireCircleError) else repr(trouble)


@dataclass(frozen=True, slots=True)
class _Missing:
    """A circle that is not in the store as it was held."""

    judged: JudgementRef
    circle: CircleArm
    f: float | None
    """Its F, as far as the journal says."""


@dataclass(slots=True)
class _Sync:
    """One way through the journal. Judgements come by sitting and place, as records do from their data."""

    folder: RunFolder
    journal: Journal
    circles: Mapping[str, tuple[CircleArm, ...]]
    live: LiveCircles
    store: Store
    left: int = 0
    trouble: str = ""
    _has_given_up: bool = False
    _began: float = field(default_factory=time.monotonic)
    _repeat: int | None = None
    _records: Iterator[ChosenRecord] = field(default_factory=lambda: iter(()))
    _at: ChosenRecord | None = None

    async def everything(self) -> None:
        """Ask the store about all judgements, and hand it the circles it does not have."""
        if self.live.is_stuck:  # what is missing is counted then
            self._give_up(self.live.trouble or SILENT)
        last: JudgementRef | None = None
        while some := self.journal.judged_after(last, AT_ONCE):
            last = some[-1]
            missing = await self._missing(some)
            for start in range(0, len(missing), CIRCLES_AT_ONCE):
                await self._hand_over(missing[start : start + CIRCLES_AT_ONCE])

    def _give_up(self, why: str) -> None:
        self._has_given_up, self.trouble = True, why

    # -- what is missing -----------------------------------------------------------------------------

    async def _missing(self, judged: Sequence[JudgementRef]) -> list[_Missing]:
        about = self.folder.about
        named = {
            stored_id(about, circle.name, judgement.dataset, judgement.record_id, judgement.repeat): (
                judgement,
                circle,
            )
            for judgement in judged
            for circle in self.circles.get(judgement.arm, ())
        }
        if not named:
            return []
        asked = on_thread(lambda: self.store.circles.finished(tuple(named)))
        there = await asyncio.wait_for(asyncio.wrap_future(asked), PATIENCE)
        return [
            sat
            for name, (judgement, circle) in named.items()
            if not (circle.name == judgement.arm and is_same(there, name, judgement.f))
            and (sat := self._as_it_sat(judgement, circle))
            and not is_same(there, name, sat.f)
        ]

    def _as_it_sat(self, judgement: JudgementRef, circle: CircleArm) -> _Missing | None:
        """The circle of a judgement with what it came to; None when it never sat."""
        if circle.name == judgement.arm and judgement.f is not None:
            return _Missing(judgement, circle, judgement.f)
        record = unpack_record(self.journal.judged_by(judgement.repeat, judgement.place)[judgement.arm])
        if record.stopped is None or (circle.name == judgement.arm + SECOND and not record.escalated):
            return None
        had_last_word = circle.name != judgement.arm + FIRST or not record.escalated
        return _Missing(judgement, circle, record.f if had_last_word else None)

    # -- holding it again ----------------------------------------------------------------------------

    async def _hand_over(self, missing: Sequence[_Missing]) -> None:
        handed: list[Future[str]] = []
        for circle in missing:
            late = not self.live.embedded_too and time.monotonic() - self._began > LONGEST
            if late and not self._has_given_up:
                self._give_up("holding them again takes too long")
            if self._has_given_up or (writing := await self._hold_again(circle)) is None:
                self.left += 1
            else:
                handed.append(writing)
        if not handed:
            return
        await asyncio.to_thread(wait, handed, PATIENCE)
        unwritten = [writing for writing in handed if not writing.done()]
        refused = [trouble for writing in handed if writing.done() and (trouble := writing.exception())]
        self.left += len(unwritten) + len(refused)
        if unwritten:
            self._give_up(SILENT)
        elif refused:
            self.trouble = str(refused[-1])
            self._has_given_up = len(refused) == len(handed)

    async def _hold_again(self, missing: _Missing) -> Future[str] | None:
        """The circle held again and on its way into the store; None when it is not what it was."""
        chosen = self._record(missing.judged)
        if chosen is None:
            self.trouble = "the data has changed since"
            return None
        case = Case(
            chosen.record,
            chosen.dataset,
            missing.judged.repeat,
            dict(self.folder.plan.sittings)[missing.judged.repeat],
        )
        try:
            held = await missing.circle.run(case, ReplayedVoices(self.journal, case.key(missing.judged.arm)))
        except ConfigError as unsuitable:
            self.trouble = str(unsuitable)
            return None
        if missing.f is not None and not _came_to(held, missing.f):
            self.trouble = "what was said is not in the journal"
            return None
        return self.live.keep(missing.circle.name, case, held.result)

    def _record(self, judged: JudgementRef) -> ChosenRecord | None:
        """The record of a judgement; its data is read on from the one before."""
        if self._repeat != judged.repeat:
            self._repeat, self._at = judged.repeat, None
            self._records = chosen_records(self.folder.plan, self.folder.base)
        while self._at is None or self._at.place < judged.place:
            self._at = next(self._records, None)
            if self._at is None:
                return None
        same = (self._at.place, self._at.dataset, self._at.record.id)
        return self._at if same == (judged.place, judged.dataset, judged.record_id) else None


def _came_to(held: Held, f: float) -> bool:
    consensus = held.result.consensus
    return held.error is None and consensus is not None and abs(consensus.falsehood - f) < SAME


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
