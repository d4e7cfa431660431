"""What a run's figures say, in plain sentences. One claims a difference only where the tests show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from firecircle.lab.figures.arms import ArmFigures
from firecircle.lab.figures.run import FROM_ROUND_1, ArmComparison, RunFigures
from firecircle.lab.statistics import Estimate
from firecircle.shapes import Shape, Text

SIGNIFICANT = 0.05
FEW = 30
"""Prompts of a label under which a figure is an anecdote."""
FAIR = 0.10
"""How far the tokens of a control arm may lie from those of the circle."""

Tone = Literal["plain", "gain", "loss", "warning"]


class Sentence(Shape):
    """One thing the run shows, and how it reads."""

    text: Text
    tone: Tone = "plain"


def summary(figures: RunFigures) -> tuple[Sentence, ...]:
    """The run in words, the most important first."""
    return (
        *_warnings(figures),
        *(_detection(figures, arm) for arm in figures.arms),
        *(_talking(one) for one in figures.comparisons if one.second == FROM_ROUND_1),
        *(_against(figures, one) for one in figures.comparisons if one.second != FROM_ROUND_1),
        *_rereading(figures),
        *_chair(figures),
        *_voices(figures),
        *_thresholds(figures),
    )


def shares(estimate: Estimate) -> str:
    """A share with its interval."""
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def _warnings(figures: RunFigures) -> Iterator[Sentence]:
    first = figures.arms[0].performance
    if first.attacks < FEW or first.benign < FEW:
        yield Sentence(
            text=f"There are {first.attacks} attacks and {first.benign} benign prompts:"
            " too few to tell more than large differences apart.",
            tone="warning",
        )
    for arm in figures.arms:
        if arm.spent.failed:
            asked = arm.spent.judged + arm.spent.failed
            yield Sentence(
                text=f"{arm.arm}: {arm.spent.failed:,} of {asked:,} judgements failed and are missing"
                " from its figures.",
                tone="warning",
            )


def _detection(figures: RunFigures, arm: ArmFigures) -> Sentence:
    got = arm.performance.at_threshold
    area = arm.performance.auc
    ranked = "" if area.value is None else f"; AUC {area.value:.3f}"
    return Sentence(
        text=f"{arm.arm} finds {got.found:,} of {got.found + got.missed:,} attacks, {shares(got.recall)}, and"
        f" raises {got.false_alarms:,} false alarms on {got.false_alarms + got.passed:,} benign prompts,"
        f" {shares(got.false_alarm_rate)}, at F ≥ {figures.threshold:g}{ranked}."
    )


Standing = Literal[
    "better", "worse", "better at this threshold", "worse at this threshold", "no difference shown"
]


def verdict_of(one: ArmComparison) -> Standing:
    """Whether the first of the two tells attacks from benign prompts better, as far as the tests go.

    An arm that is right more often at the alarm threshold while it ranks no better owes that to where its
    scores lie: a threshold of its own would do as much for the other.
    """
    gain = one.comparison.auc.difference.value or 0.0
    if one.p_auc is not None and one.p_auc < SIGNIFICANT:
        return "better" if gain > 0 else "worse"
    right = one.comparison.right
    if one.p_right is not None and one.p_right < SIGNIFICANT:
        more = right.only_first > right.only_second
        return "better at this threshold" if more else "worse at this threshold"
    return "no difference shown"


def _talking(one: ArmComparison) -> Sentence:
    found, passed = one.comparison.found, one.comparison.passed
    price = (
        f"In {one.first} the dialogue finds {found.only_first} attacks that round 1 missed"
        f" and adds {passed.only_second} false alarms"
    )
    lost = f", and loses {found.only_second}" if found.only_second else ""
    outcome = verdict_of(one)
    if outcome == "better":
        return Sentence(text=f"{price}{lost}: talking pays here{_tests(one)}.", tone="gain")
    if outcome == "better at this threshold":
        return Sentence(
            text=f"{price}{lost}: talking pays at this threshold{_tests(one)}, but it ranks prompts no"
            " better, so a lower threshold for round 1 alone might do as much.",
            tone="warning",
        )
    if outcome.startswith("worse"):
        return Sentence(text=f"{price}{lost}: talking does harm here{_tests(one)}.", tone="loss")
    return Sentence(
        text=f"{price}{lost}: that talking pays is not shown on these prompts{_tests(one)}.", tone="loss"
    )


def _against(figures: RunFigures, one: ArmComparison) -> Sentence:
    found, passed = one.comparison.found, one.comparison.passed
    told = (
        f"Against {one.second}, {one.first} finds {found.only_first} attacks more and {found.only_second}"
        f" less, and raises {passed.only_second} false alarms more and {passed.only_first} less"
    )
    outcome = verdict_of(one)
    dearer = _dearer(figures.arm(one.first), figures.arm(one.second))
    if outcome == "better":
        return Sentence(text=f"{told}: it tells attacks apart better{_tests(one)}{dearer}.", tone="gain")
    if outcome == "worse":
        return Sentence(
            text=f"{told}: it tells attacks apart worse{_tests(one)}{dearer};"
            f" {one.second} is the better choice.",
            tone="loss",
        )
    if outcome != "no difference shown":
        return Sentence(
            text=f"{told}: it does {outcome}{_tests(one)}{dearer}, but does not rank prompts better;"
            " give each arm a threshold of its own before choosing.",
            tone="warning",
        )
    pays = f"; what it costs more buys nothing that can be shown{dearer}" if dearer else ""
    return Sentence(
        text=f"{told}: no difference is shown{_tests(one)}{pays}.", tone="loss" if dearer else "plain"
    )


def _dearer(first: ArmFigures, second: ArmFigures) -> str:
    ours, theirs = first.spent, second.spent
    for spent, other, words in (
        (ours.cost_usd, theirs.cost_usd, "at {:.1f} times the cost"),
        (
            ours.tokens_in + ours.tokens_out,
            theirs.tokens_in + theirs.tokens_out,
            "at {:.1f} times the tokens",
        ),
        (ours.calls, theirs.calls, "with {:.1f} times the calls"),
    ):
        if spent and other:
            return f", {words.format(spent / other)}" if spent > (1 + FAIR) * other else ""
    return ""


def _tests(one: ArmComparison) -> str:
    area = one.comparison.auc.difference
    parts = []
    if area.value is not None and area.low is not None and area.high is not None:
        parts.append(f"AUC {area.value:+.3f}, {area.low:+.3f} to {area.high:+.3f}")
    if one.p_right is not None:
        parts.append(f"McNemar p = {one.p_right:.3g} after correction")
    return f" ({'; '.join(parts)})" if parts else ""


def _rereading(figures: RunFigures) -> Iterator[Sentence]:
    for one in figures.rereading:
        more = one.excess.excess
        if more.value is None or one.excess.with_peers is None or one.excess.alone is None:
            continue
        shown = more.low is not None and more.low > 0
        fair = one.tokens_ratio is None or abs(one.tokens_ratio - 1) <= FAIR
        ratio = "" if one.tokens_ratio is None else f" at {one.tokens_ratio:.2f} times the tokens"
        yield Sentence(
            text=f"Voices change sides in {one.excess.with_peers:.1%} of cases with peers ({one.circle})"
            f" and in {one.excess.alone:.1%} when they merely read again ({one.reflect}{ratio}):"
            + (" peers move opinions." if shown else " that peers move opinions is not shown.")
            + ("" if fair else " The control did not get as many tokens, so compare with care."),
            tone="plain" if fair else "warning",
        )


def _chair(figures: RunFigures) -> Iterator[Sentence]:
    for arm in figures.arms:
        if arm.performative:
            yield Sentence(
                text=f"The empty chair in {arm.arm} brings {arm.chair_influence.value:.1%} of the pattern"
                " types on average: it is performative.",
                tone="loss",
            )
    for one in figures.chair:
        found = one.effect.comparison.found
        yield Sentence(
            text=f"With the chair {found.only_first} attacks are found that the circle without it misses, and"
            f" {found.only_second} are missed that it finds."
        )


def _voices(figures: RunFigures) -> Iterator[Sentence]:
    for arm in figures.arms:
        if arm.kind == "fire_circle" and arm.errors and arm.errors.effective_voices is not None:
            yield Sentence(
                text=f"The {len(arm.voices)} voices of {arm.arm} err together as"
                f" {arm.errors.effective_voices:.1f} independent ones would."
            )
        talked = arm.flips
        if arm.kind == "fire_circle" and talked and talked.lost_attacks + talked.rescued_attacks:
            yield Sentence(
                text=f"In {arm.arm} single voices were talked out of {talked.lost_attacks} attacks they had"
                f" seen and into {talked.rescued_attacks} they had not; {talked.false_alarms_spread} false"
                f" alarms spread and {talked.false_alarms_cleared} were cleared."
            )


def _thresholds(figures: RunFigures) -> Iterator[Sentence]:
    arm = figures.arm(figures.reference)
    for one in arm.calibration:
        if one.observed.value is None:
            continue
        promise = (
            f" {one.guaranteed.value:g} promises that with {one.confidence:.0%} confidence."
            if one.guaranteed.value is not None
            else f" No threshold can promise it: {one.guaranteed.note}."
        )
        yield Sentence(
            text=f"For at most {one.target:.0%} false alarms set the threshold of {arm.arm} to"
            f" {one.observed.value:g} (on these {one.benign:,} benign prompts).{promise}"
        )
