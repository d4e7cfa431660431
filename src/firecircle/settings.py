"""The user's settings: `firecircle.toml` and the user's folders.

The file declares providers, the characteristics and prices of models, and defaults of the command line. It
never contains a key, only the name of the environment variable with the key.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from pydantic import ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from firecircle.errors import ConfigError, UntrustedSettingsWarning
from firecircle.files import read_regular, stays_in
from firecircle.names import Effort, WireName
from firecircle.shapes import Location, Shape, config_error
from firecircle.trust import TrustedFiles, allowed_part

FILE_NAME = "firecircle.toml"
FILE_VARIABLE = "FIRECIRCLE_CONFIG"
"""The environment variable with the settings file; if it is set but empty, no file is read."""
LARGEST_BYTES = 1_000_000
MOST_NAMED = 8
"""Number of ignored settings that a line names."""

SECRETS = re.compile(r"(?i)(?:api[-_]?)?key|token|secret|password|(?:proxy-)?authorization|x-api-key|cookie")
"""Names that usually stand for a key."""

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ProviderName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


class _Table(Shape):
    """A table of the file. Types are strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Concurrency(_Table):
    """How many calls a provider gets at once: at first, and at most."""

    start: int = Field(default=20, ge=1)
    most: int = Field(default=200, ge=1)

    @field_validator("most")
    @classmethod
    def _no_less_than_at_first(cls, most: int, info: ValidationInfo) -> int:
        if most < info.data.get("start", most):
            raise ValueError("is less than start")
        return most


class Auth(_Table):
    """`[providers.NAME.auth]`: how a provider expects its key, and parameters of its address."""

    model_config = ConfigDict(hide_input_in_errors=True)

    header: str = Field(default="authorization", pattern=r"^[A-Za-z0-9-]+$")
    """The header that carries the key."""
    scheme: str = Field(default="Bearer", pattern=r"^[A-Za-z0-9-]*$")
    """The word before the key in that header; empty for the key alone."""
    query: dict[str, str] = Field(default_factory=dict)
    """Parameters of every address, such as Azure's `api-version`. Keys belong in a header."""

    @field_validator("query")
    @classmethod
    def _without_keys(cls, query: dict[str, str]) -> dict[str, str]:
        if secret := next((name for name in query if SECRETS.fullmatch(name)), None):
            raise ValueError(f"{secret!r} looks like a key; name the key's header in auth.header")
        return query

    def headers(self, key: SecretStr | None) -> dict[str, str]:
        """The header with the key."""
        if key is None:
            return {}
        shown = key.get_secret_value()
        return {self.header.lower(): f"{self.scheme} {shown}" if self.scheme else shown}

    def with_query(self, url: str) -> str:
        """An address with the provider's parameters."""
        return f"{url}?{urlencode(self.query)}" if self.query else url


class ProviderTable(_Table):
    """`[providers.NAME]`: your own endpoint, or changes to a built-in one."""

    base_url: str | None = None
    key_variable: VariableName | None = None
    auth: Auth | None = None
    wire: WireName | None = None
    headers: dict[str, str] | None = None
    batches: Literal["openai", "anthropic"] | None = None
    states_cost: bool | None = None
    concurrency: Concurrency | None = None
    structured_output: Literal["auto", "off"] | None = None


class ModelTable(_Table):
    """`[models."provider:model"]`: what a model brings to a quorum."""

    cognitive_roles: dict[str, float]
    provider_lineage: str
    lineage_group: str = ""
    alignment_style: str = ""
    confidence: float = 0.5


class PriceTable(_Table):
    """`[prices."provider:model"]`: US dollars per million tokens."""

    input: Price
    output: Price
    cached_input: Price | None = None
    """Price of input that the provider had cached; by default that of other input."""
    cache_write: Price | None = None
    """Price of input that is written to the cache; by default that of other input."""


class LimitsTable(_Table):
    """`[limits."provider:model"]`: room and time for a model, instead of the catalog's."""

    max_tokens: int | None = Field(default=None, ge=1)
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """For one attempt."""
    timeout_per_round: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    reasoning_effort: Effort | None = None


class StoreTable(_Table):
    """`[store]`: whether the command line saves what it judges, and where."""

    save: bool = True
    path: str | None = None
    """A SQLite file, relative to the settings file, or a PostgreSQL URL without a password."""
    synchronous: Literal["normal", "full"] = "normal"
    """Whether SQLite waits for the disk at every commit (`full`): then a power cut loses no circle."""


PROMPT_ENDINGS = ("prompt", "md", "txt", "yaml", "yml", "json")
FIXTURES = tuple(
    f"**/{folder}/**/*.{ending}" for folder in ("fixtures", "testdata") for ending in PROMPT_ENDINGS
)


SKILL_FILES = (
    *("SKILL.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md", "*.skill.md", "*.mdc", ".cursorrules"),
    *("copilot-instructions.md", "**/skills/**/*.md", "**/agents/*.md"),
)


