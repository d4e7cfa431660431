"""A red-team run that is interrupted or killed: what was held is kept, and the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle.lab.redteam.kept_circles import circles_folder
from firecircle.names import EMBEDDED_MODELS
from tests.cli.running import TRIO, Ran, assert_one_line_of_trouble, command, ran_apart
from tests.loopback import Answer, ChatRequest, LoopbackServer, Script, completion, failure
from tests.scripted import says

Cli = Callable[..., Ran]

FEW = (
    "redteam",
    "--attacks",
    "order,contagion,always_1,copies_majority",
    "--layers",
    "user",
    "--rounds",
    "2",
)


def kept_file() -> Path:
    (file,) = circles_folder().glob("*.jsonl")
    return file


def lines() -> list[bytes]:
    return kept_file().read_bytes().splitlines() if list(circles_folder().glob("*.jsonl")) else []


def ended_after(
    more: int, end: Callable[[subprocess.Popen[str]], object], *arguments: str
) -> tuple[int, str]:
    """Begin the command, end it when it has held so many more circles; its status and what it told."""
    before = len(lines())
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while len(lines()) < before + more and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    end(process)
    _, told = process.communicate(timeout=120)
    return process.returncode, told


def comparable(ran: Ran) -> dict[str, object]:
    """A report without what differs from one run to the next."""
    report = json.loads(ran.out)
    return {name: value for name, value in report.items() if name not in ("started_at", "duration_seconds")}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")
def test_the_same_command_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    arguments = (*FEW, "--models", ",".join(EMBEDDED_MODELS), "--prompts", "12", "--json")
    status, told = ended_after(5, lambda process: process.send_signal(signal.SIGINT), *arguments)
    assert status == 130
    assert told.count("\n") == 1
    held = len(lines()) - 1
    assert f"interrupted; {held} of 84 circles are held and kept" in told
    assert "the same command goes on" in told

    status, told = ended_after(5, lambda process: process.kill(), *arguments)
    assert status == -signal.SIGKILL
    assert f"going on after {held} of 84 circles" in told
    after_the_kill = [line for line in lines() if line.endswith(b"}")]
    assert len(after_the_kill) > held + 1

    done = ran_apart(*arguments)
    assert done.status == 1, done.err
    assert lines()[: len(after_the_kill)] == after_the_kill
    assert len(lines()) in (1 + 84, 1 + 84 + 1)  # the killed process may have left half a line

    whole = ran_apart(*arguments, XDG_DATA_HOME=str(tmp_path / "elsewhere"))
    assert comparable(done) == comparable(whole)


def test_a_damaged_line_costs_its_own_circle_and_is_told(cli: Cli) -> None:
    arguments = (*FEW, "--prompts", "2", "--json")
    first = cli(*arguments)
    whole = kept_file().read_bytes()
    written = whole.splitlines(keepends=True)
    half = written[5][: len(written[5]) // 2].decode().encode()
    damaged = [*written[:2], b'{"document": 3}\n', *written[3:5], half + b"\xe2\x82\n", *written[6:-1]]
    kept_file().write_bytes(b"".join(damaged) + written[-1][:1000])

    again = cli(*arguments)
    assert comparable(again) == comparable(first)
    assert "line 3" in again.err
    assert "line 6" in again.err
    assert "it breaks off" in again.err
    assert "going on after 11 of 14 circles" in again.err
    assert cli(*arguments).err.count("\n") == again.err.count(
        "\n"
    )  # nothing more is held, damage is told again
    assert len(kept_file().read_bytes().splitlines()) == len(written) + 3


def test_what_is_held_already_is_not_held_again_unless_asked(
    cli: Cli, hosted: Callable[[Script], LoopbackServer]
) -> None:
    server = hosted(lambda request: completion(says(0.8)))
    arguments = (*FEW[:2], "order", *FEW[3:], "--models", TRIO, "--prompts", "2", "--json")
    first = cli(*arguments)
    asked = len(server.requests)
    assert asked
    again = cli(*arguments)
    assert len(server.requests) == asked
    assert again.out == first.out
    assert "going on after 8 of 8 circles" in again.err
    cli(*arguments, "--anew")
    assert len(server.requests) == 2 * asked
    cli(*arguments, "--seed", "2")
    assert len(server.requests) == 3 * asked
    more = (*FEW[:2], "order,contagion", *FEW[3:], "--models", TRIO, "--prompts", "2", "--json")
    cli(*more)
    assert len(server.requests) < 3.5 * asked


def test_circles_that_lost_a_voice_to_the_network_are_held_again(
    cli: Cli, hosted: Callable[[Script], LoopbackServer]
) -> None:
    is_down = True

    def script(request: ChatRequest) -> Answer:
        if is_down and "deepseek" in request.model:
            return failure(400)
        return completion(says(0.8))

    server = hosted(script)
    arguments = (*FEW[:2], "order", *FEW[3:], "--models", TRIO, "--prompts", "1")
    ran = cli(*arguments)
    assert ran.status == 4, ran.err
    assert "the same command holds them again" in ran.err
    is_down = False
    assert cli(*arguments).status == 0
    asked = len(server.requests)
    assert cli(*arguments).status == 0
    assert len(server.requests) == asked


def test_nothing_is_kept_where_nothing_may_be(cli: Cli) -> None:
    cli(*FEW, "--prompts", "1", "--no-save")
    assert not circles_folder().exists()


def test_what_was_held_can_be_taken_into_the_store(cli: Cli) -> None:
    cli(*FEW, "--prompts", "2")
    ran = cli("circles", "import", str(kept_file()), "--json")
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["added"] == 14


def test_a_lock_that_is_none_is_told_in_a_line(cli: Cli) -> None:
    cli(*FEW, "--prompts", "1")
    (lock,) = circles_folder().glob(".*.lock")
    lock.write_text("no lock but a letter to whoever reads it, which is long enough to be one")
    assert_one_line_of_trouble(cli(*FEW, "--prompts", "1"), "cannot be locked", "remove it")
    lock.unlink()
    lock.mkdir()
    assert_one_line_of_trouble(cli(*FEW, "--prompts", "1"), "cannot be locked")


def test_a_file_of_noise_is_told_in_few_lines(cli: Cli) -> None:
    cli(*FEW, "--prompts", "1")
    kept_file().write_bytes(b"\xff\x00[[[{\n" * 5000)
    ran = cli(*FEW, "--prompts", "1")
    assert ran.status in (0, 1)
    assert "so it is with 4,979 more lines" in ran.err
    assert ran.err.count("\n") < 30


def test_families_can_be_attacked(cli: Cli, hosted: Callable[[Script], LoopbackServer]) -> None:
    server = hosted(lambda request: completion(says(0.8)))
    server.models = ("anthropic/claude-sonnet-5", "openai/gpt-7", "deepseek/deepseek-r1")
    families = "family:anthropic-sonnet,family:openai-gpt,deepseek/deepseek-r1"
    ran = cli("redteam", "--models", families, *FEW[1:], "--prompts", "1", "--json")
    assert ran.status in (0, 1), ran.err
    assert json.loads(ran.out)["models"] == [*server.models]


def test_two_at_once_are_refused(cli: Cli) -> None:
    arguments = (*FEW, "--prompts", "90")
    process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while len(lines()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        ran = cli(*arguments)
        assert ran.status == 2
        assert "another process" in ran.err
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_is_told_in_a_line(cli: Cli) -> None:
    cli(*FEW, "--prompts", "1")
    file = kept_file()
    file.unlink()
    file.symlink_to("/dev/full")
    ran = cli(*FEW, "--prompts", "1")
    assert ran.status == 2
    assert ran.err.count("\n") == 1
    assert "cannot be used" in ran.err
