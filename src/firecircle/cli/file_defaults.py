"""What `[circle]` in `firecircle.toml` says a command line does when it does not say otherwise itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from firecircle.circle.config import FireCircleConfig
from firecircle.config import BaseEvaluationConfig
from firecircle.errors import ConfigError
from firecircle.settings import current_settings

Config = TypeVar("Config", bound=BaseEvaluationConfig)
ELSEWHERE = {"model_characteristics": 'declare models under [models."provider:model"]'}
_FIELD = re.compile(r"(?:\w+Config[.:] ?)?(\w+)")


def file_names_models() -> bool:
    """Whether the file says who judges."""
    return "models" in current_settings().circle


def with_file_defaults(
    make: Callable[..., Config], wished: Mapping[str, object], kind: type[Config]
) -> Config:
    """The configuration that the wishes make, with what the file says where they say nothing."""
    settings = current_settings()
    for key in settings.circle:
        if key not in FireCircleConfig.model_fields or key in ELSEWHERE:
            raise settings.mistake("circle", f"{key}: {ELSEWHERE.get(key, 'no such key')}")
    # The table is a circle's; the other modes take from it what they know too.
    told = {key: value for key, value in settings.circle.items() if key in kind.model_fields}
    try:
        return make(**{**told, **wished})
    except ConfigError as wrong:
        field = _FIELD.match(str(wrong))
        if field and field[1] in told and field[1] not in wished:
            raise settings.mistake("circle", re.sub(r"^\w+Config[.:] ?", "", str(wrong))) from None
        raise
