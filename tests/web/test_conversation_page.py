"""The page of a conversation: its turns from the store, put together again, with the trajectory."""

from __future__ import annotations

import asyncio
import html
import re

import httpx
import pytest

from firecircle import Conversation, FireCircleConfig, Store, judge_conversation
from firecircle.conversation.messages import transcript_of
from firecircle.names import embedded_models
from tests.cli.test_conversations import OPENAI, SYSTEM


@pytest.fixture(scope="module")
def kept(store: Store) -> Conversation:
    hostile = [*OPENAI, {"role": "user", "content": "<script>alert(1)</script> thanks"}]
    transcript = transcript_of(hostile, SYSTEM, "chat")
    config = FireCircleConfig(models=embedded_models())
    return asyncio.run(judge_conversation(transcript, config=config, store=store))


def test_the_page_says_what_the_command_says(client: httpx.Client, kept: Conversation) -> None:
    page = client.get("/conversations/chat")
    assert page.status_code == 200
    text = html.unescape(re.sub(r"<[^>]+>", " ", page.text))
    assert f"due at turn {kept.due_turn} of 6 turns" in text
    assert "HERON-5521" in text
    assert "no earlier message has it" in text
    assert "a value that the operator holds back" in text  # what the assistant said is there to read
    assert page.text.count('<article class="exchange" id="turn-') == 6
    assert page.text.count("<circle ") == 6
    assert page.text.count("alarm due</span>") == 1
    assert "<script>alert" not in page.text


def test_the_batch_leads_to_it_and_turns_to_their_circles(client: httpx.Client, kept: Conversation) -> None:
    assert 'href="/conversations/chat"' in client.get("/batches/chat").text
    page = client.get("/conversations/chat").text
    circles = re.findall(r'id="turn-\d+">\n<h3><a href="(/circles/[0-9a-f-]+)"', page)
    assert len(circles) == len(kept.turns)
    assert client.get(circles[3]).status_code == 200


def test_what_is_no_conversation_is_not_found(client: httpx.Client) -> None:
    assert client.get("/conversations/nothing").status_code == 404
