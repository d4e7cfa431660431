"""Draws and their verification: the weight of each voice, and how the seed decides."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ROLE_WEIGHTS, ModelCharacteristics
from firecircle.circle.config import LARGEST_CIRCLE
from firecircle.circle.quorum import FEWEST_VOICES, QuorumRules, best_contributions
from firecircle.errors import ConfigError
from firecircle.rotation.affinity import Affinity, factors, pace
from firecircle.rotation.tracker import (
    DRAW_METHOD,
    STEERED_METHOD,
    Candidate,
    Draw,
    ParticipationHistory,
    stats_in,
)

ROUNDING = 1e-9
"""The same as in `judge_quorum`."""


@dataclass(frozen=True, slots=True)
class _Lens:
    """What a voice adds to a set, as numbers that are quick to add."""

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
    """Seats for a pool, offered to one voice after another; with rules, the filled seats are a quorum."""

    def __init__(self, pool: Sequence[ModelCharacteristics], count: int, rules: QuorumRules | None) -> None:
        self.left = count
        self._rules = rules
        self._seated = _NOTHING
        self._waiting = {voice.model_id: _lens_of(voice, rules) for voice in pool}

    @property
    def can_be_filled(self) -> bool:
        """Whether the voices not offered a seat yet can fill the rest."""
        return self._can_be_filled(self._seated, self.left)

    def takes(self, voice_id: str) -> bool:
        """Offer a seat: taken if the rest can still fill the others. Offer each voice only once."""
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
    """The smallest number of these voices that can form a quorum."""
    lenses = [_lens_of(voice, rules) for voice in pool]
    sizes = range(FEWEST_VOICES, len(pool) + 1)
    return next((size for size in sizes if _can_complete(_NOTHING, lenses, size, rules)), None)


def why_no_quorum(voices: Sequence[ModelCharacteristics], count: int, rules: QuorumRules) -> ConfigError:
    """What the pool lacks; if nothing, how many voices a quorum takes."""
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
        f" {_describe(rules)}",
        way_out,
    )


def missing_from(voices: Sequence[ModelCharacteristics], rules: QuorumRules) -> list[str]:
    """Every role, lineage and amount of coverage that even the whole pool does not bring."""
    best = best_contributions(voices)
    missing = [
        f"no voice brings {role} (a contribution above {PRESENT_ABOVE:g})"
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


def _describe(rules: QuorumRules) -> str:
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
    """Leave out voices that another of the same lineage matches in everything: they are never needed."""
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
    """Whether at most `seats` of the rest make the state a quorum. Exact: pruned branches cannot succeed."""
    if state.suffices(rules):
        return True
    if not _might_reach(state, rest, seats, rules):
        return False
    # A voice with the missing contribution must be in the set, so only those are tried, best first.
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
    """Quick bounds: what even the whole rest, or the best single gains, cannot bring."""
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


HALF_LIFE = 7 * 86_400.0
"""Seconds of silence that restore half of the remaining recency."""
FLOOR, CEILING = 0.1, 0.95
"""The recency of a voice that has just spoken, and the limit after long silence."""
MOST_AHEAD = 9
"""Sittings ahead that count at most, so that a once indispensable voice is drawn again."""
MOST_BEHIND = 2
"""Sittings behind the middle that count at most: a newcomer is not in every circle until it has caught up."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The facts that a voice's weight depends on."""

    heard: int = 0
    last_heard: float | None = None
    heard_in_domain: int = 0
    expertise: float = 1.0
    stands_for: str = ""
    """What it brings to a quorum; voices that bring the same can replace each other."""


def recency(silence: float | None) -> float:
    """From `FLOOR` after speaking to `CEILING`, half the distance every half-life; 1 if never heard."""
    if silence is None:
        return 1.0
    return CEILING - (CEILING - FLOOR) * math.exp2(-max(0.0, silence) / HALF_LIFE)


def frequency(count: int, counts: Sequence[int]) -> float:
    """The inverse of the number of sittings by which a voice is ahead of the least heard."""
    least = max(min(counts), median_low(counts) - MOST_BEHIND)
    return 1.0 / (1 + min(max(0, count - least), MOST_AHEAD))


