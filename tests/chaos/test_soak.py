"""Circle after circle in one process: memory stays where it was.

`pytest tests/chaos --long` holds 4,000 circles in four parts instead of 60.
"""

from __future__ import annotations

import gc

import psutil

from tests.chaos.test_chaos import differences

FEW, MANY = 15, 1000
PARTS = 4
MAY_GROW = 8_000_000
"""Bytes between the second part and the last: less than what a few circles hold."""


async def test_memory_is_flat_in_the_storm(is_long: bool) -> None:
    process = psutil.Process()
    sizes = []
    for part in range(PARTS):
        many = MANY if is_long else FEW
        assert await differences(range(part * many, (part + 1) * many)) == []
        gc.collect()
        sizes.append(process.memory_info().rss)
    assert sizes[-1] - sizes[1] < MAY_GROW, sizes
