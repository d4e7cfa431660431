"""Adding to the store, once a run is over, every circle that only the journal has.

A judgement is journaled before the store has its circle, so `kill -9`, or a store that was locked meanwhile,
leaves judgements whose circle is not there, or open for ever. Such a circle is held again from the journal:
no voice is asked. One query covers some hundred judgements, so a run of which everything is
there hardly notices.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from firecircle.engine.journal import Journal, JudgementRef
from firecircle.engine.voices import ReplayedVoices
from firecircle.errors import ConfigError, FireCircleError
from firecircle.lab.arms.arm import FIRST, SECOND, Arm, Case
from firecircle.lab.arms.circle import CascadeArm, CircleArm, Held
from firecircle.lab.records import unpack_record
from firecircle.lab.runs.cases import ChosenRecord, chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.live import SAME, LiveCircles, is_same, missing_note, on_thread, stored_id
from firecircle.names import is_embedded
from firecircle.store.opening import Store

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
