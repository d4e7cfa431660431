"""The engine refines the specification: what it does in random circles is a behaviour of FireCircle.tla."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from firecircle.catalog import ModelCharacteristics
from firecircle.circle import conclude, dialogue, quorum
from firecircle.circle.config import FireCircleConfig
from formal import tlc
from formal.recording import Recording, follow
from tests.formal.schedules import held

pytestmark = pytest.mark.skipif(tlc.what_is_missing() is not None, reason=tlc.what_is_missing() or "")

CIRCLES = 240
FEW = 5


def test_every_step_of_the_engine_follows_from_the_specification(
    monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    """Real circles are followed to their end; those of an engine with one wrong rule are not."""
    honest = [held(seed) for seed in range(CIRCLES * (20 if is_long else 1))]
    kinds = Counter(step["kind"] for recording in honest for step in recording.steps)
    outcomes = Counter(recording.steps[-1]["outcome"] for recording in honest)
    # a schedule that never meets a rule says nothing about it
    assert set(outcomes) == {"converged", "all_rounds_held", "no_quorum", "failed", "cut_short"}
    assert kinds["seat"] > 20
    assert any(held_rounds(recording) > recording.circle["maxRounds"] for recording in honest)

    wrong = {name: _differing(rule, honest, monkeypatch) for name, rule in WRONG_RULES.items()}
    wrong["a forged verdict"] = [_forged(recording) for recording in honest[:FEW]]
    assert all(wrong.values()), {name: len(circles) for name, circles in wrong.items()}

    outcome, left = follow([*honest, *(circle for circles in wrong.values() for circle in circles)])

    assert outcome.completed, outcome.complaint
    followed = zip(honest, left, strict=False)
    assert not [(seed, circle.steps[-n]) for seed, (circle, n) in enumerate(followed) if n]
    rest = iter(left[len(honest) :])
    accepted = {name: sum(next(rest) == 0 for _ in circles) for name, circles in wrong.items()}
    assert not any(accepted.values()), accepted


def held_rounds(recording: Recording) -> int:
    """How many rounds a circle held."""
    return sum(step["kind"] == "hear" for step in recording.steps)


def _differing(
    rule: tuple[Any, str, Any], honest: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> list[Recording]:
    """The first circles that go another way once a rule of the engine is wrong."""
    with monkeypatch.context() as patched:
        patched.setattr(*rule)
        others = ((held(seed), right) for seed, right in enumerate(honest))
        return list(islice((wrong for wrong, right in others if wrong.steps != right.steps), FEW))


def _forged(recording: Recording) -> Recording:
    """The same circle with a verdict a little off."""
    steps = copy.deepcopy(recording.steps)
    steps[-1]["consensus"]["falsehood"] -= 1
    return Recording(recording.circle, steps)


def _chair_among_survivors(number: int, config: FireCircleConfig, active: tuple[str, ...]) -> str | None:
    return active[(number - 1) % len(active)] if number > 1 and config.empty_chair and active else None


def _any_lineage(voices: Any, rules: Any = None, **others: Any) -> Any:
    easy = quorum.QuorumRules(rules.min_cognitive_coverage, 1)
    return quorum.judge_quorum(voices, easy, **others)


def _last_round_decides(evaluations: Any, active: tuple[str, ...]) -> Any:
    last = max((said.round_number or 0) for said in evaluations)
    return HIGHEST([said for said in evaluations if said.round_number == last], active)


def _everybody_votes(evaluations: Any, active: tuple[str, ...]) -> Any:
    spoken = list(evaluations)
    return HIGHEST(spoken, tuple(dict.fromkeys((*active, *(said.model for said in spoken)))))


def _clones_add_up(voices: tuple[ModelCharacteristics, ...], **others: Any) -> dict[str, float]:
    best = BEST(voices, **others)
    return {
        role: sum(voice.cognitive_roles.get(role, 0.0) for voice in voices) or best[role] for role in best
    }


HIGHEST = conclude.highest_falsehood
BEST = quorum.best_contributions
WRONG_RULES: dict[str, tuple[Any, str, Any]] = {
    "the chair rotates among survivors": (dialogue, "chair_of_round", _chair_among_survivors),
    "any lineage will do": (dialogue, "judge_quorum", _any_lineage),
    "clones add up": (quorum, "best_contributions", _clones_add_up),
    "the last round decides": (conclude, "highest_falsehood", _last_round_decides),
    "zombies vote": (conclude, "highest_falsehood", _everybody_votes),
    "agreement ends round 1": (dialogue, "spread", lambda evaluations: 0.0),
}
