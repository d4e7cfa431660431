"""Everything that can go wrong, in one tree; catch `FireCircleError` to catch it all.

FireCircleError
├── ConfigError (ValueError)      a mistake in the declaration: never worth a retry
│   ├── PromptError               the prompt to judge is empty, too large or self-contradictory
│   └── UnknownModelError         nobody declared who this voice is
├── StoreError                    what is kept cannot be reached, read or written
└── EvaluationError               happened while judging; `partial_result` holds what was heard
    ├── VoiceError                one voice could not answer; `kind` says how
    ├── QuorumError               the surviving voices are too few or too alike
    └── BudgetError               the money or tokens granted are spent

CircleCancelled (asyncio.CancelledError)   the circle was called off; it too carries `partial_result`
NotKeptWarning (UserWarning)               judged, but the store could not keep it
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from firecircle.circle.result import FireCircleResult

FailureKind = Literal[
    "timeout",
    "rate_limited",
    "http_error",
    "connection",
    "refused",
    "unparseable",
    "over_budget",
    "raised",
]
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)


class FireCircleError(Exception):
    """The root of every error this package raises on purpose."""


class ConfigError(FireCircleError, ValueError):
    """A declaration that cannot work; the message names the field and the way out."""


class PromptError(ConfigError):
    """The prompt to judge is empty, too large or contradicts itself."""


class UnknownModelError(ConfigError):
    """A model nobody declared: the quorum cannot know which lens it brings."""


class StoreError(FireCircleError):
    """The database cannot be reached, is of another version, or holds something that is no circle."""


class EvaluationError(FireCircleError):
    """Judging failed. What was heard until then is in `partial_result`."""

    def __init__(
        self,
        message: str,
        model: str | None = None,
        layer_name: str | None = None,
        partial_result: FireCircleResult | None = None,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.layer_name = layer_name
        self.partial_result = partial_result


class VoiceError(EvaluationError):
    """One voice could not answer; the message is the provider's own."""

    def __init__(
        self, message: str, *, kind: FailureKind, model: str | None = None, attempts: int = 1
    ) -> None:
        super().__init__(message, model=model)
        self.kind = kind
        self.attempts = attempts


class QuorumError(EvaluationError):
    """The surviving voices no longer form a quorum; a consensus would not deserve the word."""


class BudgetError(EvaluationError):
    """The money or tokens granted to this circle are spent."""


class CircleCancelled(asyncio.CancelledError):
    """The circle was called off; everything heard until then is in `partial_result`."""

    def __init__(self, partial_result: FireCircleResult) -> None:
        super().__init__("the circle was cancelled")
        self.partial_result = partial_result


class NotKeptWarning(UserWarning):
    """A prompt was judged, but the store could not keep what was said; the message says why."""