class CheckTable(_Table):
    """`[check]`: the kind of each file in a repository. Patterns are those of `.gitignore`."""

    system: tuple[str, ...] = Field(
        (*(f"*.{ending}" for ending in PROMPT_ENDINGS), "*.mdc", ".cursorrules"), strict=False
    )
    """Texts that the operator answers for: system prompts, instructions for agents, documents."""
    skill: tuple[str, ...] = Field(SKILL_FILES, strict=False)
    """Instructions for agents, judged against their declared purpose."""
    document: tuple[str, ...] = Field((), strict=False)
    """Texts of others that are quoted into prompts: retrieved documents, tool results."""
    user: tuple[str, ...] = Field(("*.user.txt", *FIXTURES), strict=False)
    """Texts from users: fixtures and recorded messages."""
    ignore: tuple[str, ...] = Field((), strict=False)
    """In addition to `.gitignore`, `.git`, `node_modules`, `.venv` and the like."""
    baseline: str | None = None
    """The file of accepted findings: relative to the settings file there, an absolute path here."""


class WaitingTable(_Table):
    """`[waiting]`: how runs of the lab and batches wait for an unavailable provider."""

    first_seconds: float = Field(default=5.0, gt=0, allow_inf_nan=False)
    """The first pause, if the provider does not name one."""
    longest_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """The longest pause; each one is twice the one before."""
    patience_seconds: float = Field(default=1800.0, gt=0, allow_inf_nan=False)
    """Total waiting time before the run or batch stops."""


class _Tables(_Table):
    providers: dict[ProviderName, ProviderTable] = Field(default_factory=dict)
    models: dict[str, ModelTable] = Field(default_factory=dict)
    prices: dict[str, PriceTable] = Field(default_factory=dict)
    limits: dict[str, LimitsTable] = Field(default_factory=dict)
    store: StoreTable = StoreTable()
    check: CheckTable = CheckTable()
    waiting: WaitingTable = WaitingTable()
    circle: dict[str, Any] = Field(default_factory=dict)
    """Fields of `FireCircleConfig`, checked when one is made."""


