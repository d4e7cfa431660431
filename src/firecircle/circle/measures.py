"""Effects of the discussion: how opinions moved, what the chair brought, what other rules conclude."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from firecircle.circle.pattern_types import UNTYPED, Typing, heuristic_typing
from firecircle.circle.patterns import group_observations, observe
from firecircle.circle.result import (
    Accounting,
    CallRecord,
    DialogueRound,
    Flip,
    Movement,
    Observation,
    PatternObservation,
    RivalVerdict,
    RoundMetrics,
    Usages,
)
from firecircle.circle.rules import BY_NAME, Words, values_by_rule
from firecircle.evaluation import spread

MOVED = 1e-9
LEAST_RUN = 4
"""Consecutive words that two texts rarely share by chance."""
LONGEST_COMPARED = 10_000
"""Characters of a reasoning."""
PERFORMATIVE_BELOW = 0.10


def round_metrics(
    history: Sequence[DialogueRound], observations: Sequence[Observation]
) -> tuple[RoundMetrics, ...]:
    """Mean and spread of F for every round, the change of spread, and what that round's chair added."""
    measured: list[RoundMetrics] = []
    for held in history:
        if not held.evaluations:
            continue
        deviation = spread(held.evaluations)
        before = measured[-1].f_score_stddev if measured else deviation
        chair = held.occupied_chair
        measured.append(
            RoundMetrics.assembled(
                round_number=held.round_number,
                f_score_mean=fmean([evaluation.falsehood for evaluation in held.evaluations]),
                f_score_stddev=deviation,
                convergence_delta=deviation - before,
                empty_chair_influence=influence_of(observations, {held.round_number: chair} if chair else {}),
            )
        )
    return tuple(measured)


def calculate_empty_chair_influence(
    dialogue_history: Sequence[DialogueRound],
    empty_chair_models: Mapping[int, str],
    typing: Typing = heuristic_typing,
) -> float:
    """The share of pattern types that the chair of a round mentioned first.

    Within a round, voices count in the order of their ids, so the figure does not depend on which answered
    first.
    """
    return influence_of(observe(dialogue_history, typing), empty_chair_models)


def typed_in_talk(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Observations that a chair can contribute: those with a type from round 2 on."""
    return tuple(seen for seen in observations if seen.round_number > 1 and seen.pattern_type not in UNTYPED)


def influence_of(observations: Sequence[Observation], empty_chair_models: Mapping[int, str]) -> float:
    """As `calculate_empty_chair_influence`, from classified observations."""
    firsts = [
        min(group, key=lambda seen: (seen.round_number, seen.model))
        for group in group_observations(typed_in_talk(observations))
    ]
    if not firsts:
        return 0.0
    brought = sum(empty_chair_models.get(first.round_number) == first.model for first in firsts)
    return brought / len(firsts)


def flips(history: Sequence[DialogueRound]) -> tuple[Flip, ...]:
    """How each voice's F moved between rounds, and whether toward its peers."""
    moves: list[Flip] = []
    for earlier, later in pairwise(history):
        before = {evaluation.model: evaluation.falsehood for evaluation in earlier.evaluations}
        said = {evaluation.model: evaluation.reasoning for evaluation in earlier.evaluations}
        for evaluation in later.evaluations:
            if evaluation.model not in before:
                continue
            peers = [falsehood for model, falsehood in before.items() if model != evaluation.model]
            words = [reasoning for model, reasoning in said.items() if model != evaluation.model]
            rose = evaluation.falsehood - before[evaluation.model] > MOVED
            moves.append(
                Flip.assembled(
                    model=evaluation.model,
                    round_number=later.round_number,
                    before=before[evaluation.model],
                    after=evaluation.falsehood,
                    movement=_movement(before[evaluation.model], evaluation.falsehood, peers),
                    repeats=repeated_share(evaluation.reasoning, words) if rose else None,
                )
            )
    return tuple(moves)


def repeated_share(reasoning: str, others: Iterable[str]) -> float | None:
    """The share of a reasoning's words in word sequences that some other text has too."""
    words = _words(reasoning)
    if len(words) < LEAST_RUN:
        return None
    theirs = {run for other in others for run in _runs(_words(other))}
    repeated = {
        place + step for place, run in enumerate(_runs(words)) if run in theirs for step in range(LEAST_RUN)
    }
    return len(repeated) / len(words)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text[:LONGEST_COMPARED].lower())


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[step:] for step in range(LEAST_RUN)), strict=False)


