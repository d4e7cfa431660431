"""The configuration of a circle. A configuration that could never give a consensus is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from firecircle.catalog import (
    NEUTRAL_ROLES,
    ModelCharacteristics,
    characteristics_of,
    declared_among,
    declared_in_settings,
    find_characteristics,
    in_catalog,
    neutral_characteristics,
    original_of,
    plugin_declared,
    require_distinct,
    unknown_provider,
)
from firecircle.circle.base_config import PATTERN_THRESHOLD, BaseEvaluationConfig
from firecircle.circle.calibrated import VerdictCalibration
from firecircle.circle.quorum import LineageBy, MeasuredErrors, QuorumRules, QuorumVerdict, judge_quorum
from firecircle.circle.rules import AlarmRule
from firecircle.errors import ConfigError
from firecircle.names import EvaluationMode, embedded_models, is_family
from firecircle.shapes import Unit, with_fields_in_help

SMALLEST_CIRCLE, LARGEST_CIRCLE = 2, 10


class CircleSize(Enum):
    """How many voices a circle has: (fewest, most). It follows from the number of models; if it is given, it
    must agree with them.
    """

    SMALL = (2, 3)
    MEDIUM = (4, 6)
    LARGE = (7, 10)

    @classmethod
    def of(cls, voices: int) -> CircleSize:
        """The size of a circle with this many voices."""
        for size in cls:
            fewest, most = size.value
            if fewest <= voices <= most:
                return size
        cure = (
            f"add a voice such as {embedded_models()[0]}, or judge with this one alone (--mode single)"
            if voices == 1
            else None
        )
        raise ConfigError(
            "models", f"a circle has {SMALLEST_CIRCLE} to {LARGEST_CIRCLE} models, got {voices}", cure
        )


class FailureMode(Enum):
    """STRICT aborts at the first failure. RESILIENT continues while the remaining voices form a quorum."""

    STRICT = "strict"
    RESILIENT = "resilient"


def quorum_of(models: Sequence[str], declared: Mapping[str, ModelCharacteristics]) -> QuorumVerdict:
    """Whether these voices form a quorum under the default rules."""
    return judge_quorum(
        [find_characteristics(model, declared) or neutral_characteristics(model) for model in models]
    )


def quorum_cure(voices: Sequence[ModelCharacteristics], rules: QuorumRules) -> str:
    """The fewest embedded readers that would make these voices a quorum."""
    readers = [reader for reader in embedded_models() if reader not in {voice.model_id for voice in voices}]
    for number in range(1, len(readers) + 1):
        for added in combinations(readers, number):
            with_them = [*voices, *map(characteristics_of, added)]
            if len(with_them) <= LARGEST_CIRCLE and judge_quorum(with_them, rules).valid:
                return f"add {' and '.join(added)} (built in, free)"
    return "add voices that cover it: no embedded reader does"


@lru_cache(maxsize=1024)
def _undeclared_voice(model: str) -> ModelCharacteristics:
    return ModelCharacteristics(model, {}, "undeclared", confidence=0.0)


@with_fields_in_help
class FireCircleConfig(BaseEvaluationConfig):
    """All settings of a circle. Every field has a default; a wrong value is an error that names the field."""

    circle_size: CircleSize | None = None
    """Follows from the number of models; if given, it must agree."""
    max_rounds: int = Field(default=3, ge=1, le=4)
    """The maximum number of rounds. In the first, voices judge independently."""

    empty_chair: bool = True
    """Whether from round 2 on one voice speaks for those who are absent."""
    empty_chair_rotation: bool = True
    """Whether the chair moves to the next voice in every round; False if `empty_chair_model` is given."""
    empty_chair_model: str | None = None
    """The voice in the chair in every round; without effect if `empty_chair_rotation` is True."""
    empty_chair_prompt_path: str | None = None
    """A file with a prompt of your own for the chair."""
    decision_domain: str | None = None
    """The field of the prompt, such as finance, which decides whom the chair speaks for."""

    failure_mode: FailureMode = FailureMode.RESILIENT
    """`strict` aborts at the first lost voice, `resilient` continues while the quorum remains."""
    min_viable_models: int = Field(default=2, ge=2)
    """With fewer voices than this there is no consensus."""
    reserves: tuple[str, ...] = ()
    """Voices that step in, in this order, when a lost voice breaks the quorum."""

    model_characteristics: dict[str, ModelCharacteristics] = Field(
        default_factory=dict, validate_default=True
    )
    """Declared here or in `firecircle.toml`; saved with the result, so that it needs no settings file."""
    min_cognitive_coverage: float = Field(default=5.0, ge=0, allow_inf_nan=False)
    """How much of the weighted roles the remaining voices must cover together."""
    min_provider_groups: int = Field(default=2, ge=1)
    """How many lineages the remaining voices must come from."""
    lineage_by: LineageBy = "trainer"
    """What counts as a lineage: the trainer of the base model, or the wider `group` of trainers."""
    min_independent_voices: float | None = Field(default=None, ge=1, exclude_if=lambda floor: floor is None)
    """Refuse voices that amount to fewer independent ones, according to the store's labelled circles."""
    require_empty_chair_role: bool = True
    """Whether the quorum after round 1 requires an occupied empty chair."""
    enforce_quorum: bool = True
    """False judges without a quorum, for experiments; models need no declaration then."""

    pattern_threshold: Unit = PATTERN_THRESHOLD
    """The share of the active voices that must report a pattern to the end to agree on it."""
    pattern_classification: Literal["heuristic", "llm"] = "heuristic"
    """How to classify patterns without a declared type: by keywords, or by `classifier_model`."""
    classifier_model: str | None = None
    """The classifier if `pattern_classification` is `llm`."""

    early_stop_convergence: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """From round 2 on the circle ends when the standard deviation of F is below this."""
    extra_round_on_divergence: bool = True
    """Whether a large circle that is still divided in round 3 runs a fourth."""
    anonymize_peers: bool = True
    """Whether voices see each other as Evaluator A, B, … instead of by name."""

    alarm_rule: AlarmRule = Field(default="maximum", exclude_if=lambda rule: rule == "maximum")
    """What raises the alarm at `alarm_threshold`: the highest F of any voice (`maximum`), or the probability
    that a fitted calibration computes from all of them (`calibrated`).
    """
    calibration: VerdictCalibration | None = Field(default=None, exclude_if=lambda known: known is None)
    """Set when voices are created: the weights for these voices, if known."""
    measured_errors: MeasuredErrors | None = Field(default=None, exclude_if=lambda known: known is None)
    """Set when voices are created: the errors these voices share, if the store knows them."""

    if TYPE_CHECKING:
        # Pydantic accepts any sequence and the names of choices, which a type checker cannot see in fields.
        def __init__(
            self,
            *,
            models: Sequence[str] = ...,
            reserves: Sequence[str] = ...,
            **settings: Any,
        ) -> None: ...

    @property
    def mode(self) -> EvaluationMode:
        """The mode of these settings; those of the other modes have it as a field."""
        return EvaluationMode.FIRE_CIRCLE

    @property
    def named_models(self) -> tuple[str, ...]:
        """Every model named in the settings: the circle's, its reserves, the classifier."""
        classifier = (self.classifier_model,) if self.classifier_model else ()
        return (*self.models, *self.reserves, *classifier)

    def _with_names(self, seated: Callable[[str], str]) -> dict[str, Any]:
        one = ("empty_chair_model", "classifier_model")
        return {
            **super()._with_names(seated),
            "reserves": tuple(map(seated, self.reserves)),
            **{field: seated(model) for field in one if (model := getattr(self, field))},
            "model_characteristics": {
                seated(model): brought for model, brought in self.model_characteristics.items()
            },
        }

    @classmethod
    def embedded(cls, **settings: Any) -> Self:
        """The circle of embedded readers: no key, no network, no cost.

        All three where the neural weights are installed, else two; the result says so.
        """
        return cls(**{"models": embedded_models(), **settings})

    @field_validator("circle_size", mode="before")
    @classmethod
    def _size_by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                return CircleSize[value.upper()]
            except KeyError:
                raise ValueError("is small, medium or large") from None
        return tuple(value) if isinstance(value, list) else value

    @field_validator("model_characteristics")
    @classmethod
    def _with_those_of_settings_and_plugins(
        cls, declared: dict[str, ModelCharacteristics], info: ValidationInfo
    ) -> dict[str, ModelCharacteristics]:
        # A circle with too many models is refused, so the rest need no lookup.
        seated = (*info.data.get("models", ())[:LARGEST_CIRCLE], *info.data.get("reserves", ()))
        undeclared = (model for model in seated if original_of(model) not in declared)
        taken_over = {
            model: its
            for model in undeclared
            if (its := declared_in_settings(model) or plugin_declared(model))
        }
        return {**taken_over, **declared}

    @field_validator("decision_domain")
    @classmethod
    def _a_plain_word(cls, value: str | None) -> str | None:
        # It becomes part of the chair's instructions, so only a name is allowed.
        if value is not None and not re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", value):
            raise ValueError("is not a domain name; write a word of a-z, 0-9, - and _")
        return value

    @field_validator("failure_mode", mode="before")
    @classmethod
    def _mode_by_name(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_serializer("circle_size")
    def _size_name(self, size: CircleSize | None) -> str | None:
        return size.name.lower() if size else None

    @model_validator(mode="wrap")
    @classmethod
    def _holds_together(cls, given: Any, made_of: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, dict) and given.get("empty_chair_model") is not None:
            given = {"empty_chair_rotation": False, **given}
        config = made_of(given)
        if given is not config:  # an existing configuration was checked when it was made
            config._check()
        return config

    def _check(self) -> None:
        self._check_size()
        self._check_chair()
        self._check_classifier()
        self._check_calibration()
        require_distinct(self.models + self.reserves, "reserves")
        if self.enforce_quorum:
            voices = [self.characteristics(model) for model in self.models]
            verdict = judge_quorum(voices, self.quorum_rules)
            if not verdict.valid:
                cure = quorum_cure(voices, self.quorum_rules)
                raise ConfigError(
                    "models",
                    f"Initial model set lacks valid quorum: {verdict.reason}",
                    f"{cure}, or set enforce_quorum=False for an experiment",
                )
            for reserve in self.reserves:
                self.characteristics(reserve)

    def _check_size(self) -> None:
        actual = CircleSize.of(len(self.models))
        if self.circle_size is not None and self.circle_size is not actual:
            fewest, most = self.circle_size.value
            raise ConfigError(
                "circle_size",
                f"{self.circle_size.name} is {fewest} to {most} models, got {len(self.models)}",
                "leave circle_size out and it follows from models",
            )
        if self.min_viable_models > len(self.models):
            raise ConfigError("min_viable_models", f"{self.min_viable_models} of {len(self.models)} models")

    def _check_chair(self) -> None:
        if self.empty_chair_model is not None and self.empty_chair_model not in self.models:
            raise ConfigError(
                "empty_chair_model",
                f"{self.empty_chair_model!r} is not one of the models, and only one of them can hold"
                " its chair",
                "add it to models or name one of them",
            )
        if self.empty_chair and not self.empty_chair_rotation and self.empty_chair_model is None:
            raise ConfigError("empty_chair_model", "name who keeps the chair when it does not rotate")
        needs_chair = self.strict and self.enforce_quorum and self.require_empty_chair_role
        if needs_chair and not (self.empty_chair and self.max_rounds > 1):
            without = "empty_chair=False" if not self.empty_chair else f"max_rounds={self.max_rounds}"
            raise ConfigError(
                "require_empty_chair_role",
                f"a STRICT circle must hear the empty chair, and with {without} no voice can take it",
                "let it run two rounds with a chair, or leave STRICT out",
            )

    def _check_classifier(self) -> None:
        if self.pattern_classification == "llm" and self.classifier_model is None:
            raise ConfigError("classifier_model", "llm classification needs the name of a voice")

    def _check_calibration(self) -> None:
        known = self.calibration
        if known is not None and not known.fits(self.models, self.max_rounds):
            raise ConfigError(
                "calibration",
                f"it is for {known.rounds} rounds of {', '.join(known.voices)}",
                "leave it out, and the one for these voices is looked up",
            )

    def characteristics(self, model: str) -> ModelCharacteristics:
        """The declared characteristics of a model; without a quorum they are optional."""
        # Declarations of the settings file and plugins were added when the configuration was made.
        known = declared_among(model, self.model_characteristics) or in_catalog(model)
        if known is not None:
            return known
        if self.enforce_quorum and (is_family(model) or unknown_provider(model) is not None):
            return characteristics_of(model, self.model_characteristics)
        found = find_characteristics(model, self.model_characteristics)
        return found or (neutral_characteristics(model) if self.enforce_quorum else _undeclared_voice(model))

    @property
    def neutral_voices(self) -> tuple[str, ...]:
        """The voices with neutral roles: unknown to the catalog, or too small for its entry."""
        seated = ((model, self.characteristics(model)) for model in self.models)
        return tuple(model for model, brings in seated if brings.cognitive_roles == NEUTRAL_ROLES)

    @property
    def quorum_rules(self) -> QuorumRules:
        """What the remaining voices must cover."""
        return QuorumRules(self.min_cognitive_coverage, self.min_provider_groups, self.lineage_by)

    @property
    def size(self) -> CircleSize:
        """The size of this circle."""
        return CircleSize.of(len(self.models))

    @property
    def strict(self) -> bool:
        """Whether the first failure aborts."""
        return self.failure_mode is FailureMode.STRICT


def get_empty_chair_model(round_number: int, models: Sequence[str]) -> str | None:
    """The voice that holds the rotating chair in this round, by the starting list; None in round 1."""
    if round_number == 1:
        return None
    return models[(round_number - 1) % len(models)]


def chair_of_round(round_number: int, config: FireCircleConfig, active: Sequence[str]) -> str | None:
    """The voice in the chair in this round of this circle; a lost voice leaves it empty."""
    if not config.empty_chair or round_number == 1:
        return None
    fixed = None if config.empty_chair_rotation else config.empty_chair_model
    holder = fixed or get_empty_chair_model(round_number, config.models)
    return holder if holder in active else None
