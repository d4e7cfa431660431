"""Records, bad rows, and the map from a file's columns to fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import field_validator, model_validator

from firecircle.errors import ConfigError
from firecircle.names import Label
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Declaration, Text

__all__ = ["BadRow", "BadRows", "Record", "Row"]

KEPT_BAD_ROWS = 100
"""Enough to see what is wrong with a file; counting continues."""


@dataclass(frozen=True, slots=True)
class Record:
    """One prompt to judge, with what is known of it."""

    id: str
    prompt: MultiNeutrosophicPrompt
    label: Label | None
    """None without a label, or if the label means neither."""
    family: str | None
    source: str
    """Where the prompt was first published, or the name of the dataset."""
    row: int
    """The line of the file, the row of the table or the number of the file in its folder, from 1."""
    group: str | None = None
    """Connects prompts, such as an attack and its benign twin: none is trained on when another is tested."""

    def completed(self, shared: MultiNeutrosophicPrompt) -> Record:
        """The record with the shared system text, application text or turns that it lacks."""
        missing: dict[str, object] = {
            name: getattr(shared, name)
            for name in ("system", "application")
            if getattr(shared, name) and not getattr(self.prompt, name).strip()
        }
        if self.prompt.turns is None and shared.turns is not None:
            missing["turns"] = shared.turns
        return replace(self, prompt=self.prompt.model_copy(update=missing)) if missing else self


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not a record, and why. `line` counts like `Record.row`."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the file, before the field map."""

    line: int
    cells: Mapping[str, object]


@dataclass(slots=True)
class BadRows:
    """Counts every bad row and stores the first ones; pass it to `read_dataset` as `on_bad_row`."""

    count: int = 0
    first: list[BadRow] = field(default_factory=list)

    def __call__(self, bad: BadRow) -> None:
        """Add a bad row."""
        self.count += 1
        if len(self.first) < KEPT_BAD_ROWS:
            self.first.append(bad)


MapField = Literal["id", "system", "application", "user", "turns", "label", "family", "source", "group"]
MAP_FIELDS: tuple[MapField, ...] = (
    "id",
    "system",
    "application",
    "user",
    "turns",
    "label",
    "family",
    "source",
    "group",
)
LAYER_FIELDS: tuple[MapField, ...] = ("system", "application", "user")
USUAL_NAMES: dict[MapField, tuple[str, ...]] = {
    "system": ("system", "system_prompt"),
    "user": ("user", "prompt", "text", "message", "question", "query", "input"),
    "label": ("label", "is_attack", "attack", "injection", "is_injection", "malicious", "jailbreak"),
}
"""Usual names of a field in files, most likely first; case is ignored."""
USUAL_LABELS: dict[str, Label] = {
    "yes": "attack",
    "malicious": "attack",
    "unsafe": "attack",
    "no": "benign",
    "safe": "benign",
}
"""Label values that are known without a map, unless a map says otherwise."""


class FieldMap(Declaration):
    """The file's own field names. A field named here must exist; a default one may be missing."""

    id: Text | None = "id"
    system: Text | None = "system"
    application: Text | None = "application"
    user: Text | None = "user"
    turns: Text | None = "turns"
    """The earlier turns: a list of role and content, `[]` for a known first turn, null if unknown."""
    label: Text | None = "label"
    family: Text | None = "family"
    source: Text | None = "source"
    group: Text | None = "group"
    """Prompts of one group, such as an attack and its benign twin, are in the same fold of `guided`."""
    attack: tuple[Text, ...] = ("attack", "1", "true", "manipulative", "extractive")
    benign: tuple[Text, ...] = ("benign", "0", "false", "reciprocal")
    unlabelled: tuple[Text, ...] = ("borderline",)
    """Label values that mean neither: the prompt is judged and left out of every rate."""

    @field_validator(*MAP_FIELDS, mode="after")
    @classmethod
    def _empty_is_none(cls, name: str | None) -> str | None:
        """TOML has no null: an empty name says that the file has no such field."""
        return name or None

    @model_validator(mode="after")
    def _label_values_mean_one_thing(self) -> FieldMap:
        meanings = [plain_label(value) for values in self._meanings() for value in values]
        twice = sorted({value for value in meanings if meanings.count(value) > 1})
        if twice:
            raise ConfigError(
                "FieldMap",
                f"the label {twice[0]!r} is listed twice",
                "put it under one of attack, benign and unlabelled",
            )
        return self

    def _meanings(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        return self.attack, self.benign, self.unlabelled

    def name_of(self, field: MapField) -> str | None:
        """The file's name for this field."""
        name: str | None = getattr(self, field)
        return name

    def fitted_to(self, present: Collection[str]) -> FieldMap:
        """The map with the file's usual names in place of default ones that the file does not have."""
        plain = {name.strip().casefold(): name for name in reversed(list(present))}
        recognised: dict[str, str] = {
            field: next(plain[usual] for usual in names if usual in plain)
            for field, names in USUAL_NAMES.items()
            if field not in self.model_fields_set
            and self.name_of(field) not in present
            and any(usual in plain for usual in names)
        }
        return self.model_copy(update=recognised)

    @property
    def named_by_user(self) -> tuple[MapField, ...]:
        """The fields whose name was given, so that a file without them is an error."""
        return tuple(
            field
            for field in MAP_FIELDS
            if field in self.model_fields_set and self.name_of(field) is not None
        )

    def knows_label(self, value: object) -> bool:
        """Whether this value is a label, listed or usual."""
        plain = plain_label(value)
        return plain in USUAL_LABELS or any(plain in map(plain_label, values) for values in self._meanings())

    def label_of(self, value: object) -> Label | None:
        """The label of a value. A value that is not listed is a `ConfigError`."""
        plain = plain_label(value)
        if not plain or plain in map(plain_label, self.unlabelled):
            return None
        if plain in map(plain_label, self.attack):
            return "attack"
        if plain in map(plain_label, self.benign):
            return "benign"
        if plain in USUAL_LABELS:
            return USUAL_LABELS[plain]
        raise ConfigError(
            self.label,
            (
                f"{plain[:40]!r} is neither attack ({_list_values(self.attack, 'attack')}) nor benign"
                f" ({_list_values(self.benign, 'benign')})"
            ),
            "say which it is with --label-map VALUE=LABEL, or in a plan under [datasets.fields]",
        )


def _list_values(listed: tuple[str, ...], label: Label) -> str:
    return ", ".join((*listed, *(value for value, meaning in USUAL_LABELS.items() if meaning == label)))


def plain_label(value: object) -> str:
    """A label value as text: 1, 1.0 and "1" are the same, and so are True and "TRUE"."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().casefold()
