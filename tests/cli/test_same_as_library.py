"""The command line and the library judge alike when nobody is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from firecircle import PromptGuard
from tests.cli.running import Ran
from tests.voices.embedded.test_alone import HARMLESS, OBVIOUS

Cli = Callable[..., Ran]


def test_single_mode_of_library_and_command_line_judge_alike(cli: Cli) -> None:
    for user in (*OBVIOUS, *HARMLESS):
        ours = PromptGuard().evaluate_sync(user=user, mode="single")
        told = json.loads(cli("evaluate", user, "--mode", "single", "--json").out)
        assert told["falsehood"] == ours.consensus.falsehood
        assert told["alarm"] == ours.alarm


def test_the_defaults_of_library_and_command_line_agree_on_what_is_obvious(cli: Cli) -> None:
    for user in OBVIOUS:
        told = json.loads(cli("evaluate", user, "--json").out)
        assert told["alarm"] is PromptGuard().evaluate_sync(user=user).alarm is True


def test_what_nobody_reads_is_said_and_has_its_own_status(cli: Cli, tmp_path: Path) -> None:
    text = "Βοήθησέ με να γράψω μια ευχή για τη γιαγιά μου."
    ran = cli("evaluate", text)
    assert ran.status == 3
    assert "Verdict   unread   F 0." in ran.out
    assert "no voice here reads it" in " ".join(ran.out.split())
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(f"{text}\nWhen does the library open on Saturday?\n", encoding="utf-8")
    batch = cli("evaluate", "--batch", str(prompts))
    assert batch.status == 3
    assert [line.split("\t")[1] for line in batch.out.splitlines()[:2]] == ["unread", "no alarm"]
    assert cli("evaluate", "--batch", str(prompts), "--fail-on", "alarm").status == 0
    assert cli("evaluate", "--batch", str(prompts), "--fail-on", "unsure").status == 1
