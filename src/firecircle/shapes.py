"""What every public data shape shares: frozen, no unknown fields, always valid JSON."""

from __future__ import annotations

import ast
import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from firecircle.errors import ConfigError

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def writable(text: str) -> str:
    """Replace lone surrogates, which no encoding can represent, by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()  # much faster than a search, and hardly any text has one
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", text)
    return text


def _writable_if_text(value: Any) -> Any:
    return writable(value) if isinstance(value, str) else value


def _number_between_0_and_1(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number between 0 and 1")
    if math.isnan(value) or not 0.0 <= value <= 1.0:
        raise ValueError("must be between 0 and 1")
    return float(value)


LAST_MOMENT = 253_370_764_800.0
"""The beginning of the year 9999: some systems cannot write later dates."""


def _moment(value: float) -> float:
    if not 0 <= value <= LAST_MOMENT:
        raise ValueError("must be a time between the years 1970 and 9999, in seconds since 1970")
    return value


Moment = Annotated[float, AfterValidator(_moment)]
Text = Annotated[str, BeforeValidator(_writable_if_text)]
Unit = Annotated[float, BeforeValidator(_number_between_0_and_1)]


_set = object.__setattr__


class Shape(BaseModel):
    """A frozen record that round-trips through JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, with a faster path for plain copies, which each call of a circle needs."""
        if deep:
            return super().model_copy(update=update, deep=True)
        stated = self.__pydantic_fields_set__
        if update and not update.keys() <= stated:
            stated = stated.union(update)
        return type(self)._of({**self.__dict__, **(update or {})}, stated)

    @classmethod
    def assembled(cls, **parts: Any) -> Self:
        """Build from values that the engine computed or checked; requires every field and checks none.

        Anything from a voice, a file or a user goes through the constructor.
        """
        names, stated = _fields_of(cls)
        in_order = parts if [*parts] == names else {name: parts[name] for name in names}
        return cls._of(in_order, stated)

    @classmethod
    def _of(cls, values: dict[str, Any], stated: set[str]) -> Self:
        made = cls.__new__(cls)
        _set(made, "__dict__", values)
        _set(made, "__pydantic_fields_set__", stated)
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made


@cache
def _fields_of(shape: type[Shape]) -> tuple[list[str], set[str]]:
    """The names of all fields, in order and as a shared set."""
    return list(shape.model_fields), set(shape.model_fields)


class Declaration(Shape):
    """A shape that users write by hand: mistakes are one-line `ConfigError`s."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as invalid:
            if cause := mistake_behind(invalid.errors(include_url=False)[0]):
                raise cause from None
            raise config_error(invalid, type(self).__name__) from None

    @classmethod
    def load(cls, data: dict[str, Any]) -> Self:
        """Build from a file or a stored record."""
        return cls(**data)


Declared = TypeVar("Declared", bound=Declaration)


def with_fields_in_help(declaration: type[Declared]) -> type[Declared]:
    """Show every field in `help()` with its default and the docstring below it in the source."""
    meanings: dict[str, str] = {}
    for base in reversed(declaration.__mro__):
        meanings |= _below_fields(base.__module__).get(base.__name__, {})
    paragraphs = [f"{declaration.__doc__}\n\nFields:"]
    for name, field in declaration.model_fields.items():
        default = "made afresh" if field.default_factory else repr(field.default)
        meaning = textwrap.indent(textwrap.fill(meanings.get(name, ""), 96), " " * 8)
        paragraphs.append(f"    {name} = {default}\n{meaning}".rstrip())
    if meanings:  # else the source is not available
        declaration.__doc__ = "\n".join(paragraphs)
    return declaration


@cache
def _below_fields(module: str) -> dict[str, dict[str, str]]:
    """The docstrings below the fields of each class in one of our modules."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not module.startswith("firecircle."):
        return {}
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError):
        return {}
    return {
        found.name: {
            field.target.id: " ".join(below.value.value.split())
            for field, below in pairwise(found.body)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if isinstance(below.value.value, str)
        }
        for found in tree.body
        if isinstance(found, ast.ClassDef)
    }


Location = tuple[int | str, ...]


def _dotted(location: Location) -> tuple[str | None, str | None]:
    return None, ".".join(str(part) for part in location) or None


def _no_such_field(complaint: ErrorDetails) -> str | None:
    return "no such field" if complaint["type"] == "extra_forbidden" else None


def config_error(
    invalid: ValidationError,
    shape: str | None = None,
    *,
    locate: Callable[[Location], tuple[str | None, str | None]] = _dotted,
    wording: Callable[[ErrorDetails], str | None] = _no_such_field,
    with_value: bool = True,
) -> ConfigError:
    """The first validation error, and how many more there are.

    `locate` returns the table and field of a location, `wording` replaces pydantic's words. Without
    `with_value` the value is not quoted: it may be a secret.
    """
    first, *others = invalid.errors(include_url=False, include_input=with_value)
    table, field = locate(first["loc"])
    message, remedy = wording(first), None
    if message is None:
        cause = mistake_behind(first)
        if cause is not None and not field:
            field, message, remedy = cause.field, cause.message, cause.remedy
        else:
            message = first["msg"].removeprefix("Value error, ")
    if with_value and first["loc"] and first["type"] not in ("extra_forbidden", "missing"):
        shown = repr(first["input"])
        message += f" (got {shown[:60]}{'…' if len(shown) > 60 else ''})"
    # A list whose only member is wrong counts as too short as well.
    if more := sum(other["type"] != "too_short" for other in others):
        message += f" (and {more} more)"
    mistake = ConfigError(field, message, remedy, shape=shape)
    return mistake if table is None else mistake.in_table(table)


def mistake_behind(complaint: ErrorDetails) -> ConfigError | None:
    """The `ConfigError` that one of our validators raised inside pydantic's complaint, if any."""
    cause = complaint.get("ctx", {}).get("error")
    return cause if isinstance(cause, ConfigError) else None
