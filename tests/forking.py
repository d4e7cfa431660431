"""One process loads the package and the tests; those that run tests in parallel are forked from it.

Loading is what each of them would do for itself otherwise: five seconds of imports and of probes for coverage, ten
in a fresh clone.
pytest-xdist starts its processes as it always does, only that their interpreter is `hand_over`: it hands its
streams to a copy of the process that has loaded everything, and ends when the copy does.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

STREAMS = (0, 1, 2)
NEVER = 2_000_000_000
"""How often a line is to be met before its probe is taken out. slipcover looks through all functions of the package
to do so, in the middle of a test: with its own 50 calls that was an eighth of what the processes of a run took, and
tests that count calls or memory would count it too."""
SECONDS_TO_END = 10.0


class Loader:
    """The process that has loaded everything, seen from the one that starts it."""

    def __init__(self, selected: Sequence[str]) -> None:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("")  # any name that is free: one of Linux's own, which leaves no file behind
            self._name = listening.getsockname()[1:].decode()
            listening.listen()
            number = listening.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, "load", str(number), *selected],
                stdin=subprocess.PIPE,
                pass_fds=[number],
            )

    @property
    def interpreter(self) -> str:
        """What to start in place of Python to get a process in which everything is loaded."""
        return f"'{sys.executable}' -PS '{__file__}' hand_over {self._name}"

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def fork_from_one(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Let the processes that pytest-xdist is about to start be copies of one that has loaded everything."""
    if sys.platform == "linux":
        loader = Loader(config.args)
        config.add_cleanup(loader.close)
        for spec in specs:
            spec.python = loader.interpreter


def hand_over(name: str, command: list[str]) -> int:
    """Have a copy of the loader run on the streams of this process; where it cannot, run the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the copy hears it too
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(b"\0" + name.encode())
            socket.send_fds(connection, [b"+"], STREAMS)
            taken_over = connection.recv(1)
        except OSError:
            taken_over = b""
        if taken_over:
            status = connection.recv(1)
            return status[0] if status else 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return os.execv(sys.executable, [sys.executable, *command])


def load(number: int, selected: list[str]) -> None:
    """Collect the selected tests, then fork for everybody who asks until whoever started this has ended."""
    os.environ["PYTEST_XDIST_WORKER"] = "loader"  # so that coverage is counted from the first import on
    probes = import_module("slipcover.pytest_plugin")._slipcover_instance
    if probes:
        probes.d_miss_threshold = NEVER
        probes.source = None  # the files that nothing loads are looked for once, by whoever started the run
    import pytest

    files = _TestFiles()
    quietly = ["--collect-only", "-p", "no:slipcover", "-p", "no:cacheprovider"]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        collected = pytest.main([*quietly, *selected], [files])
    del os.environ["PYTEST_XDIST_WORKER"]
    with socket.socket(fileno=number) as listening:
        if collected == pytest.ExitCode.OK:
            files.forget()
            _fork_for_everybody(listening)


class _TestFiles:
    """Knows which files hold tests."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def pytest_pycollect_makemodule(self, module_path: Path) -> None:
        self._paths.add(str(module_path))

    def forget(self) -> None:
        """Have them loaded again where they run: one that skips itself half-way must do so there as well."""
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) in self._paths:
                del sys.modules[name]


def _fork_for_everybody(listening: socket.socket) -> None:
    import select

    waiting: dict[int, socket.socket] = {}

    def reap(_number: int, _frame: FrameType | None) -> None:
        for child in list(waiting):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                with (
                    waiting.pop(child) as connection,
                    suppress(OSError),
                ):  # whoever asked may have ended before
                    connection.send(bytes([os.waitstatus_to_exitcode(status) & 255]))

    signal.signal(signal.SIGCHLD, reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own_input = 0
    asking = listening.fileno()
    while own_input not in select.select([own_input, asking], [], [])[0]:  # else it was closed
        connection, _ = listening.accept()
        _, streams, _, _ = socket.recv_fds(connection, 1, len(STREAMS))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        if child := os.fork():
            waiting[child] = connection
            connection.send(b"+")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            for stream in streams:
                os.close(stream)
        else:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for inherited in (listening, connection, *waiting.values()):
                inherited.close()
            _run(streams)
            return
    until = time.monotonic() + SECONDS_TO_END
    while waiting and time.monotonic() < until:  # so that what they took is counted as this run's
        time.sleep(0.02)
    for child in list(waiting):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _run(streams: Sequence[int]) -> None:
    """Do what `python -c` does with what comes from pytest-xdist, on these streams."""
    for given, expected in zip(streams, STREAMS, strict=True):
        os.dup2(given, expected)
        os.close(given)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.argv = ["-c"]
    sys.modules["__main__"] = main = ModuleType("__main__")
    exec(eval(sys.stdin.readline()), main.__dict__)


if __name__ == "__main__":
    task, given, *rest = sys.argv[1:]
    if task == "load":
        load(int(given), rest)
    else:
        sys.exit(hand_over(given, rest))
