"""Quorum: are the remaining voices diverse enough for their agreement to count as a consensus?

Coverage of a role is the best contribution among the voices, counted once, so clones add nothing. Next to it
stands how many independent voices they amount to, by the errors they have shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ROLE_WEIGHTS, ModelCharacteristics
from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.thresholds import reaches

if TYPE_CHECKING:
    from firecircle.circle.config import FireCircleConfig

FEWEST_ITEMS = 30
"""With fewer labelled prompts the effective number could be anything from 1 to all voices."""


class SharedErrors(Shape):
    """How often two voices were wrong together."""

    voices: tuple[Text, Text]
    phi: float
    """Correlation of their errors."""


class MeasuredErrors(Shape):
    """How voices' errors correlate on labelled prompts that each judged independently."""

    voices: tuple[Text, ...]
    n: int
    """Labelled prompts that at least two of them judged."""
    pairs: tuple[SharedErrors, ...]
    """Pairs in which both voices were sometimes wrong and sometimes right."""

    def independence(self, voices: Sequence[str]) -> Independence | None:
        """How many independent voices these are; None if the prompts do not show it."""
        seated = set(voices)
        known = [pair.phi for pair in self.pairs if seated.issuperset(pair.voices)]
        if self.n < FEWEST_ITEMS or not known or not seated.issubset(self.voices):
            return None
        return Independence(
            voices=len(seated), effective=effective_voices(len(seated), sum(known) / len(known)), n=self.n
        )


class Independence(Shape):
    """How many independent voices would average out errors as well as these."""

    voices: int
    effective: float
    n: int

    @property
    def sentence(self) -> str:
        """Such as `3 voices ≈ 2.1 independent (n = 512)`."""
        return f"{self.voices} voices ≈ {self.effective:.1f} independent (n = {self.n:,})"


def effective_voices(n: int, mean_phi: float) -> float:
    """Kish's design effect as a number of voices. Errors that offset each other count as independent."""
    return n / (1 + (n - 1) * max(mean_phi, 0.0))


def measured_errors(
    said: Iterable[Mapping[str, float]], labels: Iterable[Label], thresholds: Iterable[float]
) -> MeasuredErrors:
    """`said` has, for each labelled prompt, each voice's falsehood in round 1."""
    voices: dict[str, None] = {}
    together: dict[tuple[str, str], list[int]] = {}
    n = 0
    for by_voice, label, threshold in zip(said, labels, thresholds, strict=True):
        wrong = {name: reaches(f, threshold) != (label == "attack") for name, f in sorted(by_voice.items())}
        voices.update(dict.fromkeys(wrong))
        n += len(wrong) > 1
        for pair in combinations(wrong, 2):
            counts = together.setdefault(pair, [0, 0, 0, 0])
            counts[2 * wrong[pair[0]] + wrong[pair[1]]] += 1
    known = ((pair, _phi(*counts)) for pair, counts in sorted(together.items()))
    return MeasuredErrors(
        voices=tuple(voices),
        n=n,
        pairs=tuple(SharedErrors(voices=pair, phi=phi) for pair, phi in known if phi is not None),
    )


def _phi(neither: int, second: int, first: int, both: int) -> float | None:
    """The correlation of a two-by-two table; None if one of the two never or always erred."""
    spread = (first + both) * (neither + second) * (second + both) * (neither + first)
    return (both * neither - first * second) / sqrt(spread) if spread else None


FEWEST_VOICES = 2
CHAIR_ROLE = "future_impact"
VALID = "Valid set quorum"


LineageBy = Literal["trainer", "group"]
"""What counts as one lineage: the trainer of the base model, or the wider group of trainers."""


@dataclass(frozen=True, slots=True)
class QuorumRules:
    """The thresholds of a quorum. They never relax at run time."""

    min_cognitive_coverage: float = 5.0
    min_provider_groups: int = 2
    lineage_by: LineageBy = "trainer"

    @classmethod
    def among(cls, settings: Mapping[str, Any]) -> QuorumRules:
        """The rules in the settings of a circle, with defaults for the rest."""
        return cls(**{each.name: settings[each.name] for each in fields(cls) if each.name in settings})

    def lineage_of(self, voice: ModelCharacteristics) -> str:
        """The lineage of a voice under these rules."""
        return voice.lineage_group if self.lineage_by == "group" else voice.provider_lineage

    def lineages_in(self, verdict: QuorumVerdict) -> Mapping[str, tuple[str, ...]]:
        """The lineages of a verdict under these rules."""
        return verdict.groups if self.lineage_by == "group" else verdict.lineages


