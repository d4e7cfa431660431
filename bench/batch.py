"""How fast `firecircle batch` is: prompts a second, embedded and hosted, against a loop over `evaluate`.

Every figure is that of whole processes, their start included: wall time, and processor time a prompt, which
says the same on a machine that is busy with other things. The hosted endpoint is the loopback server of the
tests in a process of its own; three voices and 17 prompts at once are about 50 calls under way.
"""

from __future__ import annotations

import argparse
import os
import resource
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
UNREAD = 3
"""The exit status where no voice could read some prompt."""
VOICES = "anthropic/claude-sonnet-4,qwen/qwen-2.5-72b-instruct,deepseek/deepseek-r1"


def main() -> None:
    """Print prompts a second of a batch and of a loop, and how many times faster the batch is."""
    parser = argparse.ArgumentParser(prog="python -m bench.batch", description=__doc__)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    parser.add_argument("--looped", type=int, default=LOOPED, help="prompts of the loop, a process each")
    asked = parser.parse_args()
    print(f"{'':10} {'prompts':>8} {'seconds':>8} {'a second':>9} {'CPU s a prompt':>15}")
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
    together = _measured([("--batch", str(file), "--quiet", *at_once, *options)], environment)
    apart = _measured([("--user", text, *options) for text in islice(cycle(texts), looped)], environment)
    for what, count, (seconds, cpu) in ((name, prompts, together), ("  a loop", looped, apart)):
        print(f"{what:10} {count:>8,} {seconds:>8.1f} {count / seconds:>9.2f} {cpu / count:>15.3f}")
    by_wall, by_cpu = ((apart[part] / looped) / (together[part] / prompts) for part in (0, 1))
    print(f"{'  ratio':10} {by_wall:>27.1f} {by_cpu:>15.1f}")


def _measured(commands: list[tuple[str, ...]], environment: dict[str, str]) -> tuple[float, float]:
    """Wall time and processor time of the commands, one after another."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    for arguments in commands:
        done = subprocess.run(
            [sys.executable, "-m", "firecircle", "evaluate", *arguments],
            env=environment,
            capture_output=True,
            check=False,
        )
        if done.returncode not in (0, 1, UNREAD):
            raise SystemExit(done.stderr.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, cpu


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
