"""Everything a user can see, recorded before a change and compared by value after it.

    python -m tests.goldens --write DIR       # before
    python -m tests.goldens --compare DIR     # after: every difference, one a line; status 1 if there are any

Recorded are circles of bundled examples in three modes, hosted circles over loopback, the rows of two studies,
the viewer's pages and API description, and the help of every command. What differs from run to run (ids,
times, durations) is left out. Nothing of it belongs into git.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import typer

from firecircle.cli.main import command_line, run
from firecircle.examples import load_examples
from firecircle.store.opening import open_store
from firecircle.web.api.operations import openapi
from tests.cli.running import TRIO, endpoint
from tests.lab.hosting import opinion
from tests.web.serving import running

MODES = ("single", "parallel", "fire_circle")
STUDIES = ("dialogue", "quorum")
PAGES = ("/", "/circles", "/convene", "/bank", "/blindspots", "/rotation", "/batches", "/runs")
CIRCLES_SHOWN = 20
HOSTED = 6
"""Hosted circles, each on another example."""
MOST_LINES = 40
"""Differences shown of one recording."""
VARIES = re.compile(r"(_at|_seconds|_ms|latency|duration)$|^(id|seconds|circle_id|run_id|started|timestamp)$")
"""Fields whose values differ from run to run."""
VARIES_IN_TEXT = (
    (re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{12}\b|\b[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\b\d{8}-\d{6}[\w-]*"), "RUN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?)?( UTC)?"), "DATE"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds?|minutes?)( ago)?\b|\bnow\b"), "TIME"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "ADDRESS"),
    (re.compile(r'(firecircle-token" content=")[^"]+'), r"\1TOKEN"),
    (re.compile(r'<path class="bar.*?</svg>'), "WAIT"),
    (re.compile(r"/tmp/[\w./-]+"), "PATH"),
)


def recordings(folder: Path) -> Iterator[tuple[str, Any]]:
    """Every name with what is to be seen under it; `folder` is empty and takes what commands keep."""
    top = command_line()
    yield from every_help(top, "firecircle")
    yield "surface", surface(top)
    yield "openapi", openapi()
    examples = load_examples()
    for example in examples:
        for mode in MODES:
            arguments = ["--example", example.id, "--mode", mode, "--offline", "--seed", "7", "--json=full"]
            yield f"offline/{mode}/{example.id}", _json("evaluate", *arguments, "--no-save")
    with endpoint(opinion) as server:
        os.environ["FIRECIRCLE_OPENROUTER_BASE_URL"] = server.base_url
        os.environ["OPENROUTER_API_KEY"] = "sk-test"
        for example in examples[5 :: len(examples) // HOSTED]:
            arguments = ["--example", example.id, "--models", TRIO, "--seed", "7", "--json=full"]
            yield f"hosted/{example.id}", _json("evaluate", *arguments, "--no-save")
    del os.environ["OPENROUTER_API_KEY"], os.environ["FIRECIRCLE_OPENROUTER_BASE_URL"]
    for study in STUDIES:
        out = folder / study
        _ran("lab", "study", study, "--sample", "8", "--out", str(out), "--no-save")
        yield f"study/{study}", _rows(out / "records.parquet")
    yield from _pages(folder / "circles.sqlite")


def every_help(command: Any, called: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it."""
    yield f"help/{called}", command.get_help(typer.Context(command, info_name=called))
    for name, below in getattr(command, "commands", {}).items():
        yield from every_help(below, f"{called} {name}")


def surface(command: Any) -> dict[str, int]:
    """How many commands there are, groups left out, and how many parameters they take together."""
    below = [surface(each) for each in getattr(command, "commands", {}).values()]
    if not below:
        return {"commands": 1, "parameters": len(command.params)}
    return {name: sum(each[name] for each in below) for name in ("commands", "parameters")}


def _ran(*arguments: str) -> str:
    with redirect_stdout(io.StringIO()) as out:
        status = run(arguments)
    if status == 2:
        raise SystemExit(f"firecircle {' '.join(arguments)} failed")
    return out.getvalue()


def _json(*arguments: str) -> Any:
    return json.loads(_ran(*arguments))


