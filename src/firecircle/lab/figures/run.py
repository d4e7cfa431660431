"""Every figure of a run: its arms, and comparisons of arms on shared prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.lab.figures.arms import ArmFigures, arm_figures, opinions
from firecircle.lab.figures.columns import ArmColumns, RecordFile
from firecircle.lab.statistics import (
    ChairEffect,
    Comparison,
    ExcessFlips,
    GapFigures,
    chair_effect,
    compare,
    excess_flips,
    gap_figures,
    holm,
)
from firecircle.lab.statistics.estimate import FloatArray, numbers
from firecircle.names import Label
from firecircle.shapes import Shape, Text

CIRCLES = ("fire_circle", "no_chair", "named_peers", "clones", "leave_one_out", "no_turns", "cascade")
"""Kinds of arms with discussion."""
RIVALS = ("consistency", "court", "council")
"""Kinds of arms in which the same voices reach a verdict in another way."""
FROM_ROUND_1 = "round 1"


class ArmComparison(Shape):
    """Two arms on the prompts that both judged; figures are the first minus the second."""

    first: Text
    second: Text
    """An arm, or `round 1` for the first arm's own answer before discussion."""
    comparison: Comparison
    p_right: float | None
    """McNemar over all prompts, corrected for the number of comparisons (Holm)."""
    p_auc: float | None
    """The paired bootstrap of AUC, corrected likewise."""


class TalkAgainstRereading(Shape):
    """The flips that peers cause beyond those of only reading again."""

    circle: Text
    reflect: Text
    excess: ExcessFlips
    tokens_ratio: float | None
    """Tokens of the arm without peers over those of the circle; within 10% of 1 is a fair control."""


class ChairFigures(Shape):
    """Circles with the chair compared with the same without it."""

    with_chair: Text
    without_chair: Text
    effect: ChairEffect


class RivalTokens(Shape):
    """A rival protocol's tokens compared with those of the most similar circle."""

    rival: Text
    circle: Text
    tokens_ratio: float
    """Tokens of the rival over those of the circle; within 10% of 1 they are comparable."""


class RunFigures(Shape):
    """All figures of a run."""

    threshold: float
    arms: tuple[ArmFigures, ...]
    reference: Text
    """The arm that the others are compared with."""
    comparisons: tuple[ArmComparison, ...]
    rereading: tuple[TalkAgainstRereading, ...] = ()
    chair: tuple[ChairFigures, ...] = ()
    gap: GapFigures | None = None
    """Of the reference arm, where labelled circles held a chair."""
    rivals: tuple[RivalTokens, ...] = ()

    def arm(self, name: str) -> ArmFigures:
        """The figures of an arm."""
        return next(figures for figures in self.arms if figures.arm == name)


def run_figures(file: RecordFile, threshold: float) -> RunFigures:
    """All figures of a run's records."""
    names = file.arms()
    columns = {name: file.columns(name) for name in names}
    arms = tuple(arm_figures(file, name, threshold) for name in names)
    reference = next((arm.arm for arm in arms if arm.kind == "fire_circle"), names[0])
    rivals = _rivals(arms)
    return RunFigures(
        threshold=threshold,
        arms=arms,
        reference=reference,
        comparisons=_comparisons(columns, reference, rivals, threshold),
        rereading=_rereading(file, columns, arms, threshold),
        chair=_chair(columns, reference, threshold),
        gap=_gap(file, reference),
        rivals=rivals,
    )


