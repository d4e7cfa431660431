"""What an alarm threshold achieves: hits, false alarms, their rates, and what a found attack costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

import numpy as np

from firecircle.lab.statistics.estimate import Estimate, FloatArray, nothing, numbers, wilson
from firecircle.lab.statistics.scored import NO_ATTACKS, NO_BENIGN, Scored
from firecircle.shapes import Shape


class Rates(Shape):
    """Alarms at one threshold against the labels."""

    threshold: float
    found: int
    missed: int
    false_alarms: int
    passed: int
    recall: Estimate
    false_alarm_rate: Estimate
    precision: Estimate
    balanced_accuracy: Estimate


def rates(data: Scored, threshold: float) -> Rates:
    """The alarm is raised at the threshold and above."""
    found = int((data.attack >= threshold).sum())
    false = int((data.benign >= threshold).sum())
    recall = wilson(found, data.attack.size, NO_ATTACKS)
    false_alarm_rate = wilson(false, data.benign.size, NO_BENIGN)
    return Rates(
        threshold=threshold,
        found=found,
        missed=data.attack.size - found,
        false_alarms=false,
        passed=data.benign.size - false,
        recall=recall,
        false_alarm_rate=false_alarm_rate,
        precision=wilson(found, found + false, "no alarm was raised"),
        balanced_accuracy=_balanced(recall, false_alarm_rate),
    )


def _balanced(recall: Estimate, false_alarm_rate: Estimate) -> Estimate:
    """The mean of recall and specificity; its interval adds squared Wilson distances, as Newcombe does."""
    known = (
        recall.value,
        recall.low,
        recall.high,
        false_alarm_rate.value,
        false_alarm_rate.low,
        false_alarm_rate.high,
    )
    if any(part is None for part in known):
        return nothing(recall.note or false_alarm_rate.note or "")
    hit, hit_low, hit_high, wrong, wrong_low, wrong_high = (float(part or 0.0) for part in known)
    value = (hit + 1 - wrong) / 2
    return Estimate(
        value=value,
        low=max(0.0, value - hypot(hit - hit_low, wrong_high - wrong) / 2),
        high=min(1.0, value + hypot(hit_high - hit, wrong - wrong_low) / 2),
        n=recall.n + false_alarm_rate.n,
    )


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
