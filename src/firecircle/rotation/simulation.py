"""The next sittings, as the selector would draw them: on a copy of the history, asking nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firecircle.catalog import ModelCharacteristics
from firecircle.circle.chair import get_empty_chair_model
from firecircle.circle.quorum import QuorumRules
from firecircle.rotation.affinity import Affinity
from firecircle.rotation.domains import GENERAL
from firecircle.rotation.fairness import FairnessReport, fairness_in
from firecircle.rotation.history import Draw, MemoryHistory, ParticipationHistory
from firecircle.rotation.selector import DEFAULT_RULES, WeightedVoiceSelector
from firecircle.rotation.tracker import CHAIR, VOICE, VoiceHistoryTracker
from firecircle.shapes import Shape

DAY = 86_400.0


class Simulation(Shape):
    """Sittings that were only drawn, and how fair everything would be after them."""

    draws: tuple[Draw, ...]
    before: FairnessReport
    after: FairnessReport


def simulate_sittings(
    history: ParticipationHistory,
    pool: Sequence[str],
    count: int,
    sittings: int,
    *,
    start: float,
    seed: str,
    domain: str = GENERAL,
    every_seconds: float = DAY,
    rounds: int = 3,
    characteristics: Mapping[str, ModelCharacteristics] | None = None,
    rules: QuorumRules | None = DEFAULT_RULES,
    match_expertise: bool = False,
    affinity: Sequence[Affinity] = (),
) -> Simulation:
    """Draw so many circles one after the other; every voice answers, and every round is held.

    What is known about pairs stays as it is: simulated circles find nothing.
    """
    now = start
    copy = MemoryHistory.copy_of(history)
    tracker = VoiceHistoryTracker(copy, clock=lambda: now)
    selector = WeightedVoiceSelector(
        tracker,
        characteristics=characteristics,
        rules=rules,
        match_expertise=match_expertise,
        affinity=affinity,
    )
    before = fairness_in(copy, pool)
    draws = []
    for number in range(1, sittings + 1):
        drawn = selector.draw(pool, count, domain, session_seed=f"{seed}/{number}")
        draws.append(drawn)
        chairs = {get_empty_chair_model(held, drawn.selected) for held in range(2, rounds + 1)}
        for voice in drawn.selected:
            role = CHAIR if voice in chairs else VOICE
            tracker.record_participation(voice, drawn.session_id, domain, role, None, voice in chairs)
        now += every_seconds
    return Simulation(draws=tuple(draws), before=before, after=fairness_in(copy, pool))
