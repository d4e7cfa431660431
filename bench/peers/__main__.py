"""Fire Circle beside its peers: time, CPU and memory of the same dialogue, and what each keeps of a failure.

The peers live in an environment of their own, which is no part of this project::

    python -m venv peers && peers/bin/pip install -r bench/peers/requirements.txt
    FIRECIRCLE_BENCH_PEERS=peers/bin/python python -m bench.peers

Sixty circles of 3 voices and 3 rounds at once, against one loopback server in a process of its own that
answers after 200 ms; each contender in a process of its own, in turns, several times.
Ratios are within one turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.circles import texts_asked
from bench.peers.contenders import CONTENDERS, ROUNDS, VOICES, Task
from bench.speed import BASE_URL, room_for

INTERPRETER = "FIRECIRCLE_BENCH_PEERS"
OWN = ("fire circle", "bare aiohttp")
FIRST = "bare aiohttp"


@contextmanager
def endpoint(seconds: float) -> Iterator[str]:
    """The base URL of the server."""
    command = [sys.executable, "-m", "bench.peers.server", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        os.environ[BASE_URL] = url
        try:
            yield url
        finally:
            del os.environ[BASE_URL]
            server.terminate()


def measured(name: str, interpreter: str, task: Task) -> dict[str, Any]:
    """One contender, in a process of its own."""
    if name in OWN:
        command = [sys.executable, "-m", "bench.peers.contenders", name]
    else:
        command = [interpreter, str(Path(__file__).with_name("contenders.py")), name]
    ran = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{name} could not be measured:\n{ran.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="python -m bench.peers")
    options.add_argument("--circles", type=int, default=60)
    options.add_argument("--seconds", type=float, default=0.2, help="how long each answer takes")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--json", type=Path, help="where to write every figure")
    given = options.parse_args()
    interpreter = os.environ.get(INTERPRETER, "")
    names = list(CONTENDERS) if interpreter else list(OWN)
    if not interpreter:
        print(f"The peers are not installed; {INTERPRETER} names their interpreter. How: {__file__}")
    figures: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    at_once = given.circles * len(VOICES)
    with endpoint(given.seconds) as url, room_for(at_once):
        task: Task = {"url": url, "texts": texts_asked(), "circles": given.circles}
        for turn in range(given.runs):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                figures[name].append(measured(name, interpreter, task))
                print(
                    f"turn {turn + 1}, {name}: {figures[name][-1]['cpu_ms']:.2f} ms a call", file=sys.stderr
                )
                if given.json:
                    given.json.write_text(json.dumps(figures, indent=1))
    _tell(figures, given.circles, given.seconds)


def _tell(figures: dict[str, list[dict[str, Any]]], circles: int, seconds: float) -> None:
    path = ROUNDS * seconds
    print(f"{circles} circles at once, {len(VOICES)} voices, {ROUNDS} rounds, {seconds:g} s an answer")
    print(
        f"{'':14}{'CPU ms a call':>14}{'of bare':>16}{'seconds':>9}{'of path':>9}{'MB':>6}"
        "  kept when a voice fails"
    )
    for name, runs in figures.items():
        ratios = [one["cpu_ms"] / first["cpu_ms"] for one, first in zip(runs, figures[FIRST], strict=True)]
        ratio = f"{median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"
        took, failed = median(one["seconds"] for one in runs), runs[-1]["failed"]
        end = f"raises {failed['ended']}" if failed["ended"] else "goes on to the end"
        named = ", names the voice" if failed["named"] else ""
        print(
            f"{name:14}{median(one['cpu_ms'] for one in runs):14.2f}{ratio:>16}{took:9.2f}{took / path:9.1f}"
            f"{median(one['megabytes'] for one in runs):6.0f}  {failed['answers']} of 7 answers, {end}{named}"
        )
    asked = {name: frozenset(runs[-1]["sent"]) for name, runs in figures.items()}
    usual = asked[FIRST]
    others = ", ".join(name for name, questions in asked.items() if questions != usual)
    print(f"questions: {len(usual)}, " + (f"NOT the same for {others}" if others else "the same for all"))
    versions = {
        package: number for runs in figures.values() for package, number in runs[0]["versions"].items()
    }
    print("versions:", ", ".join(f"{package} {number}" for package, number in versions.items()))


if __name__ == "__main__":
    main()
