"""Why no circle can be drawn from a pool: which role or lineage is missing, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ROLE_WEIGHTS
from firecircle.circle.config import LARGEST_CIRCLE
from firecircle.circle.quorum import FEWEST_VOICES, QuorumRules, best_contributions
from firecircle.rotation.drawing import characteristics_in
from firecircle.rotation.history import Candidate
from firecircle.rotation.quorate import smallest_quorum


def why_no_quorum(candidates: Sequence[Candidate], count: int, rules: QuorumRules) -> str:
    """What the pool lacks; if it lacks nothing, how many voices it takes."""
    voices = [characteristics_in(candidate) for candidate in candidates]
    if missing := missing_from(candidates, rules):
        return f"available_voices: no circle of this pool is a quorum: {'; '.join(missing)}; add such a voice"
    needed = smallest_quorum(voices, rules)
    if needed is None:
        return f"available_voices: a quorum takes {FEWEST_VOICES} voices; add one to the pool"
    way_out = f"ask for {needed}" if needed <= LARGEST_CIRCLE else "add voices that cover several roles"
    return (
        f"required_count: no {count} of these {len(candidates)} voices form a quorum: together"
        f" {count} cannot bring {_asked(rules)}; {way_out}"
    )


def missing_from(candidates: Sequence[Candidate], rules: QuorumRules) -> list[str]:
    """Every role, lineage and amount of coverage that even the whole pool does not bring."""
    best = best_contributions(map(characteristics_in, candidates))
    missing = [
        f"nobody brings {role} (a contribution above {PRESENT_ABOVE:g})"
        for role in CRITICAL_ROLES
        if best.get(role, 0.0) <= PRESENT_ABOVE
    ]
    lineages = sorted({candidate.provider_lineage for candidate in candidates})
    if len(lineages) < rules.min_provider_groups:
        missing.append(
            f"lineages are {', '.join(lineages) or 'none'}, and {rules.min_provider_groups} different"
            " ones are needed"
        )
    coverage = sum(ROLE_WEIGHTS[role] * share for role, share in best.items())
    if coverage < rules.min_cognitive_coverage - 1e-9:
        thin = [role for role in ROLE_WEIGHTS if best.get(role, 0.0) <= PRESENT_ABOVE]
        missing.append(
            f"coverage is {coverage:.1f} of {rules.min_cognitive_coverage:g}, thin in {', '.join(thin)}"
        )
    return missing


def _asked(rules: QuorumRules) -> str:
    roles = " and ".join(CRITICAL_ROLES)
    return f"{roles}, {rules.min_provider_groups} lineages and a coverage of {rules.min_cognitive_coverage:g}"
