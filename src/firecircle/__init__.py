"""Fire Circle: several voices judge a layered prompt independently, then discuss what they saw."""

TYPE_CHECKING = False
"""As in `typing`, which takes longer to import than this whole module."""

if TYPE_CHECKING:
    from firecircle.catalog import ModelCharacteristics
    from firecircle.circle.base_config import CacheConfig, EvaluationConfig
    from firecircle.circle.conclude import aggregate_consensus, reaggregate
    from firecircle.circle.config import CircleSize, FailureMode, FireCircleConfig, get_empty_chair_model
    from firecircle.circle.events import Event
    from firecircle.circle.measures import calculate_empty_chair_influence
    from firecircle.circle.pattern_types import classify_pattern_heuristic
    from firecircle.circle.patterns import extract_patterns, extract_patterns_with_quorum
    from firecircle.circle.quorum import (
        FailureAction,
        QuorumVerdict,
        handle_model_failure_with_quorum,
        judge_quorum,
        quorum_with_failures,
        validate_quorum,
        validate_quorum_with_empty_chair,
    )
    from firecircle.circle.result import (
        DialogueRound,
        FireCircleResult,
        PatternObservation,
        RoundMetrics,
    )
    from firecircle.circle.voice import Message, Reply, Turn, Usage, Voice
    from firecircle.contradictions import Contradiction, find_contradictions
    from firecircle.convene import replay_circle
    from firecircle.conversation.arc import Conversation
    from firecircle.conversation.judging import judge_conversation
    from firecircle.errors import (
        BudgetError,
        ConfigError,
        EvaluationError,
        FireCircleError,
        NotKeptWarning,
        PromptError,
        QuorumError,
        StoreError,
        UnknownModelError,
        VoiceError,
        partial_result_of,
    )
    from firecircle.evaluation import EvaluationResult, NeutrosophicEvaluation, PatternNote
    from firecircle.evaluator import FireCircleEvaluator, LLMEvaluator, classify_pattern_llm
    from firecircle.guard import Judged, PromptGuard
    from firecircle.judge import fire_circle_evaluate, fire_circle_events
    from firecircle.metrics import ReciprocityMetrics
    from firecircle.names import EvaluationMode, PatternType
    from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
    from firecircle.rotation.empty_chair import EmptyChairProtocol
    from firecircle.rotation.selector import WeightedVoiceSelector
    from firecircle.rotation.tracker import VoiceHistoryTracker
    from firecircle.session import SessionMemory, format_turn_context
    from firecircle.store.bank.entries import ReasoningBankClient, store_fire_circle_patterns
    from firecircle.store.finding import Filters
    from firecircle.store.opening import Store, open_store

    __version__: str

__all__ = [
    "BudgetError",
    "CacheConfig",
    "CircleSize",
    "ConfigError",
    "Contradiction",
    "Conversation",
    "DialogueRound",
    "EarlierTurn",
    "EmptyChairProtocol",
    "EvaluationConfig",
    "EvaluationError",
    "EvaluationMode",
    "EvaluationResult",
    "Event",
    "FailureAction",
    "FailureMode",
    "Filters",
    "FireCircleConfig",
    "FireCircleError",
    "FireCircleEvaluator",
    "FireCircleResult",
    "Judged",
    "LLMEvaluator",
    "Message",
    "ModelCharacteristics",
    "MultiNeutrosophicPrompt",
    "NeutrosophicEvaluation",
    "NotKeptWarning",
    "PatternNote",
    "PatternObservation",
    "PatternType",
    "PromptError",
    "PromptGuard",
    "QuorumError",
    "QuorumVerdict",
    "ReasoningBankClient",
    "ReciprocityMetrics",
    "Reply",
    "RoundMetrics",
    "SessionMemory",
    "Store",
    "StoreError",
    "Turn",
    "UnknownModelError",
    "Usage",
    "Voice",
    "VoiceError",
    "VoiceHistoryTracker",
    "WeightedVoiceSelector",
    "__version__",
    "aggregate_consensus",
    "calculate_empty_chair_influence",
    "classify_pattern_heuristic",
    "classify_pattern_llm",
    "extract_patterns",
    "extract_patterns_with_quorum",
    "find_contradictions",
    "fire_circle_evaluate",
    "fire_circle_events",
    "format_turn_context",
    "get_empty_chair_model",
    "handle_model_failure_with_quorum",
    "judge_conversation",
    "judge_quorum",
    "open_store",
    "partial_result_of",
    "quorum_with_failures",
    "reaggregate",
    "replay_circle",
    "store_fire_circle_patterns",
    "validate_quorum",
    "validate_quorum_with_empty_chair",
]

_ROOMS = {
    "catalog": "ModelCharacteristics",
    "circle.pattern_types": "classify_pattern_heuristic",
    "circle.conclude": "aggregate_consensus reaggregate",
    "circle.base_config": "CacheConfig EvaluationConfig",
    "circle.config": "CircleSize FailureMode FireCircleConfig get_empty_chair_model",
    "circle.events": "Event",
    "circle.measures": "calculate_empty_chair_influence",
    "circle.patterns": "extract_patterns extract_patterns_with_quorum",
    "circle.quorum": "QuorumVerdict judge_quorum quorum_with_failures validate_quorum "
    "validate_quorum_with_empty_chair FailureAction handle_model_failure_with_quorum",
    "circle.result": "DialogueRound FireCircleResult PatternObservation RoundMetrics",
    "circle.voice": "Message Reply Turn Usage Voice",
    "contradictions": "Contradiction find_contradictions",
    "conversation.arc": "Conversation",
    "conversation.judging": "judge_conversation",
    "convene": "replay_circle",
    "errors": "BudgetError ConfigError EvaluationError FireCircleError NotKeptWarning "
    "PromptError QuorumError StoreError UnknownModelError VoiceError partial_result_of",
    "evaluation": "EvaluationResult NeutrosophicEvaluation PatternNote",
    "evaluator": "FireCircleEvaluator LLMEvaluator classify_pattern_llm",
    "guard": "PromptGuard Judged",
    "judge": "fire_circle_evaluate fire_circle_events",
    "metrics": "ReciprocityMetrics",
    "names": "EvaluationMode PatternType",
    "prompt": "EarlierTurn MultiNeutrosophicPrompt",
    "rotation.empty_chair": "EmptyChairProtocol",
    "rotation.selector": "WeightedVoiceSelector",
    "rotation.tracker": "VoiceHistoryTracker",
    "session": "SessionMemory format_turn_context",
    "store.bank.entries": "ReasoningBankClient store_fire_circle_patterns",
    "store.finding": "Filters",
    "store.opening": "Store open_store",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use, so that a command line starts fast."""
    if name == "__version__":
        from importlib.metadata import version

        number = globals()[name] = version("firecircle")
        return number
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"firecircle.{_ROOM_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__name__"]
