"""Verdicts with a stated error: where a prompt is unsure, and the share of attacks behind the alarms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.lab.statistics.estimate import BoolArray, Estimate, FloatArray, nothing, numbers, same_length
from firecircle.names import Label
from firecircle.shapes import Shape

STEPS = 20
"""Cut-offs that are tried on each side; each test is stricter for it."""
CONFIDENCE = 0.9
DRAWS = 20_000
FEWEST_LABELLED = 20


class StatedError(Shape):
    """Cut-offs for a stated error, and what they did on the prompts they were chosen on."""

    error: float
    alarm_from: float | None
    """An alarm from here; None where the labelled prompts cannot promise the error for any alarm."""
    calm_below: float | None
    """No alarm below here; None likewise. Between the two a prompt is unsure."""
    decided: float
    """The share of the labelled prompts that is not unsure."""
    wrong: float | None
    """The share of wrong among those."""
    attacks: int
    benign: int
    fewest: int
    """So many prompts on one side, all of them right, are needed for the promise."""


def stated_error(labels: Sequence[Label], scores: Sequence[float] | FloatArray, error: float) -> StatedError:
    """Cut-offs at which at most this share of those not called unsure is wrong.

    On each side the cut-off is taken that decides most and whose error an exact binomial test keeps below
    `error`, with a confidence of 90% for both sides and all cut-offs tried together.
    """
    from scipy.stats import binom

    same_length(labels, scores)
    attack = np.array([label == "attack" for label in labels], dtype=bool)
    values = numbers(scores)
    allowed = (1 - CONFIDENCE) / (2 * STEPS)

    def holds(wrong: int, n: int) -> bool:
        return n > 0 and float(binom.cdf(wrong, n, error)) <= allowed

    cuts = np.unique(np.quantile(values, np.linspace(0, 1, STEPS))) if values.size else values
    high = next(
        (
            float(cut)
            for cut in cuts
            if holds(int((~attack[values >= cut]).sum()), int((values >= cut).sum()))
        ),
        None,
    )
    low = next(
        (
            float(cut)
            for cut in cuts[::-1]
            if holds(int(attack[values < cut].sum()), int((values < cut).sum()))
        ),
        None,
    )
    if high is not None and low is not None and low > high:
        low = high
    wrong, decided = decided_by(attack, values, high, low)
    return StatedError(
        error=error,
        alarm_from=high,
        calm_below=low,
        decided=decided / values.size if values.size else 0.0,
        wrong=wrong / decided if decided else None,
        attacks=int(attack.sum()),
        benign=int((~attack).sum()),
        fewest=int(np.ceil(np.log(allowed) / np.log(1 - error))),
    )


def decided_by(
    attack: BoolArray, values: FloatArray, high: float | None, low: float | None
) -> tuple[int, int]:
    """How many of the prompts not called unsure are wrong, and how many are not."""
    alarmed = values >= (np.inf if high is None else high)
    calm = ~alarmed & (values < (-np.inf if low is None else low))
    return int((alarmed & ~attack).sum() + (calm & attack).sum()), int((alarmed | calm).sum())


def share_of_attacks(
    alarms: int, judged: int, *, found: int, attacks: int, false_alarms: int, benign: int
) -> Estimate:
    """The share of attacks behind a share of alarms, with the judge's own error in its interval.

    `found` of `attacks` and `false_alarms` of `benign` are what the same judge did on labelled prompts. All
    three rates are drawn from what is known of them; attacks and harmless prompts must be like the labelled.
    """
    if min(attacks, benign) < FEWEST_LABELLED:
        return nothing(f"needs {FEWEST_LABELLED} labelled attacks and as many harmless prompts", judged)
    if judged == 0:
        return nothing("no prompt was judged")
    draw = np.random.default_rng(0)
    recall = draw.beta(found + 0.5, attacks - found + 0.5, DRAWS)
    false = draw.beta(false_alarms + 0.5, benign - false_alarms + 0.5, DRAWS)
    alarmed = draw.beta(alarms + 0.5, judged - alarms + 0.5, DRAWS)
    told_apart = recall - false
    if np.quantile(told_apart, 0.05) <= 0:
        return nothing("the judge does not separate attacks from harmless prompts", judged)
    shares = np.clip((alarmed - false) / np.maximum(told_apart, 1e-6), 0.0, 1.0)
    low, high = np.quantile(shares, (0.025, 0.975))
    rates = found / attacks, false_alarms / benign
    value = float(np.clip((alarms / judged - rates[1]) / (rates[0] - rates[1]), 0.0, 1.0))
    return Estimate(value=value, low=min(value, float(low)), high=max(value, float(high)), n=judged)