class QuorumVerdict(Shape):
    """Whether the voices form a quorum: coverage, critical roles and lineages. Every shortfall is listed, not
    only the first.
    """

    valid: bool
    shortfalls: tuple[Text, ...] = ()
    coverage_by_role: dict[Text, float]
    """Weighted coverage: the best contribution times the role's weight."""
    lineages: dict[Text, tuple[Text, ...]]
    """The voices of each trainer."""
    groups: dict[Text, tuple[Text, ...]] = Field(default_factory=dict)
    """The voices of each group of trainers."""
    independence: Independence | None = Field(default=None, exclude_if=lambda known: known is None)
    """How many independent voices these are, if the store's labelled circles show it."""
    chair: Text | None = None
    advisories: tuple[Text, ...] = ()
    enforced: bool = True

    @property
    def coverage(self) -> float:
        """The circle's weighted coverage, each role counted once."""
        return sum(self.coverage_by_role.values())

    @property
    def reason(self) -> str:
        """All shortfalls in one line."""
        return "; ".join(self.shortfalls) if self.shortfalls else VALID


def best_contributions(
    voices: Iterable[ModelCharacteristics], *, chair_occupied: bool = False
) -> dict[str, float]:
    """The highest contribution to each role among the voices; an occupied chair covers the future."""
    best: dict[str, float] = {CHAIR_ROLE: 1.0} if chair_occupied else {}
    for voice in voices:
        for role, share in voice.cognitive_roles.items():
            best[role] = max(best.get(role, 0.0), share)
    return {role: best[role] for role in ROLE_WEIGHTS if best.get(role, 0.0) > 0.0}


def judge_quorum(
    voices: Sequence[ModelCharacteristics],
    rules: QuorumRules | None = None,
    *,
    chair: str | None = None,
    advisories: Sequence[str] = (),
    enforced: bool = True,
    independence: Independence | None = None,
) -> QuorumVerdict:
    """Compare the active voices with the rules of the quorum. `chair` is the voice in the empty chair, if
    any.
    """
    rules = rules or QuorumRules()
    best = best_contributions(voices, chair_occupied=chair is not None)
    coverage = {role: ROLE_WEIGHTS[role] * share for role, share in best.items()}
    lineages = _voices_by(voices, attrgetter("provider_lineage"))
    groups = _voices_by(voices, attrgetter("lineage_group"))
    counted = len(groups if rules.lineage_by == "group" else lineages)

    shortfalls: list[str] = []
    if len(voices) < FEWEST_VOICES:
        shortfalls.append("Minimum 2 active models required")
    total = sum(coverage.values())
    if not reaches(total, rules.min_cognitive_coverage):
        shortfalls.append(f"Insufficient cognitive coverage: {total:.1f} < {rules.min_cognitive_coverage}")
    if counted < rules.min_provider_groups:
        shortfalls.append(f"Insufficient provider diversity: {counted} < {rules.min_provider_groups}")
    missing = [role for role in CRITICAL_ROLES if best.get(role, 0.0) <= PRESENT_ABOVE]
    if missing:
        shortfalls.append(f"Missing critical cognitive roles: {', '.join(missing)}")
    return QuorumVerdict.assembled(
        valid=not shortfalls,
        shortfalls=tuple(shortfalls),
        coverage_by_role=coverage,
        lineages=lineages,
        groups=groups,
        independence=independence,
        chair=chair,
        advisories=tuple(advisories),
        enforced=enforced,
    )


