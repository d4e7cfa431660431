"""Who judges, and how, when nobody was named: by the keys of the surroundings and the settings file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from firecircle.circle.config import (
    EMBEDDED_MODELS,
    NEURAL_MODEL,
    BaseEvaluationConfig,
    EvaluationConfig,
    FireCircleConfig,
)
from firecircle.errors import ConfigError
from firecircle.names import EvaluationMode
from firecircle.settings import current_settings

DEFAULT_KEY_VARIABLE = "OPENROUTER_API_KEY"
EMBEDDED_GENERALIST = "embedded:layers"
"""Who judges alone without a key: of all built-in voices the one that by itself raises most true alarms."""
DECLARED_ELSEWHERE = {"model_characteristics": 'declare models under [models."provider:model"]'}

Config = TypeVar("Config", bound=BaseEvaluationConfig)


def default_circle(**settings: object) -> FireCircleConfig:
    """The hosted circle when its key is set, else the embedded one, with the neural voice if it is here."""
    if os.environ.get(DEFAULT_KEY_VARIABLE):
        return FireCircleConfig(**settings)
    return FireCircleConfig.embedded(**{"models": embedded_models(), **settings})


def default_panel(mode: EvaluationMode, **settings: object) -> EvaluationConfig:
    """Who judges in the single and parallel modes when nobody was named."""
    if os.environ.get(DEFAULT_KEY_VARIABLE):
        return EvaluationConfig(mode=mode, **settings)
    embedded = embedded_models() if mode is EvaluationMode.PARALLEL else (EMBEDDED_GENERALIST,)
    return EvaluationConfig(**{"mode": mode, "models": embedded, **settings})


def with_file_defaults(
    make: Callable[..., Config], wished: Mapping[str, object], kind: type[Config]
) -> Config:
    """What `make` makes of the wishes, with what `[circle]` in the file says where they say nothing."""
    settings = current_settings()
    for key in settings.circle:
        if key not in FireCircleConfig.model_fields or key in DECLARED_ELSEWHERE:
            raise settings.mistake("circle", ConfigError(key, DECLARED_ELSEWHERE.get(key, "no such key")))
    # The table is a circle's; the other modes take from it what they know too.
    told = {key: value for key, value in settings.circle.items() if key in kind.model_fields}
    try:
        return make(**{**told, **wished})
    except ConfigError as wrong:
        if not wrong.place and wrong.field in told and wrong.field not in wished:
            raise settings.mistake("circle", wrong) from None
        raise


def embedded_models() -> tuple[str, ...]:
    """The embedded voices that can speak on this machine: six, and the neural one where it is installed."""
    from firecircle.voices.embedded.learned.neural import is_available

    return (*EMBEDDED_MODELS, NEURAL_MODEL) if is_available() else EMBEDDED_MODELS
