"""Choose the voices of the next circle: how many a prompt needs, and the weighted draw."""

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
from firecircle.circle.config import LARGEST_CIRCLE, FireCircleConfig
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
from firecircle.rotation.history import Candidate, Draw
from firecircle.rotation.tracker import DomainStats, VoiceHistoryTracker, VoiceStats
from firecircle.shapes import Shape, writable

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
