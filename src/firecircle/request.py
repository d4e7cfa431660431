"""Turn a request into a valid configuration, and choose the voices when none are named.

Command line, viewer and lab translate their input into a `JudgingRequest`, so the same request gets the same
voices and rules everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.circumstances import Seating, SeatingKind
from firecircle.circle.config import LARGEST_CIRCLE, FireCircleConfig, quorum_of
from firecircle.errors import ConfigError
from firecircle.names import (
    OPERATOR_MODEL,
    SKILL_MODEL,
    EvaluationMode,
    embedded_models,
    is_embedded,
    strongest_reader,
)
from firecircle.settings import current_settings
from firecircle.voices.readiness import available_hosted

if TYPE_CHECKING:
    from firecircle.rotation.tracker import Draw

DECLARED_ELSEWHERE = {
    "model_characteristics": 'declare models under [models."provider:model"]',
    "calibration": "it is looked up; fit one with `firecircle calibrate --verdict --write`",
}

_ONLY_CIRCLES = FireCircleConfig.model_fields.keys() - EvaluationConfig.model_fields.keys()
_DEPEND_ON_SEATS = {
    "models",
    "reserves",
    "model_characteristics",
    "circle_size",
    "min_viable_models",
    "empty_chair_model",
    "empty_chair_rotation",
}
"""Settings of a circle that are valid or not depending on its voices."""


@dataclass(frozen=True, slots=True)
class JudgingRequest:
    """A request from flags, a form or a plan."""

    mode: EvaluationMode = EvaluationMode.FIRE_CIRCLE
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `FireCircleConfig` by name. None leaves one to the table and the defaults."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """A `[circle]` table, for all modes: modes without dialogue use the settings that apply to them."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The user's names for fields, such as `--rounds` for `max_rounds`."""
    draw: Draw | None = None
    """The voices that rotation drew, which replace those named."""
    by_default: tuple[str, ...] = ()
    """The voices when none are named; if empty, `default_models` decides."""
    seating: Seating | None = None
    """How those voices were chosen, if they are used whatever the table names."""
    completes: bool = False
    """Whether embedded readers join named voices that need them for a quorum."""

    @property
    def asked(self) -> dict[str, Any]:
        """The settings that the request really gives."""
        return {name: value for name, value in self.settings.items() if value is not None}

    def in_its_words(self, wrong: ConfigError) -> ConfigError:
        """The error under the user's own name for the field."""
        name = self.written.get(wrong.field or "")
        return wrong.renamed(name) if name and not wrong.place else wrong


@dataclass(frozen=True, slots=True)
class Configured:
    """A valid configuration, and how its voices were chosen."""

    config: FireCircleConfig | EvaluationConfig
    seating: Seating
    joined: tuple[str, ...] = ()
    """The embedded readers that joined the named voices to form a quorum."""


def configure(request: JudgingRequest) -> Configured:
    """The configuration for a request; a `ConfigError` names the field as the user wrote it."""
    asked = request.asked
    try:
        table = request.table if request.seating is None else _without_seats(request.table)
        settings, kind = _add_models(request, {**table, **asked})
        if request.mode is EvaluationMode.FIRE_CIRCLE:
            config: FireCircleConfig | EvaluationConfig = FireCircleConfig(**settings)
        else:
            config = _panel_config(request, settings)
    except ConfigError as wrong:
        stands_in_table = wrong.field in request.table and wrong.field not in asked
        raise (wrong if stands_in_table else request.in_its_words(wrong)) from None
    named = {**table, **asked}.get("models") or ()
    chosen = kind == "chosen" and request.completes
    joined = tuple(model for model in config.first_asked if chosen and model not in named)
    return Configured(config, request.seating or Seating.of(config.first_asked, kind), joined)


def configure_by_file(request: JudgingRequest) -> Configured:
    """As `configured`, with `[circle]` of the settings file for everything the request leaves open."""
    settings = current_settings()
    for key in settings.circle:
        if key not in FireCircleConfig.model_fields or key in DECLARED_ELSEWHERE:
            wrong = ConfigError(key, DECLARED_ELSEWHERE.get(key, "no such key"))
            raise settings.mistake("circle", wrong)
    try:
        return configure(replace(request, table=settings.circle))
    except ConfigError as wrong:
        if wrong.field in settings.circle and wrong.field not in request.asked:
            raise settings.mistake("circle", wrong) from None
        raise


