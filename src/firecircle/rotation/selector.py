"""Draw circles from a pool of voices, and what such draws come to: who takes part and who has the chair."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from firecircle.catalog import (
    ROLE_WEIGHTS,
    ModelCharacteristics,
    characteristics_of,
    find_characteristics,
    require_distinct,
)
from firecircle.circle.config import LARGEST_CIRCLE, FireCircleConfig, get_empty_chair_model
from firecircle.circle.quorum import QuorumRules
from firecircle.errors import ConfigError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.rotation.affinity import Affinity, known_among
from firecircle.rotation.drawing import (
    characteristics_in,
    choose,
    method_of,
    seating,
    sign,
    weigh,
    why_no_quorum,
)
from firecircle.rotation.empty_chair import GENERAL, domain_of, require_domain
from firecircle.rotation.tracker import (
    CHAIR,
    VOICE,
    Candidate,
    DomainStats,
    Draw,
    MemoryHistory,
    Participation,
    ParticipationHistory,
    VoiceHistoryTracker,
    VoiceStats,
    stats_in,
)
from firecircle.shapes import Shape, Text, writable

DEFAULT_RULES = QuorumRules()


class WeightedVoiceSelector:
    """Draws circles from a pool of voices and records how.

    `rules` is the quorum every set must be (None for an experiment without one). In `shadow` mode a draw
    is recorded as not used: the circle stays as it was. `match_expertise` lets voices that
    fit the domain come sooner; `affinity`, pairs learned from stored circles, those that see what the voices
    drawn before them missed.
    """

    def __init__(
        self,
        tracker: VoiceHistoryTracker,
        *,
        characteristics: Mapping[str, ModelCharacteristics] | None = None,
        rules: QuorumRules | None = DEFAULT_RULES,
        match_expertise: bool = False,
        affinity: Sequence[Affinity] = (),
        shadow: bool = False,
    ) -> None:
        self.tracker = tracker
        self.shadow = shadow
        self._characteristics = characteristics
        self._rules = rules
        self._match_expertise = match_expertise
        self._affinity = tuple(affinity)

    def select_voices(
        self,
        available_voices: Sequence[str],
        required_count: int,
        domain: str = GENERAL,
        include_empty_chair: bool = True,
        *,
        session_seed: str | None = None,
        session_id: str | None = None,
    ) -> tuple[tuple[str, ...], str | None]:
        """The voices of the next circle, in list order, and the first chair."""
        drawn = self.draw(
            available_voices,
            required_count,
            domain,
            include_empty_chair,
            session_seed=session_seed,
            session_id=session_id,
        )
        return drawn.selected, drawn.chair

    def draw(
        self,
        available_voices: Sequence[str],
        required_count: int,
        domain: str = GENERAL,
        include_empty_chair: bool = True,
        *,
        session_seed: str | None = None,
        session_id: str | None = None,
        record: bool = True,
    ) -> Draw:
        """As `select_voices`, with everything the choice depends on; recorded before it is returned.

        Without a seed a random one is used. The seed is the sitting's id if it has none. For a rehearsal,
        pass `record=False`.
        """
        if not 1 <= required_count <= len(available_voices):
            raise ConfigError(
                "required_count",
                f"{required_count} of {len(available_voices)} available voices",
                "ask for fewer or add voices to the pool",
            )
        if session_seed == "":
            raise ConfigError("session_seed", "is empty", "leave it out for a fresh one")
        at = self.tracker.clock()
        seed = secrets.token_hex(16) if session_seed is None else writable(session_seed)
        candidates = self.candidates(available_voices, domain, at)
        known = known_among(available_voices, self._affinity)
        chosen = choose(candidates, seed, required_count, self._rules, known)
        if chosen is None:
            assert self._rules is not None
            voices = [characteristics_in(candidate) for candidate in candidates]
            raise why_no_quorum(voices, required_count, self._rules)
        selected, chair = seating(chosen, include_empty_chair=include_empty_chair)
        drawn = sign(
            Draw(
                draw_id="unsigned",
                method=method_of(known),
                session_id=session_id or seed,
                at=at,
                seed=seed,
                decision_domain=domain,
                required_count=required_count,
                include_empty_chair=include_empty_chair,
                min_cognitive_coverage=self._rules.min_cognitive_coverage if self._rules else None,
                min_provider_groups=self._rules.min_provider_groups if self._rules else None,
                lineage_by=self._rules.lineage_by if self._rules else "trainer",
                candidates=candidates,
                selected=selected,
                chair=chair,
                used=not self.shadow,
                affinities=known,
            )
        )
        if record:
            self.tracker.history.record_draw(drawn)
        return drawn

    def candidates(self, available_voices: Sequence[str], domain: str, at: float) -> tuple[Candidate, ...]:
        """The pool at this moment, by name: how often each was heard, what it brings and its weight."""
        require_distinct(tuple(available_voices), "available_voices")
        require_domain(domain)
        names = sorted(available_voices)
        stats = self.tracker.stats(names)
        return weigh([self._candidate(self._voice(name), stats[name], domain) for name in names], at)

    def _voice(self, name: str) -> ModelCharacteristics:
        if self._rules is not None:
            return characteristics_of(name, self._characteristics)
        declared = find_characteristics(name, self._characteristics)
        return declared or ModelCharacteristics(name, {}, "undeclared", confidence=0.0)

    def _expertise(self, voice: ModelCharacteristics, its: VoiceStats, domain: str) -> float:
        """From 0.5 to 1; no voice outweighs one that was never heard."""
        if not self._match_expertise or its.count == 0:
            return 1.0
        return 0.5 + expertise_of(voice, domain, its.domains.get(domain)) / 2

    def _candidate(self, voice: ModelCharacteristics, its: VoiceStats, domain: str) -> Candidate:
        here = its.domains.get(domain)
        return Candidate(
            voice_id=voice.model_id,
            heard=its.count,
            last_heard=its.last_heard,
            heard_in_domain=here.count if here else 0,
            chairs=its.chair_count,
            last_chair=its.last_chair,
            expertise=self._expertise(voice, its, domain),
            provider_lineage=voice.provider_lineage,
            lineage_group=voice.lineage_group if self._rules and self._rules.lineage_by == "group" else "",
            cognitive_roles=voice.cognitive_roles,
        )


def rotated(config: FireCircleConfig, draw: Draw) -> FireCircleConfig:
    """The same circle with the drawn voices; a draw in shadow mode changes nothing."""
    if not draw.used:
        return config
    settings = {name: getattr(config, name) for name in type(config).model_fields}
    return type(config)(**with_drawn_voices(settings, draw))


def with_drawn_voices(settings: Mapping[str, Any], draw: Draw) -> dict[str, Any]:
    """Replace the models in a circle's settings by the drawn voices.

    The settings need not form a circle by themselves: a pool may be larger than any circle.
    """
    fixed = settings.get("empty_chair_model")
    keeper = fixed if fixed in draw.selected else None
    return {
        **settings,
        "models": draw.selected,
        "circle_size": None,
        "reserves": tuple(name for name in settings.get("reserves", ()) if name not in draw.selected),
        "empty_chair_model": keeper,
        # A fixed chair that was not drawn gives way to the duty order.
        "empty_chair_rotation": settings.get("empty_chair_rotation", True) or keeper is None,
    }


class Evenness(Shape):
    """How evenly something is distributed."""

    least: int
    most: int
    spread: int
    """The maximum minus the minimum."""
    gini: float
    """0 if all have the same, near 1 if one has everything."""
    jain: float
    """1 if all have the same, 1/n if one of n has everything."""


class FairnessReport(Shape):
    """How often each voice was heard, and how even that is."""

    sittings: int
    voices: tuple[VoiceStats, ...]
    """Most heard first."""
    heard: Evenness
    chairs: Evenness
    never_heard: tuple[Text, ...]
    never_in_chair: tuple[Text, ...]


def fairness(rows: Iterable[Participation], pool: Sequence[str] = ()) -> FairnessReport:
    """The report on a pool; by default on every voice ever heard."""
    return fairness_in(MemoryHistory(rows), pool)


def fairness_in(history: ParticipationHistory, pool: Sequence[str] = ()) -> FairnessReport:
    """The same from a history, without reading it row by row."""
    stats = list(stats_in(history.tallies(pool or None), pool).values())
    stats.sort(key=lambda voice: (-voice.count, voice.voice_id))
    return FairnessReport(
        sittings=history.sittings(pool or None),
        voices=tuple(stats),
        heard=evenness({voice.voice_id: voice.count for voice in stats}),
        chairs=evenness({voice.voice_id: voice.chair_count for voice in stats}),
        never_heard=tuple(voice.voice_id for voice in stats if not voice.count),
        never_in_chair=tuple(voice.voice_id for voice in stats if not voice.chair_count),
    )


def evenness(counts: Mapping[str, int]) -> Evenness:
    """Gini's and Jain's indices of the counts; all zeros count as even."""
    values = sorted(counts.values())
    total = sum(values)
    if not total:
        return Evenness(least=0, most=0, spread=0, gini=0.0, jain=1.0)
    size = len(values)
    ranked = sum(place * value for place, value in enumerate(values, start=1))
    return Evenness(
        least=values[0],
        most=values[-1],
        spread=values[-1] - values[0],
        gini=max(0.0, 2 * ranked / (size * total) - (size + 1) / size),
        jain=total**2 / (size * sum(value**2 for value in values)),
    )


DAY = 86_400.0


class Simulation(Shape):
    """Simulated draws, and the fairness after them."""

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
    """Draw this many circles in sequence; every voice answers, and every round runs.

    Known pairs stay the same: simulated circles find no patterns.
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


