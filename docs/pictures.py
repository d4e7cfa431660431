"""The pictures of the README: `python -m docs.pictures` draws them again from what is really shown.

A batch is recorded in a pseudo-terminal of 100 columns and drawn as SVG; the viewer is photographed in
Chromium with a bundled example. The embedded readers judge both.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

from docs.viewer_pictures import browser_path
from playwright.async_api import async_playwright
from rich.console import Console
from rich.text import Text

EXAMPLE = "role_confusion-04-attack"
FOLDER = Path(__file__).parent / "_static"
FILES = FOLDER.parents[1] / "examples" / "files"
COLUMNS, LINES = 100, 60
SHOWN_LINES = 34
CONTROL = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|\r\n|\n|\r")


def main() -> None:
    """Draw both."""
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "FIRECIRCLE_STORE": str(Path(folder) / "store.sqlite"),
            "FIRECIRCLE_CONFIG": "",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        batch = ["batch", "messages.csv", "--system", "@system.txt"]
        draw_terminal(batch, FOLDER / "terminal.svg", surroundings)
        for other in (EXAMPLE, "temporal_inconsistency-01-attack", "polite_extraction-02-benign"):
            _firecircle(["evaluate", "--example", other], surroundings)
        asyncio.run(photograph_viewer(FOLDER / "viewer.png", surroundings))


def _firecircle(arguments: list[str], surroundings: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "firecircle", *arguments],
        env=surroundings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


def draw_terminal(arguments: list[str], target: Path, surroundings: dict[str, str]) -> None:
    """What the command leaves on a terminal, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in _screen(_recorded(arguments, surroundings))[:SHOWN_LINES]:
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
    drawn = console.export_svg(title=" ".join(["firecircle", *arguments]), unique_id="firecircle")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # nobody's font is fetched
    target.write_text(drawn, "utf-8")


def _recorded(arguments: list[str], surroundings: dict[str, str]) -> str:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(FILES)
        os.execve(sys.executable, [sys.executable, "-m", "firecircle", *arguments], surroundings)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    os.waitpid(child, 0)
    return written.decode()


def _screen(written: str) -> list[str]:
    """The lines that are left when a live table has drawn itself over and over."""
    lines, row, at = [""], 0, 0
    for control in CONTROL.finditer(written):
        text, sequence = written[at : control.start()], control[0]
        at = control.end()
        lines[row] += text
        if control[2] == "m":
            lines[row] += sequence
        elif control[2] == "A":
            row = max(0, row - int(control[1] or 1))
        elif control[2] == "K":
            lines[row] = ""
        elif sequence in ("\n", "\r\n"):
            row += 1
            if row == len(lines):
                lines.append("")
    lines[row] += written[at:]
    return [line.rstrip() for line in lines]


async def photograph_viewer(target: Path, surroundings: dict[str, str]) -> None:
    """The page of the newest alarm."""
    with _viewer(surroundings) as address:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 1280, "height": 860}, device_scale_factor=1)
            await page.goto(f"{address}circles/{_kept_alarm(surroundings)}")
            await page.get_by_role("heading").first.wait_for()
            await page.screenshot(path=target)
            await browser.close()


def _kept_alarm(surroundings: dict[str, str]) -> str:
    listed = _firecircle(["circles", "list", "--alarm", "--pattern", "role_confusion"], surroundings)
    return listed.split("\t")[0]


@contextmanager
def _viewer(surroundings: dict[str, str]) -> Iterator[str]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "firecircle", "view", "--port", str(port), "--no-browser"]
    process = subprocess.Popen(command, env=surroundings, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(100):
            try:
                urlopen(address, timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
