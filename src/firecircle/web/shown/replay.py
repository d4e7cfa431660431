"""The dialogue round by round: what each rule would have said had the circle stopped there."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.measures import rival_verdicts
from firecircle.circle.result import FireCircleResult, RivalVerdict

MEANINGS = {
    "max_all": "highest F of any active voice in any round: the circle's own rule",
    "round1_max": "highest F of round 1: what asking without talking gives",
    "final_max": "highest F among last words",
    "final_mean": "mean F of last words",
    "final_median": "median F of last words",
    "majority": "share of voices whose last F reaches the threshold; alarm above one half",
    "max_stated": "as the circle's rule, without guesses",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and its verdict after each round."""

    name: str
    meaning: str
    verdicts: tuple[RivalVerdict | None, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """The rules over the rounds, and what happened in each round in a line."""

    rounds: tuple[int, ...]
    rules: tuple[Rule, ...]
    told: tuple[str, ...]


def replay(result: FireCircleResult) -> Replay:
    """The verdicts after every round, with the voices that were active then."""
    seated = (*result.config.models, *(new.model for new in result.substitutions))
    after = []
    for held in result.dialogue_history:
        lost = {f.model for f in result.failures if f.round_number <= held.round_number}
        active = [model for model in seated if model not in lost]
        history = result.dialogue_history[: held.round_number]
        after.append(rival_verdicts(history, active, result.config.alarm_threshold))
    return Replay(
        rounds=tuple(held.round_number for held in result.dialogue_history),
        rules=tuple(
            Rule(name, meaning, tuple(verdicts.get(name) for verdicts in after))
            for name, meaning in MEANINGS.items()
        ),
        told=tuple(_told(result, number) for number in range(len(result.dialogue_history))),
    )


def _told(result: FireCircleResult, place: int) -> str:
    held = result.dialogue_history[place]
    number = held.round_number
    parts = [held.kind, f"{len(held.evaluations)} of {len(held.active_models)} voices heard"]
    if held.empty_chair_model:
        parts.append(f"{held.empty_chair_model} speaks for the absent")
    if lost := [failure.model for failure in result.failures if failure.round_number == number]:
        parts.append(f"lost: {', '.join(lost)}")
    moved = [flip for flip in result.flips if flip.round_number == number and flip.movement != "unchanged"]
    if moved:
        toward = sum(flip.movement == "toward_peers" for flip in moved)
        parts.append(f"{len(moved)} moved, {toward} toward their peers")
    return "; ".join(parts)
