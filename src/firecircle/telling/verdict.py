"""The verdict in words: whose word it is and why, what to be careful about, and what to do now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from firecircle.circle.config import quorum_cure
from firecircle.circle.naming import advisories_about
from firecircle.circle.pattern_types import known_type
from firecircle.circle.quorum import judge_quorum
from firecircle.circle.result import (
    Failure,
    FireCircleResult,
    PatternObservation,
    Reason,
    Substitution,
)
from firecircle.circle.summary import calibrated_sentence, decision_sentence
from firecircle.languages import reader_of
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import DEFAULT_MODELS, LayerName, is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.telling.answers import cares_about
from firecircle.telling.patterns import gathered_quotes, with_names
from firecircle.telling.quorum import quorum_line
from firecircle.telling.safe_text import SafeLine
from firecircle.telling.words import FAILURE_WORDS, STOP_WORDS, counted
from firecircle.thresholds import format_figure, reaches

HOSTED_READER = DEFAULT_MODELS[0]
"""A hosted voice that reads most scripts."""
LONGEST_REASON = 320
LONGEST_MESSAGE = 300
LONGEST_QUOTE = 160
Heading = Literal["Verdict", "Quorum", "Lost"]
Cautions = Mapping[Heading, Sequence[str]]
"""What to know before relying on a verdict, by what it is about; a heading without anything is left out.

Every screen shows all of it, under the same headings.
"""

AFTER_ALARM: dict[LayerName, str] = {
    "user": "check what the user claims before acting on it; let the system prompt say what is not proof",
    "application": "treat that application text as data: mark it as untrusted before it reaches the model",
    "system": "look at the system text itself: the words that raised the alarm are there",
    "turns": "look at the earlier turns: the words that raised the alarm are there",
}


def circle_sentences(result: FireCircleResult, metrics: ReciprocityMetrics, line: SafeLine) -> list[str]:
    """The verdict of a circle that reached one."""
    ended = f"Ended after {counted(len(result.dialogue_history), 'round')}: {STOP_WORDS[result.stopped]}."
    calibrated = line(calibrated_sentence(result), LONGEST_REASON * 2)
    decision = f"{decision_sentence(result, metrics.consensus, line)} {ended}"
    told = [calibrated, decision] if result.alarm_decided_by == "calibrated" else [decision, calibrated]
    return [*filter(None, told), _balance_sentence(metrics)]


def panel_sentences(metrics: ReciprocityMetrics, line: SafeLine) -> list[str]:
    """The verdict of voices that were asked once."""
    if metrics.agreement is None:
        decision = f"Said by {line(metrics.evaluations[0].model)}, asked once and alone."
    else:
        voices = counted(len(metrics.evaluations), "voice")
        decision = f"The mean of {voices} asked independently; agreement {metrics.agreement:.2f}."
    return [decision, _balance_sentence(metrics)]


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict at a glance: how many of the voices raised it."""

    reached: int
    """Active voices that reached the alarm threshold in some round."""
    active: int


def headline_of(result: FireCircleResult) -> Headline:
    """What stands beside the verdict of a circle."""
    return Headline(len(_alarmed(result)), len(result.active_models))


def _alarmed(result: FireCircleResult) -> set[str]:
    """The active voices that reached the alarm threshold in some round."""
    return {
        answer.model
        for held in result.dialogue_history
        for answer in held.evaluations
        if reaches(answer.falsehood, result.config.alarm_threshold) and answer.model in result.active_models
    }


def unfinished_sentence(result: FireCircleResult, line: SafeLine) -> str:
    """What a circle without a consensus leaves behind."""
    heard = [answer for held in result.dialogue_history for answer in held.evaluations]
    if not heard:
        return "Nothing was heard."
    voices = counted(len({answer.model for answer in heard}), "voice")
    highest = max(heard, key=lambda answer: answer.falsehood)
    figure = format_figure(highest.falsehood, result.config.alarm_threshold)
    return (
        f"Heard until then: {counted(len(heard), 'answer')} of {voices}. The highest falsehood was"
        f" {figure}, by {line(highest.model)} in round {highest.round_number}."
    )


