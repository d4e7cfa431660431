"""A circle in a few sentences, for a person who reads nothing else."""

from __future__ import annotations

from firecircle.circle.result import FireCircleResult


def dialogue_summary(result: FireCircleResult) -> str:
    """What the circle found, on what it rests, what talking changed and what was lost."""
    return " ".join(
        part for part in (_verdict(result), _patterns(result), _talk(result), _losses(result)) if part
    )


def _verdict(result: FireCircleResult) -> str:
    said = result.consensus
    if said is None:
        return f"No consensus: {result.abort_reason or result.stopped}."
    word = "Alarm" if result.alarm else "No alarm"
    guess = " by a keyword guess" if result.decided_by_guess else ""
    swap = " (polarity corrected)" if said.polarity == "corrected" else ""
    return (
        f"{word}: highest falsehood {said.falsehood:.2f}, reached by {said.model}"
        f" in round {said.round_number}{guess}{swap}."
    )


def _patterns(result: FireCircleResult) -> str:
    if not result.patterns:
        return "No pattern was agreed on and shown in the prompt."
    named = ", ".join(f"{found.pattern_type} ({found.model_agreement:.0%})" for found in result.patterns)
    return f"Patterns: {named}."


def _talk(result: FireCircleResult) -> str:
    rounds = len(result.dialogue_history)
    first = result.rival_verdicts.get("round1_max")
    if result.consensus is None or first is None or rounds < 2:
        return ""
    gain = result.consensus.falsehood - first.value
    if not first.alarm and result.alarm:
        changed = "talking raised the alarm"
    elif abs(gain) < 0.005:
        changed = "talking did not change the verdict"
    else:
        changed = f"talking raised the highest falsehood by {gain:.2f}"
    lost = len(result.groupthink_losses)
    losses = f"; {lost} groupthink loss{'es' if lost > 1 else ''}" if lost else ""
    return f"Round 1 alone: {first.value:.2f}; over {rounds} rounds {changed}{losses}."


def _losses(result: FireCircleResult) -> str:
    if not result.failures:
        return ""
    return f"Lost voices: {', '.join(f'{lost.label} ({lost.kind})' for lost in result.failures)}."
