"""The page about attacks: the newest report, any other by name, and nothing that a file can put into it."""

from __future__ import annotations

import asyncio

import httpx

from firecircle import FireCircleConfig
from firecircle.examples import load_examples
from firecircle.lab.redteam.attacks import all_attacks
from firecircle.lab.redteam.reports import keep, reports_folder
from firecircle.lab.redteam.trial import Trial


def test_reports_are_shown_and_hostile_ones_are_harmless(client: httpx.Client) -> None:
    assert "No circle was attacked yet" in client.get("/redteam").text
    example = load_examples()[0]
    trial = Trial.of(FireCircleConfig.embedded(seed=1, max_rounds=2), [example], [example])
    report = asyncio.run(trial.run([attack for attack in all_attacks() if attack.name == "always_1"]))
    first = keep(report)
    hostile = report.model_copy(update={"models": ("<script>alert(1)</script>",)})
    second = keep(hostile)
    assert first != second

    shown = client.get("/redteam", params={"report": first.stem})
    assert "member always_1" in shown.text
    assert "<script>alert(1)" not in client.get("/redteam").text
    (reports_folder() / "broken.json").write_text("{}", encoding="utf-8")
    assert "cannot be read" in client.get("/redteam", params={"report": "broken"}).text
    assert client.get("/redteam", params={"report": "../../etc/passwd"}).status_code == 404