def _voices_by(
    voices: Sequence[ModelCharacteristics], key: Callable[[ModelCharacteristics], str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for voice in voices:
        found[key(voice)] = (*found.get(key(voice), ()), voice.model_id)
    return found


def lost_lenses(
    before: Sequence[ModelCharacteristics],
    after: Sequence[ModelCharacteristics],
    rules: QuorumRules | None = None,
) -> tuple[str, ...]:
    """Roles and lineages that only the lost voices covered."""
    roles_left = set(best_contributions(after))
    roles = [role for role in best_contributions(before) if role not in roles_left]
    left = best_contributions(after)
    had = best_contributions(before)
    dimmed = [
        role
        for role in CRITICAL_ROLES
        if role in roles_left and had.get(role, 0.0) > PRESENT_ABOVE >= left[role]
    ]
    lineage_of = (rules or QuorumRules()).lineage_of
    lineages = sorted(set(map(lineage_of, before)) - set(map(lineage_of, after)))
    return (*roles, *dimmed, *lineages)


def validate_quorum(
    active_models: Sequence[ModelCharacteristics],
    min_cognitive_coverage: float = 5.0,
    min_provider_groups: int = 2,
    lineage_by: LineageBy = "trainer",
) -> tuple[bool, str]:
    """Whether these voices form a quorum, and why not, every shortfall in one line."""
    verdict = judge_quorum(
        active_models, QuorumRules(min_cognitive_coverage, min_provider_groups, lineage_by)
    )
    return verdict.valid, verdict.reason


def validate_quorum_with_empty_chair(
    active_models: Sequence[ModelCharacteristics],
    empty_chair_model: str | None,
    round_number: int,
    min_cognitive_coverage: float = 5.0,
    min_provider_groups: int = 2,
    lineage_by: LineageBy = "trainer",
) -> bool:
    """As `validate_quorum`, and from round 2 the chair or a voice must cover the role `future_impact`."""
    seated = any(voice.model_id == empty_chair_model for voice in active_models)
    chair = empty_chair_model if seated and round_number >= 2 else None
    verdict = judge_quorum(
        active_models, QuorumRules(min_cognitive_coverage, min_provider_groups, lineage_by), chair=chair
    )
    future_heard = round_number < 2 or verdict.coverage_by_role.get(CHAIR_ROLE, 0.0) > 0.0
    return verdict.valid and future_heard


def quorum_with_failures(
    starting_models: Sequence[ModelCharacteristics],
    failed_models: Iterable[str],
    min_cognitive_coverage: float = 5.0,
    min_provider_groups: int = 2,
    lineage_by: LineageBy = "trainer",
) -> tuple[bool, list[str]]:
    """Whether the remaining voices still form a quorum, and which roles are lost if not."""
    failed = set(failed_models)
    active = [voice for voice in starting_models if voice.model_id not in failed]
    rules = QuorumRules(min_cognitive_coverage, min_provider_groups, lineage_by)
    valid = judge_quorum(active, rules).valid
    return (True, []) if valid else (False, list(lost_lenses(starting_models, active, rules)))


@dataclass(frozen=True, slots=True)
class FailureAction:
    """What a circle does after losing a voice: continue with the remaining voices, or abort and say why."""

    aborts: bool
    reason: str
    """Why it aborts, or what is degraded."""
    remaining_models: tuple[str, ...] = ()

    @classmethod
    def ABORT(cls, reason: str) -> FailureAction:  # noqa: N802 - the name of the source document
        """The circle must stop."""
        return cls(aborts=True, reason=reason)

    @classmethod
    def CONTINUE(  # noqa: N802 - the name of the source document
        cls, remaining_models: Iterable[str], degradation_note: str
    ) -> FailureAction:
        """The circle continues with these voices."""
        return cls(aborts=False, reason=degradation_note, remaining_models=tuple(remaining_models))


def handle_model_failure_with_quorum(
    failed_model: str,
    round_number: int,
    active_models: Sequence[str],
    model_chars: Mapping[str, ModelCharacteristics],
    config: FireCircleConfig,
) -> FailureAction:
    """Whether a circle can continue after this loss: enough voices, and a quorum where one is required."""
    remaining = tuple(model for model in active_models if model != failed_model)
    if len(remaining) < config.min_viable_models:
        return FailureAction.ABORT(
            f"Loss of {failed_model} leaves {len(remaining)} models in round {round_number},"
            f" fewer than {config.min_viable_models}"
        )
    voices = [model_chars[model] for model in active_models]
    valid, blind = quorum_with_failures(
        voices,
        [failed_model],
        config.min_cognitive_coverage,
        config.min_provider_groups,
        config.lineage_by,
    )
    if config.enforce_quorum and not valid:
        return FailureAction.ABORT(
            f"Loss of {failed_model} breaks quorum in round {round_number}. Missing dimensions: {blind}."
            f" Lost roles: {list(model_chars[failed_model].cognitive_roles)}"
        )
    return FailureAction.CONTINUE(
        remaining, f"Operating with {len(remaining)} models after {failed_model} failure"
    )
