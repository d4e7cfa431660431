"""What every public data shape shares: frozen, closed to unknown fields, always writable as JSON."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from firecircle.errors import ConfigError

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def writable(text: str) -> str:
    """The text with lone surrogates, which no encoding can carry, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()  # much faster than searching, and hardly any text has one
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


Text = Annotated[str, BeforeValidator(_writable_if_text)]
Unit = Annotated[float, BeforeValidator(_number_between_0_and_1)]


class Shape(BaseModel):
    """A frozen record that round-trips through JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Declaration(Shape):
    """A shape that users write by hand: its mistakes are told in one line, as a `ConfigError`."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as invalid:
            cause = invalid.errors(include_url=False)[0].get("ctx", {}).get("error")
            if isinstance(cause, ConfigError):
                raise cause from None
            raise ConfigError(one_line(invalid, type(self).__name__)) from None

    @classmethod
    def load(cls, data: dict[str, Any]) -> Self:
        """The declaration written in a file or a stored record."""
        return cls(**data)


def one_line(invalid: ValidationError, subject: str) -> str:
    """The first complaint of a validation, naming the field, and how many more there are."""
    complaints = invalid.errors(include_url=False)
    first = complaints[0]
    field = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        said = "no such field"
    where = f"{subject}.{field}: " if field else f"{subject}: " if not said.startswith(subject) else ""
    got = ""
    if field and first["type"] not in ("extra_forbidden", "missing"):
        shown = repr(first["input"])
        got = f" (got {shown[:60]}{'…' if len(shown) > 60 else ''})"
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return f"{where}{said}{got}{more}"