def deciding_reason(metrics: ReciprocityMetrics, line: SafeLine) -> str:
    """Why the deciding voice said so: its strongest observation, then its own words."""
    if metrics.fire_circle is not None:
        labels, reasoning = metrics.fire_circle.peer_labels, metrics.consensus.reasoning
    else:
        labels, reasoning = {}, metrics.evaluations[0].reasoning if metrics.agreement is None else ""
    told = reason_words(metrics.reason, line) if metrics.reason else ""
    own = line(with_names(reasoning, labels), LONGEST_REASON)
    return f"{told} It says: {own}" if told and own else told or own


def reason_words(reason: Reason, line: SafeLine) -> str:
    """The observation that decided, with the words of the prompt that show it, or what it lacks."""
    if reason.missing:
        return f"{line(reason.model)} shows no words of the prompt: {reason.missing}."
    kind = line(reason.pattern_type).replace("_", " ") if reason.pattern_type else "these words"
    quotes = ", ".join(
        f"“{line(quote.place.text, LONGEST_QUOTE)}”" for quote in gathered_quotes(reason.quotes)[:2]
    )
    return f"{line(reason.model)} sees {kind} in the {reason.quotes[0].layer} text: {quotes}."


def _balance_sentence(metrics: ReciprocityMetrics) -> str:
    return f"Balance {metrics.balance:+.2f}: the exchange is {metrics.exchange_type}."


def cautions_of_circle(result: FireCircleResult, line: SafeLine) -> Cautions:
    """About the deciding answer, the quorum, and the voices that were lost."""
    return _headed(
        verdict=[
            *(cares_about(result.consensus) if result.consensus else ()),
            *([result.unread] if result.unread else []),
            *(line(advice, LONGEST_MESSAGE) for advice in _advisories(result)),
        ],
        quorum=_quorum(result, line),
        lost=[*_losses(result.failures, result.substitutions, line), *_stand_ins(result.stand_ins, line)],
    )


def cautions_of_panel(metrics: ReciprocityMetrics, line: SafeLine) -> Cautions:
    """About the answer of a voice that was asked alone, and the voices that were lost."""
    return _headed(
        verdict=[
            *(cares_about(metrics.evaluations[0]) if metrics.agreement is None else ()),
            *([metrics.unread] if metrics.unread else []),
            *(line(advice, LONGEST_MESSAGE) for advice in metrics.advisories),
        ],
        lost=[*_losses(metrics.failures, (), line), *_stand_ins(metrics.stand_ins, line)],
    )


def _advisories(result: FireCircleResult) -> list[str]:
    """What the result notes; of one from before it noted that, also what the prompt itself tells."""
    heard = {said.model: said.reasoning for said in result.final_evaluations}
    return list(dict.fromkeys((*result.advisories, *advisories_about(result.prompt, heard))))


def lost_voices(failures: Sequence[Failure], line: SafeLine, seats: Sequence[Substitution] = ()) -> Cautions:
    """Who was lost, in the provider's own words, where that is all there is to tell."""
    return _headed(lost=_losses(failures, seats, line))


def _headed(*, verdict: Sequence[str] = (), quorum: Sequence[str] = (), lost: Sequence[str] = ()) -> Cautions:
    headed: dict[Heading, Sequence[str]] = {"Verdict": verdict, "Quorum": quorum, "Lost": lost}
    return {heading: sentences for heading, sentences in headed.items() if sentences}


def _quorum(result: FireCircleResult, line: SafeLine) -> list[str]:
    verdict = result.quorum
    lines = []
    if result.consensus is not None or result.failures:  # else it broke off before anybody was missed
        lines += [] if verdict.valid and verdict.enforced else [quorum_line(result)]
    lines += [
        f"note: {line(alias)} was {line(' and '.join(sorted(models)))}"
        for alias, models in result.behind_aliases.items()
    ]
    return lines + [f"note: {line(advice)}" for advice in verdict.advisories]


def _stand_ins(stand_ins: Mapping[str, str], line: SafeLine) -> list[str]:
    return [
        f"{line(model)} is gone: its provider does not know it, so {line(other)} was asked in its place"
        for model, other in stand_ins.items()
    ]


