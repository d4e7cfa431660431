"""Bad input that concerns models on this machine: a line each on the command line, and nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firecircle import ConfigError
from firecircle.voices.local import local_voice
from tests.cli.running import Ran, ran_apart

LENSES = "embedded:time,embedded:layers,embedded:ngrams"


def missing(model: str) -> str:
    """Why a model cannot speak here, if so."""
    try:
        local_voice(model)
    except ConfigError as reason:
        return str(reason)
    return ""


WITHOUT = missing("local:smollm2")
pytestmark = pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT or "the model is here")


def evaluated(text: str, models: str, *options: str) -> Ran:
    return ran_apart(
        "evaluate", "--user", "-", "--models", models, *options, "--no-save", text=text, seconds=300
    )


def only_line(ran: Ran) -> str:
    (line,) = ran.err.splitlines()
    return line


def test_a_file_that_cannot_be_loaded(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(64))
    refused = evaluated("hello", f"local:{damaged}", "--mode", "single")
    assert refused.status == 2
    assert only_line(refused).startswith("error: no voice could answer: ")
    assert f"llama.cpp cannot load {damaged}: the file is damaged or of a kind" in only_line(refused)
    damaged.write_bytes(b"PK\3\4")
    other = evaluated("hello", f"local:{damaged}", "--mode", "single")
    assert other.status == 2
    assert "is not a GGUF file, the format llama.cpp reads" in only_line(other)
    assert list(tmp_path.iterdir()) == [damaged]


def test_a_text_that_is_too_long_for_the_model() -> None:
    refused = evaluated("sky " * 20_000, "local:smollm2", "--mode", "single")
    assert refused.status == 2
    assert "tokens and this model reads 8192; shorten the prompt, or serve a model" in only_line(refused)


def test_a_circle_goes_on_without_a_model_that_could_not_read_the_text() -> None:
    held = evaluated(
        "sky " * 20_000, f"{LENSES},local:smollm2", "--no-quorum", "--rounds", "2", "--json=full"
    )
    assert held.status == 0
    result = json.loads(held.out)
    (lost,) = result["failures"]
    assert lost["model"] == "local:smollm2"
    assert "this model reads 8192" in lost["message"]
    assert result["partial"]
