"""Filling seats so that they end as a quorum, whoever comes first, and saying why a pool cannot.

A voice is seated whenever the seats left can still complete a quorum with those who come later. All rules
of a quorum are kept by adding a voice, so a set that is one already may be filled with anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ROLE_WEIGHTS, ModelCharacteristics
from firecircle.circle.config import LARGEST_CIRCLE
from firecircle.circle.quorum import FEWEST_VOICES, QuorumRules, best_contributions
from firecircle.errors import ConfigError

ROUNDING = 1e-9
"""As `judge_quorum` allows."""


@dataclass(frozen=True, slots=True)
class _Lens:
    """What a voice adds to a set, in numbers that are quick to join."""

    covers: tuple[float, ...]
    critical: frozenset[str]
    lineages: frozenset[str]

    @property
    def coverage(self) -> float:
        return sum(self.covers)

    def joined(self, other: _Lens) -> _Lens:
        return _Lens(
            tuple(map(max, self.covers, other.covers)),
            self.critical | other.critical,
            self.lineages | other.lineages,
        )

    def suffices(self, rules: QuorumRules) -> bool:
        return (
            len(self.critical) == len(CRITICAL_ROLES)
            and len(self.lineages) >= rules.min_provider_groups
            and self.coverage >= rules.min_cognitive_coverage - ROUNDING
        )


_NOTHING = _Lens((0.0,) * len(ROLE_WEIGHTS), frozenset(), frozenset())


class OpenSeats:
    """So many seats for a pool, offered to one voice after the other; once all are taken they are a quorum.

    Without rules anybody is seated.
    """

    def __init__(self, pool: Sequence[ModelCharacteristics], count: int, rules: QuorumRules | None) -> None:
        self.left = count
        self._rules = rules
        self._seated = _NOTHING
        self._waiting = {voice.model_id: _lens_of(voice, rules) for voice in pool}

    @property
    def can_be_filled(self) -> bool:
        """Whether those who were not offered a seat yet can fill them all."""
        return self._can_be_filled(self._seated, self.left)

    def takes(self, voice_id: str) -> bool:
        """Offer a seat: taken if the rest can still fill the others. Nobody is offered one twice."""
        with_it = self._seated.joined(self._waiting.pop(voice_id))
        if not self.left or not self._can_be_filled(with_it, self.left - 1):
            return False
        self._seated, self.left = with_it, self.left - 1
        return True

    def _can_be_filled(self, seated: _Lens, seats: int) -> bool:
        if self._rules is None:
            return len(self._waiting) >= seats
        return _can_complete(seated, list(self._waiting.values()), seats, self._rules)


def smallest_quorum(pool: Sequence[ModelCharacteristics], rules: QuorumRules) -> int | None:
    """With how many of these voices a quorum begins to be possible."""
    lenses = [_lens_of(voice, rules) for voice in pool]
    sizes = range(FEWEST_VOICES, len(pool) + 1)
    return next((size for size in sizes if _can_complete(_NOTHING, lenses, size, rules)), None)


def why_no_quorum(voices: Sequence[ModelCharacteristics], count: int, rules: QuorumRules) -> ConfigError:
    """What the pool lacks; if it lacks nothing, how many voices it takes."""
    if missing := missing_from(voices, rules):
        lacks = f"no circle of this pool is a quorum: {'; '.join(missing)}"
        return ConfigError("available_voices", lacks, "add such a voice")
    needed = smallest_quorum(voices, rules)
    if needed is None:
        return ConfigError(
            "available_voices", f"a quorum takes {FEWEST_VOICES} voices", "add one to the pool"
        )
    way_out = f"ask for {needed}" if needed <= LARGEST_CIRCLE else "add voices that cover several roles"
    return ConfigError(
        "required_count",
        f"no {count} of these {len(voices)} voices form a quorum: together {count} cannot bring"
        f" {_in_words(rules)}",
        way_out,
    )


def missing_from(voices: Sequence[ModelCharacteristics], rules: QuorumRules) -> list[str]:
    """Every role, lineage and amount of coverage that even the whole pool does not bring."""
    best = best_contributions(voices)
    missing = [
        f"nobody brings {role} (a contribution above {PRESENT_ABOVE:g})"
        for role in CRITICAL_ROLES
        if best.get(role, 0.0) <= PRESENT_ABOVE
    ]
    lineages = sorted(set(map(rules.lineage_of, voices)))
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


def _in_words(rules: QuorumRules) -> str:
    roles = " and ".join(CRITICAL_ROLES)
    return f"{roles}, {rules.min_provider_groups} lineages and a coverage of {rules.min_cognitive_coverage:g}"


def _lens_of(voice: ModelCharacteristics, rules: QuorumRules | None) -> _Lens:
    roles = voice.cognitive_roles
    return _Lens(
        tuple(weight * roles.get(role, 0.0) for role, weight in ROLE_WEIGHTS.items()),
        frozenset(role for role in CRITICAL_ROLES if roles.get(role, 0.0) > PRESENT_ABOVE),
        frozenset(((rules or QuorumRules()).lineage_of(voice),)),
    )


def _can_complete(state: _Lens, rest: Sequence[_Lens], seats: int, rules: QuorumRules) -> bool:
    return len(rest) >= seats and _reaches(state, _undominated(rest), seats, rules)


def _undominated(rest: Sequence[_Lens]) -> list[_Lens]:
    """Without those to whom another of the same lineage is nowhere inferior: they are never needed."""
    undominated: list[_Lens] = []
    for lens in sorted(set(rest), key=lambda lens: lens.coverage, reverse=True):
        if not any(
            lens.lineages == other.lineages
            and all(mine <= its for mine, its in zip(lens.covers, other.covers, strict=True))
            for other in undominated
        ):
            undominated.append(lens)
    return undominated


def _reaches(state: _Lens, rest: Sequence[_Lens], seats: int, rules: QuorumRules) -> bool:
    """Whether at most so many of the rest make the state a quorum. Exact: what it cuts cannot succeed."""
    if state.suffices(rules):
        return True
    if not _might_reach(state, rest, seats, rules):
        return False
    # Whatever is missing, one of those who bring it must sit: only they are tried, the best first.
    short = rules.min_cognitive_coverage - state.coverage > ROUNDING
    missing = next((role for role in CRITICAL_ROLES if role not in state.critical), None)
    if missing:
        needed = [lens for lens in rest if missing in lens.critical]
    elif short:
        needed = [lens for lens in rest if state.joined(lens).coverage > state.coverage]
    else:
        needed = [lens for lens in rest if not lens.lineages <= state.lineages]
    needed.sort(key=lambda lens: _promise(state, lens, rules), reverse=True)
    left = list(rest)
    for lens in needed:
        left.remove(lens)
        if _reaches(state.joined(lens), left, seats - 1, rules):
            return True
        if not _might_reach(state, left, seats, rules):
            return False
    return False


def _promise(state: _Lens, lens: _Lens, rules: QuorumRules) -> tuple[int, bool, float]:
    joined = state.joined(lens)
    wants_lineage = len(state.lineages) < rules.min_provider_groups
    return (
        len(joined.critical),
        wants_lineage and not lens.lineages <= state.lineages,
        joined.coverage,
    )


def _might_reach(state: _Lens, rest: Sequence[_Lens], seats: int, rules: QuorumRules) -> bool:
    """Bounds that are quick to see: what even the whole rest, or the best single gains, cannot bring."""
    if seats == 0 or not rest:
        return False
    everybody = state
    gains = []
    for lens in rest:
        everybody = everybody.joined(lens)
        gains.append(state.joined(lens).coverage - state.coverage)
    if not everybody.suffices(rules):
        return False
    if rules.min_provider_groups - len(state.lineages) > seats:
        return False
    most = sum(sorted(gains, reverse=True)[:seats])
    return state.coverage + most >= rules.min_cognitive_coverage - ROUNDING
