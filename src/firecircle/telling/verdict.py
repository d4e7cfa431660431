"""The first thing to read: whose word the verdict is, when it was said, what it comes to, and why."""

from __future__ import annotations

from firecircle.circle.result import FireCircleResult
from firecircle.circle.summary import decision_sentence
from firecircle.metrics import ReciprocityMetrics
from firecircle.telling.patterns import with_names
from firecircle.telling.safe_text import SafeLine
from firecircle.telling.words import STOP_WORDS, counted

LONGEST_REASON = 320


def circle_sentences(result: FireCircleResult, metrics: ReciprocityMetrics, line: SafeLine) -> list[str]:
    """The verdict of a circle that reached one."""
    ended = f"Ended after {counted(len(result.dialogue_history), 'round')}: {STOP_WORDS[result.stopped]}."
    return [
        f"{decision_sentence(result, metrics.consensus, line)} {ended}",
        _balance_sentence(metrics),
    ]


def panel_sentences(metrics: ReciprocityMetrics, line: SafeLine) -> list[str]:
    """The verdict of voices that were asked once."""
    if metrics.agreement is None:
        decision = f"Said by {line(metrics.evaluations[0].model)}, asked once and alone."
    else:
        voices = counted(len(metrics.evaluations), "voice")
        decision = f"The mean of {voices} that did not talk; agreement {metrics.agreement:.2f}."
    return [decision, _balance_sentence(metrics)]


def unfinished_sentence(result: FireCircleResult, line: SafeLine) -> str:
    """What a circle without a consensus leaves behind."""
    heard = [answer for held in result.dialogue_history for answer in held.evaluations]
    if not heard:
        return "Nothing was heard."
    voices = counted(len({answer.model for answer in heard}), "voice")
    highest = max(heard, key=lambda answer: answer.falsehood)
    return (
        f"Heard until then: {counted(len(heard), 'answer')} of {voices}. The highest falsehood was"
        f" {highest.falsehood:.2f}, by {line(highest.model)} in round {highest.round_number}."
    )


def deciding_reason(metrics: ReciprocityMetrics, line: SafeLine) -> str:
    """Why the deciding voice said so, in its words; empty where no single voice decided."""
    if metrics.fire_circle is not None:
        labels, reasoning = metrics.fire_circle.peer_labels, metrics.consensus.reasoning
    elif metrics.agreement is None:
        labels, reasoning = {}, metrics.evaluations[0].reasoning
    else:
        return ""
    return line(with_names(reasoning, labels), LONGEST_REASON)


def _balance_sentence(metrics: ReciprocityMetrics) -> str:
    return f"Balance {metrics.balance:+.2f}: the exchange is {metrics.exchange_type}."
