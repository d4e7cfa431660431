"""Convert the result of a circle or a panel to the flat outcome of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firecircle.circle.base_config import BaseEvaluationConfig
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.columns import cells_of, judgement_of
from firecircle.circle.hearing import Hearing
from firecircle.circle.panel import Panel
from firecircle.circle.result import Failure, FireCircleResult, Usages, account
from firecircle.circle.rules import BY_NAME, Words, values_by_rule
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.lab.records import IN_CODE, Outcome, Rival, VoiceRound
from firecircle.verdict import verdict_word

LONGEST_ERROR = 500
RULES_KEPT = tuple(name for name in BY_NAME if name in Outcome.model_fields)
"""The rules whose value is a separate field."""


def outcome_of_circle(
    result: FireCircleResult, *, seconds: float, error: str | None = None, with_peers: bool = True
) -> Outcome:
    """The outcome of a circle; with an error, of one without a consensus."""
    consensus = result.consensus if error is None else None
    rivals = result.rival_verdicts
    moves = [flip.movement for flip in result.flips] if with_peers else None
    chairs = any(held.occupied_chair for held in result.dialogue_history)
    total = result.accounting.total
    return Outcome(
        status="judged" if consensus else "failed",
        error=None if consensus else (error or result.abort_reason or "no consensus")[:LONGEST_ERROR],
        **_cells(result if consensus else None, rounds=len(result.dialogue_history)),
        decided_by_guess=consensus is not None and consensus.guessed,
        **{rule: rivals[rule].value for rule in RULES_KEPT if rule in rivals},
        stopped=result.stopped,
        patterns=len(result.patterns) + len(result.ungrounded_patterns),
        grounded_patterns=len(result.patterns),
        pattern_types=tuple(dict.fromkeys(pattern.pattern_type for pattern in result.patterns)),
        largest_agreement=max((len(pattern.held_to_the_end) for pattern in result.patterns), default=0),
        quoted_layers=tuple(
            dict.fromkeys(place.layer for pattern in result.patterns for place in pattern.evidence)
        ),
        chair_influence=result.empty_chair_influence if chairs else None,
        flips_toward=None if moves is None else moves.count("toward_peers"),
        flips_away=None if moves is None else moves.count("away_from_peers"),
        flips_unchanged=None if moves is None else moves.count("unchanged"),
        groupthink_losses=len(result.groupthink_losses) if with_peers else 0,
        rescues=len(result.rescues) if with_peers else 0,
        voices_lost=len(result.failures),
        lost=_lost(result.failures),
        quorum_valid=result.quorum.valid,
        coverage=result.quorum.coverage,
        **_costs(total),
        latency_seconds=seconds,
        circle_id=result.circle_id,
        voices=_voices(result),
        rivals=tuple(
            Rival(rule=rule, value=verdict.value, alarm=verdict.alarm) for rule, verdict in rivals.items()
        ),
        seating=_seating(result.circumstances),
        alarm_decided_by=result.alarm_decided_by if consensus else None,
    )


def outcome_of_panel(panel: Panel, *, seconds: float, error: str | None = None) -> Outcome:
    """The outcome of independent voices."""
    consensus = panel.consensus if panel.evaluations else None
    threshold = panel.config.alarm_threshold
    return Outcome(
        status="judged" if consensus else "failed",
        error=None if consensus else (error or "no voice could answer")[:LONGEST_ERROR],
        **_cells(panel if consensus else None, rounds=1),
        decided_by_guess=consensus is not None and consensus.guessed,
        **_scores(panel.evaluations, threshold),
        voices_lost=len(panel.failures),
        lost=_lost(panel.failures),
        **_costs(account(panel.calls).total),
        latency_seconds=seconds,
        voices=tuple(_voice(evaluation, asked_chars=len(panel.question)) for evaluation in panel.evaluations),
        seating=_seating(panel.circumstances),
    )


def outcome_of_rival(
    verdict: NeutrosophicEvaluation | None,
    hearings: Sequence[Hearing],
    config: BaseEvaluationConfig,
    circumstances: Circumstances,
    *,
    rounds: int,
    seconds: float,
    error: str | None,
    answers: Sequence[NeutrosophicEvaluation],
    roles: Mapping[str, Sequence[str]],
) -> Outcome:
    """The outcome of a protocol in which one voice decides; `answers` are independent evaluations."""
    word = verdict_word(
        verdict.falsehood if verdict else None,
        config.alarm_threshold,
        indeterminacy=verdict.indeterminacy if verdict else 0.0,
    )
    failures = tuple(hearing.failure for hearing in hearings if hearing.failure)
    calls = tuple(call for hearing in hearings for call in hearing.calls)
    threshold = config.alarm_threshold
    return Outcome(
        status="judged" if verdict else "failed",
        error=None if verdict else (error or "no verdict")[:LONGEST_ERROR],
        f=verdict.falsehood if verdict else None,
        t=verdict.truth if verdict else None,
        i=verdict.indeterminacy if verdict else None,
        alarm=word == "alarm" if verdict else None,
        verdict=word,
        decided_by=verdict.model if verdict else None,
        decided_in_round=verdict.round_number if verdict else None,
        decided_by_guess=verdict is not None and verdict.guessed,
        **_scores(answers, threshold),
        rounds=rounds,
        voices_lost=len(failures),
        lost=_lost(failures),
        **_costs(account(calls).total),
        latency_seconds=seconds,
        voices=tuple(_voice(answer) for answer in answers),
        seating=_seating(circumstances),
        roles=tuple(f"{role}: {model}" for role, models in roles.items() for model in models),
    )


def _seating(circumstances: Circumstances) -> str | None:
    return None if circumstances.seating is None else str(circumstances.seating)


def _cells(judged: FireCircleResult | Panel | None, *, rounds: int) -> dict[str, Any]:
    """The columns of a verdict, under the names of the fields; without a verdict only the rounds."""
    if judged is None:
        return {"verdict": "no_verdict", "rounds": rounds}
    cells = cells_of(judgement_of(judged), "run")
    return {IN_CODE.get(name, name): cell for name, cell in cells.items()}


def _scores(answers: Sequence[NeutrosophicEvaluation], threshold: float) -> dict[str, Any]:
    """The value of each rule on final answers."""
    if not answers:
        return {}
    words = Words(answers, tuple(answer.falsehood for answer in answers), threshold)
    return {rule: value for rule, value in values_by_rule(words).items() if rule in RULES_KEPT}


def _lost(failures: tuple[Failure, ...]) -> tuple[str, ...]:
    return tuple(f"{failure.label}: {failure.kind}" for failure in failures)


def _costs(total: Usages) -> dict[str, int | float | None]:
    return {
        "calls": total.calls,
        "attempts": total.attempts,
        "tokens_in": total.tokens_in,
        "tokens_cached": total.tokens_cached,
        "tokens_out": total.tokens_out,
        "calls_without_tokens": total.calls_without_tokens,
        "cost_usd": None if total.calls_without_price else total.cost_usd,
    }


def _voices(result: FireCircleResult) -> tuple[VoiceRound, ...]:
    rounds: list[VoiceRound] = []
    for held in result.dialogue_history:
        rounds.extend(
            _voice(
                evaluation,
                is_chair=evaluation.model == held.empty_chair_model,
                active=evaluation.model in result.active_models,
                asked_chars=len(held.question_to(evaluation.model) or ""),
            )
            for evaluation in held.evaluations
        )
    return tuple(rounds)


def _voice(
    evaluation: NeutrosophicEvaluation, *, is_chair: bool = False, active: bool = True, asked_chars: int = 0
) -> VoiceRound:
    return VoiceRound(
        model=evaluation.model,
        round_number=evaluation.round_number or 1,
        truth=evaluation.truth,
        indeterminacy=evaluation.indeterminacy,
        falsehood=evaluation.falsehood,
        is_chair=is_chair,
        guessed=evaluation.guessed,
        active=active,
        asked_chars=asked_chars,
    )