def _comparisons(
    columns: dict[str, ArmColumns], reference: str, rivals: Sequence[RivalTokens], threshold: float
) -> tuple[ArmComparison, ...]:
    made = [
        (name, FROM_ROUND_1, compare(of.labels, of.scores["f"], of.scores["round1_f"], threshold))
        for name, of in columns.items()
        if of.kind in CIRCLES
    ]
    # Every arm with the reference (attacks have their own table), guided arms with the same voice without
    # guidance, and a rival with the circle of the same cost.
    pairs = [(reference, name) for name, of in columns.items() if name != reference and of.kind != "attacked"]
    unguided = next((name for name, of in columns.items() if of.kind == "single"), None)
    pairs += [(name, unguided) for name, of in columns.items() if unguided and of.kind == "guided"]
    pairs += [(of.circle, of.rival) for of in rivals if of.circle != reference]
    for name, other in pairs:
        labels, ours, theirs = shared_records(columns[name], columns[other])
        made.append((name, other, compare(labels, ours, theirs, threshold)))
    right = holm([comparison.right.p_value for _, _, comparison in made])
    areas = holm([comparison.auc.p_value for _, _, comparison in made])
    return tuple(
        ArmComparison(first=first, second=second, comparison=comparison, p_right=p_right, p_auc=p_auc)
        for (first, second, comparison), p_right, p_auc in zip(made, right, areas, strict=True)
    )


def shared_records(
    first: ArmColumns, second: ArmColumns
) -> tuple[Sequence[Label | None], FloatArray, FloatArray]:
    """Labels and scores of the prompts of both arms, in one order."""
    places = {record: place for place, record in enumerate(second.records)}
    ours = [place for place, record in enumerate(first.records) if record in places]
    theirs = [places[first.records[place]] for place in ours]
    labels = [first.labels[place] for place in ours]
    return labels, first.verdict[ours], second.verdict[theirs]


def _rereading(
    file: RecordFile, columns: dict[str, ArmColumns], arms: Sequence[ArmFigures], threshold: float
) -> tuple[TalkAgainstRereading, ...]:
    alone = [arm for arm in arms if arm.kind == "reflect"]
    talking = [arm for arm in arms if arm.kind == "fire_circle"]
    contrasts = []
    for circle in talking:
        for control in alone:
            with_peers, without = (
                opinions(columns[arm.arm], file.spoken(arm.arm, columns[arm.arm].records))
                for arm in (circle, control)
            )
            if with_peers and without:
                ours, theirs = circle.spent, control.spent
                spent = ours.tokens_in + ours.tokens_out
                contrasts.append(
                    TalkAgainstRereading(
                        circle=circle.arm,
                        reflect=control.arm,
                        excess=excess_flips(with_peers, without, threshold),
                        tokens_ratio=(theirs.tokens_in + theirs.tokens_out) / spent if spent else None,
                    )
                )
    return tuple(contrasts)


def _rivals(arms: Sequence[ArmFigures]) -> tuple[RivalTokens, ...]:
    circles = [arm for arm in arms if arm.kind == "fire_circle" and _tokens(arm)]
    beside: list[RivalTokens] = []
    for rival in arms:
        if rival.kind in RIVALS and _tokens(rival) and circles:
            took = _tokens(rival)
            circle = min(circles, key=lambda circle: abs(np.log(took / _tokens(circle))))
            ratio = took / _tokens(circle)
            beside.append(RivalTokens(rival=rival.arm, circle=circle.arm, tokens_ratio=ratio))
    return tuple(beside)


def _tokens(arm: ArmFigures) -> float:
    judgements = arm.spent.judged + arm.spent.failed
    return (arm.spent.tokens_in + arm.spent.tokens_out) / judgements if judgements else 0.0


def _chair(columns: dict[str, ArmColumns], reference: str, threshold: float) -> tuple[ChairFigures, ...]:
    home = columns[reference]
    effects = []
    for name, of in columns.items():
        if of.kind == "no_chair" and home.kind == "fire_circle":
            labels, ours, theirs = shared_records(home, of)
            influence = home.influence[np.isfinite(home.influence)]
            effect = chair_effect(labels, ours, theirs, influence, threshold)
            effects.append(ChairFigures(with_chair=reference, without_chair=name, effect=effect))
    return tuple(effects)


def _gap(file: RecordFile, reference: str) -> GapFigures | None:
    held = [(label, readings) for label, readings in file.readings(reference) if label is not None]
    if not held:
        return None
    labels = [label for label, _ in held]
    return gap_figures(
        labels, [each.gap for _, each in held], numbers([each.apart_before for _, each in held])
    )
