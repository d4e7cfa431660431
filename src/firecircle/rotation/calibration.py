"""Roles as declared, and as circles with known labels measured them."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firecircle.catalog import ModelCharacteristics, find_characteristics, original_of
from firecircle.circle.pattern_types import types_by_role
from firecircle.circle.quorum import judge_quorum
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError
from firecircle.files import write_whole
from firecircle.names import PATTERN_TYPES, Label
from firecircle.settings import toml_string
from firecircle.shapes import Shape, Text, Unit
from firecircle.thresholds import reaches

_HEADER = re.compile(r"^\s*\[")


def declaration_of(voice: ModelCharacteristics) -> str:
    """The table that declares a voice, as TOML."""
    roles = ", ".join(f"{role} = {share:g}" for role, share in voice.cognitive_roles.items())
    return (
        f"[models.{toml_string(voice.model_id)}]\n"
        f"provider_lineage = {toml_string(voice.provider_lineage)}\n"
        f"alignment_style = {toml_string(voice.alignment_style)}\n"
        f"confidence = {voice.confidence:g}\n"
        f"cognitive_roles = {{ {roles} }}\n"
    )


def declare_in(path: Path, voices: Iterable[ModelCharacteristics]) -> None:
    """Declare these voices in the file and replace their earlier tables; all of them or none."""
    voices = list(voices)
    old = _text_of(path)
    new = old
    for voice in voices:
        new = _remove_tables(new, voice.model_id).rstrip("\n")
        new = f"{new}\n\n{declaration_of(voice)}" if new else declaration_of(voice)
    _require_same_otherwise(path, old, new, voices)
    _replace(path, new)


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as unreadable:
        raise ConfigError(str(path), f"cannot read it: {unreadable}; nothing was written") from None


def _remove_tables(text: str, model: str) -> str:
    """The text without a model's tables; finds only tables with their own header."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = _is_table_of(line, model)
        if not inside or line.lstrip().startswith("#"):
            lines.append(line)
    return "".join(lines)


def _is_table_of(header: str, model: str) -> bool:
    try:
        tables: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        return False
    models = tables.get("models")
    return isinstance(models, dict) and model in models


def _require_same_otherwise(path: Path, old: str, new: str, voices: list[ModelCharacteristics]) -> None:
    try:
        before, after = tomllib.loads(old), tomllib.loads(new)
    except tomllib.TOMLDecodeError as broken:
        raise ConfigError(
            str(path),
            f"cannot be edited safely ({broken})",
            "nothing was written, declare the models by hand",
        ) from None
    expected = {**before.get("models", {})}
    for voice in voices:
        expected[voice.model_id] = tomllib.loads(declaration_of(voice))["models"][voice.model_id]
    if after != {**before, "models": expected}:
        raise ConfigError(
            str(path), "cannot be edited safely", "nothing was written, declare the models by hand"
        )


def _replace(path: Path, text: str) -> None:
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        write_whole(target, text, mode)
        target.chmod(mode)
    except OSError as unwritable:
        raise ConfigError(str(path), f"cannot write it: {unwritable.strerror or unwritable}") from None


_KINDS = frozenset(PATTERN_TYPES)
NEGLIGIBLE = 0.05
"""An undeclared role's contribution below this is left out."""


@dataclass(frozen=True, slots=True)
class LabelledCircle:
    """A circle with an independent label of its prompt."""

    result: FireCircleResult
    label: Label
    pattern_type: str | None = None
    """The kind of attack, if it is a pattern type; otherwise what the circle agreed on."""
    counted_for: frozenset[str] = frozenset()
    """Voices whose declaration already uses this circle; it is not new evidence for them."""


class RoleEvidence(Shape):
    """What circles say about one role of one voice."""

    role: Text
    attacks: int
    """Attacks of the kinds this role looks for, judged by the voice."""
    hits: int
    declared: Unit
    measured: Unit
    proposed: Unit


class Proposal(Shape):
    """What a voice declares, what it should declare, and why."""

    model: Text
    circles: int
    benign: int
    false_alarms: int
    roles: tuple[RoleEvidence, ...]
    declared: ModelCharacteristics
    proposed: ModelCharacteristics

    @property
    def changed(self) -> bool:
        """Whether the proposal differs from the declaration."""
        return self.declared != self.proposed


class Calibration(Shape):
    """Proposals for every voice in the labelled circles."""

    circles: int
    proposals: tuple[Proposal, ...]
    broken: tuple[Text, ...]
    """Circles that would no longer be a quorum, and why."""


@dataclass(slots=True)
class _Tally:
    circles: int = 0
    benign: int = 0
    false_alarms: int = 0
    attacks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(types_by_role(), 0))
    hits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(types_by_role(), 0))


def prior_strength(confidence: float) -> float:
    """How many circles a declaration counts for, by its confidence: 10 to 40."""
    return 10 + 30 * confidence


