"""The settings that all modes share, and those of voices that judge apart."""

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
"""The share of the voices that must agree on a pattern, unless a circle is told another."""
VerdictSource = Literal["numbers", "logprobs", "auto"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class CacheConfig(Declaration):
    """Whether replies are saved on this machine, so that the same question to the same voice is paid for
    once. It needs a `seed`: without one no two questions are the same.
    """

    enabled: bool = True


class BaseEvaluationConfig(Declaration):
    """Settings that all three modes share."""

    models: tuple[str, ...] = DEFAULT_MODELS
    """Who judges, by name: `family:…`, `vendor/model`, `provider:model`, `local:…` or `embedded:…`."""
    api_key: SecretStr | None = Field(default=None, exclude=True, repr=False)
    """The provider's key, if it is not in the environment. No dump contains it."""
    provider: str = "openrouter"
    """Who answers for a bare model name such as `vendor/model`."""
    lmstudio_base_url: str | None = None
    """Where LM Studio answers, if not where it usually does."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The longest answer a voice may give, in tokens; None leaves it to the catalog: 1,000, more for a model
    that thinks first. The same goes for the two times below: 30 s and 60 s, or minutes."""
    temperature: float | None = Field(default=0.7, ge=0, le=2)
    """None (in a file and on the command line `none`) sends none and leaves it to the endpoint."""
    reasoning_effort: Effort | dict[str, Effort] | None = None
    """How hard voices are asked to think: `none`, `low`, `medium`, `high` or `default` for all, or a word for
    each model. None leaves it to `[limits]` in the settings file, else to the endpoint."""
    timeout_seconds: Seconds | None = None
    """Bounds one attempt of one call."""
    timeout_per_round: Seconds | None = None
    """Bounds one round of calls (in the single and parallel modes the only one), retries included."""
    verdict_from: VerdictSource = "auto"
    """Where falsehood comes from: the numbers a voice writes, or the probability of its verdict word where
    that can be had. `auto` is the numbers of hosted voices and the probability of local ones."""
    cache_enabled: bool = False
    """Whether replies are kept on this machine, so that the same question is paid for once."""
    cache_config: CacheConfig | None = None
    """If given, it decides instead of `cache_enabled`."""
    focus: Focus = "prompt"
    """What is judged: the whole prompt, or one layer with the others as context."""
    alarm_threshold: Unit = 0.7
    """A falsehood at or above this is an alarm."""
    budget_tokens: int | None = Field(default=None, ge=1)
    """Stop before more tokens than this are used; None is no limit."""
    budget_usd: float | None = Field(default=None, gt=0)
    """Stop before more US dollars than this are spent; None is no limit."""
    seed: int | None = None
    """Makes markers, labels and orders repeatable; hosted models may still answer differently."""
    templates: TemplateSet = "v2"
    """The prompts that voices are asked with: `v2`, or `v1` for the wording of releases before it."""
    families: dict[str, str] = Field(default_factory=dict)
    """Filled in when the circle is seated: for which family each model sits. One that the provider does not
    know gives its seat to the next of its family."""

    @property
    def named_models(self) -> tuple[str, ...]:
        """Every model that is named in it."""
        return self.models

    def seated_as(self, ids: Mapping[str, str]) -> Self:
        """The same with a model in place of each of these families."""
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
        """The fields that name models, with others in their place."""
        return {"models": tuple(map(seated, self.models))}

    @property
    def first_asked(self) -> tuple[str, ...]:
        """Whom the first question goes to."""
        return self.models

    def limits(self, model: str) -> Limits:
        """How much room and time a model is given: as configured, else as the catalog says."""
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
        """Whether replies are kept and answered from the cache."""
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
    """One voice once (the first model), or all of them apart."""
    max_recursion_depth: int = Field(default=1, ge=0)
    """Taken from the documents of the protocol; nothing here judges its own judgements."""

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
        """The first model alone in the single mode, else all of them."""
        return self.models[:1] if self.mode is EvaluationMode.SINGLE else self.models

    @model_validator(mode="after")
    def _enough_models(self) -> EvaluationConfig:
        if not self.models:
            raise ConfigError("models", "at least one is needed")
        if self.mode is EvaluationMode.FIRE_CIRCLE:
            raise ConfigError("mode", "a circle is configured with FireCircleConfig")
        return self
