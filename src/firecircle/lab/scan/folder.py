"""The folder of a scan: what is screened and how, its shards, and what they come to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from firecircle.circle.config import FireCircleConfig
from firecircle.errors import ConfigError
from firecircle.files import read_regular, write_whole
from firecircle.lab.files import held_alone
from firecircle.lab.runs.folder import LARGEST_NOTE
from firecircle.lab.scan.corpus import CorpusFile
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text

ABOUT = "scan.json"
SHARD_NAME = re.compile(r"(\d{5})-(\d{6})\.parquet")


class About(Shape):
    """What a scan was begun with."""

    format: int = 1
    firecircle: Text
    files: tuple[CorpusFile, ...]
    shard_rows: int
    circle: dict[str, Any]
    """The settings of the circle."""
    shared: MultiNeutrosophicPrompt


class ScanFolder:
    """A scan on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shards = path / "shards"
        self.summary, self.summary_text, self.top = (
            path / name for name in ("summary.json", "summary.txt", "top.jsonl")
        )
        self.escalation, self.escalated = path / "escalation", path / "escalated.parquet"

    def begin(
        self,
        files: tuple[CorpusFile, ...],
        config: FireCircleConfig,
        shared: MultiNeutrosophicPrompt,
        shard_rows: int,
        *,
        restart: bool = False,
    ) -> str | None:
        """Make the folder, or find that it holds this very scan; a note for the user, if there is one."""
        now = About(
            firecircle=version("firecircle"),
            files=files,
            shard_rows=shard_rows,
            circle=config.model_dump(mode="json", exclude={"api_key"}),
            shared=shared,
        )
        then = self._about()
        if then is not None and not restart:
            self._require_same(then, now)
            if then.firecircle != now.firecircle:
                begun = f"begun with firecircle {then.firecircle}, going on with {now.firecircle}"
                return f"{begun}: what is said may differ"
            return None
        if then is None and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ConfigError(
                "--out", f"{self.path} is neither empty nor a batch in parts", "name another folder"
            )
        try:
            self.shards.mkdir(parents=True, exist_ok=True)
            for _, shard in self._on_disk():
                shard.unlink()
            write_whole(self.path / ABOUT, now.model_dump_json(indent=1))
        except OSError as unwritable:
            raise ConfigError("--out", f"{self.path}: {unwritable.strerror}", "name another folder") from None
        return None

    def _about(self) -> About | None:
        try:
            return About.model_validate_json(read_regular(self.path / ABOUT, LARGEST_NOTE))
        except OSError:
            return None
        except ValidationError:
            raise ConfigError(
                "--out",
                f"{self.path / ABOUT} cannot be read",
                "--restart begins again, or name another folder",
            ) from None

    def _require_same(self, then: About, now: About) -> None:
        """Half a table about something else would be worse than none."""
        changes = [
            f"{name} was {_shown(then.circle.get(name))} and is {_shown(now.circle.get(name))}"
            for name in now.circle
            if then.circle.get(name) != now.circle.get(name)
        ]
        if then.shard_rows != now.shard_rows:
            changes.append(f"--part-rows was {then.shard_rows} and is {now.shard_rows}")
        if then.shared != now.shared:
            changes.append("the shared layers are others")
        changes += _changed_files(then.files, now.files)
        if changes:
            more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
            raise ConfigError(
                "--out",
                f"{self.path} holds another batch: {changes[0]}{more}",
                "name another folder, or add --restart to judge everything again",
            )

    def _on_disk(self) -> Iterator[tuple[tuple[int, int], Path]]:
        for path in self.shards.iterdir():
            if match := SHARD_NAME.fullmatch(path.name):
                yield (int(match[1]), int(match[2])), path

    def finished(self) -> dict[tuple[int, int], Path]:
        """The shards that are on disk, by file and number."""
        return dict(sorted(self._on_disk()))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the scan: two processes would judge the same rows. A killed process lets go of it."""
        busy = ConfigError("--out", f"{self.path} is being judged into by another process")
        with held_alone(self.path / ".lock", busy):
            yield


def _changed_files(then: tuple[CorpusFile, ...], now: tuple[CorpusFile, ...]) -> list[str]:
    before, after = ({file.path: file for file in files} for files in (then, now))
    changes = [f"{path} is new" for path in after if path not in before]
    changes += [f"{path} is gone" for path in before if path not in after]
    for path in after:
        if path not in before:
            continue
        if after[path].digest != before[path].digest:
            changes.append(f"{path} has changed")
        elif after[path].field_map != before[path].field_map:
            changes.append(f"the columns of {path} are read otherwise")
    if not changes and list(before) != list(after):
        changes.append("the files come in another order")
    return changes


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
