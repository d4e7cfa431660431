"""A local model behind an OpenAI-compatible address on loopback: a real endpoint for `llamacpp:` voices.

It runs in a process of its own: inside this one llama.cpp could not be stopped while a client waits for
an answer, and would take the process down with it if it crashed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from firecircle.errors import ConfigError
from firecircle.voices.local.llama import CannotLoad, Llama, require_library
from firecircle.voices.local.weights import weights_of

SECONDS_TO_STOP = 10.0
ROOT = Path(__file__).parents[1]


@contextmanager
def llama_server(model: str = "local:smollm2", *, port: int = 0) -> Iterator[str]:
    """Serve a model until the block ends; the value is the base URL, which answers from the first line on.

    With `FIRECIRCLE_LLAMACPP_BASE_URL` set to it, `llamacpp:smollm2` is a hosted voice. Port 0 is any
    that is free. Requests are answered one at a time, so the timeouts of a circle have to be generous.
    """
    require_library()
    weights_of(model)
    command = [sys.executable, "-m", "bench.llama_server", model, str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            told = json.loads(server.stdout.readline() or "{}")
            if "address" not in told:
                if "error" in told:
                    raise ConfigError(None, told["error"])
                raise ConfigError(model, "the server ended before it could answer")
            yield f"{told['address']}/v1"
        finally:
            server.stdin.close()
            try:
                server.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                server.kill()


def serve(model: str, port: int) -> NoReturn:
    """The server's own process: say where it listens, then serve until the parent lets go of its input.

    The end of the input comes however the parent ends, so no server is left behind.
    """
    # An interrupt from the keyboard reaches parent and child alike; the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        llama = Llama(weights_of(model), port=port)
    except (CannotLoad, ConfigError) as broken:
        print(json.dumps({"error": str(broken)}), flush=True)
        sys.exit(2)
    print(json.dumps({"address": llama.address}), flush=True)
    sys.stdin.read()
    # Closing in order would wait for every client that still expects an answer.
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
