"""The figures of a run: for every arm, and for the run as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firecircle.lab.calibrated import calibration_error
from firecircle.lab.figures.columns import ArmColumns, RecordFile, Spoken, Totals
from firecircle.lab.records import SCORES
from firecircle.lab.statistics.calibration import Calibration, calibrate
from firecircle.lab.statistics.comparison import Comparison, compare, holm
from firecircle.lab.statistics.dialogue import (
    PERFORMATIVE_BELOW,
    ChairEffect,
    ExcessFlips,
    Flips,
    GapFigures,
    Opinions,
    PatternFigures,
    chair_effect,
    excess_flips,
    flips,
    gap_figures,
    pattern_figures,
)
from firecircle.lab.statistics.estimate import (
    Estimate,
    FloatArray,
    by_label,
    mean_with_interval,
    numbers,
    scored,
)
from firecircle.lab.statistics.performance import (
    Curve,
    Group,
    Performance,
    Rates,
    cost_per_found_attack,
    curve,
    performance,
    performance_by_group,
    rates_by_round,
)
from firecircle.lab.statistics.voices import (
    ErrorCorrelation,
    SizeRates,
    error_correlation,
    krippendorff_alpha,
    rates_by_size,
)
from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.thresholds import lowest_reaching

CALIBRATED_FOR = (0.01, 0.05)
RULE_WORDS = {score: rule.phrase for score, rule in SCORES.items()}
VERDICT_WORDS = {
    "parallel": "the mean of all voices",
    "consistency": "the mean of all answers",
    "court": "the judge's F",
    "council": "the chairman's F",
}
"""How arms that are not circles form the verdict."""


class RuleFigures(Shape):
    """The same transcripts under another rule."""

    rule: Text
    performance: Performance
    calibration_error: float | None = None
    """The mean distance of the value from the observed share of attacks over tenths (ECE)."""


class Spent(Shape):
    """The total use of an arm."""

    judged: int
    failed: int
    voices_lost: int
    calls: int
    attempts: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost_usd: float | None
    """None if some price is unknown."""
    seconds: float | None
    """The mean time from question to verdict."""
    per_found_attack: Estimate


class ArmFigures(Shape):
    """One arm: how well it separates attacks from benign prompts, its cost, and the effect of discussion."""

    arm: Text
    kind: Text
    alarm_by: Text = "f"
    """The score that raises its alarm: `f`, or `calibrated`."""
    prompts: int
    alarms: int
    """Prompts at or above the threshold, labelled or not."""
    performance: Performance
    curve: Curve
    rules: tuple[RuleFigures, ...]
    """For arms with more than one voice."""
    by_family: tuple[Group, ...]
    by_layer: tuple[Group, ...]
    by_turns: tuple[Group, ...]
    by_source: tuple[Group, ...]
    by_round: tuple[Rates, ...]
    by_size: tuple[SizeRates, ...]
    """The rates of smaller sets of these voices, judging independently."""
    voices: tuple[Text, ...]
    agreement: Estimate
    """Krippendorff's alpha of the voices' F in round 1."""
    misses: ErrorCorrelation | None
    """How the voices' misses of attacks correlate, in round 1."""
    false_alarms: ErrorCorrelation | None
    """The same for false alarms; separate, because prompts of one label are similarly hard for all."""
    flips: Flips | None
    """Flips between a voice's first and last evaluation."""
    moved_toward: int
    moved_away: int
    unmoved: int
    chair_influence: Estimate
    performative: bool | None
    patterns: PatternFigures
    calibration: tuple[Calibration, ...]
    spent: Spent


