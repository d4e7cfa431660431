"""From a row and the field map to a record, or to the reason why not."""

from __future__ import annotations

import json

from firecircle.errors import ConfigError
from firecircle.lab.datasets.field_map import FieldMap, MapField
from firecircle.lab.datasets.record import Record, Row
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
from firecircle.shapes import writable


def record_of(row: Row, field_map: FieldMap, dataset: str) -> Record:
    """The record in this row. A `ConfigError` says what is wrong with it."""
    prompt = MultiNeutrosophicPrompt(
        system=_text(row, field_map, "system") or "",
        application=_text(row, field_map, "application") or "",
        user=_text(row, field_map, "user") or "",
        turns=_turns(_cell(row, field_map, "turns"), field_map),
    )
    prompt.require_text()
    return Record(
        id=_text(row, field_map, "id") or f"{dataset}:{row.line}",
        prompt=prompt,
        label=field_map.label_of(_cell(row, field_map, "label")),
        family=_text(row, field_map, "family"),
        source=_text(row, field_map, "source") or dataset,
        row=row.line,
        group=_text(row, field_map, "group"),
    )


def _cell(row: Row, field_map: FieldMap, field: MapField) -> object:
    name = field_map.name_of(field)
    return None if name is None else row.cells.get(name)


def _text(row: Row, field_map: FieldMap, field: MapField) -> str | None:
    """The text of a cell; None when it is null or empty. An id or family may be a number."""
    value = _cell(row, field_map, field)
    if value is None or isinstance(value, str):
        return writable(value) if value else None
    if field in ("id", "family", "source", "group") and isinstance(value, int | float):
        return str(value)
    raise ConfigError(f"{field_map.name_of(field)}: must be text, not {_kind(value)}")


def _turns(value: object, field_map: FieldMap) -> tuple[EarlierTurn, ...] | None:
    """None when unknown. A table without lists may hold them as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            raise ConfigError(f"{field_map.turns}: must be a JSON list of turns") from None
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{field_map.turns}: must be a list of turns, not {_kind(value)}")
    return tuple(_turn(turn, place, field_map) for place, turn in enumerate(value, 1))


def _turn(turn: object, place: int, field_map: FieldMap) -> EarlierTurn:
    role = turn.get("role") if isinstance(turn, dict) else None
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(role, str) or not isinstance(content, str):
        raise ConfigError(f"{field_map.turns}: turn {place} must have role and content, both text")
    return EarlierTurn(role=role, content=content)


def _kind(value: object) -> str:
    return {bool: "a boolean", int: "a number", float: "a number", dict: "an object", list: "a list"}.get(
        type(value), type(value).__name__
    )