def offline_request(request: JudgingRequest) -> JudgingRequest:
    """The same request for the embedded readers, whatever keys or voices the settings name."""
    if "models" in request.asked or request.draw is not None:
        raise ConfigError("--offline", "it seats the readers itself", "leave --models and --rotate out")
    readers = default_models(request.mode, only_free=True)
    return replace(request, by_default=readers, seating=Seating.of(readers, "offline"))


def default_models(mode: EvaluationMode, *, only_free: bool = False) -> tuple[str, ...]:
    """The voices when none are named: hosted models if keys are set, otherwise the embedded readers.

    One vendor's models are joined by the embedded readers, which are a second lineage. `only_free` ignores
    keys.
    """
    hosted = () if only_free else available_hosted()
    if hosted:
        if mode is EvaluationMode.SINGLE:
            return hosted[:1]
        is_quorum = len(hosted) > 1 and quorum_of(hosted, {}).valid
        return hosted if is_quorum else (*hosted, *embedded_models())
    return (strongest_reader(),) if mode is EvaluationMode.SINGLE else embedded_models()


def checking_request(
    settings: Mapping[str, Any], written: Mapping[str, str] | None = None, *, is_skill: bool = False
) -> JudgingRequest:
    """The request of `firecircle check` and test suites: the readers, and one more for the operator's own
    text.

    An agent's instruction file has another reader, for its declared purpose. Each extra reader is the only
    one for its texts, so a single voice makes a pattern there.
    """
    voices = (*embedded_models(), OPERATOR_MODEL, *((SKILL_MODEL,) if is_skill else ()))
    usual = {} if settings.get("models") else {"pattern_threshold": 1 / len(voices)}
    return JudgingRequest(settings={**usual, **settings}, written=written or {}, by_default=voices)


def _add_models(request: JudgingRequest, settings: dict[str, Any]) -> tuple[dict[str, Any], SeatingKind]:
    if request.draw is not None and request.draw.used:
        from firecircle.rotation.selector import with_drawn_voices

        return with_drawn_voices(settings, request.draw), "rotated"
    if "models" in settings:
        return (_add_readers(settings) if request.completes else settings), "chosen"
    models = request.by_default or default_models(request.mode)
    return {**settings, "models": models}, "default"


def _add_readers(settings: dict[str, Any]) -> dict[str, Any]:
    """Add embedded readers to the named voices if they are needed for a quorum."""
    models = tuple(settings["models"])
    if len(models) < 2 or all(map(is_embedded, models)) or settings.get("enforce_quorum") is False:
        return settings
    declared = settings.get("model_characteristics") or {}
    joined = (*models, *(reader for reader in embedded_models() if reader not in models))
    try:
        needs_more = not quorum_of(models, declared).valid and quorum_of(joined, declared).valid
    except ConfigError:
        return settings  # the error is raised where the circle is declared
    return {**settings, "models": joined} if needs_more and len(joined) <= LARGEST_CIRCLE else settings


def _without_seats(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in _DEPEND_ON_SEATS}


def _panel_config(request: JudgingRequest, settings: Mapping[str, Any]) -> EvaluationConfig:
    """Convert a circle's settings for voices that do not discuss."""
    mode, asked = request.written.get("mode", "mode"), request.asked
    for name in asked:
        if name in _ONLY_CIRCLES:
            raise ConfigError(name, "only a circle has that", f"leave it out or use {mode} fire_circle")
    named = asked.get("models", ())
    if request.mode is EvaluationMode.SINGLE and len(named) > 1:
        raise ConfigError(
            "models",
            f"the single mode asks one voice, got {len(named)}",
            f"name one or use {mode} parallel",
        )
    # The table's circle settings have no effect here, but an invalid one is still an error.
    FireCircleConfig.embedded(**_without_seats(request.table))
    shared = {name: value for name, value in settings.items() if name not in _ONLY_CIRCLES}
    return EvaluationConfig(**{**shared, "mode": request.mode})
