"""How figures stand in the tables of a report: the number, and its interval beneath it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firecircle.lab.figures.arms import ArmFigures
from firecircle.lab.figures.run import RunFigures
from firecircle.lab.report.words import p_value
from firecircle.lab.statistics import ErrorCorrelation, Estimate, Group, Performance

NONE = "–"
MARKS = {"gain": "Gain. ", "loss": "No gain. ", "warning": "Care. ", "plain": ""}
_FORMS: dict[str, Callable[[float], str]] = {
    "share": lambda value: f"{value:.1%}",
    "number": lambda value: f"{value:.3f}",
    "signed": lambda value: f"{value:+.3f}",
    "short": lambda value: f"{value:.2f}",
    "money": lambda value: f"{value:.4f}",
}


def apart(estimate: Estimate, how: str) -> str:
    """The figure without its interval."""
    return NONE if estimate.value is None else _FORMS[how](estimate.value)


def ends(estimate: Estimate, how: str) -> str:
    """The interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{_FORMS[how](estimate.low)} to {_FORMS[how](estimate.high)}"


def p_in_table(p: float | None) -> str:
    """A p-value without its equals sign."""
    return NONE if p is None else p_value(p).removeprefix("= ")


def worth(errors: ErrorCorrelation | None) -> str:
    """The effective number of voices."""
    if errors is None or errors.effective_voices is None:
        return NONE
    return f"{errors.effective_voices:.1f}"


FILTERS: dict[str, Callable[..., str]] = {"apart": apart, "ends": ends, "p": p_in_table, "worth": worth}


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A family, layer, turn or source, and what every arm made of it."""

    name: str
    attacks: int
    benign: int
    cells: tuple[str, ...]


def grouped(figures: RunFigures) -> tuple[tuple[str, tuple[GroupRow, ...]], ...]:
    """Groups as rows, arms as columns."""
    ways: tuple[tuple[str, Callable[[ArmFigures], tuple[Group, ...]]], ...] = (
        ("Family", lambda arm: arm.by_family),
        ("Layers with text", lambda arm: arm.by_layer),
        ("Turn", lambda arm: arm.by_turns),
        ("Source", lambda arm: arm.by_source),
    )
    return tuple((title, _rows([of(arm) for arm in figures.arms])) for title, of in ways)


def _rows(by_arm: list[tuple[Group, ...]]) -> tuple[GroupRow, ...]:
    found = [{group.name: group.performance for group in groups} for groups in by_arm]
    names = sorted({name for groups in found for name in groups})
    rows = []
    for name in names:
        told = [groups.get(name) for groups in found]
        sizes = [of for of in told if of is not None]
        rows.append(
            GroupRow(
                name=name,
                attacks=max(of.attacks for of in sizes),
                benign=max(of.benign for of in sizes),
                cells=tuple(_cell(of) for of in told),
            )
        )
    return tuple(rows)


def _cell(of: Performance | None) -> str:
    if of is None or not (of.attacks or of.benign):
        return NONE
    found, false = of.at_threshold.recall.value, of.at_threshold.false_alarm_rate.value
    if false is None:
        return f"{found:.0%}"
    return f"{NONE if found is None else f'{found:.0%}'} / {false:.0%}"
