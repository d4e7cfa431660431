"""Read result files of other tools as datasets: promptfoo, garak, PyRIT, and formats of plugins.

Only the input to the model is read, not its answers or the tool's scores. A format is recognised by content,
because all of them end in `.json` or `.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from firecircle.errors import ConfigError
from firecircle.lab.datasets.record import BadRow, Row
from firecircle.lab.datasets.rows import jsonl_rows
from firecircle.plugins import PluginDataset, plugin_datasets
from firecircle.prompt import prompt_of_messages

FORMAT_GLANCE = 65_536
"""Bytes used to distinguish a tool's result file from a plain dataset."""
LARGEST_DOCUMENT = 100_000_000
"""For JSON that is read as a whole; nested lists take twenty times as much memory."""
ATTEMPT_IS_COMPLETE = 2
"""garak writes an attempt when it is sent and again when it is evaluated; the second has this status."""


def tool_rows(path: Path, beginning: bytes) -> Iterator[Row | BadRow] | None:
    """The rows of a result file, under the usual names; None if it is from no known tool."""
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        if b'"entry_type"' in beginning:
            return _garak(path)
        if b'"testCase"' in beginning and b'"promptIdx"' in beginning:
            return _number_rows(_promptfoo_row(row.cells) for row in jsonl_rows(path) if isinstance(row, Row))
    if path.suffix.lower() == ".json":
        return _from_document(path)
    plugin = _plugin_for(path, beginning)
    return _number_rows(plugin.rows(path)) if plugin else None


def plugin_reads(path: Path) -> bool:
    """Whether an installed plugin can read a file with an unknown ending."""
    with path.open("rb") as file:
        return _plugin_for(path, file.read(FORMAT_GLANCE)) is not None


def _plugin_for(path: Path, beginning: bytes) -> PluginDataset | None:
    return next((plugin for plugin in plugin_datasets().values() if plugin.recognises(path, beginning)), None)


def _from_document(path: Path) -> Iterator[Row | BadRow] | None:
    if path.stat().st_size > LARGEST_DOCUMENT:
        raise ConfigError(
            "dataset",
            f"{path} has more than {LARGEST_DOCUMENT:,} bytes",
            "give .jsonl, one object per line: jq -c '.[]' turns a list into it",
        )
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as broken:
        raise ConfigError("dataset", f"{path} is not JSON ({broken})", "write it again") from None
    if isinstance(document, dict):
        results = document.get("results")
        rows = results.get("results") if isinstance(results, dict) else results
        if isinstance(rows, list) and all(isinstance(row, dict) and "testCase" in row for row in rows):
            return _number_rows(map(_promptfoo_row, rows))
    if isinstance(document, list) and document and all(map(_is_pyrit_piece, document)):
        return _number_rows(_pyrit(document))
    return None


def _number_rows(rows: Iterable[Mapping[str, Any] | None]) -> Iterator[Row | BadRow]:
    for number, cells in enumerate(rows, start=1):
        yield Row(number, dict(cells)) if cells is not None else BadRow(number, "it contains no prompt")


def _garak(path: Path) -> Iterator[Row | BadRow]:
    """Every completed attempt of a garak report. What a probe sends is an attack."""
    for row in jsonl_rows(path):
        if isinstance(row, BadRow):
            yield row
        elif row.cells.get("entry_type") == "attempt" and row.cells.get("status") == ATTEMPT_IS_COMPLETE:
            messages = _garak_messages(row.cells.get("prompt"))
            cells = _layers(messages)
            if cells is None:
                yield BadRow(row.line, "the attempt has no prompt that is text")
                continue
            yield Row(
                row.line,
                {
                    **cells,
                    "id": f"{row.cells.get('uuid', row.line)}:{row.cells.get('seq', 0)}",
                    "family": row.cells.get("probe_classname"),
                    "label": "attack",
                },
            )


def _garak_messages(prompt: Any) -> list[tuple[str, str]]:
    """Older reports have the text, newer ones a conversation."""
    if isinstance(prompt, str):
        return [("user", prompt)]
    if not isinstance(prompt, dict):
        return []
    if isinstance(prompt.get("text"), str):
        return [("user", prompt["text"])]
    turns = [turn for turn in prompt.get("turns") or () if isinstance(turn, dict)]
    contents = [(str(turn.get("role", "user")), turn.get("content")) for turn in turns]
    texts = [(role, said.get("text") if isinstance(said, dict) else said) for role, said in contents]
    return [(role, text) for role, text in texts if isinstance(text, str)]


def _promptfoo_row(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """One result of promptfoo. A test from a red-team plugin is an attack; others have no label."""
    test = result.get("testCase")
    test = test if isinstance(test, dict) else {}
    variables = result.get("vars") or test.get("vars") or {}
    prompt = result.get("prompt")
    raw = prompt.get("raw") if isinstance(prompt, dict) else prompt
    cells = _layers(
        chat_of(raw) or _injected_text(variables) or ([("user", raw)] if isinstance(raw, str) else [])
    )
    if cells is None:
        return None
    about = test.get("metadata")
    about = about if isinstance(about, dict) else {}
    plugin, strategy = about.get("pluginId"), about.get("strategyId")
    number = f"{result.get('testIdx', 0)}:{result.get('promptIdx', 0)}"
    return {
        **cells,
        "id": str(result.get("id") or number),
        "family": "/".join(str(part) for part in (plugin, strategy) if part) or None,
        "label": "attack" if plugin else None,
    }


def chat_of(raw: Any) -> list[tuple[str, str]]:
    """The roles and texts of a promptfoo prompt that is a list of messages; empty for any other."""
    if not isinstance(raw, str) or not raw.lstrip().startswith("["):
        return []
    try:
        messages = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    return [
        (str(message.get("role", "user")), message["content"])
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), str)
    ]


def _injected_text(variables: Any) -> list[tuple[str, str]]:
    """The injected text of a red-team test, if the prompt itself is missing."""
    text = variables.get("prompt") if isinstance(variables, dict) else None
    return [("user", text)] if isinstance(text, str) else []


def _is_pyrit_piece(piece: Any) -> bool:
    return isinstance(piece, dict) and {"conversation_id", "role", "converted_value"} <= piece.keys()


def _pyrit(pieces: list[dict[str, Any]]) -> Iterator[dict[str, Any] | None]:
    """Every user message of PyRIT's conversations as it was sent, with the turns before it."""
    conversations: dict[str, list[dict[str, Any]]] = {}
    for piece in pieces:
        conversations.setdefault(str(piece["conversation_id"]), []).append(piece)
    for said in conversations.values():
        said.sort(key=lambda piece: piece.get("sequence") or 0)
        messages: list[tuple[str, str]] = []
        for piece in said:
            text = piece["converted_value"]
            if piece.get("converted_value_data_type", "text") != "text" or not isinstance(text, str):
                continue
            messages.append((str(piece["role"]), text))
            if piece["role"] == "user":
                cells = _layers(messages)
                yield {**cells, "id": str(piece.get("id"))} if cells else None


def _layers(messages: list[tuple[str, str]]) -> dict[str, Any] | None:
    """A conversation as cells of a row; None without a message to judge."""
    prompt = prompt_of_messages(messages)
    return prompt.model_dump() if prompt.user else None
