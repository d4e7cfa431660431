"""Plans: which arms judge which records, how often, within which budget. One TOML file, strict types."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from firecircle.catalog import original_of
from firecircle.errors import ConfigError
from firecircle.files import read_regular, stays_in
from firecircle.lab.datasets import FieldMap
from firecircle.lab.datasets.reading import BUNDLED
from firecircle.names import Label, LayerName, ModeName, is_family
from firecircle.settings import LARGEST_BYTES, SECRETS
from firecircle.shapes import Location, Shape, Unit, config_error, mistake_behind

ArmKind = Literal[
    ModeName,
    "reflect",
    "no_chair",
    "named_peers",
    "clones",
    "leave_one_out",
    "guided",
    "no_turns",
    "attacked",
    "cascade",
    "consistency",
    "court",
    "council",
]
ARM_KINDS: tuple[ArmKind, ...] = get_args(ArmKind)

_OF_THE_PLAN = {
    "alarm_threshold": "one threshold applies to all arms; set it at the top of the plan",
    "seed": "arms are paired, so the plan's seeds apply to all of them",
}
_OF_THE_USER = {
    "lmstudio_base_url": "a plan chooses no address; set FIRECIRCLE_LMSTUDIO_BASE_URL instead",
}
"""A plan may come from a stranger: it names voices, but not where prompts and keys are sent."""
_HOW_OFTEN = ("k", "exchanges")
_LATER_KEYS = (*_HOW_OFTEN, "attacks", "layers")
"""Keys that earlier plans lacked: unset ones are not in the digest, so that older runs can be resumed."""


_LATER_LAYERS = ("system", "application")
"""The same for datasets."""


class _Table(Shape):
    """A table of the plan. Types are strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DatasetPlan(_Table):
    """`[[datasets]]`: a file, a folder or the bundled `examples`, and which of its records to judge."""

    path: str
    """Relative to the plan's folder."""
    name: str = ""
    """The name of this dataset in the records; by default the file's."""
    fields: FieldMap = FieldMap()
    system: str = ""
    """The operator's text for records that have none: the text, or `@file` next to the plan."""
    application: str = ""
    """The same for the application's text."""
    limit: int | None = Field(default=None, ge=1)
    """Judge only this many, from the beginning."""
    sample: int | None = Field(default=None, ge=1)
    """Judge this many, drawn by the plan's first seed."""
    keep: tuple[str, ...] = ()
    """Ids that are judged in addition to `sample`."""
    families: tuple[str, ...] = ()
    """Only these families."""
    labels: tuple[Label, ...] = ()
    """Only records with these labels."""

    @field_validator("fields", mode="before")
    @classmethod
    def _map(cls, value: Any) -> Any:
        return FieldMap(**value) if isinstance(value, dict) else value

    @field_validator("families", "labels", "keep", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> Self:
        if self.limit is not None and self.sample is not None:
            raise ConfigError(None, "limit and sample exclude each other", "keep one")
        if self.keep and self.sample is None:
            raise ConfigError("keep", "goes with sample only; without it everything is judged")
        return self

    @property
    def label(self) -> str:
        """The name of this dataset in the records."""
        return self.name or (self.path if self.is_bundled else Path(self.path).stem)

    @property
    def is_bundled(self) -> bool:
        """Whether these are the examples in the package."""
        return self.path.partition(":")[0] == BUNDLED


class BudgetPlan(_Table):
    """`[budget]`: the limit for the whole run. It may be raised when a run is resumed."""

    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1)

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.usd is not None or self.tokens is not None


class ConcurrencyPlan(_Table):
    """`[concurrency]`: how much runs at once."""

    calls: int = Field(default=64, ge=1)
    """The most calls to hosted and local voices in progress; a provider's own limit may be lower."""
    workers: int | None = Field(default=None, ge=1)
    """Processes for embedded arms; by default the number of cores."""
    batch: bool = False
    """Whether to use batches for OpenAI and Anthropic: half the price, answered within a day."""


