"""Everything that can go wrong, in one tree; catch `FireCircleError` to catch it all.

FireCircleError
├── ConfigError (ValueError)      a mistake in the declaration: never worth a retry
│   ├── PromptError               the prompt to judge is empty, too large or self-contradictory
│   ├── UnknownModelError         the catalog and the settings do not declare this voice
│   └── MissingKeyError           a provider requires a key, and there is none
├── StoreError                    the saved data cannot be reached, read or written
└── EvaluationError               failed while judging; `partial_result` has what was said
    ├── VoiceError                one voice could not answer; `kind` says how
    ├── QuorumError               the surviving voices are too few or too alike
    └── BudgetError               the budget of money or tokens is spent

A cancelled circle raises plain `asyncio.CancelledError`; `partial_result_of` returns what was said.
NotKeptWarning (UserWarning)               judged, but the store could not save it
UntrustedSettingsWarning (UserWarning)     part of a settings file is ignored until the user trusts it
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
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


class FireCircleError(Exception):
    """The root of all errors that this package raises on purpose. Catch it to catch them all."""


class ConfigError(FireCircleError, ValueError):
    """A setting that cannot work: what is wrong, in which field, and what to do.

    `str(error)` is one line: `field: message; remedy`.
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
        self.place = ""
        """Where the field is, as the user wrote it, such as `firecircle.toml: [circle]`."""

    def __str__(self) -> str:
        named = ".".join(part for part in (self.shape, self.field) if part)
        way_out = f"; {self.remedy}" if self.remedy else ""
        return f"{self.place}{f'{named}: ' if named else ''}{self.message}{way_out}"

    def within(self, place: object) -> Self:
        """The same error, located in a file, line or argument."""
        return self._copy_with(place=f"{place}: {self.place}")

    def in_table(self, table: str) -> Self:
        """The same error, located in a table of a file; the fields are the table's keys."""
        return self._copy_with(place=f"[{table}] {self.place}", shape=None)

    def renamed(self, field: str | None) -> Self:
        """The same error under the name that the user wrote for the field."""
        return self._copy_with(field=field, shape=None)

    def advising(self, remedy: str | None) -> Self:
        """The same error with another remedy."""
        return self._copy_with(remedy=remedy)

    def _copy_with(self, **changes: str | None) -> Self:
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
        """The remedy for users who do not write Python."""

    def without_code(self) -> Self:
        """The same error, worded for the command line and the viewer."""
        return self.advising(self.in_a_file) if self.in_a_file else self


class MissingKeyError(ConfigError):
    """A provider requires a key, and neither the configuration nor the environment has one."""

    def __init__(self, provider: str, variable: str) -> None:
        super().__init__(
            None,
            f"{provider} needs a key: set {variable}, or give api_key= together with provider={provider!r}",
            "the embedded circle needs no key: FireCircleConfig.embedded()",
        )
        self.provider = provider
        self.variable = variable
        """The environment variable that should contain the key."""

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
        """What was consumed before the failure; None if no voice was asked."""
        self.failures = tuple(failures or (partial_result.failures if partial_result else ()))


def unexpected_error(error: Exception) -> EvaluationError:
    """Wrap a system error or a bug as an `EvaluationError` that says what happened and where."""
    if isinstance(error, OSError):
        return EvaluationError(f"could not be judged: {error}")
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    where = f" ({place.tb_frame.f_globals.get('__name__')}, line {place.tb_lineno})" if place else ""
    return EvaluationError(f"this is a bug in firecircle: {type(error).__name__}: {error}{where}")


class VoiceError(EvaluationError):
    """One voice could not answer. The message is the provider's own; `kind` classifies it, such as
    `rate_limited`, and `may_pass` says whether a later retry may work.
    """

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
        """What the call consumed all the same, if known."""
        self.unknown_model = unknown_model
        """Whether the provider says that it does not have this model."""
        self.may_pass = may_pass
        """Whether the same call may work later: the network, a limit or the server was the cause."""
        self.retry_after = retry_after
        """The seconds to wait before a retry, if the provider names them."""


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
    """Part of the working folder's `firecircle.toml` is ignored because the user has not trusted it. The
    message names the file and the part.
    """


def carry_partial_result(cancelled: asyncio.CancelledError, partial_result: FireCircleResult) -> None:
    """Attach what the voices said to the cancellation that ended the circle."""
    vars(cancelled)["partial_result"] = partial_result


def partial_result_of(error: BaseException) -> FireCircleResult | None:
    """What a circle had heard when this error, cancellation or timeout ended it; None without a circle."""
    return getattr(error, "partial_result", None) or getattr(error.__cause__, "partial_result", None)


def install_command(extra: str) -> str:
    """The command that installs an extra of this package here: from the clone, or by its name."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        origin = distribution("firecircle").read_text("direct_url.json") or "{}"
    except PackageNotFoundError:
        origin = "{}"
    address = urlsplit(json.loads(origin).get("url", ""))
    if address.scheme != "file" or not os.path.isfile(os.path.join(unquote(address.path), "pyproject.toml")):
        return f"pip install 'firecircle[{extra}]'"
    folder = unquote(address.path)
    return f"pip install '{'.' if os.path.samefile(folder, os.getcwd()) else folder}[{extra}]'"
