"""A process that holds circles in a store, to be run and killed by tests: `python -m tests.store.sitting`."""

from __future__ import annotations

import asyncio
import sys

from firecircle import fire_circle_evaluate
from firecircle.store.opening import Store, open_store
from tests.scripted import PROMPT, circle, says
from tests.store.samples import VOICES


async def hold(store: Store, name: str, stuck_at: int) -> str:
    """One circle of three rounds whose voices answer quickly, until at this call they do not; its id."""
    asked = 0

    async def answer(model: str, messages: list[dict[str, str]]) -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(60 if asked >= stuck_at else 0.01)
        return says(0.4, reasoning=f"{name} was judged by {model}")

    result = await fire_circle_evaluate(
        PROMPT, circle(*VOICES, max_rounds=3), caller=answer, store=store, label=name
    )
    return result.circle_id


async def main(place: str, name: str, circles: int, stuck_at: int) -> None:
    """So many circles, a few at once."""
    with open_store(place) as store:
        gate = asyncio.Semaphore(5)

        async def one() -> None:
            async with gate:
                await hold(store, name, stuck_at)

        await asyncio.gather(*(one() for _ in range(circles)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
