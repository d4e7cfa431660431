"""A circle or panel as rows: what lists, filters, counts and searches look at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Table

from firecircle.circle.measures import account
from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord, Failure, FireCircleResult, PatternObservation
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.store import tables
from firecircle.store.documents import Kept

Row = dict[str, Any]
LONGEST_TITLE = 200


def storable(text: str) -> str:
    """The text without NUL, which PostgreSQL cannot hold and SQLite stops at; the document keeps it."""
    return text.replace("\0", "\ufffd")


def title_of(prompt: MultiNeutrosophicPrompt) -> str:
    """The first words by which a person recognises a prompt: the user's, else the next layer's."""
    told = next((text for text in (prompt.user, prompt.application, prompt.system) if text.strip()), "")
    return storable(" ".join(told[: LONGEST_TITLE * 4].split()))[:LONGEST_TITLE]


def circle_row(kept: Kept) -> Row:
    """The row of `circles`, but for what only the store knows."""
    return _row_of_result(kept) if isinstance(kept, FireCircleResult) else _row_of_panel(kept)


def _row_of_result(result: FireCircleResult) -> Row:
    first = result.rival_verdicts.get("round1_max")
    return {
        **_verdict(result.consensus, result.alarm),
        **_common(result, result.accounting.total.cost_usd),
        "mode": "fire_circle",
        "status": result.stopped,
        "round1_falsehood": first.value if first else None,
        "voices": "\n".join(_seated(result)),
        "pattern_types": "\n".join(dict.fromkeys(found.pattern_type for found in result.patterns)),
        "rounds": len(result.dialogue_history),
        "partial": result.partial,
        "tokens_in": result.accounting.total.tokens_in,
        "tokens_out": result.accounting.total.tokens_out,
    }


def _row_of_panel(panel: Panel) -> Row:
    total = account(panel.calls).total
    consensus = panel.consensus if panel.evaluations else None
    return {
        **_verdict(consensus, panel.alarm),
        **_common(panel, total.cost_usd),
        "mode": panel.config.mode.value,
        "status": "all_rounds_held" if consensus else "aborted",
        "round1_falsehood": consensus.falsehood if consensus else None,
        "voices": "\n".join(_seated(panel)),
        "rounds": 1,
        "partial": bool(panel.failures),
        "tokens_in": total.tokens_in,
        "tokens_out": total.tokens_out,
    }


def _verdict(consensus: NeutrosophicEvaluation | None, alarm: bool) -> Row:
    if consensus is None:
        return {"alarm": None}
    return {
        "alarm": alarm,
        "truth": consensus.truth,
        "indeterminacy": consensus.indeterminacy,
        "falsehood": consensus.falsehood,
        "decided_by": storable(consensus.model),
        "decided_in_round": consensus.round_number,
    }


def _common(kept: Kept, cost_usd: float | None) -> Row:
    return {
        "started_at": kept.started_at,
        "duration_seconds": kept.duration_seconds,
        "title": title_of(kept.prompt),
        "failures": len(kept.failures),
        "cost_usd": cost_usd,
    }


def _seated(kept: Kept) -> tuple[str, ...]:
    if isinstance(kept, FireCircleResult):
        return (*kept.config.models, *(new.model for new in kept.substitutions))
    return tuple(dict.fromkeys(call.model for call in kept.calls))


def detail_rows(kept: Kept) -> dict[Table, list[Row]]:
    """The rows of every other table, without the circle's key."""
    rows = {
        tables.texts: [_texts(kept)],
        tables.seats: [_seat(kept, voice) for voice in _seated(kept)],
        tables.calls: [_call(seq, call) for seq, call in enumerate(kept.calls)],
        tables.failures: [_failure(seq, lost) for seq, lost in enumerate(kept.failures)],
    }
    if isinstance(kept, FireCircleResult):
        found = [
            *((seen, True) for seen in kept.patterns),
            *((seen, False) for seen in kept.ungrounded_patterns),
        ]
        rows[tables.rounds] = _rounds(kept)
        rows[tables.evaluations] = [
            _evaluation(said, is_chair=said.model == held.empty_chair_model)
            for held in kept.dialogue_history
            for said in held.evaluations
        ]
        rows[tables.patterns] = [_pattern(seq, seen, grounded) for seq, (seen, grounded) in enumerate(found)]
    else:
        rows[tables.evaluations] = [_evaluation(said, is_chair=False) for said in kept.evaluations]
    return rows


def _texts(kept: Kept) -> Row:
    layers = (layer.text for layer in kept.prompt.layers)
    said: Iterable[NeutrosophicEvaluation] = (
        (said for held in kept.dialogue_history for said in held.evaluations)
        if isinstance(kept, FireCircleResult)
        else kept.evaluations
    )
    return {
        "prompt": storable("\n".join(layers)),
        "reasoning": storable("\n".join(_words(one) for one in said)),
    }


def _words(said: NeutrosophicEvaluation) -> str:
    return "\n".join((said.reasoning, *(note.description for note in said.pattern_notes)))


def _seat(kept: Kept, voice: str) -> Row:
    lost = {failure.model: failure.round_number for failure in kept.failures}
    scores = kept.voice_scores if isinstance(kept, FireCircleResult) else {}
    return {
        "voice": storable(voice),
        "active": voice not in lost,
        "lost_in_round": lost.get(voice),
        "contribution": scores.get(voice),
    }


def _rounds(result: FireCircleResult) -> list[Row]:
    metrics = {one.round_number: one for one in result.round_metrics}
    rows = []
    for held in result.dialogue_history:
        measured = metrics.get(held.round_number)
        rows.append(
            {
                "round_number": held.round_number,
                "kind": held.kind,
                "empty_chair": held.empty_chair_model,
                "f_mean": measured.f_score_mean if measured else None,
                "f_stddev": measured.f_score_stddev if measured else None,
                "chair_influence": measured.empty_chair_influence if measured else None,
                "started_at": held.timestamp,
                "duration_seconds": held.duration_seconds,
            }
        )
    return rows


def _evaluation(said: NeutrosophicEvaluation, *, is_chair: bool) -> Row:
    return {
        "round_number": said.round_number or 1,
        "voice": storable(said.model),
        "truth": said.truth,
        "indeterminacy": said.indeterminacy,
        "falsehood": said.falsehood,
        "verdict": said.verdict,
        "read_as": said.read_as,
        "polarity": said.polarity,
        "is_chair": is_chair,
    }


def _call(seq: int, call: CallRecord) -> Row:
    return {
        "seq": seq,
        "voice": storable(call.model),
        **call.model_dump(exclude={"model", "finished"}),
    }


def _failure(seq: int, lost: Failure) -> Row:
    return {
        "seq": seq,
        "voice": storable(lost.model),
        "round_number": lost.round_number,
        "kind": lost.kind,
        "message": storable(lost.message),
        "attempts": lost.attempts,
    }


def _pattern(seq: int, found: PatternObservation, grounded: bool) -> Row:
    return {
        "seq": seq,
        "pattern_type": storable(found.pattern_type),
        "description": storable(found.description),
        "agreement": found.model_agreement,
        "grounded_agreement": found.grounded_agreement,
        "grounded": grounded,
        "round_number": found.observed_in_round,
        "first_observed_by": storable(found.first_observed_by),
    }
