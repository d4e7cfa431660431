"""Every sentence of the package that a person may read, in one file: messages, help texts, pages.

`python -m tests.user_strings` writes `tests/user_strings.txt`, to be read from top to bottom.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "firecircle"
FILE = Path(__file__).with_suffix(".txt")

LEXICONS = ("languages/", "voices/embedded/language/", "voices/embedded/hidden/")
"""What the readers look for in prompts; no person reads it."""
NOT_PROSE = re.compile(r"\\[bswdnx]|\(\?|\b(SELECT|INSERT|CREATE|DELETE|PRAGMA|ORDER BY)\b|<\w+[ >]|{[a-z]+:")
WORD = re.compile(r"[A-Za-z][a-z']+")
FEWEST_WORDS = 3


def sentences_of_module(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module with their lines: strings of some words, and docstrings of commands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    passed_over: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            passed_over.update(node.values)
        elif isinstance(node, ast.Call) and _is_pattern(node):
            passed_over.update(ast.walk(node))
        if (
            isinstance(node, ast.FunctionDef)
            and _is_command(path, node)
            and (shown := ast.get_docstring(node))
        ):
            yield node.lineno, shown
    for node in ast.walk(tree):
        text = _text(node) if node not in passed_over else None
        if text and len(WORD.findall(text)) >= FEWEST_WORDS and " " in text and not NOT_PROSE.search(text):
            yield node.lineno, text  # type: ignore[attr-defined]


def _is_pattern(call: ast.Call) -> bool:
    function = call.func
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", None) == "re"


def _is_command(path: Path, function: ast.FunctionDef) -> bool:
    return path.name == "command.py" and not function.name.startswith("_")


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


class _Page(HTMLParser):
    """The words between the tags of a template, and those of labels and titles."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[int, str]] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        for name, value in attrs:
            if value and name in {"title", "aria-label", "placeholder", "alt"}:
                self.texts.append((self.getpos()[0], value))

    def handle_data(self, data: str) -> None:
        if self._inside not in {"script", "style"} and data.strip():
            self.texts.append((self.getpos()[0], data))


def sentences_of_page(path: Path) -> Iterator[tuple[int, str]]:
    """The words of a template, without its code."""
    page = _Page()
    code = re.compile(r"{%.*?%}|{#.*?#}", re.DOTALL)
    page.feed(re.sub(r"{{.*?}}", "…", code.sub("", path.read_text(encoding="utf-8")), flags=re.DOTALL))
    for line, text in page.texts:
        if len(WORD.findall(text)) >= FEWEST_WORDS:
            yield line, text


@cache
def all_sentences() -> tuple[tuple[str, str], ...]:
    """The module or template of every text, and the text on one line."""
    return tuple(_sentences_of_package())


def _sentences_of_package() -> Iterator[tuple[str, str]]:
    for path in sorted((*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html"))):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(LEXICONS):
            of_file = sentences_of_page if path.suffix == ".html" else sentences_of_module
            yield from ((place, " ".join(text.split())) for _, text in sorted(of_file(path)))


def written() -> str:
    """The whole file: a heading for each module, its texts below."""
    lines: list[str] = []
    before = None
    for place, text in all_sentences():
        if place != before:
            lines += ["", f"# {place}"] if lines else [f"# {place}"]
            before = place
        lines.append(text)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
