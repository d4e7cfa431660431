"""A circle or panel as rows, for lists, filters, counts and searches."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from sqlalchemy import Table

from firecircle.circle.columns import cells_of, judgement_of
from firecircle.circle.panel import Panel
from firecircle.circle.result import SCHEMA_VERSION, CallRecord, Failure, FireCircleResult, PatternObservation
from firecircle.errors import ConfigError, StoreError
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import config_error
from firecircle.store import tables
from firecircle.store.database import storable

CircleOrPanel = FireCircleResult | Panel
"""What can be stored: the result of a circle, or of a panel."""

DocumentKind = Literal["circle", "panel"]


class Document(NamedTuple):
    """A circle or panel as stored in the database."""

    kind: DocumentKind
    schema_version: int
    body: bytes


def document_of(judged: CircleOrPanel) -> Document:
    """The document of a circle or panel."""
    kind: DocumentKind = "circle" if isinstance(judged, FireCircleResult) else "panel"
    return Document(kind, judged.schema_version, zlib.compress(judged.model_dump_json().encode()))


def text_of(document: Document, name: str) -> str:
    """The JSON of a document."""
    try:
        return zlib.decompress(document.body).decode()
    except (zlib.error, TypeError, UnicodeDecodeError) as broken:
        raise _unreadable(name, str(broken)) from broken


def parse_document(document: Document, name: str) -> CircleOrPanel:
    """The circle or panel in a document."""
    if document.schema_version > SCHEMA_VERSION:
        raise StoreError(
            f"{name}: written by a newer Fire Circle (schema {document.schema_version},"
            f" this one reads {SCHEMA_VERSION}); upgrade firecircle"
        )
    text = text_of(document, name)
    try:
        return (FireCircleResult if document.kind == "circle" else Panel).model_validate_json(text)
    except (ValidationError, ConfigError) as broken:
        why = str(config_error(broken, name) if isinstance(broken, ValidationError) else broken)
        raise _unreadable(name, why) from broken


def _unreadable(name: str, why: str) -> StoreError:
    return StoreError(f"{name}: the stored document cannot be read: {why}")


Row = dict[str, Any]
LONGEST_TITLE = 200


def title_of(prompt: MultiNeutrosophicPrompt) -> str:
    """The words that identify a prompt: the first of the user's layer, otherwise of the next layer."""
    layer_text = next((text for text in (prompt.user, prompt.application, prompt.system) if text.strip()), "")
    words = storable(" ".join(layer_text[: LONGEST_TITLE * 4].split()))
    is_cut = len(words) > LONGEST_TITLE or len(layer_text.rstrip()) > LONGEST_TITLE * 4
    return f"{words[: LONGEST_TITLE - 1]}…" if is_cut else words


def circle_row(judged: CircleOrPanel) -> Row:
    """The row of `circles`, without what only the store knows."""
    judgement = judgement_of(judged)
    cells = cells_of(judgement, "store")
    row = {name: storable(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
    return {
        **row,
        "started_at": judged.started_at,
        "duration_seconds": judged.duration_seconds,
        "title": title_of(judged.prompt),
        "status": _status(judged),
        "unread": judgement.unread is not None if judgement.voices else None,
        "voices": "\n".join(_voices_of(judged)),
        "pattern_types": "\n".join(dict.fromkeys(pattern.pattern_type for pattern in judgement.patterns)),
        "failures": len(judged.failures),
        "partial": judged.partial if isinstance(judged, FireCircleResult) else bool(judged.failures),
        "alarm_threshold": judgement.threshold,
    }


def _status(judged: CircleOrPanel) -> str:
    if isinstance(judged, FireCircleResult):
        return judged.stopped
    return "all_rounds_held" if judged.evaluations else "aborted"


def _voices_of(judged: CircleOrPanel) -> tuple[str, ...]:
    if isinstance(judged, FireCircleResult):
        return (*judged.config.models, *(new.model for new in judged.substitutions))
    return tuple(dict.fromkeys(call.model for call in judged.calls))


def detail_rows(judged: CircleOrPanel) -> dict[Table, list[Row]]:
    """The rows of every other table, without the circle's key."""
    rows = {
        tables.texts: [_texts(judged)],
        tables.seats: [_seat(judged, voice) for voice in _voices_of(judged)],
        tables.calls: [_call(seq, call) for seq, call in enumerate(judged.calls)],
        tables.failures: [_failure(seq, lost) for seq, lost in enumerate(judged.failures)],
    }
    if isinstance(judged, FireCircleResult):
        patterns = [
            *((pattern, True) for pattern in judged.patterns),
            *((pattern, False) for pattern in judged.ungrounded_patterns),
        ]
        rows[tables.rounds] = _rounds(judged)
        rows[tables.evaluations] = [
            _evaluation(evaluation, is_chair=evaluation.model == held.empty_chair_model)
            for held in judged.dialogue_history
            for evaluation in held.evaluations
        ]
        rows[tables.patterns] = [
            _pattern(seq, pattern, grounded) for seq, (pattern, grounded) in enumerate(patterns)
        ]
    else:
        rows[tables.evaluations] = [
            _evaluation(evaluation, is_chair=False) for evaluation in judged.evaluations
        ]
    return rows


def _texts(judged: CircleOrPanel) -> Row:
    layers = (layer.text for layer in judged.prompt.layers)
    evaluations: Iterable[NeutrosophicEvaluation] = (
        (evaluation for held in judged.dialogue_history for evaluation in held.evaluations)
        if isinstance(judged, FireCircleResult)
        else judged.evaluations
    )
    return {
        "prompt": storable("\n".join(layers)),
        "reasoning": storable("\n".join(map(_words, evaluations))),
    }


def _words(evaluation: NeutrosophicEvaluation) -> str:
    return "\n".join((evaluation.reasoning, *(note.description for note in evaluation.pattern_notes)))


def _seat(judged: CircleOrPanel, voice: str) -> Row:
    lost = {failure.model: failure.round_number for failure in judged.failures}
    scores = judged.voice_scores if isinstance(judged, FireCircleResult) else {}
    return {
        "voice": storable(voice),
        "active": voice not in lost,
        "lost_in_round": lost.get(voice),
        "contribution": scores.get(voice),
    }


def _rounds(result: FireCircleResult) -> list[Row]:
    metrics = {measured.round_number: measured for measured in result.round_metrics}
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


def _evaluation(evaluation: NeutrosophicEvaluation, *, is_chair: bool) -> Row:
    return {
        "round_number": evaluation.round_number or 1,
        "voice": storable(evaluation.model),
        "truth": evaluation.truth,
        "indeterminacy": evaluation.indeterminacy,
        "falsehood": evaluation.falsehood,
        "verdict": evaluation.verdict,
        "read_as": evaluation.read_as,
        "polarity": evaluation.polarity,
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


def _pattern(seq: int, pattern: PatternObservation, grounded: bool) -> Row:
    return {
        "seq": seq,
        "pattern_type": storable(pattern.pattern_type),
        "description": storable(pattern.description),
        "agreement": pattern.model_agreement,
        "grounded_agreement": pattern.grounded_agreement,
        "grounded": grounded,
        "round_number": pattern.observed_in_round,
        "first_observed_by": storable(pattern.first_observed_by),
    }