DECLARED_COUNTS_AS = 5
"""The declaration weighs as much as this many measured sittings."""


def expertise_of(voice: ModelCharacteristics, domain: str, here: DomainStats | None = None) -> float:
    """From 0 to 1: the declared contributions weighted by the domain, then the voice's own quality there."""
    lenses = domain_of(domain).lenses
    weight = {role: ROLE_WEIGHTS[role] * lenses.get(role, 1.0) for role in ROLE_WEIGHTS}
    declared = sum(weight[role] * voice.cognitive_roles.get(role, 0.0) for role in weight)
    declared /= sum(weight.values())
    if here is None or here.quality is None:
        return declared
    measured = here.measured
    return (DECLARED_COUNTS_AS * declared + measured * here.quality) / (DECLARED_COUNTS_AS + measured)


def ranked_for(
    domain: str, voices: Iterable[ModelCharacteristics], stats: Mapping[str, VoiceStats]
) -> list[tuple[str, float]]:
    """The voices with their expertise, best for this domain first."""
    fit = []
    for voice in voices:
        its = stats.get(voice.model_id)
        fit.append((voice.model_id, expertise_of(voice, domain, its.domains.get(domain) if its else None)))
    return sorted(fit, key=lambda entry: (-entry[1], entry[0]))


SMALLEST = 3
"""Two voices can be a quorum, but it would not survive a loss."""
LONG, VERY_LONG = 2_000, 20_000
MANY_TURNS = 4
_OPAQUE = re.compile(r"[A-Za-z0-9+/=_%\\-]{60,}")


class Complexity(Shape):
    """What makes a prompt hard to judge; every point adds one voice."""

    layers: int
    characters: int
    turns: int
    opaque_runs: int
    """Long runs without a space, which may be an encoding."""

    @property
    def points(self) -> int:
        """One for each layer beyond the first, each step of length, many turns, and anything opaque."""
        return sum(
            (
                max(0, self.layers - 1),
                self.characters > LONG,
                self.characters > VERY_LONG,
                self.turns > MANY_TURNS,
                self.opaque_runs > 0,
            )
        )


def complexity_of(prompt: MultiNeutrosophicPrompt) -> Complexity:
    """The complexity of a prompt."""
    return Complexity(
        layers=len(prompt.layers),
        characters=sum(len(layer.text) for layer in prompt.layers),
        turns=len(prompt.turns or ()),
        opaque_runs=sum(len(_OPAQUE.findall(layer.text)) for layer in prompt.layers),
    )


def circle_size_for(prompt: MultiNeutrosophicPrompt, available: int) -> int:
    """How many of the available voices to use for this prompt."""
    return min(SMALLEST + complexity_of(prompt).points, LARGEST_CIRCLE, available)
