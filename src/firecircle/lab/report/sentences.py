"""The sentences of a report beside the comparison of arms: rereading, chair, how voices err, thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from firecircle.lab.figures.run import ArmFigures, RunFigures
from firecircle.lab.statistics.estimate import Estimate
from firecircle.lab.statistics.voices import ErrorCorrelation
from firecircle.names import is_embedded
from firecircle.shapes import Shape, Text
from firecircle.telling.words import counted

FAIR = 0.10
"""How far the tokens of a control arm may lie from those of the circle."""
ENOUGH_CHAIRS = 10
"""Circles from which on a mean influence is worth a word; the specification's own test has as many."""

Tone = Literal["plain", "gain", "loss", "warning"]
Part = Literal["first", "care", "rest"]


class Sentence(Shape):
    """One thing the run shows, and how it reads."""

    text: Text
    tone: Tone = "plain"
    part: Part = "rest"
    """What matters most, what to be careful about, and everything else."""


def shares(estimate: Estimate) -> str:
    """A share with its interval."""
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def observations(figures: RunFigures) -> Iterator[Sentence]:
    """Everything that is not a comparison of arms."""
    yield from _rereading(figures)
    yield from _rivals(figures)
    yield from _guidance(figures)
    yield from _chair(figures)
    yield from _gap(figures)
    yield from _voices(figures)
    yield from _thresholds(figures)


def _embedded(arm: ArmFigures) -> bool:
    return bool(arm.voices) and all(map(is_embedded, arm.voices))


def _talking_reference(figures: RunFigures) -> tuple[ArmFigures, ...]:
    """The circle the run is about, if there is one; what other circles did stands in the tables."""
    arm = figures.arm(figures.reference)
    return (arm,) if arm.kind == "fire_circle" else ()


def _rereading(figures: RunFigures) -> Iterator[Sentence]:
    for contrast in figures.rereading:
        more = contrast.excess.excess
        if more.value is None or contrast.excess.with_peers is None or contrast.excess.alone is None:
            continue
        if _embedded(figures.arm(contrast.reflect)):
            yield Sentence(
                text=f"Embedded readers reread to the same answer: {contrast.reflect} cannot show what"
                f" peers did in {contrast.circle}."
            )
            continue
        shown = more.low is not None and more.low > 0
        fair = contrast.tokens_ratio is None or abs(contrast.tokens_ratio - 1) <= FAIR
        ratio = "" if contrast.tokens_ratio is None else f", {contrast.tokens_ratio:.2f} times the tokens"
        yield Sentence(
            text=f"Voices change sides in {contrast.excess.with_peers:.1%} of cases with peers"
            f" ({contrast.circle}) and in {contrast.excess.alone:.1%} when they merely read again"
            f" ({contrast.reflect}{ratio}):"
            + (" peers move opinions." if shown else " that peers move opinions is not shown.")
            + ("" if fair else " The control did not get as many tokens, so compare with care."),
            tone="plain" if fair else "warning",
        )


def _rivals(figures: RunFigures) -> Iterator[Sentence]:
    for beside in figures.rivals:
        fair = abs(beside.tokens_ratio - 1) <= FAIR
        nearest = "" if beside.circle == figures.reference else ", the circle that comes nearest to it"
        yield Sentence(
            text=f"{beside.rival} took {beside.tokens_ratio:.2f} times the tokens of {beside.circle}{nearest}"
            + ("." if fair else ": too far apart, so compare with care."),
            tone="plain" if fair else "warning",
        )


def _guidance(figures: RunFigures) -> Iterator[Sentence]:
    for arm in figures.arms:
        if arm.kind == "guided" and _embedded(arm):
            yield Sentence(
                text=f"Embedded voices do not read guidance: {arm.arm} can show nothing with them.",
                tone="warning",
            )


