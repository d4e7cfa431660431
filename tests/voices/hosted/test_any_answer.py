"""Whatever an endpoint sends back, there is a reply or a setback that says why; nothing else is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle import Reply
from firecircle.voices.hosted.adaptation import change_for
from firecircle.voices.hosted.answers import reply_in
from firecircle.voices.hosted.chat import ChatRequest
from firecircle.voices.hosted.connections import HttpAnswer
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.waits import Setback, presentable
from tests.voices.hosted.test_hosted import SCHEMA, TURN

NAMES = (
    "choices message content delta finish_reason native_finish_reason index refusal reasoning reasoning_content"
    " reasoning_details type text thinking usage prompt_tokens completion_tokens total_tokens cost cost_details"
    " prompt_tokens_details cached_tokens is_byok upstream_inference_cost error errors code param metadata raw"
    " reasons headers detail details loc msg retryDelay violations quotaId fieldViolations field base_resp"
    " status_code status_msg innererror model status content_filter_results prompt_filter_results x_groq"
    " stop_reason stop_details output summary incomplete_details reason response item output_index object"
    " candidates parts thought functionCall finishReason promptFeedback blockReason usageMetadata message_start"
    " promptTokenCount thoughtsTokenCount input_tokens output_tokens cache_read_input_tokens logprobs"
).split()
WORDS = (
    "stop length content_filter error max_tokens temperature seed response_format 429 503 insufficient_quota"
    " max_tokens:4000>20 only 1 Limit 6000, Requested 99999999999999999999 try again in 5s (9 > 8 - 7)"
    " model_not_found strict 1e999 -1 <html><title>x</title>"
).split(" ")
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
    st.text(max_size=20),
)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=25,
)
MESSAGES = st.dictionaries(st.sampled_from(NAMES), BODIES, max_size=4)
CHOICES = st.fixed_dictionaries({"message": MESSAGES}, optional={"finish_reason": LEAVES, "error": BODIES})
ANSWERS = st.one_of(
    BODIES,
    st.fixed_dictionaries({"choices": st.lists(CHOICES, min_size=1, max_size=2)}, optional={"usage": BODIES}),
    st.fixed_dictionaries({"error": st.dictionaries(st.sampled_from(NAMES), BODIES, max_size=5)}),
    *(
        st.fixed_dictionaries(
            {name: st.lists(MESSAGES, max_size=3)}, optional={"usage": BODIES, "status": LEAVES, **also}
        )
        for name, also in (
            ("content", {"type": st.just("message"), "stop_reason": LEAVES}),
            ("output", {"object": st.just("response"), "incomplete_details": BODIES}),
            ("candidates", {"usageMetadata": BODIES, "promptFeedback": BODIES}),
        )
    ),
)
STATUSES = st.sampled_from([200, 200, 400, 401, 403, 404, 413, 422, 429, 498, 500, 503])
HEADERS = st.dictionaries(
    st.sampled_from(
        ["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"]
    ),
    st.one_of(
        st.sampled_from([*WORDS, "9" * 400, "1h2m", "Mon, 01 Jan 99999 00:00:00 GMT"]), st.text(max_size=9)
    ),
    max_size=3,
)
REQUEST = ChatRequest(TURN._replace(reply_schema=SCHEMA, seed=1), "m", PROVIDERS["openrouter"])


def check(answer: HttpAnswer) -> None:
    try:
        outcome: Reply | Setback = reply_in(answer, 1)
    except Setback as setback:
        outcome = setback
    if isinstance(outcome, Setback):
        assert presentable(outcome.message, None).strip()
        assert outcome.retry_after is None or outcome.retry_after >= 0
        change = change_for(REQUEST, outcome.complaint) if outcome.complaint else None
        assert change is None or REQUEST.with_quirks(change.quirks).body() != REQUEST.body()
        return
    assert isinstance(outcome.text, str)
    for count in (outcome.usage.tokens_in, outcome.usage.tokens_out, outcome.usage.tokens_cached):
        assert count is None or count >= 0
    assert outcome.usage.cost_usd is None or outcome.usage.cost_usd >= 0


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": {"message": "q", "details": [{"violations": 7, "fieldViolations": 0.5}]}}),
        (422, {"detail": [{"msg": "wrong", "loc": 7}]}),
        (
            200,
            {
                "choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}],
                "prompt_filter_results": True,
            },
        ),
    ],
)
def test_lists_that_are_none(status: int, body: Any) -> None:
    check(HttpAnswer(status, {}, json.dumps(body).encode()))


@given(ANSWERS, STATUSES, HEADERS)
def test_any_json(body: Any, status: int, headers: dict[str, str]) -> None:
    check(HttpAnswer(status, headers, json.dumps(body).encode()))


@given(st.lists(ANSWERS, max_size=5), st.booleans(), STATUSES)
def test_any_stream(chunks: list[Any], done: bool, status: int) -> None:
    lines = [f"data: {json.dumps(chunk)}" for chunk in chunks] + (["data: [DONE]"] if done else [])
    check(HttpAnswer(status, {}, "\n\n".join(lines).encode()))


@given(st.binary(max_size=200), STATUSES)
def test_any_bytes(body: bytes, status: int) -> None:
    check(HttpAnswer(status, {}, body))
