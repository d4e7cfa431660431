"""The settings that all modes share, and those of independent voices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from firecircle.catalog import (
    Limits,
    limits_of,
    original_of,
    require_distinct,
)
from firecircle.circle.templates import TemplateSet
from firecircle.errors import ConfigError
from firecircle.names import DEFAULT_MODELS, Effort, EvaluationMode, Focus
from firecircle.shapes import Declaration, Unit, with_fields_in_help

PATTERN_THRESHOLD = 0.5
"""The share of the voices that must agree on a pattern, by default."""
VerdictSource = Literal["numbers", "logprobs", "auto"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _is_none(value: object) -> bool:
    """Older recordings do not have the field, and need not differ for it."""
    return value is None


class CacheConfig(Declaration):
    """Whether replies are saved on this machine, so that the same question to the same voice is paid for
    once. It needs a `seed`: without one no two questions are the same.
    """

    enabled: bool = True


class BaseEvaluationConfig(Declaration):
    """Settings that all three modes share."""

    models: tuple[str, ...] = DEFAULT_MODELS
    """The voices, by name: `family:…`, `vendor/model`, `provider:model`, `local:…` or `embedded:…`."""
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)
    """The provider's key, if it is not in the environment. No dump contains it."""
    provider: str = "openrouter"
    """The provider of a bare model name such as `vendor/model`."""
    lmstudio_base_url: str | None = None
    """The address of LM Studio, if not the usual one."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The longest answer of a voice, in tokens; None means the catalog's: 1,000, more for a model that
    reasons first. The same applies to the two times below: 30 s and 60 s, or minutes.
    """
    temperature: float | None = Field(default=0.7, ge=0, le=2)
    """None (in a file and on the command line `none`) leaves it to the endpoint."""
    reasoning_effort: Effort | dict[str, Effort] | None = None
    """The reasoning effort: `none`, `low`, `medium`, `high` or `default` for all, or one for each model. None
    leaves it to `[limits]` in the settings file, otherwise to the endpoint.
    """
    timeout_seconds: Seconds | None = None
    """The limit of one attempt of one call."""
    timeout_per_round: Seconds | None = None
    """The limit of one round of calls with retries; the single and parallel modes have one round."""
    verdict_from: VerdictSource = "auto"
    """The source of falsehood: the numbers a voice writes, or the probability of its verdict word if
    available. `auto` uses the numbers of hosted voices and the probability of local ones.
    """
    cache_enabled: bool = False
    """Whether replies are saved on this machine, so that the same question is paid for once."""
    cache_config: CacheConfig | None = None
    """Replaces `cache_enabled` if given."""
    focus: Focus = "prompt"
    """What to judge: the whole prompt, or one layer with the others as context."""
    alarm_threshold: Unit = 0.7
    """A falsehood at or above this is an alarm."""
    unsure_threshold: Unit | None = Field(default=None, exclude_if=_is_none)
    """From this falsehood a prompt without an alarm is `unsure`; None is half of `alarm_threshold`.
    `firecircle calibrate --error` proposes both from labelled circles.
    """
    budget_tokens: int | None = Field(default=None, ge=1)
    """Stop before using more tokens than this; None means no limit."""
    budget_usd: float | None = Field(default=None, gt=0)
    """Stop before spending more US dollars than this; None means no limit."""
    seed: int | None = None
    """Makes markers, labels and orders repeatable; hosted models may still answer differently."""
    templates: TemplateSet = "v2"
    """The version of the prompts: `v2`, or `v1` for the wording of earlier releases."""
    families: dict[str, str] = Field(default_factory=dict)
    """Set when voices are created: the family of each model. If the provider does not have a model, the next
    of its family replaces it.
    """

    @property
    def named_models(self) -> tuple[str, ...]:
        """Every model named in the settings."""
        return self.models

    def seated_as(self, ids: Mapping[str, str]) -> Self:
        """The same settings with a model in place of each of these families."""
        named = [model for model in self.named_models if original_of(model) in ids]
        if not named:
            return self

        def seated(model: str) -> str:
            original = original_of(model)
            return ids[original] + model.removeprefix(original) if original in ids else model

        for family in named:
            if seated(family) in self.named_models:
                raise ConfigError(
                    "models",
                    f"{family} is {seated(family)} today, which is named too",
                    "leave one of them out",
                )
        families = {ids[original_of(family)]: original_of(family) for family in named}
        return self.model_copy(update={**self._with_names(seated), "families": {**self.families, **families}})

    def _with_names(self, seated: Callable[[str], str]) -> dict[str, Any]:
        """The fields that name models, with replacements."""
        return {"models": tuple(map(seated, self.models))}

    @property
    def first_asked(self) -> tuple[str, ...]:
        """The voices that get the first question."""
        return self.models

    def limits(self, model: str) -> Limits:
        """Room and time of a model: as configured, otherwise from the catalog."""
        effort = self.reasoning_effort
        if isinstance(effort, dict):
            effort = effort.get(model, effort.get(original_of(model)))
        stated = {
            "reasoning_effort": effort,
            "max_tokens": self.max_tokens,
            "timeout_seconds": self.timeout_seconds,
            "timeout_per_round": self.timeout_per_round,
        }
        limits = limits_of(model).model_copy(
            update={name: value for name, value in stated.items() if value is not None}
        )
        if self.timeout_per_round is None and limits.timeout_per_round < limits.timeout_seconds:
            return limits.model_copy(update={"timeout_per_round": limits.timeout_seconds})
        return limits

    @property
    def uses_cache(self) -> bool:
        """Whether replies are saved and reused."""
        return self.cache_enabled if self.cache_config is None else self.cache_config.enabled

    @field_validator("temperature", mode="before")
    @classmethod
    def _none_by_name(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.strip().lower() == "none" else value

    @field_validator("models", "reserves", mode="before", check_fields=False)
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _distinct_models(self) -> BaseEvaluationConfig:
        require_distinct(self.models, "models")
        return self


@with_fields_in_help
class EvaluationConfig(BaseEvaluationConfig):
    """Settings of the single and parallel modes."""

    mode: EvaluationMode = EvaluationMode.SINGLE
    """One voice once (the first model), or all of them independently."""
    max_recursion_depth: int = Field(default=1, ge=0)
    """From the documents of the protocol; judgements are never judged here."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            models: Sequence[str] = ...,
            mode: EvaluationMode | str = ...,
            **settings: Any,
        ) -> None: ...

    @property
    def first_asked(self) -> tuple[str, ...]:
        """The first model in the single mode, otherwise all of them."""
        return self.models[:1] if self.mode is EvaluationMode.SINGLE else self.models

    @model_validator(mode="after")
    def _enough_models(self) -> EvaluationConfig:
        if not self.models:
            raise ConfigError("models", "at least one is needed")
        if self.mode is EvaluationMode.FIRE_CIRCLE:
            raise ConfigError("mode", "a circle is configured with FireCircleConfig")
        return self
