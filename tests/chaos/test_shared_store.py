"""Two viewers and one batch after another on the same store: nothing is lost, nothing fails, memory is flat.

`pytest tests/chaos --long` keeps it up for ten minutes instead of fifteen seconds.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

PROMPTS = 12
PAGES = ("/", "/circles", "/batches", "/batches/b1", "/blindspots", "/rotation", "/api/v1/circles")
MAY_GROW = 24_000_000
"""Bytes of a viewer, from the first third of the time to the end."""
COMMAND = (sys.executable, "-m", "firecircle")


@contextmanager
def viewer(environment: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """A viewer's address, and its process."""
    command = [*COMMAND, "view", "--port", "0", "--no-browser", "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while not (address := re.search(r"http://127\.0\.0\.1:\d+", said)):
                line = process.stdout.readline()
                assert line, said
                said += line
            yield address[0], psutil.Process(process.pid)
        finally:
            process.terminate()


def read_pages(address: str, troubles: list[str], over: threading.Event) -> None:
    """Read page after page until it is over."""
    while not over.wait(0.05):
        for page in PAGES:
            try:
                with urllib.request.urlopen(address + page, timeout=30) as answer:
                    answer.read()
            except urllib.error.HTTPError as refused:
                if not (refused.code == 404 and page == "/batches/b1"):  # before its first circle is saved
                    troubles.append(f"{page}: {refused.code} {refused.read()[:200]!r}")
            except OSError as lost:
                troubles.append(f"{page}: {lost}")


def test_two_viewers_and_a_batch_share_a_store(tmp_path: Path, is_long: bool) -> None:
    store = tmp_path / "circles.sqlite"
    environment = {**os.environ, "FIRECIRCLE_STORE": str(store), "HOME": str(tmp_path)}
    rows = [{"user": f"Question {number}: when do you open?"} for number in range(PROMPTS)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    seconds, batches, troubles, over = (600 if is_long else 15), 0, list[str](), threading.Event()
    judge = [*COMMAND, "evaluate", "--offline", "--quiet", "--fail-on", "never", "--batch", "data.jsonl"]
    sizes: list[list[int]] = [[], []]

    def batch() -> None:
        nonlocal batches
        batches += 1
        done = subprocess.run(
            [*judge, "--batch-name", f"b{batches}"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode or "not kept" in done.stderr:
            troubles.append(f"batch {batches}: {done.returncode} {done.stderr[-500:]}")

    batch()
    with viewer(environment) as (one, first), viewer(environment) as (other, second):
        readers = [
            threading.Thread(target=read_pages, args=(address, troubles, over)) for address in (one, other)
        ]
        for reader in readers:
            reader.start()
        began = time.monotonic()
        while time.monotonic() - began < seconds and not troubles:
            batch()
            for place, process in enumerate((first, second)):
                sizes[place].append(process.memory_info().rss)
        over.set()
        for reader in readers:
            reader.join()
    print(
        f"{batches} batches; viewers in MB:", [[size // 1_000_000 for size in each][::10] for each in sizes]
    )
    assert troubles == []
    with sqlite3.connect(store) as database:
        (kept,) = database.execute("SELECT count(*) FROM circles").fetchone()
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    assert kept == batches * PROMPTS
    if is_long:
        for each in sizes:
            assert each[-1] - each[len(each) // 3] < MAY_GROW, [size // 1_000_000 for size in each]
