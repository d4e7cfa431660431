"""What must come of a circle whose voices meet these fates. Imports nothing of the engine, on purpose.

Written from the design alone: who is lost in a round votes no more; the circle ends when fewer than two are left or
the rest is no quorum; it may stop early from round 2 on; the consensus is the highest F of all rounds among those who
are left, the earlier round and then the voice listed first where two are equal.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from statistics import pstdev

WEIGHTS = {
    "temporal_reasoning": 3.0,
    "cross_layer_analysis": 3.0,
    "pattern_recognition": 2.0,
    "polite_extraction_masking": 2.0,
    "educational_escalation": 1.0,
    "future_impact": 2.0,
    "system_maintenance": 1.0,
}
CRITICAL = ("temporal_reasoning", "cross_layer_analysis")
COVERAGE, LINEAGES, FEWEST = 5.0, 2, 2
ROUNDS = 3
CONVERGED_BELOW = 0.1

PASSING = ("503", "429", "reset", "half")
"""Troubles after which the same question is answered."""
FINAL = ("400", "refusal", "garbage")
"""Troubles that are answers, as far as the endpoint is concerned."""


@dataclass(frozen=True)
class Fate:
    """What a voice meets with in one round: troubles that pass, and then an answer or the end."""

    troubles: tuple[str, ...]
    falsehood: float
    final: str | None = None


@dataclass(frozen=True)
class Member:
    """A voice with what it declares."""

    name: str
    roles: dict[str, float]
    lineage: str


@dataclass(frozen=True)
class Circle:
    """One circle of the storm, all of it from its number."""

    number: int
    members: tuple[Member, ...]
    stops_early: bool
    enforced: bool
    fates: dict[tuple[str, int], Fate] = field(hash=False)


@dataclass(frozen=True)
class Expected:
    """The end of a circle; without a falsehood it was called off."""

    rounds: int
    active: tuple[str, ...]
    lost: dict[str, int]
    decided: tuple[float, str, int] | None


def circle(number: int, faults: float = 0.2) -> Circle:
    """The circle of this number. In each round each voice has a fault with this probability."""
    chance = random.Random(f"circle {number}")
    members = [
        Member("m0", {"temporal_reasoning": 0.9, "cross_layer_analysis": 0.55}, "us"),
        Member("m1", {"cross_layer_analysis": 0.9, "temporal_reasoning": 0.55}, "cn"),
    ]
    # Either of the two holds both critical roles, so that what is left of a circle is short of something else.
    common = chance.choice(((0.05, 0.1), (0.2, 0.5, 0.8)))
    for place in range(2, chance.randint(3, 6)):
        roles = chance.sample(sorted(WEIGHTS), chance.randint(1, 2))
        strengths = {role: chance.choice(common) for role in roles}
        members.append(Member(f"m{place}", strengths, chance.choice(("us", "us", "cn", "open"))))
    fates = {}
    for member in members:
        for number_of_round in range(1, ROUNDS + 1):
            troubles: tuple[str, ...] = ()
            final = None
            if chance.random() < faults:
                if chance.random() < 0.5:
                    troubles = (chance.choice(PASSING),)
                else:
                    final = chance.choice(FINAL)
            # Coarse enough that two voices often say the same.
            fates[member.name, number_of_round] = Fate(troubles, chance.randrange(0, 21) / 20, final)
    return Circle(number, tuple(members), chance.random() < 0.5, chance.random() < 0.7, fates)


def is_quorum(members: list[Member]) -> bool:
    """Whether these are diverse enough."""
    best = {role: max((member.roles.get(role, 0.0) for member in members), default=0.0) for role in WEIGHTS}
    return (
        len(members) >= FEWEST
        and sum(WEIGHTS[role] * share for role, share in best.items()) >= COVERAGE - 1e-9
        and len({member.lineage for member in members}) >= LINEAGES
        and all(best[role] > 0.5 for role in CRITICAL)
    )


def expected(sitting: Circle) -> Expected:
    """How the circle has to end."""
    active = list(sitting.members)
    lost: dict[str, int] = {}
    said: list[tuple[float, int, int, str]] = []
    last: dict[str, float] = {}
    for number in range(1, ROUNDS + 1):
        for member in list(active):
            fate = sitting.fates[member.name, number]
            carries_on = fate.final == "garbage" and number > 1
            if fate.final and not carries_on:
                lost[member.name] = number
                active.remove(member)
                continue
            falsehood = last[member.name] if carries_on else fate.falsehood
            last[member.name] = falsehood
            said.append((-falsehood, number, sitting.members.index(member), member.name))
        names = tuple(member.name for member in active)
        is_short = len(active) < FEWEST or (sitting.enforced and not is_quorum(active))
        if number in lost.values() and is_short:
            return Expected(number, names, lost, None)
        spread = pstdev([last[member.name] for member in active])
        if sitting.stops_early and number >= 2 and spread < CONVERGED_BELOW - 1e-9:
            break
    highest = min(vote for vote in said if vote[3] in names)
    return Expected(number, names, lost, (-highest[0], highest[3], highest[1]))
