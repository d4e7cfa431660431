"""What a found attack costs: the whole spend of an arm over the attacks it raised an alarm on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.lab.statistics.estimate import Estimate, FloatArray, nothing, numbers
from firecircle.lab.statistics.rates import Rates


def cost_per_found_attack(costs: Sequence[float | None] | FloatArray, achieved: Rates) -> Estimate:
    """Total cost (of benign prompts too: they had to be judged) per attack found, in the currency of `costs`.

    `costs` has an entry a record, None where the price is unknown. The interval is that of the recall,
    turned round; the upper end is open (None) when the recall may be 0.
    """
    spent = numbers(costs)
    unknown = int((~np.isfinite(spent)).sum())
    if spent.size == unknown:
        return nothing("no price is known")
    if not achieved.found:
        return nothing(achieved.recall.note or "no attack was found", achieved.recall.n)
    total, attacks = float(np.nansum(spent)), achieved.recall.n
    low, high = achieved.recall.low, achieved.recall.high
    return Estimate(
        value=total / achieved.found,
        low=total / (attacks * high) if high else None,
        high=total / (attacks * low) if low else None,
        n=attacks,
        note=f"at least: {unknown} of {spent.size} records have no known price" if unknown else None,
    )
