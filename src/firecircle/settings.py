"""What a user keeps outside the code: `firecircle.toml`, and the folders that are the user's own.

The file says who hosts models, what undeclared models bring and cost, and what the command line does
when nothing is said. It never holds a key: it names the environment variable that does.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from firecircle.errors import ConfigError
from firecircle.shapes import Location, Shape, config_error

FILE_NAME = "firecircle.toml"
FILE_VARIABLE = "FIRECIRCLE_CONFIG"
"""Names the file to use; set but empty, no file is read at all."""
LARGEST_BYTES = 1_000_000

SECRETS = re.compile(r"(?i)(?:api[-_]?)?key|token|secret|password|(?:proxy-)?authorization|x-api-key|cookie")
"""Names under which people write down a key."""

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ProviderName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


class _Table(Shape):
    """A table of the file: what stands there must have the right type as it stands."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Concurrency(_Table):
    """How many calls a provider is given at once: at first, and at the very most."""

    start: int = Field(default=20, ge=1)
    most: int = Field(default=200, ge=1)

    @field_validator("most")
    @classmethod
    def _no_less_than_at_first(cls, most: int, info: ValidationInfo) -> int:
        if most < info.data.get("start", most):
            raise ValueError("is less than start")
        return most


class ProviderTable(_Table):
    """`[providers.NAME]`: an endpoint of one's own, or what is different about a known one."""

    base_url: str | None = None
    key_variable: VariableName | None = None
    headers: dict[str, str] | None = None
    concurrency: Concurrency | None = None
    structured_output: Literal["auto", "off"] | None = None


class ModelTable(_Table):
    """`[models."provider:model"]`: what a model brings to a quorum."""

    cognitive_roles: dict[str, float]
    provider_lineage: str
    alignment_style: str = ""
    confidence: float = 0.5


class PriceTable(_Table):
    """`[prices."provider:model"]`: US dollars for a million tokens."""

    input: Price
    output: Price
    cached_input: Price | None = None
    """What the part of the input that the provider had cached costs; without it, as much as the rest."""


