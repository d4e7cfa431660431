"""How much a voice is due: longer silence and fewer sittings weigh more, within bounds.

A weight is a product of factors, each at most 1. A voice that was never heard has 1 in all of them and
nobody else has, so nobody outweighs it; and no factor falls to nothing, so nobody is ever shut out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

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
    everybody = [one.heard for one in standings]
    here = [one.heard_in_domain for one in standings]
    alike: dict[str, list[int]] = {}
    for one in standings:
        alike.setdefault(one.stands_for, []).append(one.heard)
    return [
        recency(None if one.last_heard is None else at - one.last_heard)
        * frequency(one.heard, everybody)
        * frequency(one.heard, alike[one.stands_for])
        * math.sqrt(frequency(one.heard_in_domain, here))
        * one.expertise
        for one in standings
    ]
