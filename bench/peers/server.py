"""The endpoint of the bench, a process of its own: `python -m bench.peers.server SECONDS` prints its port.

Every model answers with the same verdict after the same time. In a case whose number begins with `f`, the
second voice answers 500 from its second call on. The model `what was sent` tells which questions were asked
since it was asked last, so that it can be seen that all contenders ask the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import replace

from tests.loopback import Answer, ChatRequest, LoopbackServer, completion, failure

CASE = re.compile(rb"case-(f\d+)")
FAILING = "voice-b"
ASKED = "what was sent"
CODE = re.compile(r"\b[0-9a-f]{12}\b")
LABEL = re.compile(r"\bEvaluator [A-Z]\b")
EVIDENCE_ENDS = "END layer user>>"
USAGE = {"prompt_tokens": 500, "completion_tokens": 80, "total_tokens": 580}


def question_in(request: ChatRequest) -> str:
    """A digest of who is asked what: the system message, the evidence, and the question after it.

    Codes and labels differ from circle to circle; some contenders show the evidence once and go on from it.
    """
    texts = [str(message["content"]) for message in request.body["messages"]]
    plain = [LABEL.sub("somebody", CODE.sub("code", re.sub(r"case-\d+", "case", text))) for text in texts]
    shown = next((text for text in plain if EVIDENCE_ENDS in text), "")
    evidence, question = shown.partition(EVIDENCE_ENDS)[0], plain[-1].rpartition(EVIDENCE_ENDS)[2].strip()
    told = "\0".join((request.model, plain[0], evidence, question))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


async def serve(seconds: float) -> None:
    """Answer for ever."""
    good = completion(usage=USAGE, latency=seconds)
    # Clients that check an answer against its schema want these, too.
    body = good.body[:-1] + b', "id": "x", "object": "chat.completion", "created": 1, "model": "m"}'
    good = replace(good, body=body)
    # Later than the others of its round, whose answers are there to be kept.
    bad = replace(failure(500, "the model is out of order"), latency=2 * seconds)
    calls: Counter[bytes] = Counter()

    sent: set[str] = set()

    def script(request: ChatRequest) -> Answer:
        if request.model == ASKED:
            told, waiting = completion(json.dumps(sorted(sent))), sent.copy()
            sent.difference_update(waiting)
            return told
        if CASE.search(request.raw) is None:
            sent.add(question_in(request))
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
