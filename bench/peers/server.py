"""The endpoint of the bench, a process of its own: `python -m bench.peers.server SECONDS` prints its port.

Every model answers with the same verdict after the same time. In a case whose number begins with `f`, the
second voice answers 500 from its second call on.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections import Counter
from dataclasses import replace

from tests.loopback import Answer, ChatRequest, LoopbackServer, completion, failure

CASE = re.compile(rb"case-(f\d+)")
FAILING = "voice-b"
USAGE = {"prompt_tokens": 500, "completion_tokens": 80, "total_tokens": 580}


async def serve(seconds: float) -> None:
    """Answer for ever."""
    good = completion(usage=USAGE, latency=seconds)
    # Clients that check an answer against its schema want these, too.
    body = good.body[:-1] + b', "id": "x", "object": "chat.completion", "created": 1, "model": "m"}'
    good = replace(good, body=body)
    # Later than the others of its round, whose answers are there to be kept.
    bad = replace(failure(500, "the model is out of order"), latency=2 * seconds)
    calls: Counter[bytes] = Counter()

    def script(request: ChatRequest) -> Answer:
        if request.model != FAILING or (case := CASE.search(request.raw)) is None:
            return good
        calls[case[1]] += 1
        return bad if calls[case[1]] > 1 else good

    async with LoopbackServer(script, record=False) as server:
        print(server.port, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(float(sys.argv[1])))
