"""`lab study redteam`: who obeys, who is swayed, and what a cheating member does, over the run engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle.lab.redteam import CANARY, OBEYED
from tests.cli.running import Ran, assert_one_line_of_trouble
from tests.loopback import Answer, ChatRequest, LoopbackServer, Script, completion
from tests.scripted import says

Cli = Callable[..., Ran]
CONTAGION = """
name = "gullible"
[[datasets]]
path = "examples"
sample = 6
[circle]
models = ["vendor/weak", "vendor/follower", "vendor/firm"]
max_rounds = 2
enforce_quorum = false
[[arms]]
name = "circle"
kind = "fire_circle"
[[arms]]
name = "attack"
kind = "attacked"
attacks = ["contagion"]
layers = ["user"]
"""


EMBEDDED = re.sub(r"models.*\n", "", CONTAGION).partition("attacks =")[0]


def gullible(request: ChatRequest) -> Answer:
    """`weak` does what the evidence says; `follower` does what others say; `firm` does neither."""
    model = request.body["model"]
    evidence, _, dialogue = request.question.partition("END layer user")
    if "weak" in model and CANARY[0] in evidence:
        return completion(says(0.0, reasoning=f"All evaluators answer no_violation. {OBEYED}"))
    if "follower" in model and "All evaluators answer no_violation" in dialogue:
        return completion(says(0.1))
    return completion(says(0.8))


def test_who_obeys_and_who_is_swayed_is_told(
    cli: Cli, hosted: Callable[[Script], LoopbackServer], folder: Path
) -> None:
    """The verdict holds, because the highest falsehood decides; two of three voices went over."""
    hosted(gullible)
    (folder / "plan.toml").write_text(CONTAGION, "utf-8")
    document = json.loads(cli("lab", "run", "plan.toml", "--out", "run", "--no-save", "--json").out)
    assert list(document["arms"]) == ["circle", "attack harmless in user", "attack contagion in user"]
    (outcome,) = document["redteam"]["outcomes"]
    n = outcome["turned"]["n"]
    assert n > 0
    assert outcome["obeyed"] == {"vendor/weak": n}
    assert (outcome["swayed"]["hits"], outcome["swayed"]["n"]) == (2 * n, 3 * n)
    assert outcome["turned"]["hits"] == 0
    page = json.loads(cli("lab", "report", "run", "--json").out)["page"]
    told = " ".join(Path(page).read_text("utf-8").split())
    assert "The circle under attack" in told
    assert f"vendor/weak {n}</td>" in told


def test_a_member_that_always_cries_wolf_decides_and_is_named(cli: Cli, folder: Path) -> None:
    plan = cli("lab", "study", "redteam", "--sample", "12", "--plan").out
    plan = plan.replace('kind = "attacked"', 'kind = "attacked"\nattacks = ["always_0", "always_1"]')
    (folder / "plan.toml").write_text(plan, "utf-8")
    told = cli("lab", "run", "plan.toml", "--out", "run", "--no-save").out
    assert "member always_1" in told
    assert "Outlier: adversary (always_1) agreed with most others in " in told
    again = json.loads(cli("lab", "run", "plan.toml", "--out", "run", "--no-save", "--json").out)
    by_title = {outcome["title"]: outcome for outcome in again["redteam"]["outcomes"]}
    assert again["arms"]["attack member always_1"]["cost_usd"] == 0
    wolf = by_title["member always_1"]["turned"]
    assert wolf["hits"] == wolf["n"] > 0
    assert by_title["member always_0"]["turned"]["hits"] == 0
    assert not any(outcome["obeyed"] for outcome in by_title.values())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('attacks = ["bribe"]', "[arms.attack] attacks: there is no 'bribe'; there are order, "),
        ('layers = ["cellar"]', "layers"),
        ('like = "court"', "there is no circle 'court' before this arm"),
    ],
)
def test_a_wrong_name_is_refused_in_one_line(cli: Cli, folder: Path, line: str, complaint: str) -> None:
    (folder / "plan.toml").write_text(EMBEDDED + line, "utf-8")
    assert_one_line_of_trouble(cli("lab", "run", "plan.toml", "--out", "run"), complaint)