def calibrate(
    circles: Iterable[LabelledCircle], declared: Mapping[str, ModelCharacteristics] | None = None
) -> Calibration:
    """Propose characteristics from labelled circles. Reads the iterable once and changes nothing.

    Without `declared` the proposals start from `firecircle.toml` and the catalog.
    """
    tallies: dict[str, _Tally] = {}
    known: dict[str, ModelCharacteristics] = {}
    seatings: dict[tuple[str, ...], FireCircleResult] = {}
    count = 0
    for circle in circles:
        count += 1
        config = circle.result.config
        if config.enforce_quorum:
            seatings.setdefault(
                tuple(sorted(config.models)), circle.result.model_copy(update={"dialogue_history": ()})
            )
        for voice, alarmed in _alarms_in_round_1(circle.result).items():
            name = original_of(voice)
            if name in circle.counted_for:
                continue
            known.setdefault(name, find_characteristics(name, declared) or config.characteristics(name))
            _count(tallies.setdefault(name, _Tally()), circle, alarmed=alarmed)
    proposals = {name: _proposal(known[name], tally) for name, tally in sorted(tallies.items())}
    return Calibration(
        circles=count,
        proposals=tuple(proposals.values()),
        broken=tuple(_broken(seatings, proposals)),
    )


def heard_alone(result: FireCircleResult) -> frozenset[str]:
    """The voices for which a circle is evidence, by their declared names."""
    return frozenset(map(original_of, _alarms_in_round_1(result)))


def _alarms_in_round_1(result: FireCircleResult) -> dict[str, bool]:
    """Which voices alarmed in round 1, among those that stated their numbers."""
    threshold = result.config.alarm_threshold
    return {
        evaluation.model: reaches(evaluation.falsehood, threshold)
        for held in result.dialogue_history
        if held.round_number == 1
        for evaluation in held.evaluations
        if not evaluation.guessed
    }


def _count(tally: _Tally, circle: LabelledCircle, *, alarmed: bool) -> None:
    tally.circles += 1
    if circle.label == "benign":
        tally.benign += 1
        tally.false_alarms += alarmed
        return
    agreed_types = {pattern.pattern_type for pattern in circle.result.patterns}
    kinds = {circle.pattern_type} if circle.pattern_type in _KINDS else agreed_types
    for role, looks_for in types_by_role().items():
        if kinds & looks_for:
            tally.attacks[role] += 1
            tally.hits[role] += alarmed


def _proposal(declared: ModelCharacteristics, tally: _Tally) -> Proposal:
    roles: list[RoleEvidence] = []
    sizes: list[float] = []
    strength = prior_strength(declared.confidence)
    false_alarms = tally.false_alarms / tally.benign if tally.benign else 0.0
    for role, attacks in tally.attacks.items():
        if not attacks or not tally.benign:
            continue
        declared_share = declared.cognitive_roles.get(role, 0.0)
        measured = max(0.0, tally.hits[role] / attacks - false_alarms)
        # The difference of two shares is as certain as the harmonic mean of their counts.
        size = 2 / (1 / attacks + 1 / tally.benign)
        proposed = round((strength * declared_share + size * measured) / (strength + size), 2)
        sizes.append(size)
        roles.append(
            RoleEvidence(
                role=role,
                attacks=attacks,
                hits=tally.hits[role],
                declared=declared_share,
                measured=measured,
                proposed=proposed,
            )
        )
    shares = dict(declared.cognitive_roles)
    for evidence in roles:
        if evidence.role in shares or evidence.proposed >= NEGLIGIBLE:
            shares[evidence.role] = evidence.proposed
    return Proposal(
        model=declared.model_id,
        circles=tally.circles,
        benign=tally.benign,
        false_alarms=tally.false_alarms,
        roles=tuple(roles),
        declared=declared,
        proposed=declared.model_copy(
            update={
                "cognitive_roles": shares,
                "confidence": _confidence(declared.confidence, strength, roles, sizes),
            }
        ),
    )


def _confidence(declared: float, strength: float, roles: list[RoleEvidence], sizes: list[float]) -> float:
    evidence = sum(sizes)
    if not evidence:
        return declared
    pairs = zip(roles, sizes, strict=True)
    agreement = 1 - sum(size * abs(role.measured - role.declared) for role, size in pairs) / evidence
    return round((strength * declared + evidence * agreement) / (strength + evidence), 2)


def _broken(
    seatings: Mapping[tuple[str, ...], FireCircleResult], proposals: Mapping[str, Proposal]
) -> Iterable[str]:
    for result in seatings.values():
        models = result.config.models
        voices = [
            proposals[original_of(model)].proposed.model_copy(update={"model_id": model})
            if original_of(model) in proposals
            else result.config.characteristics(model)
            for model in models
        ]
        verdict = judge_quorum(voices, result.config.quorum_rules)
        if not verdict.valid:
            yield f"{', '.join(models)}: {verdict.reason}"
