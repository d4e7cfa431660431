"""The lines of a Markdown text as a reader meets them: sentences and commands with their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

_FENCE = re.compile(r"^[ \t]{0,12}(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*$", re.MULTILINE)
_CODE_SIGNS = re.compile(
    r"[;{}=()<>$|]|^\s*(?:import|from|def|class|SELECT|INSERT|UPDATE|DELETE|CREATE|npm|pip|git|cd|sudo)\b"
)
_PROSE = frozenset(("", "text", "txt", "md", "markdown", "plain", "plaintext", "prompt"))
_SQL = re.compile(
    r"^[ \t]*(?:INSERT\s+INTO\s+\S+\s*(?:\([^)\n]*\)\s*)?(?:VALUES|SELECT)\b|"
    r"SELECT\s[^\n]*\bFROM\b|UPDATE\s+\S+\s+SET\b|"
    r"DELETE\s+FROM\s+\S|(?:CREATE|ALTER|DROP)\s+(?:TABLE|INDEX|VIEW|DATABASE)\b)[^\n]*",
    re.MULTILINE,
)
_WRAP = re.compile(r"(?<=[^\s.:;!?|])(?<![.!?][\"”’'*)])[ \t]*(\r?\n)(?=[ \t]*[^\s#>*+|`\d\-•<\[])")
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?=[A-Z*_`])")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d+[.)])[ \t]")


class Line(NamedTuple):
    """A sentence, an item or a command."""

    text: str
    start: int
    end: int
    introduction: str
    """The line that ends with a colon and opens the list or block this one belongs to."""


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where fenced code and statements of SQL are. A fence around prose is not code."""
    at = 0
    spans = []
    while opening := _FENCE.search(text, at):
        closing = re.compile(rf"^[ \t]*{re.escape(opening[1])}[ \t]*$", re.MULTILINE).search(
            text, opening.end()
        )
        end = closing.start() if closing else len(text)
        inside = text[opening.end() : end]
        if opening[2].casefold() not in _PROSE or _looks_like_code(inside):
            spans.append((opening.end(), end))
        at = closing.end() if closing else len(text)
    yield from spans
    for statement in _SQL.finditer(text):
        if not any(start <= statement.start() < end for start, end in spans):
            yield statement.span()


def is_sql(line: str) -> bool:
    """Whether a line is a statement of SQL."""
    return bool(_SQL.match(line))


def _looks_like_code(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return 2 * sum(bool(_CODE_SIGNS.search(line)) for line in lines) > len(lines)


def without_code(text: str) -> str:
    """The text with blanks in place of code; everything else is where it was."""
    for start, end in code_spans(text):
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _in_heading(text: str, at: int) -> bool:
    return text.startswith("#", text.rfind("\n", 0, at) + 1)


def lines_of(text: str) -> Iterator[Line]:
    """Every sentence, list item and line of code, without blank ones and fences."""
    code = list(code_spans(text))
    prose = without_code(text)
    joined = _WRAP.sub(
        lambda wrap: wrap[0] if _in_heading(prose, wrap.start()) else " " * len(wrap[0]), prose
    )
    spelled = list(joined)
    for start, end in code:
        spelled[start:end] = text[start:end]
    introduction = ""
    at = 0
    for row in "".join(spelled).split("\n"):
        start, at = at, at + len(row) + 1
        stripped = row.strip()
        if not stripped or stripped.startswith(("```", "~~~")) or stripped == "---":
            continue
        in_code = any(begin <= start < end for begin, end in code)
        if not in_code and not _ITEM.match(row):
            introduction = ""
        cut = [0, len(row)] if in_code else [0, *(end.end() for end in _SENTENCE_END.finditer(row)), len(row)]
        for first, last in pairwise(cut):
            words = row[first:last].strip()
            if words:
                begin = start + first + row[first:last].index(words[0])
                yield Line(
                    text[begin : begin + len(words)].replace("\n", " "),
                    begin,
                    begin + len(words),
                    introduction,
                )
        if not in_code and (stripped.endswith((":", ":**")) or stripped.startswith("#")):
            introduction = stripped