def _losses(failures: Sequence[Failure], seats: Sequence[Substitution], line: SafeLine) -> list[str]:
    """Voices lost in the same way are told together; then who sat in for whom."""
    voices: dict[str, list[str]] = {}
    for lost in failures:
        how = f"{FAILURE_WORDS[lost.kind]} after {counted(lost.attempts, 'attempt')}"
        fate = f"in round {lost.round_number}: {how}: {line(lost.message, LONGEST_MESSAGE)}"
        voices.setdefault(fate, []).append(line(lost.model))
    lines = [f"{', '.join(names)} {fate}" for fate, names in voices.items()]
    for seat in seats:
        names = ", ".join(map(line, seat.replaces))
        lines.append(f"{line(seat.model)} sat in for {names} from round {seat.round_number}")
    return lines


@dataclass(frozen=True, slots=True)
class Ways:
    """How the reader of a screen or page does what is advised there."""

    read_reasons: str
    ask_again: str
    name_reserves: str
    tell_turn: str
    name_voices: str
    judge_offline: str


def next_step(result: FireCircleResult, ways: Ways) -> str:
    """What to do now, the most pressing thing first; empty when nothing is."""
    if result.consensus is None:
        return _after_losses(result, ways)
    if result.verdict == "unread":
        return unread_step(result.prompt, result.active_models, ways)
    if result.decided_by_guess:
        return f"the verdict rests on a keyword guess: {ways.ask_again} before relying on it"
    if result.alarm:
        return _after_alarm(result, ways)
    if result.failures and not result.substitutions:
        return f"voices were lost: name reserves {ways.name_reserves} and run it again"
    if result.circumstances.turn_number is None:
        return f"what came before is unknown: {ways.tell_turn} the voices can check claims about it"
    if all(map(is_embedded, result.active_models)):
        return f"for an opinion beyond built-in lenses set a provider's key or {ways.name_voices}"
    return ""


def unread_step(prompt: MultiNeutrosophicPrompt, asked: Collection[str], ways: Ways) -> str:
    """Which voice to ask about a prompt that no voice could read."""
    hosted = f"a hosted model such as {HOSTED_READER}: set its provider's key or {ways.name_voices}"
    reader = reader_of(prompt)
    if reader is None or reader in asked:
        return f"ask {hosted}"
    return f"ask {reader}, which reads it roughly, or {hosted}"


def _after_losses(result: FireCircleResult, ways: Ways) -> str:
    if any(lost.kind in ("http_error", "connection") for lost in result.failures):
        step = (
            f"fix what the lost voices report, try again later, or {ways.judge_offline};"
            " `firecircle doctor` tests the voices"
        )
    elif result.failures:
        step = f"name reserves {ways.name_reserves}, or try again later"
    else:
        return ""
    config = result.config
    left = [config.characteristics(model) for model in result.active_models]
    if not config.enforce_quorum or judge_quorum(left, config.quorum_rules).valid:
        return step
    return f"{step}; for a quorum without them {quorum_cure(left, config.quorum_rules)}"


def deciding_pattern(result: FireCircleResult) -> PatternObservation | None:
    """The pattern to speak of: an agreed one first, and of those the deciding voice's type."""
    kind = result.reason.pattern_type if result.reason else None
    ranked = sorted(
        result.all_patterns,
        key=lambda pattern: (pattern.left_out is not None, pattern.pattern_type != kind),
    )
    return ranked[0] if ranked else None


def _after_alarm(result: FireCircleResult, ways: Ways) -> str:
    """A sentence for the system prompt against the pattern, else where the words were found."""
    pattern = deciding_pattern(result)
    if known := known_type(pattern.pattern_type) if pattern else None:
        return f"Add to the system prompt: “{known.author}”"
    places = [place for pattern in result.patterns for place in pattern.evidence]
    layers = Counter(place.layer for place in places or (result.reason.quotes if result.reason else ()))
    if layers:
        return AFTER_ALARM[layers.most_common(1)[0][0]]
    if result.alarm_decided_by == "maximum" and len(_alarmed(result)) == 1:
        return f"one voice alone raised it: read its reasons {ways.read_reasons} before acting"
    return f"no agreed pattern explains the alarm: read the reasons {ways.read_reasons}"