def _chair(figures: RunFigures) -> Iterator[Sentence]:
    for arm in _talking_reference(figures):
        influence = arm.chair_influence
        if influence.value is not None and influence.n >= ENOUGH_CHAIRS:
            brings = (
                f"The empty chair in {arm.arm} brings {shares(influence)} of the pattern types on average"
            )
            if arm.performative:
                yield Sentence(text=f"{brings}, less than 5%: it is performative.", tone="loss")
            else:
                yield Sentence(text=f"{brings}.")
    for chair in figures.chair:
        found = chair.effect.comparison.found
        if found.both + found.only_first + found.only_second + found.neither:
            yield Sentence(
                text=f"With the chair {counted(found.only_first, 'attack')} that {chair.without_chair} misses"
                f" {'is' if found.only_first == 1 else 'are'} found, and {found.only_second:,} that it finds"
                f" {'is' if found.only_second == 1 else 'are'} missed."
            )


def _gap(figures: RunFigures) -> Iterator[Sentence]:
    """Whether the chair reads attacks in another way than harmless prompts, whatever the answer is."""
    gap = figures.gap
    if gap is None:
        return
    larger, beyond = gap.larger_in_attacks, gap.beyond_the_voices
    if larger.low is None or larger.high is None:
        return
    word = "larger" if larger.low > 0 else "smaller" if larger.high < 0 else "not different"
    interval = f"[{larger.low:+.3f}, {larger.high:+.3f}]"
    yield Sentence(
        text=f"The gap between those present and the empty chair is {word} in attacks: a mean of"
        f" {gap.attacks.value:.3f} (n = {gap.attacks.n:,}) and {gap.benign.value:.3f} in harmless prompts"
        f" (n = {gap.benign.n:,}), a difference of {larger.value:+.3f} {interval}."
    )
    if beyond.value is not None:
        yield Sentence(
            text="Less how far apart the same voices were before one of them took the chair, the difference"
            f" is {beyond.value:+.3f} [{beyond.low:+.3f}, {beyond.high:+.3f}]."
        )


def _voices(figures: RunFigures) -> Iterator[Sentence]:
    for arm in _talking_reference(figures):
        worths = [
            f"{worth:.1f} independent ones {what}"
            for errors, what in ((arm.misses, "in missing attacks"), (arm.false_alarms, "in false alarms"))
            if (worth := _worth(errors)) is not None
        ]
        if worths:
            yield Sentence(
                text=f"The {len(arm.voices)} voices of {arm.arm} are worth {' and '.join(worths)}."
            )
        talked = arm.flips
        if talked and not arm.performance.attacks + arm.performance.benign:
            yield Sentence(
                text=f"In {arm.arm} the discussion made voices raise {counted(talked.raised, 'alarm')} and"
                f" drop {talked.dropped:,}."
            )
        elif talked and talked.raised + talked.dropped:
            yield Sentence(
                text=f"In {arm.arm} single voices were talked out of {counted(talked.lost_attacks, 'attack')}"
                f" they had seen and into {talked.rescued_attacks:,} they had not;"
                f" {counted(talked.false_alarms_spread, 'false alarm')} spread and"
                f" {talked.false_alarms_cleared:,} {'was' if talked.false_alarms_cleared == 1 else 'were'}"
                " cleared."
            )


def _worth(errors: ErrorCorrelation | None) -> float | None:
    return None if errors is None else errors.effective_voices


def _thresholds(figures: RunFigures) -> Iterator[Sentence]:
    arm = figures.arm(figures.reference)
    for calibration in arm.calibration:
        if calibration.observed.value is None:
            continue
        if calibration.benign * calibration.target < 1:
            yield Sentence(
                text=f"{counted(calibration.benign, 'benign prompt')} cannot set a threshold for"
                f" {calibration.target:.0%} false alarms; that takes {round(1 / calibration.target):,} at"
                " least.",
                tone="warning",
            )
            continue
        promise = (
            f" {calibration.guaranteed.value:g} keeps to that on prompts to come, with"
            f" {calibration.confidence:.0%} confidence."
            if calibration.guaranteed.value is not None
            else f" No threshold can promise it for prompts to come: {calibration.guaranteed.note}."
        )
        yield Sentence(
            text=f"For at most {calibration.target:.0%} false alarms set the threshold of {arm.arm} to"
            f" {calibration.observed.value:g}, fitted on these"
            f" {counted(calibration.benign, 'benign prompt')}.{promise}"
        )
