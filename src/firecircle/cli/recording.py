"""A recorded circle read from a file, and the settings its verdict can be drawn anew under."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import SCHEMA_VERSION, CircleRecord
from firecircle.errors import ConfigError
from firecircle.shapes import one_line

Settings = Mapping[str, float | bool | None]
"""Settings of the verdict by the names of `FireCircleConfig`; None leaves one as it was recorded."""
WHAT_IT_IS = "give a file that `firecircle evaluate --json` wrote"


def read_recording(file: str) -> CircleRecord:
    """What was asked, said and lost in the circle of a file; what followed from it is drawn anew."""
    circle = _circle_in(_document(file), file)
    version = circle.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigError(
            f"{file}: recorded by a newer firecircle (schema {version}, this one reads {SCHEMA_VERSION});"
            " upgrade firecircle"
        )
    try:
        return CircleRecord.model_validate(
            {name: circle[name] for name in CircleRecord.model_fields if name in circle}
        )
    except ValidationError as invalid:
        raise ConfigError(
            f"{file}: no recorded circle: {one_line(invalid, 'circle')}; {WHAT_IT_IS}"
        ) from None


def resettled(config: FireCircleConfig, settings: Settings) -> FireCircleConfig:
    """The configuration with these settings of the verdict."""
    changes = {name: value for name, value in settings.items() if value is not None}
    return FireCircleConfig(**{**dict(config), **changes}) if changes else config


def _document(file: str) -> Any:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as unreadable:
        raise ConfigError(
            f"{file}: cannot be read: {unreadable.strerror or unreadable}; {WHAT_IT_IS}"
        ) from None
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        if _is_export(data):
            raise ConfigError(
                f"{file}: an export, which `firecircle circles import` takes;"
                " `firecircle circles show ID --json` then writes one circle for a replay"
            ) from None
        raise ConfigError(f"{file}: not JSON; {WHAT_IT_IS}") from None


def _circle_in(document: Any, file: str) -> Mapping[str, Any]:
    """The circle in what was written: by itself, in an error, or in the metrics of a prompt."""
    if isinstance(document, dict):
        if "dialogue_history" in document:
            return document
        held = document.get("partial_result") or document.get("fire_circle")
        if isinstance(held, dict):
            return held
        if "partial_result" in document:
            raise ConfigError(
                f"{file}: judging failed before anybody was heard, so there is nothing to replay"
            )
        if "mode" in document and "evaluations" in document:
            raise ConfigError(
                f"{file}: holds no dialogue; only what the fire_circle mode wrote can be replayed"
            )
    raise ConfigError(f"{file}: no recorded circle; {WHAT_IT_IS}")


def _is_export(data: bytes) -> bool:
    """Whether the first line is the one with which an export of circles begins."""
    from firecircle.store.transfer import KIND

    try:
        first = json.loads(data.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("kind") == KIND
