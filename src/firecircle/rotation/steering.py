"""How what was learnt about pairs bends a draw: who sees what those already drawn have missed comes sooner.

Once some voices are drawn, the weight of every other one is multiplied by a factor between `LEAST` and
`MOST`. It compares the voice with the other known partners of those drawn, so it says who fits better, not
who is strong. About a pair that hardly sat together nothing is known: 1. A voice that was never heard has
`MOST`, so that still nobody outweighs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from firecircle.rotation.affinity import DOUBT, Affinity

LEAST, MOST = 0.5, 2.0
FEWEST_CIRCLES = 5
"""So many circles with patterns a pair must have shared before it counts as known."""

Factors = Mapping[tuple[str, str], float]
"""By the voice that is drawn and the one that may join it."""


def known_among(names: Iterable[str], learnt: Iterable[Affinity]) -> tuple[Affinity, ...]:
    """The pairs of these voices about which enough is known, by name."""
    pool = set(names)
    known = [
        pair
        for pair in learnt
        if pair.circles >= FEWEST_CIRCLES and pair.first in pool and pair.second in pool
    ]
    return tuple(sorted(known, key=lambda pair: (pair.first, pair.second)))


def factors(known: Iterable[Affinity]) -> Factors:
    """For each voice, what its known partners weigh beside it.

    Of the patterns that the voice missed, a partner backed some share; the factor is that share over the
    share of all its partners together. `DOUBT` patterns at the common share are assumed beforehand.
    """
    beside: dict[str, dict[str, tuple[int, int]]] = {}
    for pair in known:
        for drawn, joining, backed in (
            (pair.first, pair.second, pair.backed_by_first),
            (pair.second, pair.first, pair.backed_by_second),
        ):
            seen_too, missed = pair.backed_by_either - backed, pair.patterns - backed
            beside.setdefault(drawn, {})[joining] = (seen_too, missed)
    found: dict[tuple[str, str], float] = {}
    for drawn, partners in beside.items():
        common = _share(
            sum(seen for seen, _ in partners.values()), sum(all_ for _, all_ in partners.values())
        )
        for joining, (seen, missed) in partners.items():
            its = (seen + DOUBT * common) / (missed + DOUBT)
            found[drawn, joining] = min(MOST, max(LEAST, its / common)) if common else 1.0
    return found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def pace(voice_id: str, *, never_heard: bool, drawn: Sequence[str], beside: Factors) -> float:
    """What the weight of a voice is multiplied by once these are drawn: the middle of its factors."""
    if not beside or not drawn:
        return 1.0
    if never_heard:
        return MOST
    logs = [math.log(beside.get((other, voice_id), 1.0)) for other in drawn]
    return min(MOST, max(LEAST, math.exp(math.fsum(logs) / len(logs))))
