"""The prompts in a file: its whole text, or in YAML and JSON the conversations and prompts written there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firecircle.cli.check.files import STRUCTURED, FileKind, PromptFile
from firecircle.errors import PromptError
from firecircle.files import read_regular
from firecircle.lab.datasets import Record
from firecircle.prompt import MultiNeutrosophicPrompt, prompt_of_messages

LARGEST_BYTES = 4_000_000
MOST_NODES = 100_000
"""How much of a document is looked through; aliases of YAML can make a small file endless."""
SYSTEM_KEYS = ("system", "system_prompt", "systemprompt", "system_message", "instructions", "preamble")
TEMPLATE_KEYS = ("prompt", "template", "prompt_template")
USER_KEYS = ("user", "user_prompt", "user_message", "message", "question", "query", "input", "text")
APPLICATION_KEYS = ("application", "context", "document", "documents")
LAYERS: dict[FileKind, str] = {
    "system": "system",
    "skill": "system",
    "document": "application",
    "user": "user",
}
"""The layer that a file of each kind is judged as."""
LONGEST_NAME = 80
_FEWEST_WORDS = 3
"""A value with fewer words is a name or a setting, no prompt."""


class NotReadError(Exception):
    """The file cannot be looked into; its words say why."""


@dataclass(frozen=True, slots=True)
class FilePrompt:
    """A prompt, the file it is in, and the text of that file to point at."""

    record: Record
    file: PromptFile
    text: str
    start: int = 0
    """Where in the file it begins."""
    is_tool: bool = False

    @property
    def is_skill(self) -> bool:
        """Whether it is judged against a declared purpose."""
        return self.is_tool or self.file.kind == "skill"

    def lines_of(self, quote: str, layer: str, start: int) -> tuple[int, int]:
        """The first and last line of the file with these words of a layer; else where the prompt begins."""
        place = self._place(quote, layer, start)
        return _lines(self.text, *place) if place else (self.record.row, self.record.row)

    def column_of(self, quote: str, layer: str, start: int) -> int:
        """The column of the first of these words, counted from 1."""
        place = self._place(quote, layer, start)
        return place[0] - self.text.rfind("\n", 0, place[0]) if place else 1

    def _place(self, quote: str, layer: str, start: int) -> tuple[int, int] | None:
        if getattr(self.record.prompt, layer, None) == self.text:
            return start, start + len(quote)
        return _place(self.text, quote, self.start) or _place(self.text, quote)


def prompts_in(file: PromptFile) -> list[FilePrompt]:
    """The prompts of a file, none if it holds none."""
    text = _text_of(file)
    if file.path.suffix.lower() not in STRUCTURED:
        return (
            [_file_prompt(file, text, MultiNeutrosophicPrompt(**{LAYERS[file.kind]: text}), "")]
            if text.strip()
            else []
        )
    found: list[FilePrompt] = []
    document = _document(file, text)
    start = 0
    for name, prompt in tools_in(document) if LAYERS[file.kind] == "system" else ():
        start = max(text.find(name, start), start)
        part = f"#{len(found) + 1} {name[:LONGEST_NAME]}"
        found.append(_file_prompt(file, text, prompt, part, start))
    for prompt in dict.fromkeys(_prompts_of_document(document, file.kind)):
        found.append(_file_prompt(file, text, prompt, f"#{len(found) + 1}" if found else ""))
    return found


def _file_prompt(
    file: PromptFile, text: str, prompt: MultiNeutrosophicPrompt, part: str, start: int | None = None
) -> FilePrompt:
    opening = prompt.layers[0].text if prompt.layers else ""
    place = _place(text, opening) if start is None else (start, start)
    line = _lines(text, *place)[0] if place else 1
    record = Record(f"{file.shown}{part}", prompt, None, None, file.shown, line)
    return FilePrompt(record, file, text, start or 0, is_tool=start is not None)


def _text_of(file: PromptFile) -> str:
    try:
        return read_regular(file.path, LARGEST_BYTES).decode("utf-8-sig")
    except OSError as unreadable:
        raise NotReadError(unreadable.strerror or str(unreadable)) from None
    except UnicodeDecodeError:
        raise NotReadError("not UTF-8 text") from None


def _document(file: PromptFile, text: str) -> Any:
    if file.path.suffix.lower() == ".json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as broken:
            raise NotReadError(f"not JSON: {broken}") from None
    import yaml

    try:
        return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, RecursionError, ValueError) as broken:
        problem = getattr(broken, "problem", None) or type(broken).__name__
        mark = getattr(broken, "problem_mark", None)
        raise NotReadError(f"not YAML: {problem}" + (f" in line {mark.line + 1}" if mark else "")) from None


def _prompts_of_document(document: Any, kind: FileKind) -> Iterator[MultiNeutrosophicPrompt]:
    """Every conversation and every prompt in the document, in its order."""
    waiting: list[Any] = [document]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        if isinstance(node, list):
            if (prompt := _conversation(node)) is not None:
                yield prompt
            else:
                waiting += reversed(node)
        elif isinstance(node, Mapping):
            if (prompt := _layered(node, kind)) is not None:
                yield prompt
            waiting += [value for value in reversed(list(node.values())) if isinstance(value, list | Mapping)]


_SCHEMAS = ("inputschema", "input_schema", "parameters", "args_schema", "annotations")
_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def tools_in(document: Any) -> Iterator[tuple[str, MultiNeutrosophicPrompt]]:
    """Every tool that a document describes, by its name: lists of MCP, schemas of functions, OpenAPI."""
    waiting: list[Any] = [document]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(node)
        elif isinstance(node, Mapping):
            if isinstance(node.get("paths"), Mapping) and ("openapi" in node or "swagger" in node):
                yield from _operations(node["paths"])
                continue
            name, described = node.get("name"), node.get("description")
            keys = {str(key).lower() for key in node}
            if isinstance(name, str) and isinstance(described, str) and keys.intersection(_SCHEMAS):
                if described.strip():
                    yield _tool(name, described, node)
            else:
                waiting += reversed(list(node.values()))


def _operations(paths: Mapping[Any, Any]) -> Iterator[tuple[str, MultiNeutrosophicPrompt]]:
    for path, operations in paths.items():
        for method, operation in operations.items() if isinstance(operations, Mapping) else ():
            if str(method).lower() in _METHODS and isinstance(operation, Mapping):
                texts = [operation[key] for key in ("summary", "description") if operation.get(key)]
                if texts:
                    name = str(operation.get("operationId") or path)
                    yield _tool(name, "\n\n".join(map(str, texts)), operation)


def _tool(name: str, description: str, node: Mapping[Any, Any]) -> tuple[str, MultiNeutrosophicPrompt]:
    from firecircle.voices.embedded.lenses.skill import tool_text

    schema = {key: value for key, value in node.items() if key not in ("description", "summary", "name")}
    text = tool_text(name, description, dict(_described(schema)))
    return name, MultiNeutrosophicPrompt(system=text)


def _described(schema: Any) -> Iterator[tuple[str, str]]:
    """Everything below that has a description, by its name."""
    waiting = [("", schema)]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        name, node = waiting.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("description"), str):
                yield str(node.get("name") or name), node["description"]
            waiting += reversed([(str(key), value) for key, value in node.items()])
        elif isinstance(node, list):
            waiting += reversed([(name, value) for value in node])


def _conversation(messages: list[Any]) -> MultiNeutrosophicPrompt | None:
    """A list of messages with roles as a layered prompt: the last message of the user is under judgement."""
    if not messages or not all(isinstance(m, Mapping) and isinstance(m.get("role"), str) for m in messages):
        return None
    try:
        prompt = prompt_of_messages(
            (message["role"], _content(message.get("content"))) for message in messages
        )
    except PromptError as wrong:
        raise NotReadError(str(wrong)) from None
    return prompt if prompt.system or prompt.application or prompt.user else None


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return _joined(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return ""


def _layered(table: Mapping[Any, Any], kind: FileKind) -> MultiNeutrosophicPrompt | None:
    """The prompt whose layers stand under the usual keys of a table."""
    texts = {str(key).strip().lower().replace("-", "_"): value for key, value in table.items()}

    def under(keys: tuple[str, ...]) -> str:
        return _joined(value for key in keys if isinstance(value := texts.get(key), str) and _is_prose(value))

    if LAYERS[kind] == "system":
        system, user = under((*SYSTEM_KEYS, *TEMPLATE_KEYS)), under(USER_KEYS[:3])
    else:
        system, user = under(SYSTEM_KEYS), under((*USER_KEYS, *TEMPLATE_KEYS))
    if not system and not user:
        return None
    return _prompt(system=system, application=under(APPLICATION_KEYS), user=user)


def _prompt(**layers: Any) -> MultiNeutrosophicPrompt | None:
    if not any(layers.get(name, "").strip() for name in ("system", "application", "user")):
        return None
    try:
        return MultiNeutrosophicPrompt(**layers)
    except PromptError as wrong:
        raise NotReadError(str(wrong)) from None


def _is_prose(value: str) -> bool:
    return len(value.split()) >= _FEWEST_WORDS


def _joined(texts: Iterator[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def _lines(text: str, start: int, end: int) -> tuple[int, int]:
    first = text.count("\n", 0, start) + 1
    return first, first + text.count("\n", start, max(start, end - 1))


def _place(text: str, quote: str, start: int = 0) -> tuple[int, int] | None:
    """Where the words are in a file that may wrap, indent or escape them."""
    for spelled in (quote, json.dumps(quote)[1:-1], json.dumps(quote, ensure_ascii=False)[1:-1]):
        if spelled and (at := text.find(spelled, start)) >= 0:
            return at, at + len(spelled)
    for count in (12, 5):
        words = [re.escape(word) for word in quote.split()[:count]]
        if len(words) > 1 and (match := re.compile(r"(?:\s|\\n)+".join(words)).search(text, start)):
            return match.span()
    return None
