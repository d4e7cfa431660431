"""Everything that can go wrong, in one tree; catch `FireCircleError` to catch it all.

FireCircleError
├── ConfigError (ValueError)      a mistake in the declaration: never worth a retry
│   ├── PromptError               the prompt to judge is empty, too large or self-contradictory
│   ├── UnknownModelError         nobody declared who this voice is
│   └── MissingKeyError           a provider wants a key, and there is none
├── StoreError                    what is kept cannot be reached, read or written
└── EvaluationError               happened while judging; `partial_result` holds what was heard
    ├── VoiceError                one voice could not answer; `kind` says how
    ├── QuorumError               the surviving voices are too few or too alike
    └── BudgetError               the money or tokens granted are spent

A circle that is called off raises plain `asyncio.CancelledError`; `partial_result_of` finds what was heard.
NotKeptWarning (UserWarning)               judged, but the store could not keep it
UntrustedSettingsWarning (UserWarning)     part of a settings file is ignored until the user trusts it
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Literal, Self, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firecircle.circle.result import Accounting, Failure, FireCircleResult
    from firecircle.circle.voice import Usage

FailureKind = Literal[
    "timeout",
    "rate_limited",
    "http_error",
    "connection",
    "refused",
    "cut_off",
    "unparseable",
    "over_budget",
    "raised",
]
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
PASSING_KINDS: tuple[FailureKind, ...] = ("connection", "rate_limited", "http_error", "timeout")
"""The network, a limit, the server or a deadline was in the way: the voice might have answered."""


class FireCircleError(Exception):
    """The root of all errors that this package raises on purpose. Catch it to catch them all."""


class ConfigError(FireCircleError, ValueError):
    """A setting that cannot work: what is wrong, in which field, and what to do.

    `str(error)` is all of it in one line: `field: message; remedy`.
    """

    def __init__(
        self, field: str | None, message: str, remedy: str | None = None, *, shape: str | None = None
    ) -> None:
        super().__init__(field, message, remedy)
        self.field = field
        """The setting, option, argument or file that is wrong."""
        self.message = message
        self.remedy = remedy
        self.shape = shape
        """The declaration that the field belongs to, such as `FireCircleConfig`."""
        self.place = ""
        """Where the field stands, as it is written before it, such as `firecircle.toml: [circle]`."""

    def __str__(self) -> str:
        named = ".".join(part for part in (self.shape, self.field) if part)
        way_out = f"; {self.remedy}" if self.remedy else ""
        return f"{self.place}{f'{named}: ' if named else ''}{self.message}{way_out}"

    def within(self, place: object) -> Self:
        """The same mistake, told with the file, line or argument it was found in."""
        return self._changed(place=f"{place}: {self.place}")

    def in_table(self, table: str) -> Self:
        """The same mistake, told with the table of a file; the fields are the keys that stand there."""
        return self._changed(place=f"[{table}] {self.place}", shape=None)

    def renamed(self, field: str | None) -> Self:
        """The same mistake in a field that has another name where the user wrote it."""
        return self._changed(field=field, shape=None)

    def advising(self, remedy: str | None) -> Self:
        """The same mistake with another way out."""
        return self._changed(remedy=remedy)

    def _changed(self, **changes: str | None) -> Self:
        changed = copy.copy(self)
        changed.__dict__.update(changes)
        return changed


class PromptError(ConfigError):
    """The prompt is empty, too large, or contradicts itself (such as a turn number and earlier turns that
    disagree).
    """


class UnknownModelError(ConfigError):
    """A model that is not declared, so the quorum does not know its roles. Declare it in
    `model_characteristics`.
    """

    def __init__(
        self, field: str | None, message: str, remedy: str | None = None, *, in_a_file: str | None = None
    ) -> None:
        super().__init__(field, message, remedy)
        self.in_a_file = in_a_file
        """The way out for those who write no Python."""

    def without_code(self) -> Self:
        """The same mistake, told to somebody at the command line or in the viewer."""
        return self.advising(self.in_a_file) if self.in_a_file else self


class MissingKeyError(ConfigError):
    """A provider wants a key, and neither the configuration nor the environment has one."""

    def __init__(self, provider: str, variable: str) -> None:
        super().__init__(
            None,
            f"{provider} needs a key: set {variable}, or give api_key= together with provider={provider!r}",
            "the embedded circle needs none: FireCircleConfig.embedded()",
        )
        self.provider = provider
        self.variable = variable
        """The environment variable that would hold the key."""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.provider, self.variable), self.__dict__


class StoreError(FireCircleError):
    """The database cannot be reached, has a newer version, or contains something that is not a circle."""


class EvaluationError(FireCircleError):
    """Judging failed. `partial_result` has everything that was heard until then."""

    def __init__(
        self,
        message: str,
        model: str | None = None,
        layer_name: str | None = None,
        partial_result: FireCircleResult | None = None,
        failures: Sequence[Failure] = (),
        accounting: Accounting | None = None,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.layer_name = layer_name
        self.partial_result = partial_result
        self.accounting = accounting or (partial_result.accounting if partial_result else None)
        """What was consumed until then; None where nobody was asked."""
        self.failures = tuple(failures or (partial_result.failures if partial_result else ()))
        """The voices that were lost, and how."""


def unexpected_error(error: Exception) -> EvaluationError:
    """An error of the system or a bug as one of the tree: what happened, and where in the source."""
    if isinstance(error, OSError):
        return EvaluationError(f"could not be judged: {error}")
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    where = f" ({place.tb_frame.f_globals.get('__name__')}, line {place.tb_lineno})" if place else ""
    return EvaluationError(f"this is a bug in firecircle: {type(error).__name__}: {error}{where}")


class VoiceError(EvaluationError):
    """One voice could not answer; the message is the provider's own."""

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        model: str | None = None,
        attempts: int = 1,
        usage: Usage | None = None,
        unknown_model: bool = False,
        may_pass: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, model=model)
        self.kind = kind
        self.attempts = attempts
        self.usage = usage
        """What was consumed all the same, if anybody knows."""
        self.unknown_model = unknown_model
        """Whether the provider says that it does not have this model."""
        self.may_pass = may_pass
        """Whether the same call may be answered later: the network, a limit or the server was in the way."""
        self.retry_after = retry_after
        """The seconds after which the provider wants to be asked again, if it says so."""


class QuorumError(EvaluationError):
    """The remaining voices do not form a quorum, so there is no consensus. The message names the roles and
    lineages that are missing.
    """


class BudgetError(EvaluationError):
    """The budget of this circle, in money or tokens, is spent. The message says what was needed and what was
    left.
    """


class NotKeptWarning(UserWarning):
    """A prompt was judged, but the store could not save it. The message says why; the verdict is not
    affected.
    """


class UntrustedSettingsWarning(UserWarning):
    """Part of the working folder's `firecircle.toml` is ignored; the message names the file and the part."""


def carry_partial_result(cancelled: asyncio.CancelledError, partial_result: FireCircleResult) -> None:
    """Attach what a circle heard to the cancellation that ended it."""
    vars(cancelled)["partial_result"] = partial_result


def partial_result_of(error: BaseException) -> FireCircleResult | None:
    """What a circle had heard when this error, cancellation or timeout ended it; None without a circle."""
    return getattr(error, "partial_result", None) or getattr(error.__cause__, "partial_result", None)
