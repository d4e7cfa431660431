"""The quorum in a line, and as a picture: how well each lens was covered after each round."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ROLE_WEIGHTS
from firecircle.circle.result import FireCircleResult
from firecircle.telling.words import counted


def quorum_line(result: FireCircleResult) -> str:
    """Whether the quorum holds, and how far."""
    verdict, rules = result.quorum, result.config.quorum_rules
    state = "holds" if verdict.valid else "does not hold"
    waived = "" if verdict.enforced else " (not enforced)"
    blind = [
        role.replace("_", " ")
        for role in CRITICAL_ROLES
        if verdict.coverage_by_role.get(role, 0.0) <= PRESENT_ABOVE * ROLE_WEIGHTS[role]
    ]
    missing = f"; no voice is good at {' or '.join(blind)}" if blind else ""
    measured = f"; {verdict.independence.sentence}" if verdict.independence else ""
    return (
        f"{state}{waived}: coverage {verdict.coverage:.1f} (needs {rules.min_cognitive_coverage:.1f}),"
        f" {counted(len(rules.lineages_in(verdict)), 'lineage')} (needs {rules.min_provider_groups})"
        f"{missing}{measured}"
    )


@dataclass(frozen=True, slots=True)
class LensCell:
    """One lens after one round."""

    round_number: int
    coverage: float
    share: float
    """Of what the role could weigh, from 0 to 1."""
    state: str
    """clear, dim (a critical role below what counts as present) or blind."""
    turned: bool
    """Whether it was better before."""


@dataclass(frozen=True, slots=True)
class Lens:
    """A role over the rounds."""

    role: str
    weight: float
    critical: bool
    cells: tuple[LensCell, ...]
    outcome: str
    """What became of it, in words."""


@dataclass(frozen=True, slots=True)
class QuorumPicture:
    """Everything the quorum checks say."""

    rounds: tuple[int, ...]
    lenses: tuple[Lens, ...]
    totals: tuple[float, ...]
    needed: float
    lineages: tuple[tuple[str, tuple[int, ...]], ...]
    """Each lineage and how many voices represented it after each round."""
    verdicts: tuple[tuple[int, bool, str], ...]
    """Round, whether there was a quorum, and why not."""


def quorum_picture(result: FireCircleResult) -> QuorumPicture | None:
    """The picture of a circle whose quorum was weighed at least once."""
    checks = result.quorum_checks
    if not checks:
        return None
    lineages = dict.fromkeys(name for check in checks for name in check.verdict.lineages)
    return QuorumPicture(
        rounds=tuple(check.round_number for check in checks),
        lenses=tuple(_lens(result, role) for role in ROLE_WEIGHTS),
        totals=tuple(check.verdict.coverage for check in checks),
        needed=result.config.min_cognitive_coverage,
        lineages=tuple(
            (name, tuple(len(check.verdict.lineages.get(name, ())) for check in checks)) for name in lineages
        ),
        verdicts=tuple((check.round_number, check.verdict.valid, check.verdict.reason) for check in checks),
    )


def _lens(result: FireCircleResult, role: str) -> Lens:
    weight, critical = ROLE_WEIGHTS[role], role in CRITICAL_ROLES
    cells: list[LensCell] = []
    best = 0.0
    for check in result.quorum_checks:
        coverage = check.verdict.coverage_by_role.get(role, 0.0)
        share = coverage / weight
        dim = critical and share <= PRESENT_ABOVE
        state = "blind" if share <= 0 else "dim" if dim else "clear"
        cells.append(LensCell(check.round_number, coverage, share, state, coverage < best - 1e-9))
        best = max(best, coverage)
    return Lens(role, weight, critical, tuple(cells), _outcome(cells))


def _outcome(cells: list[LensCell]) -> str:
    if cells[-1].state == "blind":
        last_clear = max((cell.round_number for cell in cells if cell.state != "blind"), default=None)
        if last_clear is None:
            return "never covered"
        since = next(cell.round_number for cell in cells if cell.round_number > last_clear)
        return f"blind since round {since}"
    if cells[-1].state == "dim":
        return "too weak to count"
    turned = next((cell.round_number for cell in cells if cell.turned), None)
    return f"weaker since round {turned}" if turned and cells[-1].turned else "covered"
