"""`evaluate` killed the moment its first call goes out: the circle can be found and read all the same."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Ran, command

Cli = Callable[..., Ran]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")
def test_a_record_is_left(cli: Cli, settings_file: Callable[[str], Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as slow:
        slow.settimeout(30)
        settings_file(f'[providers.slow]\nbase_url = "http://127.0.0.1:{slow.getsockname()[1]}/v1"\n')
        judging = ("evaluate", "--models", "slow:a,slow:b", "--no-quorum", "--user", "hello there")
        with subprocess.Popen(command(*judging), stdout=subprocess.DEVNULL, env=dict(os.environ)) as process:
            connection, _ = slow.accept()
            process.send_signal(signal.SIGKILL)
            process.wait()
            connection.close()
    (left,) = json.loads(cli("circles", "list", "--json").out)["circles"]
    assert (left["status"], left["voices"]) == ("interrupted", ["slow:a", "slow:b"])
    shown = cli("circles", "show", left["id"], "--verbose")
    assert shown.status == 0
    assert "hello there" in shown.out