class Settings(_Tables):
    """The content of the settings file, and its path."""

    source: Path | None = None
    """The user's file with these settings: named, in the user's own folder, or trusted."""
    untrusted: Path | None = None
    """The working folder's file, if untrusted. Its `allowed_part` applies in addition to `source`."""
    ignored: tuple[str, ...] = ()
    """The ignored rest of it, by table and key."""

    def note(self) -> str | None:
        """One line about the files in use, and what is ignored until the user trusts it."""
        used = [str(file) for file in (self.source, self.untrusted) if file]
        if not used:
            return None
        if not self.ignored:
            return f"settings: {' and '.join(used)}"
        more = len(self.ignored) - MOST_NAMED
        named = ", ".join(self.ignored[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        return (
            f"settings: {' and '.join(used)}, of which this is ignored because you do not trust it: {named};"
            " read the file, then `firecircle trust .` puts it in force"
        )

    def mistake(self, table: str, wrong: ConfigError) -> ConfigError:
        """The error for a table that cannot be used."""
        return wrong.in_table(table).within(self.source or FILE_NAME)


def current_settings() -> Settings:
    """The settings in this folder; empty without a file. A process reads a file once."""
    surroundings = tuple(os.environ.get(name) for name in SURROUNDINGS)
    return _find(os.environ.get(FILE_VARIABLE), os.getcwd(), surroundings)


def declared_by_environment(name: str) -> bool:
    """Whether `NAME_API_KEY` and `NAME_BASE_URL` are set, which declares a provider."""
    prefix = name.upper().replace("-", "_")
    return bool(os.environ.get(f"{prefix}_BASE_URL") and os.environ.get(f"{prefix}_API_KEY"))


def providers_by_environment() -> tuple[str, ...]:
    """The names of all providers that the environment declares."""
    named = (
        variable.removesuffix("_BASE_URL").lower()
        for variable in os.environ
        if variable.endswith("_BASE_URL")
    )
    return tuple(name for name in named if A_PROVIDER.fullmatch(name) and declared_by_environment(name))


A_PROVIDER = re.compile(r"(?!firecircle)[a-z][a-z0-9_]*")


def forget_settings() -> None:
    """Look for the file again at the next question, for instance after a page reload."""
    _find.cache_clear()
    _read.cache_clear()


_NOTHING = Settings()
SURROUNDINGS = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA")
"""The environment variables that determine the user's folders."""


def trusted_files() -> TrustedFiles:
    """The working folders' files that this user trusts."""
    return TrustedFiles(user_folder("data") / "trusted.json")


def settings_to_trust(file: Path) -> tuple[bytes, dict[str, Any]]:
    """The content of a file to trust, and the part of it that needs trust."""
    content = _content(file)
    _require_inside(_parse(file, content))
    return content, allowed_part(_document(file, content), file.parent)[1]


@lru_cache(maxsize=32)
def _find(named: str | None, working: str, _surroundings: tuple[str | None, ...]) -> Settings:
    """Cached per place and environment: every voice of every circle asks."""
    if named is not None:
        return _read(Path(named).expanduser().absolute()) if named not in ("", os.devnull) else _NOTHING
    users, beside = user_folder("config") / FILE_NAME, Path(working) / FILE_NAME
    if not beside.exists() or (users.exists() and users.samefile(beside)):
        return _read(users) if users.exists() else _NOTHING
    content = _content(beside)
    if trusted_files().has(beside, content):
        return _require_inside(_parse(beside, content))
    own = _read(users) if users.exists() else _NOTHING
    kept, ignored = allowed_part(_document(beside, content), beside.parent)
    settings = _add_allowed_part(own, _tables(beside, kept), beside, tuple(ignored))
    if ignored:
        warnings.warn(UntrustedSettingsWarning(settings.note()), stacklevel=3)
    return settings


def _add_allowed_part(own: Settings, said: _Tables, file: Path, ignored: tuple[str, ...]) -> Settings:
    """The user's own settings plus the allowed part of an untrusted file, which can only lower a budget."""
    check = {key: getattr(said.check, key) for key in said.check.model_fields_set}
    lower = {
        key: value
        for key, value in said.circle.items()
        if not isinstance(held := own.circle.get(key), int | float) or value < held
    }
    return own.model_copy(
        update={
            "check": own.check.model_copy(update=check),
            "circle": {**own.circle, **lower},
            "untrusted": file,
            "ignored": ignored,
        }
    )


def _require_inside(settings: Settings) -> Settings:
    """Refuse links out of a trusted file's folder: their target may have changed since."""
    folder = settings.source.parent if settings.source else Path()
    paths = {
        ("store", "path"): settings.store.path,
        ("check", "baseline"): settings.check.baseline,
        ("circle", "empty_chair_prompt_path"): settings.circle.get("empty_chair_prompt_path"),
    }
    for (table, key), name in paths.items():
        if not isinstance(name, str) or "://" in name or name.startswith("~"):
            continue
        written = os.path.normpath(folder / name)
        if Path(written).is_relative_to(folder) and not stays_in(folder, written):
            wrong = ConfigError(key, "is a link out of the folder", "name the file itself")
            raise settings.mistake(table, wrong)
    return settings


@lru_cache(maxsize=32)
def _read(path: Path) -> Settings:
    return _parse(path, _content(path))


def _parse(path: Path, content: bytes) -> Settings:
    return Settings(**dict(_tables(path, _document(path, content))), source=path)


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_BYTES)
    except OSError as unreadable:
        raise ConfigError(
            str(path),
            f"cannot read it: {unreadable.strerror or unreadable}",
            f"create it, or change {FILE_VARIABLE}",
        ) from None


def _document(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as broken:
        raise ConfigError(str(path), f"is not TOML: {broken}") from None


def _tables(path: Path, document: Mapping[str, Any]) -> _Tables:
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
        raise config_error(invalid, locate=_locate, wording=_wording, with_value=False).within(path) from None
    if tables.check.baseline is None:
        return tables
    baseline = os.path.join(path.parent, tables.check.baseline)
    return tables.model_copy(update={"check": tables.check.model_copy(update={"baseline": baseline})})


def _secrets_in(tables: Mapping[str, Any], table: str = "") -> Iterator[tuple[str, str]]:
    """Places where the file seems to contain a key, as (table, name); models and prices have free names."""
    for name, value in tables.items():
        if isinstance(value, dict):
            is_free = table in ("models", "prices", "limits")
            yield from _secrets_in(value, f"{table}.{name}" if table and not is_free else name)
        elif SECRETS.fullmatch(name):
            yield table, name


def _locate(location: Location) -> tuple[str | None, str | None]:
    """The table and the key; a wrong table is named in brackets."""
    *table, key = [str(part) for part in location if part != "[key]"]
    return (_toml_name(table), key) if table else (None, f"[{_toml_name([key])}]")


def _wording(complaint: ErrorDetails) -> str | None:
    match complaint["type"], complaint["loc"]:
        case "extra_forbidden", location:
            return f"no such {'key' if len(location) > 1 else 'table'}"
        case "missing", _:
            return "is missing"
        case "string_pattern_mismatch", (*_, "key_variable"):
            return "is not the name of an environment variable"
        case "string_pattern_mismatch", _:
            return "is not the name of a provider"
    return None


def _toml_name(table: list[str]) -> str:
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in table)


def user_folder(kind: Literal["config", "cache", "data"]) -> Path:
    """The folder for this user's settings, temporary files or stored circles. It may not exist yet."""
    if folder := os.environ.get(f"XDG_{kind.upper()}_HOME"):
        return Path(folder) / "firecircle"
    if sys.platform == "win32":
        base = os.environ.get("APPDATA" if kind == "config" else "LOCALAPPDATA")
        return (Path(base) if base else Path.home()) / "firecircle"
    if sys.platform == "darwin" and kind != "config":
        folder = "Caches" if kind == "cache" else "Application Support"
        return Path.home() / "Library" / folder / "firecircle"
    return Path.home() / {"data": ".local/share"}.get(kind, f".{kind}") / "firecircle"


def toml_string(text: str) -> str:
    """A TOML string: JSON's escapes are valid in TOML, which also needs DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
