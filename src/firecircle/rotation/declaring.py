"""Write declared characteristics into the user's `firecircle.toml` and leave the rest unchanged.

The file is the user's, with its own comments and order. Only the tables of the given models are replaced, and
the new text is parsed and compared before it replaces the old one.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firecircle.catalog import ModelCharacteristics
from firecircle.errors import ConfigError

_HEADER = re.compile(r"^\s*\[")


def declaration_of(voice: ModelCharacteristics) -> str:
    """The table that declares a voice, as TOML."""
    roles = ", ".join(f"{role} = {share:g}" for role, share in voice.cognitive_roles.items())
    return (
        f"[models.{_toml_string(voice.model_id)}]\n"
        f"provider_lineage = {_toml_string(voice.provider_lineage)}\n"
        f"alignment_style = {_toml_string(voice.alignment_style)}\n"
        f"confidence = {voice.confidence:g}\n"
        f"cognitive_roles = {{ {roles} }}\n"
    )


def declare_in(path: Path, voices: Iterable[ModelCharacteristics]) -> None:
    """Declare these voices in the file and replace their earlier tables; all of them or none."""
    voices = list(voices)
    old = _text_of(path)
    new = old
    for voice in voices:
        new = _remove_tables(new, voice.model_id).rstrip("\n")
        new = f"{new}\n\n{declaration_of(voice)}" if new else declaration_of(voice)
    _require_same_otherwise(path, old, new, voices)
    _replace(path, new)


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as unreadable:
        raise ConfigError(str(path), f"cannot read it: {unreadable}; nothing was written") from None


def _remove_tables(text: str, model: str) -> str:
    """The text without a model's tables; finds only tables with their own header."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = _is_table_of(line, model)
        if not inside or line.lstrip().startswith("#"):
            lines.append(line)
    return "".join(lines)


def _is_table_of(header: str, model: str) -> bool:
    try:
        tables: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        return False
    models = tables.get("models")
    return isinstance(models, dict) and model in models


def _require_same_otherwise(path: Path, old: str, new: str, voices: list[ModelCharacteristics]) -> None:
    try:
        before, after = tomllib.loads(old), tomllib.loads(new)
    except tomllib.TOMLDecodeError as broken:
        raise ConfigError(
            str(path),
            f"cannot be edited safely ({broken})",
            "nothing was written, declare the models by hand",
        ) from None
    expected = {**before.get("models", {})}
    for voice in voices:
        expected[voice.model_id] = tomllib.loads(declaration_of(voice))["models"][voice.model_id]
    if after != {**before, "models": expected}:
        raise ConfigError(
            str(path), "cannot be edited safely", "nothing was written, declare the models by hand"
        )


def _replace(path: Path, text: str) -> None:
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                os.chmod(file.name, target.stat().st_mode & 0o777)
            os.replace(file.name, target)
    except OSError as unwritable:
        raise ConfigError(str(path), f"cannot write it: {unwritable.strerror or unwritable}") from None


def _toml_string(text: str) -> str:
    """A TOML string: JSON's escapes are valid in TOML, which also needs DEL escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return plain.replace("\x7f", "\\u007f")
