"""`firecircle view`: where it listens, whom it lets in, and how it says what is wrong."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from firecircle.cli.view import view
from firecircle.errors import ConfigError
from firecircle.web.serving import listening_socket
from tests.web.serving import PATIENCE

START = "import sys; from firecircle.cli.view import view; sys.exit(view(port=0, store=sys.argv[1], no_browser=True, as_json=True))"


@pytest.mark.parametrize("times", [1, 2])
def test_it_serves_until_it_is_asked_to_end(tmp_path: Path, times: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path / "circles.sqlite")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
            answer = httpx.get(f"{told['url']}/circles", timeout=PATIENCE)
            assert "Nothing is saved yet" in answer.text
            with httpx.Client(
                base_url=told["url"], headers={"x-firecircle-token": told["write_token"]}, timeout=PATIENCE
            ) as client:
                assert client.post("/api/v1/evaluate", json={"user": "hello there"}).status_code in (200, 202)
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.01)
            assert process.wait(20) == 0
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--port: {port} is taken; give another"):
            view(port=port, store=str(tmp_path / "circles.sqlite"), no_browser=True)


def test_other_machines_need_a_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--token: 0\.0\.0\.0 can be reached from other machines"):
        view(host="0.0.0.0", store=str(tmp_path / "circles.sqlite"), no_browser=True)


def test_an_unknown_address_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--port: cannot listen on 192\.0\.2\.1"):
        view(
            host="192.0.2.1",
            token="a token that is long enough",
            store=str(tmp_path / "circles.sqlite"),
            no_browser=True,
        )


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError, match=r"pip install '.*\[view\]'"):
        view(no_browser=True)


def test_small_answers_do_not_wait_for_an_acknowledgement() -> None:
    # asyncio turns Nagle's algorithm off only for connections of a socket that is named as TCP.
    with listening_socket("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
