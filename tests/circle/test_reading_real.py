"""Real replies of a small reasoning model against a table read by eye: nothing misread, nothing missed."""

from __future__ import annotations

import json
from pathlib import Path

from firecircle.circle.reading import Refused, Unreadable, read_reply
from tests.shared_data import shared

EXPECTED = Path(__file__).parent / "data" / "real_replies_expected.json"


def test_real_replies_are_read_as_a_person_reads_them() -> None:
    replies = [json.loads(line) for line in shared("real_replies.jsonl").read_text("utf-8").splitlines()]
    expected = json.loads(EXPECTED.read_text("utf-8"))
    assert {reply["id"] for reply in replies} == expected.keys()
    wrong: list[str] = []
    unread: list[str] = []
    for reply in replies:
        stated = expected[reply["id"]]
        try:
            reading = read_reply(reply["reply"])
        except (Refused, Unreadable) as missed:
            if stated is not None:
                unread.append(f"{reply['id']}: {missed}")
            continue
        found = {
            "truth": reading.truth,
            "indeterminacy": reading.indeterminacy,
            "falsehood": reading.falsehood,
        }
        if stated is None and reading.read_as != "keyword":
            wrong.append(f"{reply['id']}: read {found} as {reading.read_as} where nothing is stated")
        elif stated is not None and found != stated:
            wrong.append(f"{reply['id']}: read {found}, stated {stated}")
    report = "\n".join([f"{len(wrong)} wrong:", *wrong, f"{len(unread)} unread:", *unread])
    assert not wrong, report
    assert not unread, report
