"""Conversations from files and lists, in the shapes that chats are commonly exported in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from firecircle.errors import ConfigError, PromptError
from firecircle.files import read_regular
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt, plain_role
from firecircle.shapes import Declaration, Text

LARGEST_FILE = 64_000_000
LISTS = (
    "messages", "conversations", "conversation", "turns", "input", "contents", "dialog", "dialogue",
    "chat", "history", "chat_history", "items",
)  # fmt: skip
"""Under which names exports have the list of messages."""
SPEAKERS = ("role", "from", "speaker", "author", "sender", "type")
TEXTS = ("content", "value", "text", "parts", "message", "output", "input", "data")
OPERATOR = ("system", "systemInstruction", "system_instruction", "instructions")
SHAPES = 'give [{"role": "user", "content": "…"}, …], or an object with such a list under "messages"'
_TOOL_PARTS = ("tool_result", "function_call_output", "functionResponse")


class Exchange(Declaration):
    """A user turn, what tools returned in it, what came before and what the assistant answered."""

    number: int
    """Which turn of the user it is, from 1."""
    prompt: MultiNeutrosophicPrompt
    reply: Text = ""


class Transcript(Declaration):
    """A whole conversation: the operator's text and every message in order."""

    name: Text = ""
    system: Text = ""
    messages: tuple[EarlierTurn, ...] = ()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """One for each user turn. Tool results belong to the turn in which they arrive."""
        starts = [at for at, message in enumerate(self.messages) if message.role == "user"]
        ends = [*starts[1:], len(self.messages)]
        spoken = ("user", "assistant")
        made = []
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
            since = self.messages[0 if number == 1 else start : end]
            made.append(
                Exchange(
                    number=number,
                    prompt=MultiNeutrosophicPrompt(
                        system=self.system,
                        application="\n\n".join(turn.content for turn in since if turn.role == "tool"),
                        user=self.messages[start].content,
                        turns=tuple(turn for turn in self.messages[:start] if turn.role in spoken),
                    ),
                    reply="\n\n".join(
                        turn.content for turn in self.messages[start:end] if turn.role == "assistant"
                    ),
                )
            )
        return tuple(made)


def transcript_of(turns: Any, system: str = "", name: str = "") -> Transcript:
    """The conversation in data of any known shape; system messages in it join the operator's text."""
    said, own_system = _messages_in(turns)
    operator = [text for text in (system, own_system) if text]
    messages = []
    for role, text in said:
        if role == "system":
            operator.append(text)
        elif text.strip():
            messages.append(EarlierTurn(role=role, content=text))
    if not any(message.role == "user" for message in messages):
        raise PromptError("conversation", "no message of a user in it", SHAPES)
    return Transcript(name=name, system="\n\n".join(operator), messages=tuple(messages))