class ArmPlan(_Table):
    """`[[arms]]`: one way of judging. Every key not listed here is a setting of its circle."""

    name: str = Field(pattern=r"^[\w .:+-]{1,60}$")
    kind: ArmKind
    like: str | None = None
    """An earlier arm: the circle that `reflect` or a rival protocol matches in calls, that `guided` learns
    from or that `attacked` attacks.
    """
    model: str | None = None
    """The voice that `single` and `consistency` ask, `guided` guides, `clones` repeats, or the chairman."""
    band: tuple[Unit, Unit] | None = None
    """The range of F in which a `cascade` is unsure and asks its second circle."""
    first: tuple[str, ...] | None = None
    """The voices of the first circle of a `cascade`; by default the embedded ones."""
    folds: int | None = Field(default=None, ge=2, le=50)
    """Number of parts of the records in `guided`: each is judged with guidance from the others."""
    k: int | None = Field(default=None, ge=1, le=100)
    """How often `consistency` asks; by default as often as the circle `like`."""
    exchanges: int | None = Field(default=None, ge=1, le=20)
    """How often each side of a `court` speaks; by default as often as the circle `like` allows."""
    attacks: tuple[str, ...] | None = None
    """The attacks on the circle of `attacked`; all by default."""
    layers: tuple[LayerName, ...] | None = None
    """The layers into which `attacked` puts its texts; all by default."""
    settings: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _sort_out_settings(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        own = {key: value for key, value in table.items() if key in cls.model_fields and key != "settings"}
        rest = {key: value for key, value in table.items() if key not in own}
        return {**own, "settings": rest}

    @field_validator("band", "first", "attacks", "layers", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("kind", mode="before")
    @classmethod
    def _known(cls, kind: Any) -> Any:
        if kind not in ARM_KINDS:
            near = get_close_matches(str(kind), ARM_KINDS, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"there is no arm {kind!r}; {meant}there are {', '.join(ARM_KINDS)}")
        return kind

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for key, why in (_OF_THE_PLAN | _OF_THE_USER).items():
            if key in self.settings:
                raise ConfigError(key, why)
        allowed: dict[str, tuple[ArmKind, ...]] = {
            "like": ("reflect", "guided", "consistency", "court", "attacked"),
            "model": ("single", "guided", "clones", "consistency", "council"),
            "band": ("cascade",),
            "first": ("cascade",),
            "folds": ("guided",),
            "k": ("consistency",),
            "exchanges": ("court",),
            "attacks": ("attacked",),
            "layers": ("attacked",),
        }
        for key, kinds in allowed.items():
            if getattr(self, key) is not None and self.kind not in kinds:
                know = "knows" if len(kinds) == 1 else "know"
                raise ConfigError(key, f"only {' and '.join(kinds)} {know} it, this arm is {self.kind}")
        for key in _HOW_OFTEN:
            if self.like is not None and getattr(self, key) is not None:
                raise ConfigError(key, "the circle in like says how often to ask", "keep one of the two")
        if self.band and self.band[0] >= self.band[1]:
            raise ConfigError("band", "the lower end comes first, as in [0.3, 0.8]")
        return self


class Plan(_Table):
    """The content of a plan."""

    name: str = Field(default="run", pattern=r"^[\w.-]{1,40}$")
    about: str = ""
    """The question of the run, in words; the report begins with it."""
    seeds: tuple[int, ...] = (1,)
    """Everything is judged once per seed."""
    repeats: int = Field(default=1, ge=1, le=1000)
    """How often for each seed."""
    alarm_threshold: Unit = 0.7
    budget: BudgetPlan = BudgetPlan()
    concurrency: ConcurrencyPlan = ConcurrencyPlan()
    datasets: tuple[DatasetPlan, ...] = Field(min_length=1)
    circle: dict[str, Any] = Field(default_factory=dict)
    """Settings that all arms share: fields of `FireCircleConfig`. The embedded readers are the default."""
    arms: tuple[ArmPlan, ...] = Field(min_length=1)

    @field_validator("seeds", "datasets", "arms", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if not self.seeds:
            raise ConfigError("seeds", "name at least one")
        _require_distinct("seeds", [str(seed) for seed in self.seeds])
        _require_distinct("datasets", [dataset.label for dataset in self.datasets])
        _require_distinct("arms", [arm.name for arm in self.arms])
        for key, why in (_OF_THE_PLAN | _OF_THE_USER).items():
            if key in self.circle:
                raise ConfigError(f"circle.{key}", why)
        return self

    @property
    def sittings(self) -> tuple[tuple[int, int], ...]:
        """(number, seed) of every time that all records are judged, from 0."""
        every = [seed for seed in self.seeds for _ in range(self.repeats)]
        return tuple(enumerate(every))

    @property
    def families(self) -> frozenset[str]:
        """The families named in place of models."""
        tables = [self.circle, *(arm.model_dump() for arm in self.arms)]
        return frozenset(name for table in tables for name in _families_in(table))

    def seated_as(self, ids: Mapping[str, str]) -> Plan:
        """The same plan with a model in place of each of these families, fixed for a run."""
        if not ids:
            return self
        families = {model: family for family, model in ids.items()}
        arms = tuple(arm.model_copy(update=_with_ids(dict(arm), ids)) for arm in self.arms)
        circle = {**_with_ids(self.circle, ids), "families": families}
        return self.model_copy(update={"circle": circle, "arms": arms})

    @property
    def workers(self) -> int:
        """How many processes, here or on a cluster, run circles of embedded voices."""
        return self.concurrency.workers or os.cpu_count() or 1

    @property
    def digest(self) -> str:
        """Identifies plans with the same figures, which budget and concurrency do not change."""
        content = self.model_dump(mode="json", exclude={"budget", "concurrency", "about"})
        for arm in content["arms"]:
            for key in _LATER_KEYS:
                if arm[key] is None:
                    del arm[key]
        for dataset in content["datasets"]:
            for key in _LATER_LAYERS:
                if not dataset[key]:
                    del dataset[key]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _families_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if is_family(value):
            yield original_of(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _families_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _families_in(part)


def _with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    """A value of the plan with models in place of families."""
    if isinstance(value, str):
        family = original_of(value)
        return ids[family] + value.removeprefix(family) if family in ids else value
    if isinstance(value, Mapping):
        return {key: _with_ids(part, ids) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_with_ids(part, ids) for part in value)
    return value


def _require_distinct(what: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(what, f"{twice[0]!r} is there twice", "give each its own name")


def read_plan(path: Path) -> tuple[Plan, str]:
    """The plan in this file, and the file's text. A `ConfigError` names the table and the key."""
    try:
        data = read_regular(path, LARGEST_BYTES)
    except OSError as unreadable:
        raise ConfigError(
            str(path),
            f"cannot read it: {unreadable.strerror}",
            "`firecircle lab init FILE` writes one to start from",
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is not UTF-8 text") from None
    plan = plan_of(text, str(path))
    for table in (plan.circle, *(arm.settings for arm in plan.arms)):
        prompt = table.get("empty_chair_prompt_path")
        if isinstance(prompt, str) and not stays_in(path.parent, os.path.abspath(prompt)):
            raise ConfigError(
                "empty_chair_prompt_path", f"{prompt} is not in the plan's folder", "put the file there"
            ).within(path)
    return plan, text


def plan_of(text: str, where: str) -> Plan:
    """The plan in this TOML text; errors begin with `where`."""
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as broken:
        raise ConfigError(where, f"is not TOML: {broken}") from None
    for name in _secrets_in(tables):
        raise ConfigError(
            name, "a key does not belong into a plan", "put it into the environment variable of its provider"
        ).within(where)
    try:
        return Plan.model_validate(tables)
    except ConfigError as wrong:
        raise wrong.in_table("datasets.fields").within(where) from None
    except ValidationError as invalid:
        locate = partial(_locate, plan=tables)
        raise config_error(invalid, locate=locate, wording=_wording, with_value=False).within(where) from None


def _secrets_in(plan: dict[str, Any]) -> list[str]:
    arms = plan.get("arms")
    tables = [plan.get("circle"), *(arms if isinstance(arms, list) else ())]
    return [name for table in tables if isinstance(table, dict) for name in table if SECRETS.fullmatch(name)]


def _locate(location: Location, plan: dict[str, Any]) -> tuple[str | None, str | None]:
    *table, key = [*location, ""] if not location or isinstance(location[-1], int) else location
    return _table_name(table, plan) or None, str(key) or None


def _wording(complaint: ErrorDetails) -> str | None:
    kind, location = complaint["type"], complaint["loc"]
    if location in (("datasets",), ("arms",)) and kind in ("missing", "too_short"):
        return f"a plan needs at least one [[{location[0]}]]"
    if cause := mistake_behind(complaint):
        # A field map names itself; the plan names it by its key.
        return str(cause.renamed(cause.field)) if cause.shape else None
    return {
        "extra_forbidden": "no such key",
        "missing": "is missing",
        "string_pattern_mismatch": "letters, digits and a few signs only, and not too long",
    }.get(kind)


def _table_name(table: list[Any], plan: dict[str, Any]) -> str:
    parts: list[str] = []
    here: Any = plan
    for part in table:
        here = here[part] if isinstance(here, dict | list) and _has(here, part) else None
        own = here.get("name") if isinstance(part, int) and isinstance(here, dict) else None
        parts.append(str(own or part + 1) if isinstance(part, int) else str(part))
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else json.dumps(part) for part in parts)


def _has(here: Any, part: Any) -> bool:
    return part in here if isinstance(here, dict) else isinstance(part, int) and part < len(here)
