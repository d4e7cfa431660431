"""From a request to a configuration that holds together."""

from __future__ import annotations

from functools import partial

from firecircle.circle.config import EvaluationConfig, FireCircleConfig
from firecircle.errors import ConfigError
from firecircle.names import EvaluationMode
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
from firecircle.request import default_circle, default_panel, with_file_defaults
from firecircle.web.api.shapes import Judging

ONLY_CIRCLES = ("rounds", "reserves", "empty_chair", "strict")


def prompt_of(asked: Judging) -> MultiNeutrosophicPrompt:
    """The prompt to judge; one with nothing in it is refused."""
    turns = None
    if asked.turns is not None:
        turns = tuple(EarlierTurn(role=turn.role, content=turn.content) for turn in asked.turns)
    prompt = MultiNeutrosophicPrompt(
        system=asked.system, application=asked.application, user=asked.user, turns=turns
    )
    prompt.require_text(asked.focus or "prompt")
    return prompt


def config_of(asked: Judging) -> FireCircleConfig | EvaluationConfig:
    """Who judges and how: what was asked for, else what `firecircle.toml` says, else the defaults."""
    wished: dict[str, object] = {
        "models": asked.models or None,
        "focus": asked.focus,
        "alarm_threshold": asked.threshold,
        "seed": asked.seed,
        "budget_usd": asked.budget_usd,
        "budget_tokens": asked.budget_tokens,
    }
    mode = EvaluationMode(asked.mode)
    if mode is EvaluationMode.FIRE_CIRCLE:
        wished |= {
            "max_rounds": asked.rounds,
            "reserves": asked.reserves or None,
            "empty_chair": asked.empty_chair,
            "failure_mode": "strict" if asked.strict else None,
            "enforce_quorum": None if asked.enforce_quorum else False,
        }
        return with_file_defaults(default_circle, _told(wished), FireCircleConfig)
    for name in ONLY_CIRCLES:
        if getattr(asked, name) not in (None, False, ()):
            raise ConfigError(name, "only a circle has that", "leave it out or use mode fire_circle")
    if mode is EvaluationMode.SINGLE and len(asked.models) > 1:
        raise ConfigError("models", "the single mode asks one voice", "name one or use mode parallel")
    return with_file_defaults(partial(default_panel, mode), _told(wished), EvaluationConfig)


def _told(wished: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in wished.items() if value is not None}
