"""Nothing becomes public by accident, and nothing that is public goes missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import firecircle

ROOT = Path(__file__).parents[1]

FROM_THE_DOCUMENTS = """
    FireCircleConfig CircleSize FailureMode FireCircleResult DialogueRound RoundMetrics PatternObservation
    PatternType NeutrosophicEvaluation MultiNeutrosophicPrompt SessionMemory EvaluationMode EvaluationConfig
    EvaluationResult EvaluationError ReciprocityMetrics PromptGuard LLMEvaluator FireCircleEvaluator
    ModelCharacteristics validate_quorum quorum_with_failures fire_circle_evaluate format_turn_context
    get_empty_chair_model validate_quorum_with_empty_chair aggregate_consensus calculate_empty_chair_influence
    extract_patterns classify_pattern_heuristic ReasoningBankClient store_fire_circle_patterns
    VoiceHistoryTracker WeightedVoiceSelector EmptyChairProtocol CacheConfig FailureAction
    handle_model_failure_with_quorum extract_patterns_with_quorum classify_pattern_llm
""".split()
OUR_OWN = """
    BudgetError ConfigError Contradiction EarlierTurn Event FireCircleError Message PatternNote PromptError
    QuorumError QuorumVerdict Reply Turn UnknownModelError Usage Voice VoiceError fire_circle_events
    judge_quorum reaggregate replay_circle Filters NotKeptWarning Store StoreError open_store partial_result_of Judged
    Conversation judge_conversation find_contradictions __version__
""".split()

PUBLIC_MODULES = {
    *(
        "firecircle",
        "firecircle.plugins",
        "firecircle.rotation",
        "firecircle.telemetry",
        "firecircle.testing",
    ),
    "firecircle.integrations.inspect_tasks",
}
"""As `docs/architecture.md` lists them. Every other module may move in any release."""
IMPORT = re.compile(r"^(?:from|import) (firecircle[\w.]*)", re.MULTILINE)


def test_pages_and_examples_import_public_modules_only() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    imported = {name for page in pages for name in IMPORT.findall(page.read_text("utf-8"))}
    assert "firecircle.plugins" in imported
    assert imported - PUBLIC_MODULES == set()


def test_the_page_lists_the_public_modules() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    listed = page.partition("Public modules are ")[2].partition(". ")[0]
    assert {*re.findall(r"`([\w.]+)`", listed)} == PUBLIC_MODULES


def test_the_files_that_the_page_names_exist() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    named = [path for path in re.findall(r"`([\w/]+(?:\.\w+|/))`", page) if "/" in path]
    assert len(named) > 20
    assert [path for path in named if not (ROOT / "src/firecircle" / path).exists()] == []


def test_the_public_names_are_these() -> None:
    assert firecircle.__all__ == sorted(FROM_THE_DOCUMENTS + OUR_OWN)
    for name in firecircle.__all__:
        assert getattr(firecircle, name).__doc__ or name == "Event", f"{name} has no docstring"


def test_the_version_is_the_one_that_the_project_states_everywhere() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert firecircle.__version__ == stated
    assert f'\nversion: "{stated}"\n' in (ROOT / "CITATION.cff").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", stated]