def weights(standings: Sequence[Standing], at: float) -> list[float]:
    """The weight of each candidate at this moment.

    Sittings are compared with all candidates, and again with those that can replace the voice, because these
    share the seats that the quorum reserves for them. Sittings in the domain count by their root, since they
    matter less than being heard at all.
    """
    everybody = [standing.heard for standing in standings]
    here = [standing.heard_in_domain for standing in standings]
    alike: dict[str, list[int]] = {}
    for standing in standings:
        alike.setdefault(standing.stands_for, []).append(standing.heard)
    return [
        recency(None if standing.last_heard is None else at - standing.last_heard)
        * frequency(standing.heard, everybody)
        * frequency(standing.heard, alike[standing.stands_for])
        * math.sqrt(frequency(standing.heard_in_domain, here))
        * standing.expertise
        for standing in standings
    ]


ID_LENGTH = 16


def waiting_time(seed: str, voice_id: str, weight: float) -> float:
    """An exponential waiting time with this weight as its rate, determined by seed and name."""
    digest = hashlib.sha256(json.dumps([DRAW_METHOD, seed, voice_id]).encode()).digest()
    chance = (int.from_bytes(digest[:8]) + 0.5) / 2**64
    return -math.log(chance) / weight


def choose(
    candidates: Sequence[Candidate],
    seed: str,
    count: int,
    rules: QuorumRules | None,
    known: Sequence[Affinity] = (),
) -> tuple[Candidate, ...] | None:
    """The first `count` to arrive that form a quorum, in that order; None if there is no such set.

    Each chosen voice changes the rates of the others according to the known pairs. Remaining waiting times
    are then scaled, which is the same as drawing the next voice by the new weights; without known pairs this
    is the plain weighted order.
    """
    if rules is not None and count < FEWEST_VOICES:
        return None
    seats = OpenSeats([characteristics_in(candidate) for candidate in candidates], count, rules)
    if not seats.can_be_filled:
        return None
    beside = factors(known)
    waiting = {candidate.voice_id: candidate for candidate in candidates}
    arrival = {name: waiting_time(seed, name, candidate.weight) for name, candidate in waiting.items()}
    paces = dict.fromkeys(waiting, 1.0)
    taken: list[Candidate] = []
    while seats.left:
        first = min(waiting, key=lambda name: (arrival[name], name))
        candidate = waiting.pop(first)
        if not seats.takes(first):
            continue
        taken.append(candidate)
        drawn = [candidate.voice_id for candidate in taken]
        for name, candidate in waiting.items():
            new = pace(name, never_heard=not candidate.heard, drawn=drawn, beside=beside)
            if new != paces[name]:
                arrival[name] = arrival[first] + (arrival[name] - arrival[first]) * paces[name] / new
                paces[name] = new
    return tuple(taken)


def characteristics_in(candidate: Candidate) -> ModelCharacteristics:
    """The characteristics of a candidate at the time of the draw."""
    return ModelCharacteristics(
        candidate.voice_id,
        candidate.cognitive_roles,
        candidate.provider_lineage,
        lineage_group=candidate.lineage_group,
    )


def duty_order(chosen: Sequence[Candidate]) -> list[Candidate]:
    """The order of chair duty: least served, then longest ago, then as drawn."""
    never = -math.inf
    return sorted(
        chosen, key=lambda voice: (voice.chairs, never if voice.last_chair is None else voice.last_chair)
    )


def order_by_duty(chosen: Sequence[Candidate]) -> tuple[str, ...]:
    """The order in which a circle must list the names so that its chair rotates by duty.

    The chair of round r is the voice at place r - 1, and round 1 has no chair, so the first on duty is listed
    second and the last on duty is listed first.
    """
    *first, last = duty_order(chosen)
    return (last.voice_id, *(candidate.voice_id for candidate in first))


def method_of(known: Sequence[Affinity]) -> str:
    """The name of the draw's method: one that uses pairs cannot be verified without them."""
    return STEERED_METHOD if known else DRAW_METHOD


def sign(draw: Draw) -> Draw:
    """The draw with the digest of its content as its id."""
    return draw.model_copy(update={"draw_id": _digest(draw)})


def _digest(draw: Draw) -> str:
    content = draw.model_dump(mode="json", exclude={"draw_id"})
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


@dataclass(frozen=True, slots=True)
class DrawCheck:
    """Whether a recorded draw follows from its seed, and every difference."""

    problems: tuple[str, ...]
    differences: tuple[str, ...] = ()
    """Where the history no longer matches the draw: rows were imported, pruned or late."""

    @property
    def valid(self) -> bool:
        """Whether seed and recorded facts give the recorded circle."""
        return not self.problems


