"""Starting a run or going on with it (the same command does either), and writing its records.parquet."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from firecircle.errors import ConfigError, StoreError
from firecircle.files import is_draft
from firecircle.lab.arms.building import build_arms, default_seats, todays_families
from firecircle.lab.parquet import lines_to_parquet
from firecircle.lab.plan import Plan
from firecircle.lab.records import FIELDS, IN_TABLE, RunJournal, RunRecord
from firecircle.lab.runs.cases import Tally, require_unchanged, take_census
from firecircle.lab.runs.folder import ABOUT, PLAN, RunFolder, new_run_id, runs_folder, unfinished_run
from firecircle.lab.runs.live import LiveCircles
from firecircle.lab.runs.runner import Follower, RunState, carry_out
from firecircle.lab.runs.store_sync import sync_store
from firecircle.shapes import Shape
from firecircle.store.opening import Store

if TYPE_CHECKING:
    from firecircle.lab.runs.judging import Clusters


def export_records(journal: Path, arms: Sequence[str], target: Path) -> int:
    """Write the table, all of it or nothing; how many rows it has."""
    import duckdb

    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
        lines = Path(folder) / "records.jsonl"
        try:
            count = _write_lines(journal, arms, lines)
            lines_to_parquet(lines, column_types(), target, renamed=IN_TABLE)
        except (OSError, duckdb.Error) as broken:
            reason = str(broken).splitlines()[0]
            raise StoreError(
                f"{target}: cannot be written: {reason}; fix that (is the disk full?) and run the same"
                " command again: the journal has everything"
            ) from None
    return count


def _write_lines(journal: Path, arms: Sequence[str], lines: Path) -> int:
    count = 0
    with RunJournal(journal) as opened, lines.open("wb") as file:
        for record in opened.all_records(arms):
            file.write(record + b"\n")
            count += 1
    return count


@cache
def column_types() -> dict[str, str]:
    """Every field of a record with the DuckDB type of its column."""
    return {name: _type_of(RunRecord.model_fields[name].annotation) for name in FIELDS}


_PLAIN = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


def _type_of(annotation: Any) -> str:
    parts = [part for part in get_args(annotation) if part is not NoneType]
    origin = get_origin(annotation)
    if origin is tuple:
        return f"{_type_of(parts[0])}[]"
    if origin is Literal:
        return "VARCHAR"
    if parts:
        return _type_of(parts[0])
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        fields = (f'"{name}" {_type_of(field.annotation)}' for name, field in annotation.model_fields.items())
        return f"STRUCT({', '.join(fields)})"
    raise TypeError(f"no column type for {annotation!r}")


Following = Callable[[RunFolder], AbstractContextManager[Follower]]
"""Opens whatever shows a run's progress."""


def open_run(plan: Plan, text: str, base: Path, *, out: Path | None = None, new: bool = False) -> RunFolder:
    """The run of this plan that is unfinished or can be mended, else a new one. All that can be checked is
    checked first."""
    begun = _begun_in(out, plan, text) if out else None if new else unfinished_run(plan, base)
    seats = begun.about.default_models if begun else default_seats()
    families = begun.about.families if begun else _todays_families(plan)
    arms = tuple(arm.name for arm in build_arms(plan.seated_as(families), seats))
    if begun is not None:
        if begun.state == "unfinished":
            begun.write(PLAN, text)
        return RunFolder(begun.path)
    folder = RunFolder(out or _fresh(runs_folder() / new_run_id(plan)))
    folder.begin(plan, text, base, arms=arms, seats=seats, families=families, census=take_census(plan, base))
    return folder


def _todays_families(plan: Plan) -> dict[str, str]:
    return asyncio.run(todays_families(plan)) if plan.families else {}


def _is_beginning(file: Path, text: str) -> bool:
    """Whether a run of this plan that broke off at its very beginning has left the file."""
    return is_draft(file.name) or (file.name == PLAN and file.read_text("utf-8", "replace") == text)


def _begun_in(out: Path, plan: Plan, text: str) -> RunFolder | None:
    if not (out / ABOUT).exists():
        if out.exists() and not (out.is_dir() and all(_is_beginning(file, text) for file in out.iterdir())):
            raise ConfigError("--out", f"{out} is neither empty nor a run", "name another folder")
        return None
    run = RunFolder(out)
    if run.about.digest != plan.digest:
        raise ConfigError("--out", f"{out} holds a run of another plan", "name another folder")
    return run


def _fresh(path: Path) -> Path:
    """Two runs may begin within a second."""
    number = 2
    free = path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free


async def complete(
    folder: RunFolder,
    following: Following,
    *,
    retry_failed: bool = False,
    store: Store | None = None,
    embedded_too: bool = False,
    clusters: Clusters | None = None,
) -> RunState:
    """Carry the run out to its end, on a cluster if one is given, and write its table.

    A finished run is left as it is, but for what a passing trouble hurt: that is judged again.
    Hosted and local circles are kept in the store, if there is one, from their first event on; embedded ones
    at the end, if `embedded_too`.
    """
    with folder.locked():
        with RunJournal(folder.journal) as journal:
            journal.verified(folder.finished_with)
            failed = retry_failed and any(failures for _, _, failures, *_ in journal.tallies())
            if folder.state == "unfinished" or failed or any(journal.mendable()):
                folder.reopen()  # before, since what it says of the journal holds no longer
                journal.forget_mendable()
                if retry_failed:
                    journal.forget_failures()
        if folder.state == "finished":
            with RunJournal(folder.journal) as journal:
                tally = Tally.of(journal, folder.about.arms, folder.total)
                live = LiveCircles(store, folder.about, embedded_too=embedded_too)
                state = RunState(tally, not_stored=await _sync(folder, journal, live))
            if not folder.has_whole_table:
                _finish(folder, state)
                state.table_rewritten = True
            return state
        require_unchanged(folder.plan, folder.base, folder.about.census)
        with following(folder) as follow:
            arms = build_arms(folder.plan, folder.about.default_models)
            state = await carry_out(folder, arms, follow, store, embedded_too=embedded_too, clusters=clusters)
        if state.tally.complete:
            _finish(folder, state)
        return state


def _finish(folder: RunFolder, state: RunState) -> None:
    export_records(folder.journal, folder.about.arms, folder.records)
    mendable = state.failed_in_passing + state.hurt_in_passing
    figures = {name: asdict(arm) for name, arm in state.tally.arms.items()}
    folder.finish({"mendable": mendable, "arms": figures})


async def _sync(folder: RunFolder, journal: RunJournal, live: LiveCircles) -> str | None:
    """Have the store hold what it could not take while the run was carried out; what it still does not."""
    try:
        arms = build_arms(folder.plan, folder.about.default_models)
    except ConfigError:
        return None  # what a setting refers to is no longer there; the figures are
    return await sync_store(folder, journal, arms, live)