class LimitsTable(_Table):
    """`[limits."provider:model"]`: how much room and time a model gets, if not what the catalog says."""

    max_tokens: int | None = Field(default=None, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """For one attempt."""
    timeout_per_round: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class StoreTable(_Table):
    """`[store]`: whether the command line keeps what it judges, and where."""

    save: bool = True
    path: str | None = None
    """A SQLite file, from the folder of the settings file on, or a PostgreSQL URL without a password."""


PROMPT_ENDINGS = ("prompt", "md", "txt", "yaml", "yml", "json")
FIXTURES = tuple(
    f"**/{folder}/**/*.{ending}" for folder in ("fixtures", "testdata") for ending in PROMPT_ENDINGS
)


class CheckTable(_Table):
    """`[check]`: which files of a repository are what. Patterns are those of `.gitignore`."""

    system: tuple[str, ...] = Field(
        (*(f"*.{ending}" for ending in PROMPT_ENDINGS), "*.mdc", ".cursorrules"), strict=False
    )
    """Texts that the operator answers for: system prompts, instructions for agents, documents."""
    user: tuple[str, ...] = Field(("*.user.txt", *FIXTURES), strict=False)
    """Texts that come from users: fixtures and recorded messages."""
    ignore: tuple[str, ...] = Field((), strict=False)
    """Beside `.gitignore`, `.git`, `node_modules`, `.venv` and the like."""
    baseline: str | None = None
    """The file of accepted findings, from the folder of the settings file on."""


class WaitingTable(_Table):
    """`[waiting]`: how runs of the lab and batches wait for a provider that is out."""

    first_seconds: float = Field(default=5.0, gt=0, allow_inf_nan=False)
    """The first pause, where the provider does not say how long."""
    longest_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """The longest, after pauses that were each twice the one before."""
    patience_seconds: float = Field(default=1800.0, gt=0, allow_inf_nan=False)
    """For how long it is waited in all before the run or batch stops."""


class _Tables(_Table):
    """All the tables a file may hold."""

    providers: dict[ProviderName, ProviderTable] = Field(default_factory=dict)
    models: dict[str, ModelTable] = Field(default_factory=dict)
    prices: dict[str, PriceTable] = Field(default_factory=dict)
    limits: dict[str, LimitsTable] = Field(default_factory=dict)
    store: StoreTable = StoreTable()
    check: CheckTable = CheckTable()
    waiting: WaitingTable = WaitingTable()
    circle: dict[str, Any] = Field(default_factory=dict)
    """Fields of `FireCircleConfig`, checked by whoever makes one of them."""


class Settings(_Tables):
    """Everything the file says, and which file that is."""

    source: Path | None = None
    """The file all this was read from."""
    vouched_for: bool = False
    """Whether the user chose the file: it was named, or stands in the user's own folder. One that merely
    lies in the working folder may be anybody's."""

    def mistake(self, table: str, wrong: ConfigError) -> ConfigError:
        """The error of somebody who could not use what a table says."""
        return wrong.in_table(table).within(self.source or FILE_NAME)


_in_force: ContextVar[Settings | None] = ContextVar("settings in force", default=None)


@contextmanager
def settings_in_force() -> Iterator[None]:
    """Let everything inside go by the settings of this moment: a circle asks for them dozens of times."""
    before = _in_force.set(current_settings())
    try:
        yield
    finally:
        _in_force.reset(before)


def current_settings() -> Settings:
    """What the file says here; without a file, nothing. A process reads a file once."""
    if (held := _in_force.get()) is not None:
        return held
    surroundings = tuple(os.environ.get(name) for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"))
    return _found(os.environ.get(FILE_VARIABLE), os.getcwd(), surroundings)


def read_settings_anew() -> None:
    """Let the next question look for the file again: whoever reloads a page has perhaps mended it."""
    _found.cache_clear()
    _read.cache_clear()


_NOTHING = Settings()


@lru_cache(maxsize=32)
def _found(named: str | None, working: str, _surroundings: tuple[str | None, ...]) -> Settings:
    """Looked for once per place and environment: every voice of every circle asks."""
    if named is not None:
        return _read(Path(named).expanduser().absolute(), vouched_for=True) if named else _NOTHING
    for folder, is_users in ((Path(working), False), (user_folder("config"), True)):
        if (folder / FILE_NAME).exists():
            return _read(folder / FILE_NAME, vouched_for=is_users)
    return _NOTHING


@lru_cache(maxsize=32)
def _read(path: Path, *, vouched_for: bool) -> Settings:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as unreadable:
        raise ConfigError(
            str(path),
            f"cannot read it: {unreadable.strerror or unreadable}",
            f"create it, or change {FILE_VARIABLE}",
        ) from None
    if len(data) > LARGEST_BYTES:
        raise ConfigError(str(path), f"larger than {LARGEST_BYTES:,} bytes; that is no settings file")
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as broken:
        raise ConfigError(str(path), f"is not TOML: {broken}") from None
    for table, name in _secrets_in(document):
        mistake = ConfigError(
            name,
            "a key does not belong into a file",
            "put it into an environment variable and name that with key_variable",
        )
        raise (mistake.in_table(table) if table else mistake).within(path)
    try:
        tables = _Tables.model_validate(document)
    except ValidationError as invalid:
        raise config_error(invalid, locate=_located, wording=_wording, with_value=False).within(
            path
        ) from None
    return Settings(**dict(tables), source=path, vouched_for=vouched_for)


def _secrets_in(tables: Mapping[str, Any], table: str = "") -> Iterator[tuple[str, str]]:
    """Wherever the file seems to hold a key, as (table, name); models and prices go by free names."""
    for name, value in tables.items():
        if isinstance(value, dict):
            is_free = table in ("models", "prices", "limits")
            yield from _secrets_in(value, f"{table}.{name}" if table and not is_free else name)
        elif SECRETS.fullmatch(name):
            yield table, name


def _located(location: Location) -> tuple[str | None, str | None]:
    """The table and the key; a table that is wrong as a whole is named in its brackets."""
    *table, key = [str(part) for part in location if part != "[key]"]
    return (_written(table), key) if table else (None, f"[{_written([key])}]")


def _wording(complaint: ErrorDetails) -> str | None:
    match complaint["type"], complaint["loc"]:
        case "extra_forbidden", location:
            return f"no such {'key' if len(location) > 1 else 'table'}"
        case "missing", _:
            return "is missing"
        case "string_pattern_mismatch", (*_, "key_variable"):
            return "is no name of an environment variable"
        case "string_pattern_mismatch", _:
            return "is no provider's name"
    return None


def _written(table: list[str]) -> str:
    """A table's name as TOML writes it."""
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in table)


def user_folder(kind: Literal["config", "cache", "data"]) -> Path:
    """Where this user keeps settings, throw-away files or stored circles. It need not exist."""
    if folder := os.environ.get(f"XDG_{kind.upper()}_HOME"):
        return Path(folder) / "firecircle"
    if sys.platform == "win32":
        base = os.environ.get("APPDATA" if kind == "config" else "LOCALAPPDATA")
        return (Path(base) if base else Path.home()) / "firecircle"
    if sys.platform == "darwin" and kind != "config":
        folder = "Caches" if kind == "cache" else "Application Support"
        return Path.home() / "Library" / folder / "firecircle"
    return Path.home() / {"data": ".local/share"}.get(kind, f".{kind}") / "firecircle"
