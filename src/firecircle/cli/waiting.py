"""Waiting for several at once without leaving the user in the dark."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from firecircle.cli.printable import printable_line

Outcome = TypeVar("Outcome")
PATIENCE_SECONDS = 1.0


async def heard_from_all(
    work: Mapping[str, Coroutine[Any, Any, Outcome]],
    when_done: Callable[[str, Outcome], None] = lambda name, outcome: None,
) -> dict[str, Outcome]:
    """Everybody's outcome, all at once. Those who take long are named on the error stream."""
    names = {asyncio.create_task(one): name for name, one in work.items()}
    waiting = set(names)
    outcomes: dict[str, Outcome] = {}
    patience = PATIENCE_SECONDS
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                outcomes[names[task]] = task.result()
                when_done(names[task], task.result())
            if not done:
                patience *= 2
                late = ", ".join(sorted(printable_line(names[task]) for task in waiting))
                print(f"waiting for {late}", file=sys.stderr, flush=True)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return {name: outcomes[name] for name in work}