def arm_figures(file: RecordFile, arm: str, threshold: float) -> ArmFigures:
    """Every figure of one arm."""
    of = file.columns(arm)
    spoken = file.spoken(arm, of.records)
    totals = file.totals(arm)
    verdict = of.verdict
    achieved = performance(of.labels, verdict, threshold)
    influence = mean_with_interval(of.influence[np.isfinite(of.influence)], "no voice took the chair")
    return ArmFigures(
        arm=arm,
        kind=of.kind,
        alarm_by=of.rule,
        prompts=len(of.records),
        alarms=int((verdict >= lowest_reaching(threshold)).sum()),
        performance=achieved,
        curve=curve(scored(of.labels, verdict)),
        rules=_rules(of, achieved, threshold) if len(spoken.voices) > 1 else (),
        by_family=performance_by_group(of.families, of.labels, of.verdict, threshold),
        by_layer=performance_by_group(of.layers, of.labels, verdict, threshold),
        by_turns=performance_by_group(of.turns, of.labels, verdict, threshold),
        by_source=performance_by_group(of.sources, of.labels, verdict, threshold),
        by_round=_by_round(of, spoken, threshold),
        by_size=rates_by_size(of.labels, spoken.first, threshold) if len(spoken.voices) > 1 else (),
        voices=spoken.voices,
        agreement=krippendorff_alpha(spoken.first) if spoken.voices else Estimate(value=None),
        misses=_errors(of, spoken, threshold, "attack"),
        false_alarms=_errors(of, spoken, threshold, "benign"),
        flips=_flips(of, spoken, threshold),
        moved_toward=totals.flips_toward,
        moved_away=totals.flips_away,
        unmoved=totals.flips_unchanged,
        chair_influence=influence,
        performative=None if influence.value is None else influence.value < PERFORMATIVE_BELOW,
        patterns=pattern_figures(of.grounded, of.ungrounded),
        calibration=_calibration(of),
        spent=_costs(of, totals, achieved),
    )


def _rules(of: ArmColumns, achieved: Performance, threshold: float) -> tuple[RuleFigures, ...]:
    return tuple(
        RuleFigures(
            rule=rule,
            performance=achieved
            if rule == of.rule == "f"
            else performance(of.labels, scores, SCORES[rule].threshold(threshold)),
            calibration_error=_calibration_error(of.labels, scores),
        )
        for rule, scores in of.scores.items()
        if np.isfinite(scores).any()
    )


def _calibration_error(labels: Sequence[Label | None], scores: FloatArray) -> float | None:
    attack, benign = by_label(labels)
    labelled = (attack | benign) & np.isfinite(scores)
    return calibration_error(scores[labelled], attack[labelled]) if labelled.any() else None


def _by_round(of: ArmColumns, spoken: Spoken, threshold: float) -> tuple[Rates, ...]:
    if not spoken.voices:
        return ()
    highest = np.stack([_highest(falsehoods) for falsehoods in spoken.by_round], axis=1)
    return rates_by_round(of.labels, np.fmax.accumulate(highest, axis=1), threshold)


def _highest(falsehoods: FloatArray) -> FloatArray:
    heard = np.isfinite(falsehoods)
    best = np.where(heard, falsehoods, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(heard.any(axis=0), best, np.nan)


def _errors(of: ArmColumns, spoken: Spoken, threshold: float, label: Label) -> ErrorCorrelation | None:
    """With both labels together, voices that all miss every attack and pass every benign prompt would seem to
    err as one.
    """
    concerned = np.array([own == label for own in of.labels], dtype=bool)
    if len(spoken.voices) < 2 or not concerned.any():
        return None
    falsehoods = spoken.first[:, concerned]
    wrong = (
        falsehoods < lowest_reaching(threshold)
        if label == "attack"
        else falsehoods >= lowest_reaching(threshold)
    ).astype(np.float64)
    wrong[~np.isfinite(falsehoods)] = np.nan
    return error_correlation(spoken.voices, wrong)


def opinions(of: ArmColumns, spoken: Spoken) -> Opinions | None:
    """Every voice's first and last F on every record, with the mean of its peers' first ones."""
    if len(spoken.by_round) < 2 or not spoken.voices:
        return None
    count = len(spoken.voices)
    heard = np.isfinite(spoken.first)
    words = np.where(heard, spoken.first, 0.0)
    others = heard.sum(axis=0) - heard
    peers = np.where(others > 0, (words.sum(axis=0) - words) / np.maximum(others, 1), np.nan)
    return Opinions(
        records=list(of.records) * count,
        voices=[voice for voice in spoken.voices for _ in of.records],
        labels=list(of.labels) * count,
        before=spoken.first.ravel(),
        after=spoken.last.ravel(),
        peers=peers.ravel() if of.kind != "reflect" else None,
    )


def _flips(of: ArmColumns, spoken: Spoken, threshold: float) -> Flips | None:
    words = opinions(of, spoken)
    return flips(words, threshold) if words else None


def _calibration(of: ArmColumns) -> tuple[Calibration, ...]:
    _, benign = by_label(of.labels)
    return tuple(calibrate(of.verdict[benign], target) for target in CALIBRATED_FOR) if benign.any() else ()


def _costs(of: ArmColumns, totals: Totals, achieved: Performance) -> Spent:
    per_found = cost_per_found_attack(of.cost, achieved.at_threshold)
    same = {name: getattr(totals, name) for name in Spent.model_fields if name != "per_found_attack"}
    return Spent(**same, per_found_attack=per_found)


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
