"""Runs at scale: memory, time and cores of embedded arms, how fast a run is taken up again, and how busy a
run keeps the calls it is allowed.

`python -m bench.lab` takes 100,000 records, which is a matter of an hour; `--records 10000` is enough to see
whether anything grows. Every run is a process of its own, as a user's is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import psutil

from firecircle.examples import load_examples

RECORDS = 100_000
HOSTED_RECORDS = 150
HOSTED_TURNS = 2
ALLOWED = 50
LATENCY = 0.5
BARE_SECONDS = 10.0
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
TRIO = ("anthropic/claude-sonnet-4", "qwen/qwen-2.5-72b-instruct", "deepseek/deepseek-r1")
FREE = '[[arms]]\nname = "circle"\nkind = "fire_circle"\n'
PAID = f"""
[concurrency]
calls = {ALLOWED}
[circle]
models = {list(TRIO)}
early_stop_convergence = 0.0
[[arms]]
name = "circle"
kind = "fire_circle"
"""


def write_data(path: Path, count: int) -> None:
    """The bundled examples again and again, each time under another id."""
    examples = load_examples()
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            example = examples[number % len(examples)]
            turns = example.prompt.turns
            row = {
                "id": f"{example.id}-{number}",
                "label": example.label,
                "family": example.pattern_type,
                **{name: getattr(example.prompt, name) for name in ("system", "application", "user")},
                "turns": None if turns is None else [turn.model_dump() for turn in turns],
            }
            file.write(json.dumps(row) + "\n")


# -- the run, in a process of its own ------------------------------------------------------------------


def carry_out(plan: Path, out: Path, keep: str | None) -> None:
    """Carry the plan out, and print a line `done seconds` whenever a share of it is done."""
    from firecircle.lab.plan import read_plan
    from firecircle.lab.runs.cases import Tally
    from firecircle.lab.runs.folder import RunFolder
    from firecircle.lab.runs.runner import Follower
    from firecircle.lab.runs.starting import complete, open_run
    from firecircle.store.opening import Store

    started = time.perf_counter()

    @contextmanager
    def following(folder: RunFolder) -> Iterator[Follower]:
        at_first: list[int] = []

        def follow(tally: Tally) -> None:
            at_first.append(tally.done)
            # The first time tells what was done before; the second is the first news.
            if len(at_first) == 2 or (len(at_first) > 2 and tally.done % 100 < 16):
                print(tally.done, time.perf_counter() - started, flush=True)

        yield follow

    parsed, text = read_plan(plan)
    store = Store(keep) if keep else None
    state = asyncio.run(complete(open_run(parsed, text, plan.parent, out=out), following, store=store))
    if state.not_stored:
        print(state.not_stored, file=sys.stderr)


def started(plan: Path, out: Path, *, keep: Path | None = None, **environment: str) -> subprocess.Popen[str]:
    """The run as a process, which keeps its circles in a store if one is named."""
    command = [sys.executable, "-m", "bench.lab", "--carry-out", str(plan), str(out)]
    command += ["--keep", str(keep)] if keep else []
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore", **environment},
    )


def resident_megabytes(process: psutil.Process) -> tuple[float, float]:
    """Of the run itself and of the largest of its workers."""
    workers = [_resident(child) for child in process.children()]
    return _resident(process), max(workers, default=0.0)


def _resident(process: psutil.Process) -> float:
    try:
        return process.memory_info().rss / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def cpu_seconds(process: psutil.Process) -> float:
    """Of the run and its workers so far."""
    total = 0.0
    for member in (process, *process.children()):
        times = member.cpu_times()
        total += times.user + times.system
    return total


def _cpu_line(process: psutil.Process) -> str:
    """How the work was shared: on a busy machine this says more than how much of it there was a second."""
    own, *workers = [sum(member.cpu_times()[:2]) for member in (process, *process.children())]
    shared = " and ".join(f"{seconds:.0f}" for seconds in workers if seconds > 1)
    return f"CPU seconds: {own:.0f} of the run itself, {shared} of its workers"


def embedded_at_scale(folder: Path, count: int) -> None:
    """Memory and time at several shares of a long run, and a restart in its middle."""
    write_data(folder / "data.jsonl", count)
    plan = folder / "free.toml"
    plan.write_text(f'[[datasets]]\npath = "data.jsonl"\n{FREE}')
    print(f"{count:,} records through the embedded circle on {os.cpu_count()} cores")
    print(f"{'share':>8}{'seconds':>10}{'records/s':>11}{'RSS':>9}{'worker':>9}{'cores in use':>14}")
    shares = list(SHARES)
    with started(plan, folder / "free") as running:
        assert running.stdout is not None
        process = psutil.Process(running.pid)
        before = 0.0, 0.0
        cpu_line = ""
        for line in running.stdout:
            done, seconds = int(line.split()[0]), float(line.split()[1])
            if shares and done >= shares[0] * count * 0.999:
                main, worker = resident_megabytes(process)
                cpu = cpu_seconds(process)
                cores = (cpu - before[1]) / (seconds - before[0])
                print(
                    f"{shares.pop(0):>8.0%}{seconds:>10.1f}{done / seconds:>11.1f}"
                    f"{main:>6.0f} MB{worker:>6.0f} MB{cores:>14.2f}",
                    flush=True,
                )
                before = seconds, cpu
                cpu_line = _cpu_line(process)
    print(cpu_line)
    restart(folder, plan, count)


def restart(folder: Path, plan: Path, count: int) -> None:
    """How long a run that was killed at a fifth needs before it judges again."""
    with started(plan, folder / "killed") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if int(line.split()[0]) >= count * 0.2:
                running.kill()
                break
    with started(plan, folder / "killed") as running:
        assert running.stdout is not None
        lines = iter(running.stdout)
        first = next(lines).split()
        print(f"taken up again at {int(first[0]):,} records after {float(first[1]):.1f} s")
        running.kill()


# -- hosted --------------------------------------------------------------------------------------------


def hosted_busy(folder: Path, records: int) -> None:
    """The share of the allowed calls that a server of fixed latency sees under way, with the circles written
    into a store while they sit and without, and what that takes."""
    write_data(folder / "hosted.jsonl", records)
    plan = folder / "paid.toml"
    plan.write_text(f'[[datasets]]\npath = "hosted.jsonl"\n{PAID}')
    settings = folder / "settings.toml"
    settings.write_text(f"[providers.openrouter.concurrency]\nstart = {ALLOWED}\nmost = {ALLOWED}\n")
    command = [sys.executable, "-m", "tests.loopback", "--latency", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        environment = {
            "OPENROUTER_API_KEY": "sk-bench",
            "FIRECIRCLE_OPENROUTER_BASE_URL": url,
            "FIRECIRCLE_CONFIG": str(settings),
        }
        seen: dict[bool, list[Watched]] = {False: [], True: []}
        for turn in range(2 * HOSTED_TURNS):
            kept = bool(turn % 2)
            keep = folder / f"circles-{turn}.sqlite" if kept else None
            with started(plan, folder / f"paid-{turn}", keep=keep, **environment) as running:
                seen[kept].append(_watched(running, url))
        command = [sys.executable, "-m", "bench.lab", "--bare", url]
        with subprocess.Popen(command, text=True) as running:
            bare = _steady(_watched(running, url).in_flight)
        server.terminate()
    print(
        f"\n{records:,} hosted circles at {LATENCY:g} s a call, {ALLOWED} calls allowed,"
        f" {HOSTED_TURNS} runs each"
        f"\n{'':16}{'under way':>10}{'at most':>9}{'seconds':>9}{'CPU s':>8}{'RSS at 30%':>12}{'at 90%':>9}"
    )
    busy, seconds, cpu = [], [], []
    for kept, name in ((False, "not kept"), (True, "kept")):
        busy.append(fmean(_steady(run.in_flight) for run in seen[kept]))
        seconds.append(fmean(run.seconds for run in seen[kept]))
        cpu.append(fmean(run.cpu[-1] for run in seen[kept]))
        early, late = (max(run.megabytes[int(len(run.cpu) * at)] for run in seen[kept]) for at in (0.3, 0.9))
        most = max(max(run.in_flight) for run in seen[kept])
        print(
            f"{name:16}{busy[-1]:>10.1%}{most:>9}{seconds[-1]:>9.1f}{cpu[-1]:>8.1f}"
            f"{early:>9.0f} MB{late:>6.0f} MB"
        )
    print(f"{'kept / not kept':16}{busy[1] / busy[0]:>10.3f}{'':9}", end="")
    print(f"{seconds[1] / seconds[0]:>9.3f}{cpu[1] / cpu[0]:>8.2f}")
    print(
        f"a bare client that does nothing but ask: {bare:.1%}, so a run keeps {busy[0] / bare:.1%} of"
        f" what this machine can keep busy now, and one whose circles are kept {busy[1] / bare:.1%}"
    )


def _steady(seen: list[int]) -> float:
    """The mean share of the allowed calls, without beginning and end, where there is too little to ask."""
    return fmean(seen[len(seen) // 5 : len(seen) * 4 // 5]) / ALLOWED


async def ask_bare(url: str) -> None:
    """As many calls at once as allowed, one after another, for as long as it takes to see."""
    import aiohttp

    body = {"model": "m", "messages": [{"role": "user", "content": "Evidence. " * 600}], "max_tokens": 1000}
    until = time.monotonic() + BARE_SECONDS
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            while time.monotonic() < until:
                async with session.post(f"{url}/chat/completions", json=body) as answer:
                    await answer.json()

        await asyncio.gather(*(ask() for _ in range(ALLOWED)))


@dataclass(slots=True)
class Watched:
    """What a process did, every fiftieth of a second: calls under way at the server, memory, CPU so far."""

    in_flight: list[int] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    seconds: float = 0.0


def _watched(running: subprocess.Popen[str], url: str) -> Watched:
    """From its first call to its end."""
    seen, process = Watched(), psutil.Process(running.pid)
    begun = time.perf_counter()
    while running.poll() is None:
        with urllib.request.urlopen(f"{url}/models") as answer:
            in_flight = int(json.load(answer)["in_flight"])
        if in_flight and not seen.in_flight:
            begun = time.perf_counter()
        if in_flight or seen.in_flight:
            with suppress(psutil.NoSuchProcess):
                seen.cpu.append(sum(process.cpu_times()[:2]))
                seen.megabytes.append(_resident(process))
                seen.in_flight.append(in_flight)
        time.sleep(0.02)
    seen.seconds = time.perf_counter() - begun
    while seen.in_flight and not seen.in_flight[-1]:
        seen.in_flight.pop()
    return seen


def main() -> None:
    """Both, or be one run of it."""
    arguments = argparse.ArgumentParser(prog="python -m bench.lab", description=__doc__)
    arguments.add_argument("--carry-out", nargs=2, metavar=("PLAN", "OUT"), help=argparse.SUPPRESS)
    arguments.add_argument("--bare", metavar="URL", help=argparse.SUPPRESS)
    arguments.add_argument("--keep", metavar="STORE", help=argparse.SUPPRESS)
    arguments.add_argument("--hosted", type=int, default=HOSTED_RECORDS, metavar="RECORDS")
    arguments.add_argument("--records", type=int, default=RECORDS)
    arguments.add_argument("--only", choices=("embedded", "hosted"))
    chosen = arguments.parse_args()
    if chosen.carry_out:
        plan, out = map(Path, chosen.carry_out)
        carry_out(plan, out, chosen.keep)
        return
    if chosen.bare:
        asyncio.run(ask_bare(chosen.bare))
        return
    with tempfile.TemporaryDirectory() as folder:
        if chosen.only != "hosted":
            embedded_at_scale(Path(folder), chosen.records)
        if chosen.only != "embedded":
            hosted_busy(Path(folder), chosen.hosted)


if __name__ == "__main__":
    main()