def read_transcripts(path: str | os.PathLike[str], system: str = "") -> tuple[Transcript, ...]:
    """Every conversation in a JSON or JSONL file: one whose lines are messages is a single one."""
    file = Path(path)
    try:
        text = read_regular(file, LARGEST_FILE).decode("utf-8-sig")
    except OSError as unreadable:
        raise ConfigError(
            "--conversation", f"cannot read {file}: {unreadable.strerror or unreadable}", "name another file"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError("--conversation", f"{file} is not UTF-8 text", "convert it") from None
    if not text.strip():
        raise PromptError("conversation", f"{file} is empty", SHAPES)
    named = [(f"{file}", _parse(text, file))] if _is_one_document(text) else _lines(text, file)
    if len(named) != 1 and all(_is_message(data) for _, data in named):
        named = [(f"{file}", [data for _, data in named])]
    elif len(named) == 1 and isinstance(named[0][1], list) and _holds_conversations(named[0][1]):
        named = [(f"{file}, conversation {at}", data) for at, data in enumerate(named[0][1], start=1)]
    found = []
    for place, (where, data) in enumerate(named, start=1):
        own = data.get("id") if isinstance(data, dict) else None
        name = str(own) if isinstance(own, str | int) else file.stem + (f"-{place}" if len(named) > 1 else "")
        try:
            found.append(transcript_of(data, system, name))
        except (ConfigError, PromptError) as wrong:
            raise PromptError("conversation", f"{where}: {wrong.message}", wrong.remedy or SHAPES) from None
    return tuple(found)


def _is_one_document(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(text: str, file: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise PromptError("conversation", f"{file} is not JSON ({broken})", SHAPES) from None


def _lines(text: str, file: Path) -> list[tuple[str, Any]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    found = []
    for number, line in lines:
        try:
            found.append((f"{file}, line {number}", json.loads(line)))
        except (ValueError, RecursionError) as broken:
            raise PromptError(
                "conversation", f"{file}, line {number} is not JSON ({broken})", SHAPES
            ) from None
    return found


def _is_message(data: Any) -> bool:
    """Whether this is one message, not a conversation."""
    if isinstance(data, Sequence) and not isinstance(data, str):
        return len(data) == 2 and all(isinstance(part, str) for part in data) and _role(data[0]) is not None
    return isinstance(data, Mapping) and any(key in data for key in SPEAKERS) and not _list_in(data)


def _holds_conversations(listed: list[Any]) -> bool:
    """Whether a list holds conversations, each a list of messages or an object with one."""
    return bool(listed) and not any(_is_message(each) for each in listed) and not isinstance(listed[0], str)


def _list_in(data: Mapping[str, Any]) -> list[Any] | None:
    return next((data[name] for name in LISTS if isinstance(data.get(name), list)), None)


def _messages_in(data: Any) -> tuple[list[tuple[str, str]], str]:
    """Who said what, in order, and the operator's text where the export has it apart."""
    if isinstance(data, Mapping) and isinstance(data.get("mapping"), Mapping):
        return _path_through_tree(data), ""
    if isinstance(data, Mapping):
        listed = _list_in(data)
        if listed is None:
            raise PromptError("conversation", "no list of messages in it", SHAPES)
        apart = next(
            (data[key] for key in ("system", "systemInstruction", "instructions") if key in data), ""
        )
        said = [message for part in listed for message in _message(part)]
        last = data.get("user")  # a labelled prompt: earlier turns, and the message under judgement
        if listed is data.get("turns") and isinstance(last, str) and last.strip():
            said.append(("user", last))
        return said, _text(apart)
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise PromptError("conversation", "not a list of messages", SHAPES)
    return [message for part in data for message in _message(part)], ""


def _message(data: Any) -> list[tuple[str, str]]:
    """A message, as the parts that people and assistants said and those that tools returned."""
    if isinstance(data, EarlierTurn):
        return [(data.role, data.content)]
    if isinstance(data, Sequence) and not isinstance(data, str) and len(data) == 2:
        return [(_known_role(data[0]), _text(data[1]))]
    if not isinstance(data, Mapping):
        raise PromptError("conversation", f"{str(data)[:60]!r} is not a message", SHAPES)
    if data.get("type") in ("reasoning", "function_call", "tool_call"):
        return []  # what the assistant thought or asked a tool is no message
    if data.get("type") in _TOOL_PARTS:
        return [("tool", _text(data.get("output") or data.get("content")))]
    speaker = next((data[key] for key in SPEAKERS if key in data and data[key] != "message"), None)
    if isinstance(speaker, Mapping):  # {"author": {"role": "user"}}
        speaker = speaker.get("role")
    content = next((data[key] for key in TEXTS if data.get(key) not in (None, "")), "")
    role = _known_role(speaker)
    parts = content if isinstance(content, list) else [content]
    returned: list[Mapping[str, Any]] = [part for part in parts if _is_tool_part(part)]
    own = _text([part for part in parts if not _is_tool_part(part)])
    said = [("tool", _text(part.get("content") or part.get("output") or "")) for part in returned]
    return [*said, (role, own)] if own or not said else said


def _is_tool_part(part: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(part, Mapping) and part.get("type") in _TOOL_PARTS


def _text(content: Any) -> str:
    """The words of a content of parts; pictures, calls and thoughts have none."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        if content.get("type") in ("thinking", "reasoning", "tool_use", "redacted_thinking"):
            return ""
        return _text(next((content[key] for key in ("text", "content", "parts") if key in content), ""))
    if isinstance(content, Iterable):
        return "\n".join(text for text in map(_text, content) if text)
    return ""


def _role(speaker: Any) -> str | None:
    return plain_role(speaker) if isinstance(speaker, str) else None


def _known_role(speaker: Any) -> str:
    role = _role(speaker)
    if role is None:
        raise PromptError(
            "conversation",
            f"a message of {speaker!r}, which is not a role" if speaker else "a message without a role",
            "it is user, assistant, system or tool",
        )
    return role


def _path_through_tree(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The messages from the root to the current one, in an export that has every branch."""
    nodes: Mapping[str, Any] = data["mapping"]
    at = data.get("current_node") or next(
        (key for key, node in reversed(list(nodes.items())) if not node.get("children")), None
    )
    path: list[Any] = []
    seen: set[str] = set()
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        if isinstance(message := nodes[at].get("message"), Mapping):
            path.append(message)
        at = nodes[at].get("parent")
    return [part for message in reversed(path) for part in _message(message)]
