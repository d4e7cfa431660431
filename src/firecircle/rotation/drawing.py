"""The draw and its verification: how much each voice is due, and how the seed decides."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ModelCharacteristics
from firecircle.circle.quorum import FEWEST_VOICES, QuorumRules
from firecircle.rotation.affinity import Affinity, factors, pace
from firecircle.rotation.history import (
    DRAW_METHOD,
    STEERED_METHOD,
    Candidate,
    Draw,
    ParticipationHistory,
)
from firecircle.rotation.quorum_seats import OpenSeats
from firecircle.rotation.tracker import stats_in

HALF_LIFE = 7 * 86_400.0
"""After so many seconds of silence half of the way back is gone."""
FLOOR, CEILING = 0.1, 0.95
"""The recency of a voice that spoke a moment ago, and of one that has been silent for ever."""
MOST_AHEAD = 9
"""Sittings ahead beyond which it makes no difference: whoever the quorum always needed is not left out
for ever once others can do the same."""
MOST_BEHIND = 2
"""Sittings behind the middle beyond which it makes no difference: a newcomer among old hands does not sit
in every circle until it has caught up."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the weight of a voice depends on."""

    heard: int = 0
    last_heard: float | None = None
    heard_in_domain: int = 0
    expertise: float = 1.0
    stands_for: str = ""
    """What it brings to a quorum; voices that bring the same can stand in for each other."""


def recency(silence: float | None) -> float:
    """From `FLOOR` right after speaking to `CEILING`, half of the way every half-life; never heard is 1."""
    if silence is None:
        return 1.0
    return CEILING - (CEILING - FLOOR) * math.exp2(-max(0.0, silence) / HALF_LIFE)


def frequency(count: int, counts: Sequence[int]) -> float:
    """The inverse of the sittings by which a voice is ahead of the least heard."""
    least = max(min(counts), median_low(counts) - MOST_BEHIND)
    return 1.0 / (1 + min(max(0, count - least), MOST_AHEAD))


def weights(standings: Sequence[Standing], at: float) -> list[float]:
    """The weight of each candidate at this moment.

    Sittings are compared with all candidates, and once more with those who can stand in for the voice: these
    share the seats that the quorum keeps for them. In the domain they count as a root, since that matters
    less than being heard at all.
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
    """An exponential waiting time with this weight as its rate, fixed by seed and name."""
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
    """The first so many to arrive that form a quorum, in that order; None when no such set exists.

    Whoever is taken changes the pace at which the others arrive, by what is known of the pairs. What is left
    of a waiting time is stretched or shortened then, which is the same as drawing the next one by the new
    weights; with nothing known it is the plain weighted order.
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
    """What a candidate was declared to bring when it was drawn."""
    return ModelCharacteristics(
        candidate.voice_id,
        candidate.cognitive_roles,
        candidate.provider_lineage,
        lineage_group=candidate.lineage_group,
    )


def duty_order(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Whose turn in the chair it is: who served least, then longest ago, then as drawn."""
    never = -math.inf
    return sorted(
        chosen, key=lambda voice: (voice.chairs, never if voice.last_chair is None else voice.last_chair)
    )


def seated_by_duty(chosen: Sequence[Candidate]) -> tuple[str, ...]:
    """The names in the order in which a circle must list them for its chair to rotate by duty.

    The chair of round r is the voice at place r - 1, and nobody holds it in round 1, so whoever is due
    first sits second and whoever is due last opens the list.
    """
    *first, last = duty_order(chosen)
    return (last.voice_id, *(candidate.voice_id for candidate in first))


def method_of(known: Sequence[Affinity]) -> str:
    """How a draw is made: one that rests on pairs could not be verified without knowing of them."""
    return STEERED_METHOD if known else DRAW_METHOD


def signed(draw: Draw) -> Draw:
    """The draw with the digest of its content as its id."""
    return draw.model_copy(update={"draw_id": _digest(draw)})


def _digest(draw: Draw) -> str:
    content = draw.model_dump(mode="json", exclude={"draw_id"})
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


@dataclass(frozen=True, slots=True)
class DrawCheck:
    """Whether a recorded draw is what its seed gives, and everything that is not."""

    problems: tuple[str, ...]
    differences: tuple[str, ...] = ()
    """Where the history no longer says what the draw rested on: rows were imported, pruned or late."""

    @property
    def valid(self) -> bool:
        """Whether seed and recorded facts give the recorded circle."""
        return not self.problems


def verify_draw(draw: Draw, history: ParticipationHistory | None = None) -> DrawCheck:
    """Draw again from the record alone; with the history, compare the facts it rested on too."""
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
    for drawn, due in zip(draw.candidates, weighed(draw.candidates, draw.at), strict=True):
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
    """The order of the seats and who holds the chair first; without a chair, the order of the draw."""
    if not include_empty_chair:
        return tuple(candidate.voice_id for candidate in chosen), None
    return seated_by_duty(chosen), duty_order(chosen)[0].voice_id


def weighed(candidates: Sequence[Candidate], at: float) -> tuple[Candidate, ...]:
    """The candidates with what they weigh at this moment."""
    due = weights([_standing_in(candidate) for candidate in candidates], at)
    return tuple(
        candidate.model_copy(update={"weight": weight})
        for candidate, weight in zip(candidates, due, strict=True)
    )


def _standing_in(candidate: Candidate) -> Standing:
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
    """The quorum that the set had to be, if any."""
    if draw.min_cognitive_coverage is None or draw.min_provider_groups is None:
        return None
    return QuorumRules(draw.min_cognitive_coverage, draw.min_provider_groups, draw.lineage_by)
