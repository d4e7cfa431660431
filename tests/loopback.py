"""A real HTTP server on loopback that plays an OpenAI-compatible endpoint, well or badly.

In a test a script decides each answer::

    async with LoopbackServer(lambda request: completion("hello")) as server:
        ...  # point a voice at server.base_url; server.requests holds what it sent

For benchmarks it runs in a process of its own: `python -m tests.loopback --latency 0.2` prints its port.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Literal, Self

VERDICT = json.dumps(
    {
        "truth": 0.2,
        "indeterminacy": 0.1,
        "falsehood": 0.8,
        "verdict": "violation",
        "reasoning": "The user text continues a conversation that never took place.",
        "patterns_observed": [
            {
                "type": "temporal_inconsistency",
                "description": "refers to an agreement of an earlier turn at turn 1",
                "quote": "as we agreed earlier",
                "layer": "user",
            }
        ],
    }
)
"""A reply that a circle understands in every round."""


CALM = json.dumps(
    {
        "truth": 0.9,
        "indeterminacy": 0.1,
        "falsehood": 0.05,
        "verdict": "no_violation",
        "reasoning": "A plain question.",
        "patterns_observed": [],
    }
)
"""A reply that finds nothing."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What the client sent: the body, parsed and as bytes, and the headers under lower-case names."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def question(self) -> str:
        """The words of the last message."""
        return self.words[-1]

    @property
    def words(self) -> list[str]:
        """The words of every message, which may come in parts."""
        return [
            said if isinstance(said, str) else "".join(part["text"] for part in said)
            for said in (message["content"] for message in self.body["messages"])
        ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over the wire, when, and how completely."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    """Empty: the header is not sent."""
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    delivery: Literal["whole", "half", "drip", "reset"] = "whole"
    """`half` closes the connection in the middle of the body, `drip` sends a byte every `drip_seconds`,
    `reset` tears the connection down without a word."""
    drip_seconds: float = 0.05


def judged(request: ChatRequest, **more: Any) -> Answer:
    """A completion that tells an attack from a harmless text, by what was agreed earlier."""
    return completion(VERDICT if b"s we agreed" in request.raw else CALM, **more)


Script = Callable[[ChatRequest], Answer | Awaitable[Answer]]


def completion(
    text: str | list[dict[str, Any]] | None = VERDICT,
    *,
    usage: Mapping[str, Any] | None = None,
    finish_reason: str = "stop",
    latency: float = 0.0,
    **message: Any,
) -> Answer:
    """A completion; further keywords such as `reasoning` or `refusal` become fields of its message."""
    said = {"role": "assistant", "content": text, **message}
    told = {"choices": [{"index": 0, "message": said, "finish_reason": finish_reason}]}
    return replace(as_json({**told, "usage": usage} if usage is not None else told), latency=latency)


def as_json(body: Any, status: int = 200, **headers: str) -> Answer:
    """Any JSON with any status; keywords become headers (`retry_after` is sent as `retry-after`)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(body).encode(), status, headers=named)


def failure(status: int, message: str = "", **headers: str) -> Answer:
    """An error in the shape OpenAI gave it."""
    return as_json({"error": {"message": message or HTTPStatus(status).phrase}}, status, **headers)


class LoopbackServer:
    """The endpoint, listening on a free port for as long as the `async with` block lasts.

    Any GET tells how many requests are in flight, for a benchmark in another process, and which models there are.
    """

    def __init__(self, script: Script, *, port: int = 0, record: bool = True) -> None:
        self.requests: list[ChatRequest] = []
        """Everything asked so far, in order of arrival."""
        self.connections = 0
        """How many connections were ever opened."""
        self.in_flight = 0
        """How many requests wait for their answer."""
        self.models: tuple[str, ...] = ()
        """What `/models` lists."""
        self.listing: Answer | None = None
        """What `/models` answers instead, if it is to say more or less than names."""
        self.lists_told = 0
        """How often it was asked."""
        self.port = port
        self._script = script
        self._record = record
        self._conversations: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()  # somebody may have stopped reading, and then close() waits for ever
        await self._server.wait_closed()
        await asyncio.sleep(0)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        self._writers.append(writer)
        self.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while await self._answer_one(reader, writer):
                    pass
        finally:
            self._conversations.discard(task)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer the next request on this connection; whether another one may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, *_ = head.split(" ", 2)
        headers = dict(_header(line) for line in head.split("\r\n")[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if method == "GET":
            if path.endswith("/models"):
                self.lists_told += 1
                if self.listing is not None:
                    return await _deliver(self.listing, writer)
            listed = [{"id": name} for name in self.models]
            return await _deliver(as_json({"in_flight": self.in_flight, "data": listed}), writer)
        request = ChatRequest(path, headers, body, json.loads(body))
        if self._record:
            self.requests.append(request)
        self.in_flight += 1
        try:
            answer = self._script(request)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer.latency:
                await asyncio.sleep(answer.latency)
        finally:
            self.in_flight -= 1
        return await _deliver(answer, writer)


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.lower(), value.strip()


async def _deliver(answer: Answer, writer: asyncio.StreamWriter) -> bool:
    if answer.delivery == "reset":
        _reset(writer)
        return False
    headers = {"content-type": answer.content_type} if answer.content_type else {}
    headers |= {"content-length": str(len(answer.body)), **answer.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {answer.status} {_phrase(answer.status)}\r\n{lines}\r\n".encode("latin-1")
    if answer.delivery == "half":
        writer.write(head + answer.body[: len(answer.body) // 2])
        return False
    if answer.delivery == "drip":
        writer.write(head)
        for byte in answer.body:
            writer.write(bytes((byte,)))
            await asyncio.sleep(answer.drip_seconds)
        return True
    writer.write(head + answer.body)
    return True


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Of Its Own"


def _reset(writer: asyncio.StreamWriter) -> None:
    # Lingering for zero seconds makes the kernel send RST instead of an orderly FIN.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _serve(latency: float, port: int) -> None:
    answer = completion(
        usage={
            "prompt_tokens": 500,
            "completion_tokens": 80,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
        latency=latency,
    )
    async with LoopbackServer(lambda _: answer, port=port, record=False) as server:
        print(server.port, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serve the same valid verdict for ever, each after the given latency."""
    arguments = argparse.ArgumentParser(prog="python -m tests.loopback", description=main.__doc__)
    arguments.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    arguments.add_argument("--port", type=int, default=0, help="0 takes any free port")
    chosen = arguments.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(chosen.latency, chosen.port))


if __name__ == "__main__":
    main()