def _rows(path: Path) -> list[dict[str, Any]]:
    import duckdb

    found = duckdb.execute("SELECT * FROM read_parquet(?) ORDER BY ALL", [str(path)])
    columns = [column[0] for column in found.description or ()]
    return [dict(zip(columns, map(_parsed, row), strict=True)) for row in found.fetchall()]


def _parsed(value: Any) -> Any:
    """Columns that hold JSON, as what they hold."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return value


def _pages(path: Path) -> Iterator[tuple[str, list[str]]]:
    examples = load_examples()
    chosen = examples[:: len(examples) // CIRCLES_SHOWN][:CIRCLES_SHOWN]
    for example in chosen:
        _ran("evaluate", "--example", example.id, "--offline", "--seed", "7", "--save", "--store", str(path))
    with open_store(path) as store, running(store) as server, httpx.Client(base_url=server.url) as client:
        listed = client.get("/api/v1/circles", params={"limit": 100}).json()["circles"]
        for page in PAGES:
            yield f"page{page}", _lines(client.get(page).text)
        for line in reversed(listed):
            yield f"page/circle/{line['title'][:40]}", _lines(client.get(f"/circles/{line['id']}").text)
        for number, run_line in enumerate(client.get("/api/v1/runs").json()["runs"]):
            text = client.get(f"/runs/{run_line['run_id']}").text
            yield f"page/run/{number}", _lines(text)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in _steady(text).splitlines() if line.strip()]


def _steady(value: Any) -> Any:
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {name: "VARIES" if VARIES.search(name) else _steady(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_steady(each) for each in value]
    if isinstance(value, str):
        for varying, instead in VARIES_IN_TEXT:
            value = varying.sub(instead, value)
        return value
    return value if isinstance(value, int | float | bool | None) else str(value)


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, one line each."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in [*before, *(name for name in now if name not in before)]:
            if name not in now:
                yield f"{path}.{name}: gone, was {_short(before[name])}"
            elif name not in before:
                yield f"{path}.{name}: new, {_short(now[name])}"
            else:
                yield from differences(before[name], now[name], f"{path}.{name}")
    elif isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
        yield from _text_differences(before.splitlines(), now.splitlines(), path)
    elif isinstance(before, list) and isinstance(now, list):
        if all(isinstance(each, str) for each in (*before, *now)):
            yield from _text_differences(before, now, path)
        elif len(before) != len(now):
            yield f"{path}: {len(before)} entries, now {len(now)}"
        else:
            for place, (old, new) in enumerate(zip(before, now, strict=True)):
                yield from differences(old, new, f"{path}[{place}]")
    elif before != now:
        yield f"{path}: {_short(before)} -> {_short(now)}"


def _text_differences(before: list[str], now: list[str], path: str) -> Iterator[str]:
    changed = list(difflib.unified_diff(before, now, n=0, lineterm=""))[2:]
    yield from (f"{path} {line}" for line in changed if not line.startswith("@@"))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else text[:100] + "…"


def main() -> int:
    """Record what is to be seen, or compare it with what was recorded."""
    arguments = argparse.ArgumentParser(prog="python -m tests.goldens", description=main.__doc__)
    what = arguments.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", metavar="DIR", type=Path, help="record into this folder")
    what.add_argument("--compare", metavar="DIR", type=Path, help="compare with what is recorded there")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as kept:
        for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            os.environ[variable] = kept
        os.environ |= {"FIRECIRCLE_CONFIG": "", "COLUMNS": "100", "NO_COLOR": "1"}
        now = {name: _steady(value) for name, value in recordings(Path(kept))}
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        (chosen.write / "goldens.json").write_text(json.dumps(now, indent=1), "utf-8")
        print(f"{len(now)} recordings in {chosen.write}")
        return 0
    before = json.loads((chosen.compare / "goldens.json").read_text("utf-8"))
    found = [f"{name} is gone" for name in before if name not in now]
    found += [f"{name} is new" for name in now if name not in before]
    for name in now:
        lines = list(differences(before.get(name), now[name], name)) if name in before else []
        found += lines[:MOST_LINES]
        found += [f"{name}: and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    print("\n".join(found) or f"{len(now)} recordings, no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
