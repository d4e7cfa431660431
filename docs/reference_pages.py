"""The reference, written from the code: commands, settings, Python names, the viewer's HTTP interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import getdoc, isclass, isfunction
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.pycode import ModuleAnalyzer

import firecircle
from firecircle import FireCircleConfig
from firecircle.circle.columns import COLUMNS
from firecircle.cli.main import command_line
from firecircle.web.api.operations import openapi

TOPICS = (
    (
        "Judging",
        ("PromptGuard", "fire_circle_evaluate", "fire_circle_events", "FireCircleEvaluator", "LLMEvaluator"),
    ),
    ("Prompts", ("MultiNeutrosophicPrompt", "EarlierTurn", "SessionMemory", "format_turn_context")),
    (
        "Results",
        ("FireCircleResult", "DialogueRound", "PatternObservation", "NeutrosophicEvaluation", "Judged"),
    ),
    ("Settings", ("FireCircleConfig", "EvaluationConfig", "CircleSize", "FailureMode", "CacheConfig")),
    ("The store", ("Store", "open_store", "Filters", "ReasoningBankClient", "store_fire_circle_patterns")),
    ("Your own voice", ("Voice", "Message", "Turn", "Reply", "Usage")),
)
"""The names a newcomer looks for, by subject; every other public name stands on a page of its own."""

LONGEST_DEFAULT = 60


def write_reference(folder: Path) -> None:
    """Write all pages; a page that has not changed is left alone, so that it is not built again."""
    pages = {
        "index.md": _index(),
        "prompts.md": _prompts(),
        "decisions.md": _decisions(),
        "settings.md": _settings(),
        "columns.md": _columns(),
        "http.md": _http(),
        **dict(_commands()),
        **dict(_python()),
    }
    folder.mkdir(exist_ok=True)
    for path in set(folder.glob("*.md")) - {folder / name for name in pages}:
        path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


QUESTIONS = (
    ("In every call", "The same bytes in every round and for every voice.", ("system", "evidence")),
    ("Round 1", "", ("round_1",)),
    (
        "Round 2",
        "The last statement of each peer in full, earlier ones by their numbers. A quote that is not in the"
        " prompt is not shown. The empty chair is asked instead, in the second text.",
        ("round_2", "round_2_chair"),
    ),
    ("The last round", "", ("round_3",)),
    ("A fourth round", "A large circle that is still divided sees the two opposed positions.", ("round_4",)),
    ("A contradiction", "A voice whose word and numbers contradict each other.", ("clarification",)),
)
"""The texts of `tests/circle/data/questions`, which a test compares with what the code asks."""


def _prompts() -> str:
    lines = [
        "# The prompts, word by word\n",
        "What a voice is asked in a circle of seven that cannot agree. The replies are invented.",
        "Small local models are asked [in their own way](../decisions/095-local-models.md).",
        '`templates = "v1"` asks with the wording of earlier releases.\n',
    ]
    for title, meaning, names in QUESTIONS:
        lines += [f"## {title}\n", f"{meaning}\n"]
        for name in names:
            path = f"../../tests/circle/data/questions/{name}.txt"
            lines.append(f"```{{literalinclude}} {path}\n:language: text\n```\n")
    return "\n".join(lines)


def _decisions() -> str:
    lines = ["# Decisions", "", "What a successor would question, and why it is as it is.", ""]
    for path in sorted((Path(__file__).parent / "decisions").glob("*.md")):
        title = path.read_text("utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}](../decisions/{path.name})")
    return "\n".join(lines) + "\n"


def _index() -> str:
    commands = "\n".join(f"command-{name}" for name in _top_level())
    topics = "\n".join(f"python-{_slug(title)}" for title, _ in TOPICS)
    return (
        "# Reference\n\nWritten from the code of this version.\n\n"
        f"```{{toctree}}\n:caption: Commands\n\n{commands}\n```\n\n"
        f"```{{toctree}}\n:caption: Python\n\n{topics}\npython-others\n```\n\n"
        "```{toctree}\n:caption: Formats\n\nprompts\nsettings\ncolumns\nhttp\n```\n"
    )


def _top_level() -> dict[str, Any]:
    return dict(command_line().commands)


def _commands() -> Iterator[tuple[str, str]]:
    for name, command in _top_level().items():
        yield f"command-{name}.md", "\n".join(_command(command, f"firecircle {name}", level=1))


def _command(command: Any, called: str, level: int) -> Iterator[str]:
    context = typer.Context(command, info_name=called)
    yield f"{'#' * level} {called}\n"
    summary, _, examples = (command.help or "").partition("\n\n")
    yield f"{_escaped(summary)}\n"
    yield f"```text\n{called} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    if _lines(examples):
        yield f"```text\n{_lines(examples)}\n```\n"
    records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    if records:
        yield _table(("", ""), ((f"`{option}`", _escaped(meaning)) for option, meaning in records))
    for name, below in getattr(command, "commands", {}).items():
        yield from _command(below, f"{called} {name}", level + 1)


def _settings() -> str:
    return (
        "# Settings\n\nThe fields of `FireCircleConfig`, as keyword arguments in Python, under `[circle]` in"
        " `firecircle.toml`, and in plans of the lab.\n\n" + _fields(FireCircleConfig)
    )


def _columns() -> str:
    rows = (
        (f"`{column.name}`", column.kind.__name__, _escaped(column.meaning), ", ".join(column.forms))
        for column in COLUMNS
    )
    return (
        "# Columns\n\nThe facts of a verdict. `row`: `to_row()` and the files of `--out`; `json`: `--json`"
        " and MCP; `store`: the table `circles`; `scan`: the shards of a scan; `run`: the records of a"
        " run.\n\n" + _table(("name", "type", "meaning", "in"), rows)
    )


def _python() -> Iterator[tuple[str, str]]:
    placed = {name for _, names in TOPICS for name in names}
    others = [name for name in firecircle.__all__ if name not in placed and not name.startswith("__")]
    for title, names in (*TOPICS, ("Others", tuple(others))):
        yield f"python-{_slug(title)}.md", f"# {title}\n\n" + "\n".join(map(_public_name, names))


def _public_name(name: str) -> str:
    thing = getattr(firecircle, name)
    documented = f"## {name}\n\n"
    if isclass(thing) and issubclass(thing, BaseModel):
        methods = [
            _directive("property" if isinstance(member, property) else "method", f"{name}.{method}")
            for method, member in vars(thing).items()
            if not method.startswith(("_", "model_")) and _is_method(member) and getdoc(member)
        ]
        return documented + f"{getdoc(thing)}\n\n{_fields(thing)}\n" + "\n".join(methods)
    if isclass(thing):
        return documented + _directive("class", name, "members", "undoc-members")
    if isfunction(thing):
        return documented + _directive("function", name)
    return documented + f"`{thing}`\n"


def _is_method(member: object) -> bool:
    return isfunction(member) or isinstance(member, (property, classmethod, staticmethod))


def _directive(kind: str, name: str, *options: str) -> str:
    lines = [f".. auto{kind}:: firecircle.{name}", *(f"   :{option}:" for option in options)]
    return "```{eval-rst}\n" + "\n".join(lines) + "\n```\n"


def _fields(model: type[BaseModel]) -> str:
    """Every field of a shape, with its type as it is written in the code and the sentences below it."""
    written: dict[str, str] = {}
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base.__module__.startswith("firecircle"):
            written |= {name: str(kind) for name, kind in vars(base).get("__annotations__", {}).items()}
            comments = ModuleAnalyzer.for_module(base.__module__).find_attr_docs()
            meanings |= {
                name: " ".join(lines) for (owner, name), lines in comments.items() if owner == base.__name__
            }
    rows = (
        (f"`{name}`", f"`{written.get(name, '')}`", _default(field), _escaped(meanings.get(name, "")))
        for name, field in model.model_fields.items()
    )
    return _table(("field", "type", "default", "meaning"), rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    if field.default_factory is not None:
        return "made afresh"
    text = repr(field.default)
    return f"`{text}`" if len(text) <= LONGEST_DEFAULT else "see the code"


def _http() -> str:
    rows = (
        (f"`{method.upper()} {path}`", _escaped(operation["summary"]))
        for path, operations in openapi()["paths"].items()
        for method, operation in operations.items()
    )
    return (
        "# HTTP interface of the viewer\n\nThe whole description, with every shape, is served"
        " by `firecircle view` under `/api/v1/openapi.json`.\n\n" + _table(("call", "what it does"), rows)
    )


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """One line of Markdown in which nothing but `code` is markup."""
    pieces = " ".join(text.split()).split("`")
    pieces[::2] = [re.sub(r"([<*_\[])", r"\\\1", plain) for plain in pieces[::2]]
    return "`".join(pieces)


def _lines(examples: str) -> str:
    return examples.replace("\b", "").strip()


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")
