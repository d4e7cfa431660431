"""A circle in a few sentences: which voice decided and when, and what the discussion changed."""

from __future__ import annotations

from collections.abc import Callable

from firecircle.circle.result import FireCircleResult
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.thresholds import format_figure, reaches
from firecircle.verdict import SHOWN

NOTICEABLE = 0.005
"""A change of falsehood that two digits show."""

Name = Callable[[str], str]
"""Formats a voice's name; a screen may have to escape it first."""


def dialogue_summary(result: FireCircleResult) -> str:
    """What the circle concluded and why, what the discussion changed and which voices were lost."""
    parts = (_verdict(result), _patterns(result), _talk(result), _losses(result))
    return " ".join(part for part in parts if part)


def decision_sentence(result: FireCircleResult, consensus: NeutrosophicEvaluation, name: Name = str) -> str:
    """The deciding voice, and what it had read by then."""
    number = consensus.round_number
    chair = next(
        (held.occupied_chair for held in result.dialogue_history if held.round_number == number), None
    )
    if number == 1:
        when = "alone, before anybody talked" if len(result.dialogue_history) > 1 else "alone"
    elif chair == consensus.model:
        when = "from the empty chair"
    else:
        when = "after reading the others"
    who = f"{name(consensus.model)} in round {number}, {when}"
    if result.alarm_decided_by == "calibrated":
        return f"The highest F was said by {who}."
    return f"Said by {who}; no active voice went higher."


def calibrated_sentence(result: FireCircleResult) -> str:
    """The calibrated probability, its basis and whether it decided; empty without one."""
    known, threshold = result.config.calibration, result.config.alarm_threshold
    if known is None or result.calibrated is None:
        return ""
    probability = format_figure(result.calibrated, threshold)
    fit = known.fit
    fitted = f"fitted on {fit.attacks:,} attacks and {fit.benign:,} benign prompts ({fit.origin})"
    told = f"Calibrated: {probability} probability of manipulation, {fitted}"
    missing = [voice for voice in known.voices if voice not in result.active_models]
    without = f"; without {', '.join(missing)}, for whom the others stand" if missing else ""
    if result.alarm_decided_by == "calibrated":
        return f"{told}{without}. It decides: alarm at {threshold:g}."
    if result.config.alarm_rule == "calibrated":
        return f"{told}{without}. Too much of its weight was lost with them: the highest F decides."
    return f"{told}{without}. The highest F decides."


def talk_sentence(result: FireCircleResult) -> str:
    """The verdict of round 1 compared with that of all rounds; empty without discussion or consensus."""
    rounds, first = len(result.dialogue_history), result.rival_verdicts.get("round1_max")
    if result.consensus is None or first is None or rounds < 2:
        return ""
    threshold, falsehood = result.config.alarm_threshold, result.consensus.falsehood
    alone, whole = (format_figure(value, threshold) for value in (first.value, falsehood))
    raised = reaches(falsehood, threshold)
    is_told_beside = result.alarm_decided_by == "calibrated"
    if raised and not first.alarm:
        change = (
            "the discussion lifted it over the threshold"
            if is_told_beside
            else "the discussion raised the alarm"
        )
    elif falsehood - first.value < NOTICEABLE:
        change = "the discussion did not change it"
    else:
        change = f"talking added {falsehood - first.value:.2f}"
    if is_told_beside:
        beside = f"round 1 alone {alone}, all {rounds} rounds {whole}"
        return f"the highest F, which does not decide: {beside}; {change}"
    words = [SHOWN["alarm" if alarm else "no_alarm"].lower() for alarm in (first.alarm, raised)]
    return f"round 1 alone: F {alone}, {words[0]}; all {rounds} rounds: F {whole}, {words[1]}; {change}"


def _verdict(result: FireCircleResult) -> str:
    consensus = result.consensus
    if consensus is None:
        return f"No verdict: {result.abort_reason or result.stopped}."
    falsehood = format_figure(consensus.falsehood, result.config.alarm_threshold)
    guess = " It is a keyword guess." if result.decided_by_guess else ""
    swap = " Its polarity was corrected." if consensus.polarity == "corrected" else ""
    is_told_beside = result.alarm_decided_by == "calibrated"
    highest = "highest " if is_told_beside else ""
    opening = f"{SHOWN[result.verdict].capitalize()}, {highest}F {falsehood}."
    decided = f" {calibrated_sentence(result)}" if result.config.alarm_rule == "calibrated" else ""
    return f"{opening} {decision_sentence(result, consensus)}{guess}{swap}{decided}"


def _patterns(result: FireCircleResult) -> str:
    named = ", ".join(
        f"{pattern.pattern_type} ({pattern.model_agreement:.0%})" for pattern in result.patterns
    )
    agreed = f"Patterns: {named}." if named else "No pattern was agreed on and shown in the prompt."
    short = ", ".join(dict.fromkeys(pattern.pattern_type for pattern in result.single_voice_patterns))
    return f"{agreed} Not agreed on: {short}." if short else agreed


def _talk(result: FireCircleResult) -> str:
    sentence = talk_sentence(result)
    lost = len(result.groupthink_losses)
    losses = f"; {lost} groupthink loss{'es' if lost > 1 else ''}" if lost else ""
    return f"{sentence[0].upper()}{sentence[1:]}{losses}." if sentence else ""


def _losses(result: FireCircleResult) -> str:
    if not result.failures:
        return ""
    return f"Lost voices: {', '.join(f'{lost.label} ({lost.kind})' for lost in result.failures)}."
