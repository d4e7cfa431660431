"""What the discussion did: who moved and how far, and what other rules would have said of the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firecircle.circle.conclude import calibrated_probability
from firecircle.circle.measures import deliberation, rival_verdicts
from firecircle.circle.result import FireCircleResult, Flip, RivalVerdict, active_voices
from firecircle.circle.rules import BY_NAME, DECIDING, RULES, VerdictRule
from firecircle.circle.summary import talk_sentence
from firecircle.names import is_embedded
from firecircle.telling.safe_text import SafeLine
from firecircle.telling.words import ROUND_WORDS, counted
from firecircle.thresholds import format_figure

AMONG_EMBEDDED = (
    "among embedded readers discussion moves the threshold; it separates attacks hardly better than round 1"
)


def talk_sentences(result: FireCircleResult, line: SafeLine) -> list[str]:
    """What talking changed, who was won or lost by it, which rules disagree, and what the chair brought."""
    if result.consensus is None or "round1_max" not in result.rival_verdicts:
        return []
    if len(result.dialogue_history) < 2:
        return ["no discussion: the circle had one round"]
    sentences = [talk_sentence(result)]
    if _only_moved_the_threshold(result):
        sentences.append(AMONG_EMBEDDED)
    if result.rescues:
        sentences.append(f"changed to alarm: {_moves(result, result.rescues, line)}")
    if result.groupthink_losses:
        stands = (
            " (their earlier alarm still counts)" if result.alarm and _own_rule(result) == "max_all" else ""
        )
        moves = _moves(result, result.groupthink_losses, line)
        sentences.append(f"dropped an alarm{stands}: {moves}")
    sentences += _reasons(result, line)
    if dissenting := dissenting_rules(result):
        names = ", ".join(BY_NAME[rule].phrase for rule in dissenting)
        sentences.append(f"{'no alarm' if result.alarm else 'alarm'} by other rules: {names}")
    if chair := _chair(result):
        sentences.append(chair)
    return sentences


def _reasons(result: FireCircleResult, line: SafeLine) -> list[str]:
    """What became of quotes and positions, who ended against the verdict, and grounds for a veto."""
    found = deliberation(result)
    sentences = []
    if found.quotes:
        sentences.append(
            f"reasons: {found.quotes_held} of {counted(found.quotes, 'quote')} held in the last round;"
            f" {found.peers_cited} of {counted(found.answers, 'answer')} took up words of a peer"
        )
        if moved := found.moved_with_new_words + found.moved_without:
            words = f"{found.moved_without} without new words"
            sentences[-1] += f"; {counted(moved, 'position')} changed, {words}"
    if found.dissent:
        against = ", ".join(f"{line(each.model)} (F {each.falsehood:.2f})" for each in found.dissent)
        sentences.append(f"against the verdict at the end: {against}")
    sentences += [f"grounds for a veto, {line(each.model)}: {line(each.grounds)}" for each in found.vetoes]
    return sentences


def _only_moved_the_threshold(result: FireCircleResult) -> bool:
    """Whether embedded voices among themselves talked a prompt over the threshold."""
    if _own_rule(result) != "max_all":
        return False
    voices = {said.model for said in result.final_evaluations}
    rivals = result.rival_verdicts
    return rivals["max_all"].alarm and not rivals["round1_max"].alarm and all(map(is_embedded, voices))


def dissenting_rules(result: FireCircleResult) -> tuple[str, ...]:
    """The rules that come to the other verdict."""
    rivals = result.rival_verdicts
    others = (rule for rule in BY_NAME if rule in rivals and rule != _own_rule(result))
    return tuple(rule for rule in others if rivals[rule].alarm != result.alarm)


def _own_rule(result: FireCircleResult) -> str:
    """The rule that decided about the alarm."""
    return DECIDING[result.alarm_decided_by].name


def moves_of(result: FireCircleResult) -> tuple[Flip, ...]:
    """The flips that really moved, the farthest first."""
    moved = (flip for flip in result.flips if flip.movement != "unchanged")
    return tuple(sorted(moved, key=lambda flip: -abs(flip.after - flip.before)))


def _moves(result: FireCircleResult, flips: Sequence[Flip], line: SafeLine) -> str:
    threshold = result.config.alarm_threshold
    return ", ".join(
        f"{line(flip.model)} {format_figure(flip.before, threshold)} →"
        f" {format_figure(flip.after, threshold)} (round {flip.round_number}{_repeated(flip)})"
        for flip in flips
    )


def _repeated(flip: Flip) -> str:
    return f", {flip.repeats:.0%} of its reasoning repeats its peers" if flip.repeats is not None else ""


def _chair(result: FireCircleResult) -> str:
    if result.performative is None:
        return ""
    if result.performative:
        return "the empty chair saw almost nothing before the others did"
    return f"the empty chair saw {result.empty_chair_influence:.0%} of the pattern types first"


@dataclass(frozen=True, slots=True)
class RuleReplay:
    """A rule and its verdict after each round."""

    rule: VerdictRule
    verdicts: tuple[RivalVerdict | None, ...]
    decides: bool
    """Whether it is the circle's own rule."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The rules over the rounds, and what happened in each round in a line."""

    rounds: tuple[int, ...]
    rules: tuple[RuleReplay, ...]
    events: tuple[str, ...]


def replay_of(result: FireCircleResult, line: SafeLine) -> Replay:
    """What each rule would have said had the circle stopped after a round, by those active then."""
    after = []
    for place, held in enumerate(result.dialogue_history, start=1):
        lost = (failure for failure in result.failures if failure.round_number <= held.round_number)
        active = active_voices(result.config.models, result.substitutions, lost)
        history = result.dialogue_history[:place]
        known = result.calibrated is not None
        calibrated = calibrated_probability(result.config, history, active) if known else None
        after.append(rival_verdicts(history, active, result.config.alarm_threshold, calibrated))
    return Replay(
        rounds=tuple(held.round_number for held in result.dialogue_history),
        rules=tuple(
            RuleReplay(
                rule, tuple(verdicts.get(rule.name) for verdicts in after), rule.name == _own_rule(result)
            )
            for rule in RULES
            if any(rule.name in verdicts for verdicts in after)
        ),
        events=tuple(_round_line(result, place, line) for place in range(len(result.dialogue_history))),
    )


def _round_line(result: FireCircleResult, place: int, line: SafeLine) -> str:
    held = result.dialogue_history[place]
    number = held.round_number
    parts = [ROUND_WORDS[held.kind], f"{len(held.evaluations)} of {len(held.asked_models)} voices heard"]
    if held.empty_chair_model:
        parts.append(f"{line(held.empty_chair_model)} speaks for the absent")
    if lost := [failure.model for failure in result.failures if failure.round_number == number]:
        parts.append(f"lost: {', '.join(map(line, lost))}")
    moved = [flip for flip in result.flips if flip.round_number == number and flip.movement != "unchanged"]
    if moved:
        toward = sum(flip.movement == "toward_peers" for flip in moved)
        parts.append(f"{len(moved)} moved, {toward} toward their peers")
    return "; ".join(parts)
