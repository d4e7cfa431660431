"""Which prompts to label next: those whose label tells most about the threshold and the independence.

An attack is taken to be the likelier the higher F is (a logistic curve). The threshold is the F from which an
attack is likelier than not; how independently voices err follows from their alarms and the labels, where a
prompt without a label counts with its probability. Both intervals are of the prompts given.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from firecircle.circle.quorum import effective_voices
from firecircle.lab.statistics.estimate import Estimate, FloatArray, numbers

SLOPE, SLOPE_SPREAD, PLACE_SPREAD = 8.0, 4.0, 0.3
"""Expected before any label: how steep the curve is, and how far its middle is from the alarm threshold."""
FLATTEST = 0.5
STEPS = 25
Z = 1.959964


@dataclass(frozen=True, slots=True)
class Labelling:
    """What the labels tell so far, and which share of what is unknown each further label would remove."""

    threshold: Estimate
    """The F from which an attack is likelier than not."""
    effective: Estimate | None
    """How many independent voices these are; None for fewer than two that were right and wrong at times."""
    about_threshold: FloatArray
    about_voices: FloatArray

    @property
    def gains(self) -> FloatArray:
        """Of both together, by which prompts are ordered."""
        return self.about_threshold + self.about_voices


def labelling(
    falsehood: FloatArray, alarms: FloatArray, attack: FloatArray, alarm_threshold: float
) -> Labelling:
    """`alarms` has a row per prompt and a column per voice, NaN where not heard; `attack` is 1, 0 or NaN."""
    x = np.stack([np.ones_like(falsehood), falsehood - alarm_threshold], axis=1)
    known = np.isfinite(attack)
    (middle, slope), spread = _curve(x[known], attack[known])
    p = np.where(known, attack, _probability(x, np.array([middle, slope])))
    doubt = p * (1 - p)
    lever = np.einsum("ij,jk,ik->i", x, spread, x)

    def removed(direction: FloatArray) -> FloatArray:
        """Of the variance of a figure that moves with the curve in this direction."""
        return numbers(doubt * (x @ spread @ direction) ** 2 / (1 + doubt * lever))

    towards = np.array([-1 / slope, middle / slope**2])
    variance = float(towards @ spread @ towards)
    place, half = alarm_threshold - middle / slope, Z * sqrt(variance)
    threshold = Estimate(value=place, low=place - half, high=place + half, n=int(known.sum()))
    about_voices, effective = np.zeros_like(falsehood), None
    heard = np.isfinite(alarms).all(axis=1)
    if influence := _influence(alarms[heard], p[heard]):
        phi, moved = influence
        weight = np.zeros_like(falsehood)
        weight[heard] = moved / heard.sum()
        along = (doubt * weight) @ x
        unknown = doubt * weight**2
        total = float(unknown.sum() + along @ spread @ along)
        if total > 0:
            about_voices = (unknown + removed(along)) / total
        of = alarms.shape[1]
        low, value, high = (effective_voices(of, phi + side * Z * sqrt(total)) for side in (1, 0, -1))
        effective = Estimate(value=value, low=low, high=high, n=int((known & heard).sum()))
    return Labelling(threshold, effective, removed(towards) / variance, about_voices)


def _probability(x: FloatArray, of: FloatArray) -> FloatArray:
    return numbers(1 / (1 + np.exp(-np.clip(x @ of, -30, 30))))


def _curve(x: FloatArray, attack: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The likeliest curve, and the covariance of its two numbers."""
    expected = np.array([0.0, SLOPE])
    precision = np.diag([(SLOPE * PLACE_SPREAD) ** -2, SLOPE_SPREAD**-2])
    of = expected
    for _ in range(STEPS):
        p = _probability(x, of)
        bend = precision + (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.solve(bend, x.T @ (attack - p) - precision @ (of - expected))
        of = of + step * min(1.0, SLOPE_SPREAD / max(1e-9, float(np.abs(step).max())))
        of[1] = max(of[1], FLATTEST)
    p = _probability(x, of)
    return of, numbers(np.linalg.inv(precision + (x * (p * (1 - p))[:, None]).T @ x))


def _influence(alarms: FloatArray, p: FloatArray) -> tuple[float, FloatArray] | None:
    """The mean correlation of errors, and by how much each prompt's label moves it, times the prompts."""
    missed = 1 - alarms
    rates = (p @ missed + (1 - p) @ alarms) / max(1, len(p))
    sometimes = (rates > 0) & (rates < 1)
    if sometimes.sum() < 2:
        return None
    alarms, missed, rates = alarms[:, sometimes], missed[:, sometimes], rates[sometimes]
    n, scale = len(rates), np.sqrt(rates * (1 - rates))
    together = (missed.T * p) @ missed / len(p) + (alarms.T * (1 - p)) @ alarms / len(p)
    phi = (together - np.outer(rates, rates)) / np.outer(scale, scale)
    pairs = n * (n - 1) / 2
    others = phi.sum(axis=1) - np.diag(phi)

    def moves(wrong: FloatArray) -> FloatArray:
        z = (wrong - rates) / scale
        squares = z**2
        return numbers((z.sum(axis=1) ** 2 - squares.sum(axis=1) - squares @ others) / 2 / pairs)

    return float(others.sum() / 2 / pairs), moves(missed) - moves(alarms)