def _movement(before: float, after: float, peers: Sequence[float]) -> Movement:
    moved = after - before
    if abs(moved) <= MOVED:
        return "unchanged"
    pull = fmean(peers) - before if peers else 0.0
    return "toward_peers" if moved * pull > 0 else "away_from_peers"


def rival_verdicts(
    history: Sequence[DialogueRound],
    active_models: Sequence[str],
    alarm_threshold: float,
    calibrated: float | None = None,
) -> dict[str, RivalVerdict]:
    """The verdict of each rule on the same transcript, active voices only."""
    evaluations = [
        evaluation for held in history for evaluation in held.evaluations if evaluation.model in active_models
    ]
    if not evaluations:
        return {}
    return {
        name: RivalVerdict.assembled(value=value, alarm=BY_NAME[name].alarms(value, alarm_threshold))
        for name, value in values_by_rule(Words.of(evaluations, alarm_threshold, calibrated)).items()
    }


def voice_scores(patterns: Sequence[PatternObservation], active_models: Sequence[str]) -> Mapping[str, float]:
    """The share of the circle's grounded patterns that each voice supported with a quote."""
    return {
        model: sum(any(place.quoted_by == model for place in pattern.evidence) for pattern in patterns)
        / len(patterns)
        if patterns
        else 0.0
        for model in active_models
    }


def account(calls: Sequence[CallRecord]) -> Accounting:
    """The calls added up, in total, per round and per voice."""
    by_round: dict[int, list[CallRecord]] = {}
    by_voice: dict[str, list[CallRecord]] = {}
    for call in calls:
        by_round.setdefault(call.round_number, []).append(call)
        by_voice.setdefault(call.model, []).append(call)
    return Accounting.assembled(
        total=_sum(calls),
        by_round={number: _sum(made) for number, made in by_round.items()},
        by_voice={model: _sum(made) for model, made in by_voice.items()},
    )


def _sum(calls: Sequence[CallRecord]) -> Usages:
    attempts = cached = tokens_in = tokens_cached = tokens_out = without_tokens = without_price = (
        estimated
    ) = 0
    latency = cost = estimated_usd = saved = 0.0
    for call in calls:
        attempts += call.attempts
        cached += call.cached
        latency += call.latency_seconds
        tokens_in += call.tokens_in or 0
        tokens_cached += call.tokens_cached or 0
        tokens_out += call.tokens_out or 0
        without_tokens += call.tokens_in is None or call.tokens_out is None
        without_price += call.cost_usd is None
        cost += call.cost_usd or 0.0
        estimated += call.estimated_tokens
        estimated_usd += call.estimated_usd
        saved += call.saved_usd or 0.0
    return Usages.assembled(
        calls=len(calls),
        attempts=attempts,
        calls_cached=cached,
        latency_seconds=latency,
        tokens_in=tokens_in,
        tokens_cached=tokens_cached,
        tokens_out=tokens_out,
        calls_without_tokens=without_tokens,
        cost_usd=cost if without_price < len(calls) else None,
        calls_without_price=without_price,
        estimated_tokens=estimated,
        estimated_usd=estimated_usd,
        saved_usd=saved,
    )


def together(accounts: Sequence[Accounting]) -> Accounting:
    """Several accounts as one."""
    rounds = dict.fromkeys(number for account in accounts for number in account.by_round)
    voices = dict.fromkeys(model for account in accounts for model in account.by_voice)
    return Accounting(
        total=_join([account.total for account in accounts]),
        by_round={
            n: _join([account.by_round[n] for account in accounts if n in account.by_round]) for n in rounds
        },
        by_voice={
            m: _join([account.by_voice[m] for account in accounts if m in account.by_voice]) for m in voices
        },
    )


def _join(sums: Sequence[Usages]) -> Usages:
    prices = [usages.cost_usd for usages in sums if usages.cost_usd is not None]
    counts = {
        name: sum(getattr(usages, name) for usages in sums)
        for name in Usages.model_fields
        if name != "cost_usd"
    }
    return Usages(**counts, cost_usd=sum(prices) if prices else None)
