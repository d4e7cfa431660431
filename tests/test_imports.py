"""Imports of the package: no module needs itself, and the chains at the top of modules stay short."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import firecircle

PACKAGE = Path(firecircle.__file__).parent
LONGEST_CHAIN = 19
"""Modules; one more is worth it only where another goes."""
SHOWS_ITSELF = {"firecircle.circle.result", "firecircle.metrics"}
"""A notebook asks these to show themselves, which `telling.notebook` does for them."""


def modules() -> dict[str, ast.Module]:
    parsed = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("firecircle", *path.relative_to(PACKAGE).with_suffix("").parts)
        parsed[".".join(part for part in parts if part != "__init__")] = ast.parse(path.read_text("utf-8"))
    return parsed


def statements(body: list[ast.stmt], *, in_functions: bool) -> Iterator[ast.stmt]:
    """The imports that run; those for types alone do not."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from statements(statement.orelse, in_functions=in_functions)
        elif in_functions or not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in ("body", "orelse", "finalbody"):
                yield from statements(getattr(statement, name, []), in_functions=in_functions)
            for handler in getattr(statement, "handlers", []):
                yield from statements(handler.body, in_functions=in_functions)


def needed_by(*, in_functions: bool) -> Mapping[str, set[str]]:
    parsed = modules()
    needed: dict[str, set[str]] = {}
    for name, module in parsed.items():
        names = set()
        for statement in statements(module.body, in_functions=in_functions):
            if isinstance(statement, ast.ImportFrom) and statement.module:
                for alias in statement.names:
                    whole = f"{statement.module}.{alias.name}"
                    names.add(whole if whole in parsed else statement.module)
            elif isinstance(statement, ast.Import):
                names |= {alias.name for alias in statement.names}
        needed[name] = {other for other in names if other in parsed and other != name}
        if name in SHOWS_ITSELF:
            needed[name].discard("firecircle.telling.notebook")
    return needed


def test_no_module_needs_itself_even_inside_functions() -> None:
    needed = needed_by(in_functions=True)
    free: set[str] = set()
    while ready := {name for name in needed if name not in free and needed[name] <= free}:
        free |= ready
    around = {name for name in needed if name not in free}
    circles = {name for name in around if any(name in needed[other] for other in around)}
    assert circles == set()


def test_chains_of_imports_stay_short() -> None:
    needed = needed_by(in_functions=False)

    @cache
    def depth(name: str) -> int:
        return 1 + max(map(depth, needed[name]), default=0)

    assert max(map(depth, needed)) <= LONGEST_CHAIN
