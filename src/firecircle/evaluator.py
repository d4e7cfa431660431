"""The entry points that take plain strings: judge one layer in its context, and classify one pattern."""

from __future__ import annotations

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.classifying import classify_descriptions
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.panel import Panel
from firecircle.circle.pattern_types import classify_pattern_heuristic
from firecircle.circle.result import FireCircleResult, account
from firecircle.errors import ConfigError, EvaluationError
from firecircle.evaluation import EvaluationResult
from firecircle.judge import Job, fire_circle_evaluate, judge
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.caller import Caller
from firecircle.voices.seating import seat_voices, with_todays_models


class FireCircleEvaluator:
    """A circle that judges one layer of a prompt. `llm_caller`, if given, answers for every voice."""

    def __init__(self, config: FireCircleConfig, llm_caller: Caller | None = None) -> None:
        self.config = config
        self.llm_caller = llm_caller

    async def evaluate(
        self, layer_content: str, context: str, evaluation_prompt: str = ""
    ) -> FireCircleResult:
        """Run a circle on a layer; `evaluation_prompt` replaces the baseline question of round 1."""
        return await fire_circle_evaluate(
            _layer_in_context(layer_content, context),
            self.config.model_copy(update={"focus": "user"}),
            caller=self.llm_caller,
            baseline_question=evaluation_prompt or None,
        )


class LLMEvaluator:
    """Judge one layer in the mode of the configuration: single, parallel or fire_circle. `caller`, if given,
    answers for every voice instead of the configured providers.
    """

    def __init__(self, config: EvaluationConfig | FireCircleConfig, llm_caller: Caller | None = None) -> None:
        self.config = config
        self.llm_caller = llm_caller

    async def evaluate_layer(
        self, layer_content: str, context: str, evaluation_prompt: str = "", recursion_depth: int = 0
    ) -> EvaluationResult:
        """Judge a layer; `recursion_depth` counts how many judgements led to this one."""
        if isinstance(self.config, FireCircleConfig):
            circle = FireCircleEvaluator(self.config, self.llm_caller)
            return EvaluationResult.from_fire_circle(
                await circle.evaluate(layer_content, context, evaluation_prompt)
            )
        if recursion_depth > self.config.max_recursion_depth:
            raise EvaluationError(f"recursion_depth: {recursion_depth} is beyond max_recursion_depth")
        panel, _ = await judge(
            Job(
                prompt=_layer_in_context(layer_content, context),
                config=self.config.model_copy(update={"focus": "user"}),
                caller=self.llm_caller,
                baseline_question=evaluation_prompt or None,
            )
        )
        assert isinstance(panel, Panel)
        return EvaluationResult(
            evaluations=panel.evaluations, consensus=panel.consensus, metadata=_extras(panel)
        )


def _extras(panel: Panel) -> dict[str, object]:
    return {
        "mode": panel.config.mode.value,
        "agreement": panel.agreement if len(panel.evaluations) > 1 else None,
        "failures": panel.failures,
        "calls": panel.calls,
        "accounting": account(panel.calls),
        "guidance": panel.guidance,
        "panel": panel,
    }


def _layer_in_context(layer_content: str, context: str) -> MultiNeutrosophicPrompt:
    """The layer at the lowest rank and its context above: the operator vouches for neither."""
    return MultiNeutrosophicPrompt(application=context, user=layer_content)


async def classify_pattern_llm(
    pattern_str: str, model: str = "", *, caller: Caller | None = None, config: FireCircleConfig | None = None
) -> str:
    """The pattern type that a voice assigns to a described pattern; the keyword heuristic's if the voice
    names none.

    Asks `model`, by default the configuration's `classifier_model`; `caller` answers instead of a provider.
    """
    settings = config or FireCircleConfig.embedded()
    name = model or settings.classifier_model or ("classifier" if caller else "")
    if not name:
        raise ConfigError("model", "no voice to ask", "name a cheap model, or pass a caller")
    settings = await with_todays_models(settings.model_copy(update={"classifier_model": name}), caller)
    name = settings.classifier_model or name
    outcome = await classify_descriptions(
        name,
        seat_voices((name,), settings, caller)[name],
        [pattern_str],
        prompt=MultiNeutrosophicPrompt(user=pattern_str),
        config=settings,
        round_number=1,
    )
    return outcome.types.get(pattern_str) or classify_pattern_heuristic(pattern_str)