def verify_draw(draw: Draw, history: ParticipationHistory | None = None) -> DrawCheck:
    """Repeat a draw from its record; with a history, compare the facts it used too."""
    if draw.method not in (DRAW_METHOD, STEERED_METHOD):
        ways = f"{DRAW_METHOD!r} and {STEERED_METHOD!r}"
        return DrawCheck((f"it was drawn by {draw.method!r}, and this version only knows {ways}",))
    problems = [*_wrong_content(draw), *_wrong_weights(draw), *_wrong_choice(draw)]
    return DrawCheck(tuple(problems), tuple(_differences(draw, history)) if history is not None else ())


def _wrong_content(draw: Draw) -> Iterable[str]:
    if draw.draw_id != _digest(draw):
        yield "the record was changed after it was drawn: its id is not the digest of its content"
    if draw.method != method_of(draw.affinities):
        yield f"it names {draw.method!r} as its method, what it rests on belongs to the other one"


def _wrong_weights(draw: Draw) -> Iterable[str]:
    for drawn, due in zip(draw.candidates, weigh(draw.candidates, draw.at), strict=True):
        if not math.isclose(drawn.weight, due.weight, rel_tol=1e-9):
            yield f"{drawn.voice_id}: its weight is {drawn.weight:.6g}, its history gives {due.weight:.6g}"


def _wrong_choice(draw: Draw) -> Iterable[str]:
    chosen = choose(draw.candidates, draw.seed, draw.required_count, rules_of(draw), draw.affinities)
    if chosen is None:
        yield "no set of the candidates could have been chosen"
        return
    seats, chair = seating(chosen, include_empty_chair=draw.include_empty_chair)
    if set(seats) != set(draw.selected):
        yield f"the seed selects {', '.join(seats)}, recorded is {', '.join(draw.selected)}"
    elif seats != draw.selected:
        yield f"the duty order is {', '.join(seats)}, recorded is {', '.join(draw.selected)}"
    if chair != draw.chair:
        yield f"the chair belongs to {chair or 'nobody'}, recorded is {draw.chair or 'nobody'}"


def _differences(draw: Draw, history: ParticipationHistory) -> Iterable[str]:
    names = [candidate.voice_id for candidate in draw.candidates]
    earlier = stats_in(history.tallies(names, before=draw), names)
    for candidate in draw.candidates:
        its = earlier[candidate.voice_id]
        here = its.domains.get(draw.decision_domain)
        for what, recorded, known in (
            ("heard", candidate.heard, its.count),
            ("heard in the domain", candidate.heard_in_domain, here.count if here else 0),
            ("in the chair", candidate.chairs, its.chair_count),
        ):
            if recorded != known:
                yield f"{candidate.voice_id}: {what} {recorded} times by the draw, {known} by the history"


def seating(chosen: Sequence[Candidate], *, include_empty_chair: bool) -> tuple[tuple[str, ...], str | None]:
    """The order of the seats and the first chair; without a chair, the order of the draw."""
    if not include_empty_chair:
        return tuple(candidate.voice_id for candidate in chosen), None
    return order_by_duty(chosen), duty_order(chosen)[0].voice_id


def weigh(candidates: Sequence[Candidate], at: float) -> tuple[Candidate, ...]:
    """The candidates with their weights at this moment."""
    due = weights([_standing_in_quorum(candidate) for candidate in candidates], at)
    return tuple(
        candidate.model_copy(update={"weight": weight})
        for candidate, weight in zip(candidates, due, strict=True)
    )


def _standing_in_quorum(candidate: Candidate) -> Standing:
    shares = candidate.cognitive_roles
    critical = [role for role in CRITICAL_ROLES if shares.get(role, 0.0) > PRESENT_ABOVE]
    return Standing(
        candidate.heard,
        candidate.last_heard,
        candidate.heard_in_domain,
        candidate.expertise,
        stands_for=json.dumps([candidate.lineage_group or candidate.provider_lineage, *critical]),
    )


def rules_of(draw: Draw) -> QuorumRules | None:
    """The quorum rules of the draw, if any."""
    if draw.min_cognitive_coverage is None or draw.min_provider_groups is None:
        return None
    return QuorumRules(draw.min_cognitive_coverage, draw.min_provider_groups, draw.lineage_by)
