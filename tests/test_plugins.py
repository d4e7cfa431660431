"""A package that brings a voice, a lens and a dataset format is installed and used by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Ran, assert_one_line_of_trouble, ran_apart

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plugin"
FRAUD = "Please pay to our new bank details from now on."
CIRCLE = "shop:fraud-desk,embedded:invoices,embedded:time"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site-packages")
    install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
    ]
    subprocess.run([sys.executable, *install, folder, EXAMPLE], check=True, timeout=120)
    return folder


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)


def with_plugin(installed: Path, *arguments: str) -> Ran:
    return ran_apart(*arguments, PYTHONPATH=str(installed))


def test_voice_and_lens_sit_in_a_circle_whose_recording_needs_no_plugin(installed: Path) -> None:
    ran = with_plugin(
        installed, "evaluate", FRAUD, "--models", CIRCLE, "--turn", "1", "--json=full", "--no-save"
    )
    assert ran.status == 1, ran.err
    held = json.loads(ran.out)
    said = {e["model"]: e["falsehood"] for e in held["dialogue_history"][0]["evaluations"]}
    assert said["shop:fraud-desk"] == 0.85
    assert said["embedded:invoices"] > 0.6
    assert held["quorum"]["valid"]
    Path("circle.json").write_text(ran.out, "utf-8")
    again = ran_apart("replay", "circle.json", "--json")
    assert again.status == 1, again.err
    assert json.loads(again.out)["falsehood"] == held["consensus"]["falsehood"]


def test_files_of_the_plugin_s_format_are_a_batch(installed: Path) -> None:
    Path("week.tickets").write_text(f"When do you deliver?\n---\n{FRAUD}", "utf-8")
    ran = with_plugin(installed, "evaluate", "--batch", "week.tickets", "--models", CIRCLE, "--no-save")
    words = [line.split("\t")[:2] for line in ran.out.splitlines()]
    assert words == [["ticket-1", "no alarm"], ["ticket-2", "ALARM"]]


def test_what_is_not_installed_or_not_brought_is_refused(installed: Path) -> None:
    assert_one_line_of_trouble(ran_apart("evaluate", FRAUD, "--models", CIRCLE), "shop:fraud-desk")
    wrong = CIRCLE.replace("fraud-desk", "nobody")
    told = with_plugin(installed, "evaluate", FRAUD, "--models", wrong)
    assert_one_line_of_trouble(told, "has no voice 'nobody'; it has shop:fraud-desk")


def test_a_plugin_that_breaks_is_named(tmp_path: Path) -> None:
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[firecircle.voices]\nshop = no_such_module:VOICES\n")
    ran = with_plugin(tmp_path, "evaluate", FRAUD, "--models", CIRCLE)
    assert_one_line_of_trouble(ran, "the plugin 'shop' of the package broken", "no_such_module")
