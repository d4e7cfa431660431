"""On a terminal the circle is seen while it sits; in a pipe there is not one control sequence."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Self

import pytest

from tests.cli.running import ATTACK, TRIO, command, flowing, ran_apart
from tests.loopback import Answer, ChatRequest, LoopbackServer, Script, completion, failure
from tests.scripted import says

Host = Callable[[Script], LoopbackServer]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a terminal of its own, and everything it has written there."""

    def __init__(self, *arguments: str, columns: int = 80, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        settings = {**os.environ, "TERM": "xterm-256color", **environment}
        settings.pop("COLUMNS")
        self.process = subprocess.Popen(
            command(*arguments),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=settings,
            start_new_session=True,
        )
        os.close(theirs)
        self._bytes = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def read_until(self, words: str, seconds: float = 60.0) -> None:
        """Wait for these words on the screen."""
        deadline = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            self._read(0.1)

    def finish(self) -> int:
        """Read to the end; the exit status."""
        while self._read(20.0):
            pass
        return self.process.wait(20)

    @property
    def written(self) -> str:
        return self._bytes.decode(errors="ignore")

    @property
    def text(self) -> str:
        return ESCAPE.sub("", self.written)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux says so when the other end of a terminal is closed
            return False
        self._bytes += data
        return bool(data)


def slow(seconds: float) -> Script:
    return lambda _: completion(says(0.8), latency=seconds)


def test_the_rounds_are_seen_as_they_happen(hosted: Host) -> None:
    hosted(slow(0.3))
    with Terminal("evaluate", "hello", "--models", TRIO, "--rounds", "2", "--verbose") as terminal:
        terminal.read_until("listening to 3 of 3 voices")
        assert "ALARM" not in terminal.text
        terminal.read_until("round 2")
        assert terminal.finish() == 1
        assert "\x1b[" in terminal.written
        final = terminal.text[terminal.text.rindex("mean ± spread") - 300 :]
        assert re.search(r"anthropic/claude-sonnet-4 +0\.80 █+░+ ! +0\.80 █+░+ !", final)
        assert re.search(r"qwen/qwen-2.5-72b-\S+ +0\.80 █+░+ ! +0\.80 █+░+ !◆", final)
        assert "! F at or above 0.70   ◆ empty chair" in final
        assert " ALARM   F 0.80" in final


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    with Terminal("evaluate", "--example", ATTACK, "--verbose", columns=columns) as terminal:
        assert terminal.finish() in (0, 1)
        # A line that is redrawn is erased first, so between two line breaks the longest stretch counts.
        lines = re.split(r"[\r\n]+", terminal.text)
        assert max(len(line) for line in lines) <= columns


def test_retries_and_losses_are_seen(hosted: Host) -> None:
    asked: list[str] = []

    def troubled(request: ChatRequest) -> Answer:
        asked.append(request.model)
        if "qwen" in request.model and asked.count(request.model) == 1:
            return failure(429, "slow down, friend", retry_after="1")
        if "deepseek" in request.model and asked.count(request.model) > 1:
            return failure(404, "model retired")
        return completion(says(0.2), latency=0.2)

    hosted(troubled)
    with Terminal("evaluate", "hello", "--models", TRIO, "--no-quorum") as terminal:
        terminal.read_until("try 2")
        terminal.read_until("slow down, friend")
        assert terminal.finish() == 0
        assert "✗ http error" in terminal.text
        assert "model retired" in flowing(terminal.text)


def test_voices_apart_are_awaited_with_a_word(hosted: Host) -> None:
    hosted(slow(0.5))
    with Terminal("evaluate", "hello", "--models", TRIO, "--mode", "parallel") as terminal:
        terminal.read_until("listening to anthropic/claude-sonnet-4")
        assert terminal.finish() == 1
        assert "The mean of 3 voices asked independently" in terminal.text


def test_lists_on_a_terminal() -> None:
    with Terminal("examples", "--type", "temporal_inconsistency", "--label", "attack") as terminal:
        assert terminal.finish() == 0
        assert f"{ATTACK}  attack" in terminal.text
    with Terminal("quorum", "--list") as terminal:
        assert terminal.finish() == 0
        assert "embedded_rules: temporal_reasoning 0." in terminal.text


def test_json_keeps_the_live_view_off_standard_output() -> None:
    assert "\x1b" not in ran_apart("evaluate", "--example", ATTACK, "--json").out


def test_a_pipe_gets_no_control_sequences_even_if_colour_is_forced() -> None:
    ran = ran_apart("evaluate", "--example", ATTACK, "--verbose", FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert "\x1b" not in ran.out + ran.err
    assert "round 1 (independent)" in ran.out


def test_a_terminal_that_can_do_nothing_gets_lines() -> None:
    with Terminal("evaluate", "--example", ATTACK, "--verbose", TERM="dumb") as terminal:
        terminal.finish()
        assert "\x1b" not in terminal.written
        assert "round 1 (independent)" in terminal.text


def test_an_old_encoding_gets_stand_ins() -> None:
    ran = ran_apart("evaluate", "--example", ATTACK, "--verbose", PYTHONIOENCODING="ascii")
    assert ran.status in (0, 1)
    assert re.search(r"F 0\.\d\d #+\.+", ran.out)


def test_control_c_hands_back_what_was_heard(hosted: Host, folder: Path) -> None:
    def second_round_hangs(request: ChatRequest) -> Answer:
        rounds = "Evaluator" in request.question
        return completion(says(0.6), latency=30.0 if rounds else 0.0)

    hosted(second_round_hangs)
    session = folder / "talk.json"
    with Terminal("evaluate", "hello", "--models", TRIO, "--session", str(session)) as terminal:
        terminal.read_until("discussion")
        os.killpg(terminal.process.pid, signal.SIGINT)
        assert terminal.finish() == 130
        assert "error: interrupted" in terminal.text
        assert "Traceback" not in terminal.text
        assert "no verdict   called off" in terminal.text
        assert "Heard until then: 3 answers of 3 voices" in terminal.text
        assert "not heard" in terminal.text
        assert not session.exists()


def test_control_c_when_the_reader_has_left(hosted: Host, folder: Path) -> None:
    """What is still to be written cannot be; the status says all the same that it was interrupted."""
    server = hosted(slow(30.0))
    (folder / "plan.toml").write_text(
        'name = "a"\n[[datasets]]\npath = "examples"\nsample = 1\n[[arms]]\nname = "a"\nkind = "single"\n'
        'model = "openai/gpt-4o"\n'
    )
    code = "import sys; from firecircle.__main__ import main; print('not flushed'); main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "lab", "run", "plan.toml", "--no-save", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        deadline = time.monotonic() + 20
        while not server.requests:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        assert told.splitlines()[-1].startswith(b"error: interrupted")
        assert b"Traceback" not in told
        assert process.wait(timeout=20) == 130


def test_control_c_in_a_pipe_with_json(hosted: Host) -> None:
    server = hosted(slow(30.0))
    for mode in ("fire_circle", "parallel"):
        asked_before = len(server.requests)
        with subprocess.Popen(
            command("evaluate", "hello", "--models", TRIO, "--json", "--mode", mode),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            deadline = time.monotonic() + 20
            while len(server.requests) < asked_before + 3:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        assert process.returncode == 130
        assert '"error": "interrupted"' in out
        assert err == "error: interrupted\n"
