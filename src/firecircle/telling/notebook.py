"""What a notebook shows of a judgement: the same sentences as everywhere, as a small piece of HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from firecircle.circle.result import FireCircleResult, PatternObservation
from firecircle.metrics import ReciprocityMetrics, metrics_of_circle
from firecircle.telling.patterns import agreement_words, gathered_quotes
from firecircle.telling.safe_text import line_with_codes
from firecircle.telling.table import VoiceTable, table_of_circle
from firecircle.telling.talking import talk_sentences
from firecircle.telling.verdict import (
    circle_sentences,
    deciding_reason,
    panel_sentences,
    unfinished_sentence,
)
from firecircle.telling.words import LEFT_OUT_WORDS
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN

_BOX = "border:1px solid #8886;border-radius:6px;padding:0.6em 0.9em;max-width:60em"
_LONGEST_REASON = 400


def circle_html(result: FireCircleResult) -> str:
    """A circle: its verdict, the words that show its patterns, every voice in every round."""
    if result.consensus is None:
        return _box(SHOWN[result.verdict], [unfinished_sentence(result, line_with_codes)], _grid(result))
    metrics = metrics_of_circle(result)
    patterns = [_pattern(pattern, result) for pattern in result.all_patterns]
    sentences = [
        *circle_sentences(result, metrics, line_with_codes),
        *_reason(metrics),
        *talk_sentences(result, line_with_codes),
    ]
    return _box(_head(metrics), sentences, _list(patterns) + _grid(result))


def judgement_html(metrics: ReciprocityMetrics) -> str:
    """A judgement in any mode."""
    if metrics.fire_circle is not None:
        return circle_html(metrics.fire_circle)
    rows = "".join(
        f"<tr><td>{_safe(said.model)}</td>"
        f"<td>{format_figure(said.falsehood, metrics.alarm_threshold)}</td></tr>"
        for said in metrics.evaluations
    )
    sentences = [*panel_sentences(metrics, line_with_codes), *_reason(metrics)]
    return _box(_head(metrics), sentences, f"<table><tr><th>voice</th><th>F</th></tr>{rows}</table>")


def _head(metrics: ReciprocityMetrics) -> str:
    figure = format_figure(metrics.consensus.falsehood, metrics.alarm_threshold)
    return f"{SHOWN[metrics.verdict]}, F {figure}"


def _reason(metrics: ReciprocityMetrics) -> list[str]:
    reason = deciding_reason(metrics, line_with_codes)
    return [f"Why: {line_with_codes(reason, _LONGEST_REASON)}"] if reason else []


def _pattern(pattern: PatternObservation, result: FireCircleResult) -> str:
    kind, agreed = pattern.pattern_type.replace("_", " "), agreement_words(pattern, result)
    quotes = "; ".join(f"<q>{_safe(found.place.text)}</q>" for found in gathered_quotes(pattern.evidence))
    short = f", {LEFT_OUT_WORDS[pattern.left_out]}" if pattern.left_out else ""
    return f"<b>{_safe(kind)}</b> ({_safe(agreed)}{short}): {quotes}"


def _grid(result: FireCircleResult) -> str:
    table: VoiceTable = table_of_circle(result)
    rounds = [number for number in table.rounds if number in table.columns]
    heads = "".join(f"<th>round {number}</th>" for number in rounds)
    rows = "".join(
        f"<tr><td>{_safe(voice)}</td>{''.join(_cell(table, voice, number) for number in rounds)}</tr>"
        for voice in table.voices
    )
    return f"<table><tr><th>F</th>{heads}</tr>{rows}</table>"


def _cell(table: VoiceTable, voice: str, number: int) -> str:
    cell = table.cells.get((voice, number))
    if cell is None:
        return "<td></td>"
    if cell.evaluation is None:
        return f"<td>{_safe(cell.failure.kind.replace('_', ' ')) if cell.failure else '…'}</td>"
    figure = format_figure(cell.evaluation.falsehood, table.threshold)
    chair = " (chair)" if cell.is_chair else ""
    return f"<td>{f'<b>{figure}</b>' if cell.is_alarm else figure}{chair}</td>"


def _box(head: str, sentences: Iterable[str], rest: str) -> str:
    paragraphs = "".join(f"<div>{escape(sentence)}</div>" for sentence in sentences)
    return f'<div style="{_BOX}"><b>{escape(head)}</b>{paragraphs}{rest}</div>'


def _list(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""


def _safe(text: str) -> str:
    return escape(line_with_codes(text))
