"""How fast `evaluate --batch` is: prompts a second, embedded and hosted, against a loop over `evaluate`.

Every figure is the wall time of a whole process, its start included. The hosted endpoint is the loopback
server of the tests in a process of its own; three voices and 17 prompts at once are about 50 calls under way.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

from firecircle.examples import load_examples

PROMPTS, LOOPED = 1000, 10
LATENCY = 0.5
AT_ONCE = 17
VOICES = "anthropic/claude-sonnet-4,qwen/qwen-2.5-72b-instruct,deepseek/deepseek-r1"


def main() -> None:
    """Print prompts a second of a batch and of a loop, and how many times faster the batch is."""
    parser = argparse.ArgumentParser(prog="python -m bench.batch", description=__doc__)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    parser.add_argument("--looped", type=int, default=LOOPED, help="prompts of the loop, a process each")
    asked = parser.parse_args()
    print(f"{'':10} {'batch':>22} {'a second':>9} {'loop':>18} {'a second':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environment["FIRECIRCLE_STORE"] = str(Path(folder) / "kept.sqlite")
        _compare("embedded", (), asked.prompts, asked.looped, folder, environment)
        with _endpoint() as base_url:
            environment |= {"OPENROUTER_API_KEY": "sk-bench", "FIRECIRCLE_OPENROUTER_BASE_URL": base_url}
            _compare("hosted", ("--models", VOICES), asked.prompts, asked.looped, folder, environment)


def _compare(
    name: str, options: tuple[str, ...], prompts: int, looped: int, folder: str, environment: dict[str, str]
) -> None:
    texts = [example.prompt.user.replace("\n", " ") for example in load_examples()]
    file = Path(folder) / f"{name}.txt"
    file.write_text("\n".join(islice(cycle(texts), prompts)), "utf-8")
    at_once = ("--at-once", str(AT_ONCE)) if options else ()
    together = _seconds([("--batch", str(file), "--quiet", *at_once, *options)], environment)
    apart = _seconds([("--user", text, *options) for text in islice(cycle(texts), looped)], environment)
    faster = (prompts / together) / (looped / apart)
    print(
        f"{name:10} {prompts:>8,} in {together:>8.1f} s {prompts / together:>9.1f}"
        f" {looped:>5,} in {apart:>7.1f} s {looped / apart:>9.2f} {faster:>6.0f}x"
    )


def _seconds(commands: list[tuple[str, ...]], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    for arguments in commands:
        done = subprocess.run(
            [sys.executable, "-m", "firecircle", "evaluate", *arguments],
            env=environment,
            capture_output=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr.decode())
    return time.perf_counter() - started


@contextmanager
def _endpoint() -> Iterator[str]:
    serving = [sys.executable, "-m", "tests.loopback", "--latency", str(LATENCY)]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
