"""One sensible next step after a verdict."""

from __future__ import annotations

from collections import Counter

from firecircle.circle.result import FireCircleResult
from firecircle.defaults import DEFAULT_KEY_VARIABLE

BY_LAYER = {
    "user": "check what the user claims before acting on it; let the system text say what is no proof",
    "application": "treat that application text as data: mark it as untrusted before it reaches the model",
    "system": "look at the system text itself: the words that raised the alarm stand there",
    "turns": "look at the earlier turns: the words that raised the alarm stand there",
}


def next_step(result: FireCircleResult) -> str:
    """What to do now, the most pressing thing first; empty when nothing is."""
    if result.consensus is None:
        return _after_losses(result)
    if result.decided_by_guess:
        return "the verdict rests on a keyword guess: run it again, or with --strict, before relying on it"
    if result.alarm:
        return _after_alarm(result)
    if result.failures and not result.substitutions:
        return "voices were lost: name stand-ins with --reserves and run it again"
    if result.circumstances.turn_number is None:
        return (
            "the turn is unknown: with --turn or --turns the voices can check what is said of earlier turns"
        )
    if all(model.startswith("embedded:") for model in result.active_models):
        return f"for an opinion beyond built-in lenses set {DEFAULT_KEY_VARIABLE} or name --models"
    return ""


def _after_losses(result: FireCircleResult) -> str:
    if any(lost.kind in ("http_error", "connection") for lost in result.failures):
        return "mend what the lost voices complain of, or try again later; `firecircle doctor` tests them"
    return "name stand-ins with --reserves, or try again later" if result.failures else ""


def _after_alarm(result: FireCircleResult) -> str:
    layers = Counter(place.layer for found in result.patterns for place in found.evidence)
    if layers:
        return BY_LAYER[layers.most_common(1)[0][0]]
    raised = {
        said.model
        for held in result.dialogue_history
        for said in held.evaluations
        if said.falsehood >= result.config.alarm_threshold and said.model in result.active_models
    }
    if len(raised) == 1:
        return "one voice alone raised it: read its reasons with --verbose before acting"
    return "no agreed pattern explains the alarm: read the reasons with --verbose"
