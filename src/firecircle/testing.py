"""Assertions about prompts for test suites: `assert_no_alarm` and `assert_alarm` quote the words found.

The embedded readers judge unless you pass another circle, so a test is free, offline and deterministic. In
pytest, use the fixture `circle`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from firecircle.circle.config import FireCircleConfig
from firecircle.errors import FireCircleError
from firecircle.guard import PromptGuard
from firecircle.metrics import ReciprocityMetrics
from firecircle.prompt import PromptLike
from firecircle.request import checking_request, configure
from firecircle.telling.patterns import gathered_quotes
from firecircle.telling.safe_text import without_hidden
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN

__all__ = ["Circle", "assert_alarm", "assert_no_alarm"]

LONGEST_QUOTE, LONGEST_PROMPT = 200, 300
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Circle:
    """The voices that judge, and the alarm threshold."""

    models: Sequence[str] = ()
    """By default the embedded readers and `embedded:operator`."""
    threshold: float | None = None
    """By default that of `FireCircleConfig`: 0.7."""

    def judge(self, prompt: PromptLike) -> ReciprocityMetrics:
        """Judge a prompt: a user's text, layers by name, or a `MultiNeutrosophicPrompt`."""
        (outcome,) = _run(PromptGuard().evaluate_batch([prompt], "fire_circle", self._config()))
        if isinstance(outcome, FireCircleError):
            raise outcome
        return outcome

    def assert_no_alarm(self, prompt: PromptLike) -> ReciprocityMetrics:
        """Fail with the words found if the prompt raises an alarm or no voice reads it."""
        __tracebackhide__ = True
        metrics = self.judge(prompt)
        if metrics.verdict == "unread":
            raise AssertionError("\n".join([f"unread: {metrics.unread}", _prompt_line(prompt)]))
        if metrics.alarm:
            raise AssertionError(
                "\n".join(
                    [f"alarm: {self._figure(metrics)}", *_describe_findings(metrics), _prompt_line(prompt)]
                )
            )
        return metrics

    def assert_alarm(self, prompt: PromptLike, pattern: str | None = None) -> ReciprocityMetrics:
        """Fail unless the prompt raises an alarm, for this pattern type if one is given."""
        __tracebackhide__ = True
        metrics = self.judge(prompt)
        found = _describe_findings(metrics)
        if not metrics.alarm:
            seen = found or ["  no voice quoted any words"]
            head = f"{SHOWN[metrics.verdict]}: {self._figure(metrics)}"
            raise AssertionError("\n".join([head, *seen, _prompt_line(prompt)]))
        types = [seen.pattern_type for seen in metrics.all_patterns]
        if pattern is not None and pattern not in types:
            head = f"alarm without the pattern {pattern}; found: {', '.join(types) or 'none'}"
            raise AssertionError("\n".join([head, *found, _prompt_line(prompt)]))
        return metrics

    def _config(self) -> FireCircleConfig:
        config = configure(
            checking_request({"models": tuple(self.models) or None, "alarm_threshold": self.threshold})
        ).config
        assert isinstance(config, FireCircleConfig)
        return config

    def _figure(self, metrics: ReciprocityMetrics) -> str:
        threshold = self._config().alarm_threshold
        highest = format_figure(metrics.consensus.falsehood, threshold)
        return f"highest F {highest} by {metrics.consensus.model}, threshold {threshold:g}"


def assert_no_alarm(prompt: PromptLike, *, circle: Circle | None = None) -> ReciprocityMetrics:
    """Fail with the words found if the prompt raises an alarm."""
    __tracebackhide__ = True
    return (circle or Circle()).assert_no_alarm(prompt)


def assert_alarm(
    prompt: PromptLike, pattern: str | None = None, *, circle: Circle | None = None
) -> ReciprocityMetrics:
    """Fail unless the prompt raises an alarm, for this pattern type if one is given."""
    __tracebackhide__ = True
    return (circle or Circle()).assert_alarm(prompt, pattern)


def _run(judging: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run a coroutine, also for a test that runs in an event loop itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(judging)
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, judging).result()


def _describe_findings(metrics: ReciprocityMetrics) -> list[str]:
    """One line per pattern with its longest quote, otherwise what the deciding voice noted."""
    lines = [
        f"  {pattern.pattern_type.replace('_', ' ')} in the {place.layer} text: {_quote(place.text)}"
        f" ({pattern.description})"
        for pattern in metrics.all_patterns
        for place in [gathered_quotes(pattern.evidence)[0].place]
    ]
    return lines or [
        f"  {_quote(note.quote)} ({note.description})"
        for note in metrics.consensus.pattern_notes
        if note.quote
    ]


def _prompt_line(prompt: PromptLike) -> str:
    return f"  prompt: {_quote(prompt if isinstance(prompt, str) else repr(prompt), LONGEST_PROMPT)}"


def _quote(text: str, longest: int = LONGEST_QUOTE) -> str:
    line = " ".join(without_hidden(text).split())
    return f"“{line}”" if len(line) <= longest else f"“{line[: longest - 1].rstrip()}…”"
