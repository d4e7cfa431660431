"""Following circles while they sit, wherever they are held: the store is asked once for everybody."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from firecircle.circle.events import Event
from firecircle.errors import ConfigError, FireCircleError
from firecircle.store.finding import CircleSummary
from firecircle.store.opening import Store

LOOK_AGAIN = 0.2
"""Seconds between two looks into the store."""


@dataclass(frozen=True, slots=True)
class News:
    """One event of a sitting circle; `seq` is its number."""

    seq: int
    event: Event


@dataclass(frozen=True, slots=True)
class Over:
    """The circle does not sit any more; None when it is gone altogether."""

    summary: CircleSummary | None


class _Leaving:
    """The server ends."""


@dataclass(slots=True, eq=False)
class _Follower:
    circle: CircleSummary
    seq: int
    news: asyncio.Queue[News | Over | _Leaving] = field(default_factory=asyncio.Queue)


class Watch:
    """One look into the store serves everybody who follows a circle."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._followers: list[_Follower] = []
        self._looking: asyncio.Task[None] | None = None

    @property
    def followers(self) -> int:
        """How many streams are open."""
        return len(self._followers)

    async def follow(
        self, circle: CircleSummary, after: int = -1, *, pause: float = 15.0
    ) -> AsyncIterator[News | Over | None]:
        """The news after an event, as they come, until the circle is over; None now and then in silence."""
        follower = _Follower(circle, after)
        self._followers.append(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                try:
                    latest = await asyncio.wait_for(follower.news.get(), pause)
                except TimeoutError:
                    yield None
                    continue
                if isinstance(latest, _Leaving):
                    return
                yield latest
                if isinstance(latest, Over):
                    return
        finally:
            with suppress(ValueError):
                self._followers.remove(follower)

    def leave(self) -> None:
        """End every stream now; whoever follows comes back to the next server."""
        for follower in self._followers:
            follower.news.put_nowait(_Leaving())

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    async def _look(self) -> None:
        while self._followers:
            following: dict[int, list[_Follower]] = defaultdict(list)
            for follower in self._followers:
                following[follower.circle.pk].append(follower)
            asked = {
                pk: (group[0].circle.id, min(follower.seq for follower in group))
                for pk, group in following.items()
            }
            try:
                news_by_circle = await asyncio.to_thread(self._look_up, asked)
            except FireCircleError:
                news_by_circle = {}  # the store is busy or away; it is asked again
            for pk, news in news_by_circle.items():
                for follower in following[pk]:
                    self._tell(follower, news)
            await asyncio.sleep(LOOK_AGAIN)

    def _look_up(self, asked: dict[int, tuple[str, int]]) -> dict[int, list[News | Over]]:
        return {pk: self._news(pk, name, seq) for pk, (name, seq) in asked.items()}

    def _news(self, pk: int, name: str, seq: int) -> list[News | Over]:
        try:
            summary = self._store.circles.summary(name)
        except ConfigError:
            return [Over(None)]
        # In this order: what happens between the two looks comes with the next.
        news: list[News | Over] = [
            News(number, event) for number, event in self._store.circles.events_after(pk, seq)
        ]
        if summary.status != "sitting":
            news.append(Over(summary))
        return news

    @staticmethod
    def _tell(follower: _Follower, news: list[News | Over]) -> None:
        for item in news:
            if isinstance(item, News):
                if item.seq <= follower.seq:
                    continue
                follower.seq = item.seq
            follower.news.put_nowait(item)
