"""How fast `firecircle batch --out FOLDER` is: prompts a second and a core, memory, Ray against processes.

The corpus is made afresh: sentences of the texts in `training/data` and of the bundled examples, one to three
of them a prompt, drawn with a fixed seed. Figures are those of whole processes. Processor time a prompt says
the same on a machine that is busy with other things; the two engines are compared by it, and by wall time,
within one run.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from firecircle.examples import load_examples

PROMPTS, SMALL, COMPARED = 200_000, 20_000, 4_000
MOST_SENTENCES = 3
SHORTEST = 15
SEED = 7
EVERY_SECONDS = 0.5
TRAINING = Path(__file__).parent.parent / "training" / "data"


def main() -> None:
    """Print the figures of a large scan, of a small one, and of both engines."""
    parser = argparse.ArgumentParser(prog="python -m bench.scan", description=__doc__)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    parser.add_argument("--small", type=int, default=SMALL, help="prompts of the scan to compare memory with")
    parser.add_argument("--compared", type=int, default=COMPARED, help="prompts of each engine; 0: no Ray")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(f"{'':22} {'prompts':>9} {'seconds':>8} {'a second':>9} {'CPU s':>8} {'a CPU second':>13}")
        for prompts in filter(None, (asked.small, asked.prompts)):
            measured = _scan(folder, prompts, asked.workers)
            _print_figures("processes", prompts, measured)
            _print_memory(measured)
            print(f"  a million like these: {1e6 / prompts * measured.cpu / 3600:.2f} core hours")
        if asked.compared:
            _compare(folder, asked.compared, asked.workers)


@dataclass(slots=True)
class Measured:
    """What a scan took."""

    seconds: float = 0.0
    cpu: float = 0.0
    by_worker: dict[int, float] = field(default_factory=dict)
    driver_mb: list[float] = field(default_factory=list)
    worker_mb: list[float] = field(default_factory=list)
    bytes_out: int = 0


def _corpus(folder: Path, prompts: int) -> Path:
    path = folder / f"{prompts}.jsonl"
    if not path.exists():
        chance, sentences = random.Random(SEED), sorted(set(_sentences()))
        with path.open("w", encoding="utf-8") as file:
            for number in range(prompts):
                text = " ".join(chance.sample(sentences, chance.randint(1, MOST_SENTENCES)))
                file.write(json.dumps({"id": f"p{number}", "user": text}) + "\n")
    return path


def _sentences() -> Iterator[str]:
    texts = [example.prompt.user for example in load_examples()]
    for file in sorted(TRAINING.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            texts += [value for key in ("user", "text", "prompt") if isinstance(value := row.get(key), str)]
    for text in texts:
        yield from (part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if len(part) > SHORTEST)


def _scan(folder: Path, prompts: int, workers: int, *more: str) -> Measured:
    corpus = _corpus(folder, prompts)
    out = folder / f"out-{prompts}-{len(more)}"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "firecircle", "batch", str(corpus), "--out", str(out)),
            *("--workers", str(workers), *more),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    measured, started = Measured(), time.monotonic()
    watching = threading.Thread(target=_watch, args=(process, measured))
    watching.start()
    status = process.wait()
    watching.join()
    if status:
        raise SystemExit(f"the scan ended with status {status}")
    measured.seconds = time.monotonic() - started
    measured.bytes_out = sum(file.stat().st_size for file in out.glob("shards/*.parquet"))
    return measured


def _watch(process: subprocess.Popen[bytes], measured: Measured) -> None:
    """Sample memory and processor time of the driver and everything below it until it is over."""
    times: dict[int, float] = {}
    while process.poll() is None:
        try:
            driver = psutil.Process(process.pid)
            family = [driver, *driver.children(recursive=True)]
        except psutil.Error:
            break
        for one in family:
            try:
                spent, size = one.cpu_times(), one.memory_info().rss / 1e6
                times[one.pid] = spent.user + spent.system
                if one.pid == process.pid:
                    measured.driver_mb.append(size)
                elif "spawn_main" in " ".join(one.cmdline()):
                    measured.by_worker[one.pid] = times[one.pid]
                    measured.worker_mb.append(size)
            except psutil.Error:
                continue
        time.sleep(EVERY_SECONDS)
    measured.cpu = sum(times.values())


def _print_figures(name: str, prompts: int, measured: Measured) -> None:
    print(
        f"{name:22} {prompts:>9,} {measured.seconds:>8.1f} {prompts / measured.seconds:>9.1f}"
        f" {measured.cpu:>8.1f} {prompts / measured.cpu:>13.1f}",
        flush=True,
    )


def _print_memory(measured: Measured) -> None:
    for name, sizes in (("driver", measured.driver_mb), ("a worker", measured.worker_mb)):
        if sizes:
            tenth = max(1, len(sizes) // 10)
            early, middle = sizes[tenth : 2 * tenth] or sizes, sizes[len(sizes) // 2 :][:tenth]
            shown = "  ".join(f"{max(part):.0f}" for part in (early, middle, sizes[-tenth:]))
            print(f"  MB of {name} after a tenth, in the middle, at the end: {shown}")
    shares = "  ".join(f"{seconds:.1f}" for seconds in measured.by_worker.values())
    print(f"  CPU s of each worker: {shares}; {measured.bytes_out / 1e6:.1f} MB of Parquet", flush=True)


def _compare(folder: Path, prompts: int, workers: int) -> None:
    """Both engines on the same corpus, one after the other, without what each takes to start."""
    few = max(1, prompts // 20)
    paces, works = [], []
    for name, more in (("processes", ()), ("Ray Data", ("--engine", "ray"))):
        small, large = (
            _scan(folder, count, workers, "--shard-rows", "200", *more) for count in (few, prompts)
        )
        _print_figures(f"{name}, {few} to start", few, small)
        _print_figures(name, prompts, large)
        paces.append((prompts - few) / max(1e-9, large.seconds - small.seconds))
        works.append((prompts - few) / max(1e-9, large.cpu - small.cpu))
    print(
        f"Ray against processes, start-up taken out: {paces[1] / paces[0]:.2f} of the prompts a second,"
        f" {works[1] / works[0]:.2f} of the prompts a CPU second"
    )


if __name__ == "__main__":
    main()
