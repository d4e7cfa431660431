"""The records a run judges, in order, and how far it is, arm by arm."""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

from firecircle.circle.voice import Usage
from firecircle.engine.journal import Journal, RecordRow
from firecircle.errors import ConfigError
from firecircle.files import read_regular, stays_in
from firecircle.lab.datasets import BadRow, BadRows, Record, read_dataset
from firecircle.lab.plan import DatasetPlan, Plan
from firecircle.prompt import MAX_LAYER_CHARS, MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.voices.outages import Pause


@dataclass(slots=True)
class ArmTally:
    """One arm so far."""

    records: int = 0
    failed: int = 0
    attacks: int = 0
    found: int = 0
    benign: int = 0
    false_alarms: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    voices_lost: int = 0
    open_calls: int = 0
    """Calls that were answered for records that are not judged yet."""
    open_tokens: int = 0

    @contextmanager
    def counting(self) -> Iterator[Callable[[Usage], None]]:
        """Count the calls of a record while they are made; once it is judged, its own figures do."""
        calls = tokens = 0

        def count(usage: Usage) -> None:
            nonlocal calls, tokens
            took = (usage.tokens_in or 0) + (usage.tokens_out or 0)
            calls, tokens = calls + 1, tokens + took
            self.open_calls += 1
            self.open_tokens += took

        try:
            yield count
        finally:
            self.open_calls -= calls
            self.open_tokens -= tokens

    @property
    def recall(self) -> float | None:
        """Of the attacks judged, the share found."""
        return self.found / self.attacks if self.attacks else None

    @property
    def false_alarm_rate(self) -> float | None:
        """Of the benign prompts judged, the share that raised an alarm."""
        return self.false_alarms / self.benign if self.benign else None

    def add(self, row: RecordRow) -> None:
        """Count one more record."""
        self.records += 1
        self.failed += row.status == "failed"
        if row.f is not None:
            self.attacks += row.label == "attack"
            self.found += row.label == "attack" and bool(row.alarm)
            self.benign += row.label == "benign"
            self.false_alarms += row.label == "benign" and bool(row.alarm)
        self.calls += row.calls
        self.tokens += row.tokens
        if row.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row.cost_usd
        self.voices_lost += row.voices_lost


@dataclass(slots=True)
class Tally:
    """All arms so far."""

    arms: dict[str, ArmTally]
    total: int
    """How many records each arm is to judge."""
    retries: int = 0
    calls_under_way: int = 0
    calls_allowed: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0
    notes: list[str] = field(default_factory=list)
    """Notes on the way, such as why a provider made a call wait."""
    workers_lost: int = 0
    """Workers of a cluster that died on the way; what they did was done again."""
    pause: Pause | None = None
    """Whom everybody waits for now, and until when."""

    @classmethod
    def of(cls, journal: Journal, arms: Iterable[str], total: int) -> Tally:
        """As the journal has it."""
        tally = cls({name: ArmTally() for name in arms}, total)
        for name, *figures in journal.tallies():
            tally.arms[str(name)] = ArmTally(*figures)  # type: ignore[arg-type]  # a row of numbers
        tally.spent_tokens, tally.spent_usd = journal.spent()
        return tally

    def add(self, rows: Iterable[RecordRow]) -> None:
        """Count these records."""
        for row in rows:
            self.arms[row.arm].add(row)

    @property
    def calls(self) -> int:
        """Calls made, over all arms."""
        return sum(arm.calls + arm.open_calls for arm in self.arms.values())

    @property
    def done(self) -> int:
        """Judgements made, over all arms."""
        return sum(arm.records for arm in self.arms.values())

    @property
    def complete(self) -> bool:
        """Whether every arm has judged everything."""
        return all(arm.records >= self.total for arm in self.arms.values())


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
