"""What every mode can be told, and the settings of the single and parallel modes."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from pydantic import Field, SecretStr, field_validator, model_validator

from firecircle.catalog import require_distinct
from firecircle.prompt import Focus
from firecircle.shapes import Declaration, Unit

DEFAULT_MODELS = (
    "anthropic/claude-sonnet-4-20250514",
    "qwen/qwen-2.5-72b-instruct",
    "deepseek/deepseek-r1",
)
EMBEDDED_MODELS = (
    "embedded:time",
    "embedded:layers",
    "embedded:hidden",
    "embedded:extraction",
    "embedded:authority",
    "embedded:ngrams",
)
"""The circle that needs nothing but the package, in the order its voices are listed."""
NEURAL_MODEL = "embedded:neural"
"""Joins the embedded circle by default where its extra and its weights are installed."""

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class EvaluationMode(Enum):
    """One voice once, several voices apart, or several voices in dialogue."""

    SINGLE = "single"
    PARALLEL = "parallel"
    FIRE_CIRCLE = "fire_circle"


class BaseEvaluationConfig(Declaration):
    """Settings that all three modes share."""

    models: tuple[str, ...] = DEFAULT_MODELS
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)
    """The provider's key, if it is not in the environment. No dump contains it."""
    provider: str = "openrouter"
    """Who answers for a bare model name such as `vendor/model`."""
    lmstudio_base_url: str | None = None
    max_tokens: int = Field(default=1000, ge=1)
    """The longest answer a voice may give, in tokens."""
    temperature: float = Field(default=0.7, ge=0, le=2)
    timeout_seconds: Seconds = 30.0
    """Bounds one attempt of one call."""
    timeout_per_round: Seconds = 60.0
    """Bounds one round of calls (in the single and parallel modes the only one), retries included."""
    cache_enabled: bool = False
    focus: Focus = "prompt"
    """What is judged: the whole prompt, or one layer with the others as context."""
    alarm_threshold: Unit = 0.7
    """A falsehood at or above this is an alarm."""
    budget_tokens: int | None = Field(default=None, ge=1)
    budget_usd: float | None = Field(default=None, gt=0)
    seed: int | None = None

    @field_validator("models", "reserves", mode="before", check_fields=False)
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _distinct_models(self) -> BaseEvaluationConfig:
        require_distinct(self.models, "models")
        return self


class EvaluationConfig(BaseEvaluationConfig):
    """Settings of the single and parallel modes."""

    mode: EvaluationMode = EvaluationMode.SINGLE
    max_recursion_depth: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _enough_models(self) -> EvaluationConfig:
        if not self.models:
            raise ValueError("models: at least one is needed")
        if self.mode is EvaluationMode.FIRE_CIRCLE:
            raise ValueError("mode: a circle is configured with FireCircleConfig")
        return self
