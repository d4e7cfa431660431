"""Which records a plan chooses, in which order, and whether the data is still what the run began with."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from firecircle.errors import ConfigError, StoreError
from firecircle.files import is_draft, read_regular, stays_in
from firecircle.lab.arms.building import build_arms, default_seats, todays_families
from firecircle.lab.datasets import BadRow, BadRows, Record, read_dataset
from firecircle.lab.plan import DatasetPlan, Plan
from firecircle.lab.records import FIELDS, IN_TABLE, RunJournal, RunRecord, lines_to_parquet
from firecircle.lab.runs.folder import ABOUT, PLAN, RunFolder, new_run_id, runs_folder, unfinished_run
from firecircle.lab.runs.judging import Clusters
from firecircle.lab.runs.live import LiveCircles, sync_store
from firecircle.lab.runs.runner import Follower, RunState, Tally, carry_out
from firecircle.prompt import MAX_LAYER_CHARS, MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.store.opening import Store

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ChosenRecord:
    """A record in its place."""

    place: int
    """Its number over all datasets of the plan, from 0."""
    dataset: str
    record: Record


class DatasetCensus(Shape):
    """What a dataset brings to a run."""

    name: Text
    records: int
    attacks: int
    benign: int
    unlabelled: int
    characters: int
    bad_rows: int
    first_bad_rows: tuple[Text, ...]
    """`row N: why` for the first of them."""
    fingerprint: Text


class Census(Shape):
    """What all datasets of a plan bring."""

    datasets: tuple[DatasetCensus, ...]

    @property
    def records(self) -> int:
        """How many records each arm judges in each sitting."""
        return sum(dataset.records for dataset in self.datasets)


def chosen_records(
    plan: Plan, base: Path, on_bad_row: Callable[[BadRow], None] | None = None
) -> Iterator[ChosenRecord]:
    """The records of all datasets, filtered, limited or drawn as the plan says; none is kept in memory."""
    place = 0
    for dataset in plan.datasets:
        for record in _of_dataset(dataset, plan.seeds[0], base, on_bad_row or (lambda bad: None)):
            yield ChosenRecord(place, dataset.label, record)
            place += 1


def take_census(plan: Plan, base: Path) -> Census:
    """One pass over everything before anything is spent; an empty dataset is a `ConfigError`."""
    counted: list[DatasetCensus] = []
    for dataset in plan.datasets:
        bad = BadRows()
        labels: dict[str | None, int] = {"attack": 0, "benign": 0, None: 0}
        characters = 0
        for record in _of_dataset(dataset, plan.seeds[0], base, bad):
            labels[record.label] += 1
            characters += sum(len(layer.text) for layer in record.prompt.layers)
        if not sum(labels.values()):
            raise ConfigError(
                None, "no record is left", "fix families and labels, or leave them out"
            ).in_table(f"datasets.{dataset.label}")
        counted.append(
            DatasetCensus(
                name=dataset.label,
                records=sum(labels.values()),
                attacks=labels["attack"],
                benign=labels["benign"],
                unlabelled=labels[None],
                characters=characters,
                bad_rows=bad.count,
                first_bad_rows=tuple(f"row {row.line}: {row.reason}" for row in bad.first[:20]),
                fingerprint=fingerprint(dataset, base),
            )
        )
    return Census(datasets=tuple(counted))


def require_unchanged(plan: Plan, base: Path, census: Census) -> None:
    """Refuse to go on with other data: half the figures would be about something else."""
    for dataset, known in zip(plan.datasets, census.datasets, strict=True):
        if fingerprint(dataset, base) != known.fingerprint:
            raise ConfigError(
                None,
                f"{dataset.path} has changed since the run began",
                "put the old one back, or start a new run with --new",
            ).in_table(f"datasets.{dataset.label}")


def fingerprint(dataset: DatasetPlan, base: Path) -> str:
    """A digest of everything in a dataset."""
    digest = hashlib.sha256()
    for name in ("system", "application"):
        if text := _shared_layer(dataset, name, base):
            digest.update(f"{name}\0{text}\0".encode("utf-8", "surrogatepass"))
    if dataset.is_bundled:
        digest.update(resources.files("firecircle.examples").joinpath("layered.jsonl").read_bytes())
        return digest.hexdigest()
    path = _locate(dataset, base)
    files = [path]
    if path.is_dir():
        every = (Path(place) / name for place, _, names in os.walk(path) for name in names)
        files = sorted(file for file in every if file.is_file())
    try:
        for file in files:
            digest.update(
                f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode("utf-8", "surrogateescape")
            )
            with file.open("rb") as opened:
                while chunk := opened.read(CHUNK):
                    digest.update(chunk)
    except OSError as unreadable:
        wrong = ConfigError(str(path), f"{unreadable.strerror}", "give a file or a folder")
        raise wrong.in_table(f"datasets.{dataset.label}") from None
    return digest.hexdigest()


def _locate(dataset: DatasetPlan, base: Path) -> Path:
    return base / Path(dataset.path).expanduser()


def _shared_layer(dataset: DatasetPlan, name: Literal["system", "application"], base: Path) -> str:
    """The text that records without this layer get; of `@file` what the file says."""
    text = dataset.system if name == "system" else dataset.application
    if not text.startswith("@"):
        return text
    path = base / text[1:]
    try:
        if stays_in(base, text[1:]):
            return read_regular(path, 4 * MAX_LAYER_CHARS).decode("utf-8")
        why = "is not in the plan's folder"
    except OSError as unreadable:
        why = unreadable.strerror or str(unreadable)
    except UnicodeDecodeError:
        why = "is not UTF-8 text"
    raise ConfigError(name, f"{path}: {why}", "name another file").in_table(f"datasets.{dataset.label}")


def _of_dataset(
    dataset: DatasetPlan, seed: int, base: Path, on_bad_row: Callable[[BadRow], None]
) -> Iterator[Record]:
    if dataset.sample is None:
        for number, record in enumerate(_matching(dataset, base, on_bad_row)):
            if number == dataset.limit:
                return
            yield record
        return
    # Bottom-k by digest: the same draw whatever the order of rows, in two passes and little memory.
    every = (_lot(seed, record) for record in _matching(dataset, base, lambda bad: None))
    drawn = set(heapq.nsmallest(dataset.sample, every))
    for record in _matching(dataset, base, on_bad_row):
        if record.id in dataset.keep or _lot(seed, record) in drawn:
            yield record


def _lot(seed: int, record: Record) -> bytes:
    text = f"{seed}/{record.id}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=12).digest()


def _matching(dataset: DatasetPlan, base: Path, on_bad_row: Callable[[BadRow], None]) -> Iterator[Record]:
    path: str | Path = dataset.path if dataset.is_bundled else _locate(dataset, base)
    shared = MultiNeutrosophicPrompt(
        system=_shared_layer(dataset, "system", base), application=_shared_layer(dataset, "application", base)
    )
    try:
        for record in read_dataset(path, dataset.fields, on_bad_row):
            if dataset.families and record.family not in dataset.families:
                continue
            if dataset.labels and record.label not in dataset.labels:
                continue
            yield record.completed(shared)
    except ConfigError as wrong:
        raise wrong.in_table(f"datasets.{dataset.label}") from None


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
            async with AsyncExitStack() as opened:
                cluster = None
                if clusters is not None:
                    cluster = await opened.enter_async_context(clusters(folder.about.run_id, arms))
                state = await carry_out(
                    folder, arms, follow, store, embedded_too=embedded_too, cluster=cluster
                )
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
