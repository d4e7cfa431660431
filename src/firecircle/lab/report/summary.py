"""What a run's figures say, in plain sentences. One claims a difference only where the tests show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from firecircle.lab.figures.run import FROM_ROUND_1, RIVALS, ArmComparison, ArmFigures, RunFigures
from firecircle.lab.report.sentences import Sentence, observations, shares
from firecircle.telling.words import counted

SIGNIFICANT = 0.05
NEGLIGIBLE = 0.005
"""A difference in AUC below this is nothing to choose by, however sure it is in a large run."""
FEW = 30
"""Prompts of a label under which a figure is an anecdote."""
DEARER = 1.10
"""From how many times the cost on it is worth a word."""
MANY_FAILED = 0.10
SIMPLER = ("single", "parallel", "reflect", "clones", "no_chair", "guided", "leave_one_out", "cascade")
"""Kinds that ask for less than the whole circle: with the rival protocols, what it has to beat."""


def summary(figures: RunFigures) -> tuple[Sentence, ...]:
    """The run in words: what matters most first, then what to be careful about, then the rest."""
    reference = figures.arm(figures.reference)
    labelled = [
        comparison
        for comparison in figures.comparisons
        if comparison.comparison.attacks or comparison.comparison.benign
    ]
    talks = [comparison for comparison in labelled if comparison.second == FROM_ROUND_1]
    rivals = [comparison for comparison in labelled if comparison.second != FROM_ROUND_1]
    hardest = _hardest(figures, rivals)
    first = [
        _detection(figures, reference),
        *(_talking(figures, comparison) for comparison in talks if comparison.first == figures.reference),
        *((_against(figures, hardest),) if hardest else ()),
    ]
    rest = [
        *(
            _detection(figures, arm)
            for arm in figures.arms
            if arm is not reference and arm.kind != "attacked"
        ),
        *(
            _talking(figures, comparison)
            for comparison in talks
            if comparison.first != figures.reference and figures.arm(comparison.first).kind == "fire_circle"
        ),
        *(_against(figures, comparison) for comparison in rivals if comparison is not hardest),
        *observations(figures),
    ]
    return (
        *(sentence.model_copy(update={"part": "first"}) for sentence in first),
        *(sentence.model_copy(update={"part": "care"}) for sentence in _warnings(figures)),
        *rest,
    )


def _hardest(figures: RunFigures, rivals: list[ArmComparison]) -> ArmComparison | None:
    """The reference against the best of what it has to beat, by AUC, else by attacks found."""
    ours = [comparison for comparison in rivals if comparison.first == figures.reference]
    simpler = [
        comparison for comparison in ours if figures.arm(comparison.second).kind in (*SIMPLER, *RIVALS)
    ]
    simpler = simpler or ours

    def strength(comparison: ArmComparison) -> tuple[float, float]:
        of = figures.arm(comparison.second).performance
        return of.auc.value or 0.0, of.at_threshold.recall.value or 0.0

    return max(simpler, key=strength, default=None)


def _warnings(figures: RunFigures) -> Iterator[Sentence]:
    first = max((arm.performance for arm in figures.arms), key=lambda of: of.attacks + of.benign)
    if not first.attacks and not first.benign:
        yield Sentence(
            text="No prompt has a label: how many attacks are found and how many alarms are false cannot be"
            " told.",
            tone="warning",
        )
    elif not first.attacks or not first.benign:
        lacking, unknown = (
            ("attack", "how many would be found")
            if not first.attacks
            else ("benign prompt", "what an attack found costs in false alarms")
        )
        yield Sentence(
            text=f"There is no labelled {lacking}: {unknown} cannot be told, and no arm is called better than"
            " another.",
            tone="warning",
        )
    elif first.attacks < FEW or first.benign < FEW:
        yield Sentence(
            text=f"There are {counted(first.attacks, 'attack')} and {counted(first.benign, 'benign prompt')}:"
            " too few to show any but large differences.",
            tone="warning",
        )
    if first.unlabelled and (first.attacks or first.benign):
        yield Sentence(
            text=f"{counted(first.unlabelled, 'prompt')} without a label were judged and are in no rate.",
            tone="warning",
        )
    for arm in figures.arms:
        if arm.alarm_by == "calibrated":
            yield Sentence(
                text=f"The calibrated probability raises the alarm of {arm.arm}: where this report gives F of"
                " the arm, it is that probability; figures of voices, rounds and discussion use their F."
            )
        if arm.spent.failed:
            asked = arm.spent.judged + arm.spent.failed
            share = arm.spent.failed / asked
            yield Sentence(
                text=f"{arm.arm}: {arm.spent.failed:,} of {counted(asked, 'judgement')} failed and"
                f" {'is' if arm.spent.failed == 1 else 'are'} missing from its figures."
                + (" What is left may be the easier part." if share >= MANY_FAILED else ""),
                tone="warning",
            )


def _detection(figures: RunFigures, arm: ArmFigures) -> Sentence:
    of = arm.performance
    got = of.at_threshold
    at = f"at F ≥ {figures.threshold:g}"
    parts = []
    if of.attacks:
        parts.append(f"finds {got.found:,} of {counted(of.attacks, 'attack')}, {shares(got.recall)}")
    if of.benign:
        parts.append(
            f"raises {counted(got.false_alarms, 'false alarm')} on {counted(of.benign, 'benign prompt')},"
            f" {shares(got.false_alarm_rate)}"
        )
    if not parts:
        if not arm.spent.judged:
            return Sentence(text=f"{arm.arm} judged nothing.", tone="warning")
        return Sentence(
            text=f"{arm.arm} raises {counted(arm.alarms, 'alarm')} on {counted(arm.prompts, 'prompt')} {at}."
        )
    ranked = "" if of.auc.value is None else f"; AUC {of.auc.value:.3f}"
    return Sentence(text=f"{arm.arm} {', and '.join(parts)}, {at}{ranked}.")


Standing = Literal[
    "better",
    "worse",
    "better at this threshold",
    "worse at this threshold",
    "better in one respect, worse in another",
    "no difference shown",
    "unknown without both labels",
]


def verdict_of(compared: ArmComparison) -> Standing:
    """Whether the first of the two separates attacks from benign prompts better, as far as the tests go.

    An arm that is right more often at the alarm threshold while it ranks no better owes that to where its
    scores lie: a threshold of its own would do as much for the other. And where one label is missing, more
    alarms (or fewer) cost nothing, so nothing is shown by them.
    """
    if not compared.comparison.attacks or not compared.comparison.benign:
        return "unknown without both labels"
    gain = compared.comparison.auc.difference.value or 0.0
    ranked = compared.p_auc is not None and compared.p_auc < SIGNIFICANT and abs(gain) >= NEGLIGIBLE
    verdicts_differ = compared.p_right is not None and compared.p_right < SIGNIFICANT
    more_right = compared.comparison.right.only_first > compared.comparison.right.only_second
    if ranked and verdicts_differ and (gain > 0) != more_right:
        return "better in one respect, worse in another"
    if ranked:
        return "better" if gain > 0 else "worse"
    if verdicts_differ:
        return "better at this threshold" if more_right else "worse at this threshold"
    return "no difference shown"


def _talking(figures: RunFigures, compared: ArmComparison) -> Sentence:
    found, passed = compared.comparison.found, compared.comparison.passed
    tests = _tests(figures, compared)
    if _never_differ(compared):
        return Sentence(
            text=f"In {compared.first} the dialogue changes no verdict: what round 1 said is what came out"
            f"{tests}.",
            tone="loss",
        )
    price = (
        f"In {compared.first} the dialogue finds {counted(found.only_first, 'attack')} that round 1 missed"
        f" and adds {counted(passed.only_second, 'false alarm')}"
        + (f", and loses {counted(found.only_second, 'attack')}" if found.only_second else "")
        + (f", and clears {counted(passed.only_first, 'false alarm')}" if passed.only_first else "")
    )
    match verdict_of(compared):
        case "better":
            return Sentence(text=f"{price}: the discussion pays here{tests}.", tone="gain")
        case "better at this threshold":
            return Sentence(
                text=f"{price}: more verdicts are right at F ≥ {figures.threshold:g} and prompts are ranked"
                f" as before{tests}, which a lower threshold for round 1 alone might do as well.",
                tone="warning",
            )
        case "better in one respect, worse in another":
            return Sentence(
                text=f"{price}: prompts are ranked {_ranked(compared)} and {_fewer(compared)} verdicts are"
                f" right at F ≥ {figures.threshold:g}{tests}; look for another threshold.",
                tone="warning",
            )
        case "worse" | "worse at this threshold":
            return Sentence(text=f"{price}: the discussion does harm here{tests}.", tone="loss")
        case "no difference shown":
            return Sentence(
                text=f"{price}: no gain from the discussion is shown on these prompts{tests}.", tone="loss"
            )
        case _:
            return Sentence(text=f"{price}; whether that pays is unknown without both labels.")


def _against(figures: RunFigures, compared: ArmComparison) -> Sentence:
    found, passed = compared.comparison.found, compared.comparison.passed
    tests = _tests(figures, compared)
    dearer = _dearer(figures.arm(compared.first), figures.arm(compared.second))
    nothing_bought = f"; what it costs more buys nothing that can be shown{dearer}" if dearer else ""
    tone: Literal["loss", "plain"] = "loss" if dearer else "plain"
    if _never_differ(compared):
        return Sentence(
            text=f"{compared.first} and {compared.second} come to the same verdict on every prompt"
            f"{tests}{nothing_bought}.",
            tone=tone,
        )
    counts = (
        f"Against {compared.second}, {compared.first} finds {counted(found.only_first, 'attack')} more and"
        f" {found.only_second:,} fewer, and raises {counted(passed.only_second, 'false alarm')} more and"
        f" {passed.only_first:,} fewer"
    )
    match verdict_of(compared):
        case "better":
            return Sentence(text=f"{counts}: it separates attacks better{tests}{dearer}.", tone="gain")
        case "worse":
            return Sentence(
                text=f"{counts}: it separates attacks worse{tests}{dearer}; {compared.second} is the better"
                " choice.",
                tone="loss",
            )
        case "better at this threshold" | "worse at this threshold" as outcome:
            rightly = "more" if outcome == "better at this threshold" else "fewer"
            return Sentence(
                text=f"{counts}: {rightly} verdicts are right at F ≥ {figures.threshold:g} and prompts are"
                f" ranked alike{tests}{dearer}; give each arm a threshold of its own before choosing.",
                tone="warning",
            )
        case "better in one respect, worse in another":
            return Sentence(
                text=f"{counts}: it ranks prompts {_ranked(compared)} and {_fewer(compared)} of its verdicts"
                f" are right at F ≥ {figures.threshold:g}{tests}{dearer}; give each arm a threshold of its"
                " own before choosing.",
                tone="warning",
            )
        case "no difference shown":
            return Sentence(text=f"{counts}: no difference is shown{tests}{nothing_bought}.", tone=tone)
        case _:
            return Sentence(text=f"{counts}; which is better is unknown without both labels{dearer}.")


def _ranked(compared: ArmComparison) -> str:
    return "better" if (compared.comparison.auc.difference.value or 0.0) > 0 else "worse"


def _fewer(compared: ArmComparison) -> str:
    """How many verdicts are right where that goes against the ranking."""
    return "fewer" if _ranked(compared) == "better" else "more"


def _never_differ(compared: ArmComparison) -> bool:
    right = compared.comparison.right
    return not right.only_first and not right.only_second


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
            return f", {words.format(spent / other)}" if spent > DEARER * other else ""
    return ""


def _tests(figures: RunFigures, compared: ArmComparison) -> str:
    """The figures behind a claim. Intervals are of one comparison; p-values are corrected for all."""
    area = compared.comparison.auc.difference
    parts = []
    if area.value is not None and area.low is not None and area.high is not None:
        if area.value == area.low == area.high == 0:
            parts.append("the same AUC")
        else:
            corrected = "" if compared.p_auc is None else f", p {p_value(compared.p_auc)}"
            parts.append(f"AUC {area.value:+.3f}, {area.low:+.3f} to {area.high:+.3f}{corrected}")
    if compared.p_right is not None:
        parts.append(f"McNemar p {p_value(compared.p_right)}")
    several = len(figures.comparisons)
    if several > 1 and any(" p " in f" {part}" for part in parts):
        parts.append(f"p corrected for {several} comparisons")
    return f" ({'; '.join(parts)})" if parts else ""


def p_value(p: float) -> str:
    """A p-value as papers print them."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"
