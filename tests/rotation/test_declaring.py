"""Declaring voices in firecircle.toml changes their tables and nothing else."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle.catalog import ModelCharacteristics, declared_in_settings
from firecircle.errors import ConfigError
from firecircle.rotation.calibration import declaration_of, declare_in

VOICE = ModelCharacteristics("ollama:phi4", {"temporal_reasoning": 0.55}, "us_aligned", "small", 0.62)
BEFORE = """\
# my settings
[circle]
max_rounds = 2   # two will do

[models."ollama:phi4"]
provider_lineage = "us_aligned"
# measured in spring
confidence = 0.5
[models."ollama:phi4".cognitive_roles]
temporal_reasoning = 0.9

[models."ollama:other"]
provider_lineage = "cn_aligned"
cognitive_roles = { pattern_recognition = 0.7 }
"""


def test_what_is_declared_is_what_the_catalog_reads(settings_file: Callable[[str], Path]) -> None:
    path = settings_file(BEFORE)
    declare_in(path, [VOICE])
    text = path.read_text("utf-8")
    settings_file(text)
    assert declared_in_settings("ollama:phi4") == VOICE
    assert "# my settings" in text
    assert "# two will do" in text
    assert "# measured in spring" in text
    told = tomllib.loads(text)
    assert told["circle"] == {"max_rounds": 2}
    assert told["models"]["ollama:other"]["cognitive_roles"] == {"pattern_recognition": 0.7}


def test_a_new_file_and_declaring_twice(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "firecircle.toml"
    declare_in(path, [VOICE])
    once = path.read_text("utf-8")
    assert once == declaration_of(VOICE)
    declare_in(path, [VOICE])
    assert path.read_text("utf-8") == once


@pytest.mark.parametrize(
    "text",
    [
        'models."ollama:phi4".provider_lineage = \'x\'\nmodels."ollama:phi4".cognitive_roles = {}\n',
        '[models]\n"ollama:phi4" = { provider_lineage = "x", cognitive_roles = {} }\n',
        'note = """\n[models."ollama:phi4"]\n"""\n',
        "this is no TOML",
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "firecircle.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="nothing was written"):
        declare_in(path, [VOICE])
    assert path.read_text("utf-8") == text
    assert [one.name for one in tmp_path.iterdir()] == ["firecircle.toml"]


@given(st.text(min_size=1).filter(lambda name: name.strip()), st.text())
def test_any_name_is_written_as_toml_reads_it(name: str, style: str) -> None:
    voice = ModelCharacteristics(name, {"future_impact": 0.25}, "x", style, 0.5)
    told = tomllib.loads(declaration_of(voice))["models"][voice.model_id]
    assert told["alignment_style"] == voice.alignment_style
