"""A circle as one file: everything in it, nothing from elsewhere, and a policy that fits exactly."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx

from firecircle import MultiNeutrosophicPrompt
from firecircle.store.opening import Store
from tests.cli.running import assert_one_line_of_trouble, ran_apart
from tests.scripted import says
from tests.web.serving import PROMPT, VOICES, judged, lost

HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>"


class _Seen(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.targets: set[str] = set()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.targets |= {value or "" for name, value in attrs if name in ("src", "href", "action", "srcset")}
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]


def test_the_file_holds_everything_and_asks_nobody(client: httpx.Client, store: Store) -> None:
    lines: dict[str, list[Any]] = {
        "voice/one": [says(0.2), lost(f"quota {HOSTILE}"), says(0.2)],
        "voice/two": [says(0.4), says(0.5, reasoning=f"the second word {HOSTILE}"), says(0.5)],
        "voice/three": [says(0.9), says(0.9), says(0.9)],
    }
    prompt = MultiNeutrosophicPrompt(system=PROMPT.system, user=f"{PROMPT.user} {HOSTILE}")
    kept = judged(store, prompt, lines=lines)
    answer = client.get(f"/api/v1/circles/{kept.circle_id}/export")
    assert answer.headers["content-disposition"].startswith('attachment; filename="circle-')
    page = answer.text
    seen = _Seen()
    seen.feed(page)
    assert {target for target in seen.targets if not target.startswith("#")} == set()
    assert "img" not in seen.tags
    assert seen.handlers == []
    assert "the second word" in page
    assert "quota" in page
    assert HOSTILE not in page
    for voice in VOICES:
        assert page.count(f'data-answer data-voice="{voice}"') == len(
            [held for held in kept.dialogue_history if voice in held.asked_models]
        )
    assert kept.evidence.splitlines()[0] in html.unescape(page)


def test_its_policy_allows_exactly_what_is_in_it(client: httpx.Client, store: Store) -> None:
    page = client.get(f"/api/v1/circles/{judged(store).circle_id}/export?format=html").text
    found = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert found
    policy = html.unescape(found[1])
    parts = [
        *re.findall(r"<style>(.*?)</style>", page, re.DOTALL),
        *re.findall(r"<script type=\"module\">(.*?)</script>", page, re.DOTALL),
    ]
    assert len(parts) == 3
    for part in parts:
        assert base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_json_is_the_result(client: httpx.Client, store: Store) -> None:
    kept = judged(store)
    told = client.get(f"/api/v1/circles/{kept.circle_id}/export?format=json")
    assert json.loads(told.text)["circle_id"] == kept.circle_id


def test_a_panel_leaves_as_a_file_too(client: httpx.Client) -> None:
    body = {"user": PROMPT.user, "mode": "parallel"}
    name = client.post("/api/v1/evaluate", json=body).json()["id"]
    page = client.get(f"/api/v1/circles/{name}/export").text
    assert "Voices, each asked alone" in page
    assert "data-answer" in page


def test_the_command_line_writes_the_same_file(client: httpx.Client, store: Store, tmp_path: Path) -> None:
    kept = judged(store)
    file = tmp_path / "one.html"
    ran = ran_apart(
        "circles", "export", "--html", kept.circle_id[:12], str(file), "--store", store.name, "--json"
    )
    assert (ran.status, json.loads(ran.out)["circle"]) == (0, kept.circle_id), ran.err
    assert file.read_text("utf-8") == client.get(f"/api/v1/circles/{kept.circle_id}/export").text
    refused = ran_apart("circles", "export", "--html", kept.circle_id, "--alarm", "--store", store.name)
    assert_one_line_of_trouble(refused, "--html", "leave the filters out")
