"""Where a run lives: its plan, journal and records, and the register by which the store finds it again."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError

from firecircle.engine.journal import JournalDigest, exclusive_lock
from firecircle.errors import ConfigError, FireCircleError, StoreError
from firecircle.files import read_regular, sha256_of, write_whole
from firecircle.lab.plan import Plan, plan_of
from firecircle.lab.records import LARGEST_NOTE, RunJournal
from firecircle.lab.runs.cases import Census, Tally
from firecircle.names import RunState
from firecircle.settings import user_folder
from firecircle.shapes import Shape, Text
from firecircle.store.place import place_of
from firecircle.voices.outages import Pause


def register_run(run: RunFolder) -> None:
    """Note in the store that this run was begun and, when it is over, that it is."""
    from firecircle.store.figures import KnownRun
    from firecircle.store.opening import open_store

    about = run.about
    folder = str(run.path.absolute())
    with open_store() as store:
        store.runs.begin(
            KnownRun(
                folder=folder,
                run_id=about.run_id,
                plan=run.plan.name,
                digest=about.digest,
                arms=about.arms,
                judgements=run.total * len(about.arms),
                started_at=about.started_at,
            )
        )
        if run.state == "finished":
            store.runs.finish(folder)


def registered_folders() -> tuple[Path, ...]:
    """Where the store knows of runs; nowhere when there is no store, or it cannot be read."""
    place = place_of()
    if isinstance(place, Path) and not place.exists():
        return ()
    from firecircle.store.opening import open_store

    try:
        with open_store(place) as store:
            return tuple(Path(known.folder) for known in store.runs.each())
    except StoreError:
        return ()  # runs are found in their usual folder all the same


PLAN, ABOUT, JOURNAL, RECORDS, END, PAUSE = (
    "plan.toml",
    "run.json",
    "journal.sqlite",
    "records.parquet",
    "finished.json",
    ".pause.json",
)
OVERDUE_SECONDS = 60.0
"""How long after its end a noted pause is believed: the run may have been killed."""
_VERSIONS = ("firecircle", "aiohttp", "duckdb", "numpy", "scipy", "pydantic", "rapidfuzz")


class RunAbout(Shape):
    """What a run began with."""

    run_id: Text
    digest: Text
    """Of the plan; the same digest leads to the same figures."""
    started_at: float
    plan_folder: Text
    """What the paths of the plan are relative to."""
    arms: tuple[Text, ...]
    census: Census
    versions: dict[Text, Text]
    python: Text
    platform: Text
    default_models: tuple[Text, ...]
    """The voices where the plan names none, on whichever machine the run is resumed."""
    families: dict[Text, Text] = Field(default_factory=dict)
    """Which model sits for each family that the plan names, as it was when the run began."""


@dataclass(frozen=True)
class RunFolder:
    """One run on disk."""

    path: Path

    @cached_property
    def about(self) -> RunAbout:
        """What it began with. A `StoreError` when this is no run."""
        try:
            return RunAbout.model_validate_json(self._content(ABOUT))
        except OSError:
            raise StoreError(f"{self.path}: is not a run; `firecircle lab report` lists them") from None
        except ValidationError:
            raise StoreError(f"{self.path / ABOUT}: is not the beginning of a run; start a new one") from None

    @cached_property
    def plan(self) -> Plan:
        """Its plan, as it was when the run began or was last taken up, with a model for each family."""
        try:
            text = self._content(PLAN).decode()
        except (OSError, UnicodeDecodeError) as unreadable:
            raise StoreError(f"{self.path / PLAN}: cannot read it: {unreadable}") from None
        return plan_of(text, str(self.path / PLAN)).seated_as(self.about.families)

    @property
    def base(self) -> Path:
        """What the plan's paths are relative to."""
        return Path(self.about.plan_folder)

    @property
    def journal(self) -> Path:
        """Calls and records as they came."""
        return self.path / JOURNAL

    @property
    def records(self) -> Path:
        """All records, once the run is finished."""
        return self.path / RECORDS

    @property
    def has_table(self) -> bool:
        """Whether its figures can be read from the table; else the journal has them."""
        return self.state == "finished" and self.records.exists() and self.damage.table is None

    @property
    def state(self) -> RunState:
        """Whether everything in the plan was done."""
        return "finished" if (self.path / END).exists() else "unfinished"

    @property
    def mendable(self) -> int:
        """How many judgements of a finished run a passing trouble hurt: the same command runs them again."""
        mendable = self._end.get("mendable", 0)
        return mendable if isinstance(mendable, int) else 0

    @property
    def _end(self) -> dict[str, object]:
        """What was noted when the run was finished; nothing where it is not, or the note cannot be read."""
        try:
            noted = json.loads(self._content(END))
        except (OSError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}

    @property
    def finished_with(self) -> JournalDigest | None:
        """What the journal held when the run was finished; None before, and for runs of earlier versions."""
        try:
            return JournalDigest(**self._end["journal"])  # type: ignore[arg-type]  # checked by calling
        except (KeyError, TypeError):
            return None

    @property
    def damage(self) -> Damage:
        """What of a finished run is no longer as it was left."""
        if self.state != "finished":
            return Damage()
        return _damage(self, tuple(_stamp(self.path / name) for name in (JOURNAL, RECORDS, END)))

    @property
    def has_whole_table(self) -> bool:
        """Whether `records.parquet` is as it was written; earlier versions did not note what it was."""
        noted = self._end.get("records_sha256")
        try:
            return noted is None or sha256_of(self.records) == noted
        except OSError:
            return False

    @property
    def pause(self) -> Pause | None:
        """Whom the run waits for now; None where it goes on, or nobody carries it out."""
        try:
            noted = Pause(**json.loads(self._content(PAUSE)))
        except (OSError, ValueError, TypeError):
            return None
        return noted if noted.resumes_at + OVERDUE_SECONDS > time.time() else None

    def note_pause(self, pause: Pause | None) -> None:
        """Leave word for whoever looks at the run meanwhile."""
        if pause is None:
            (self.path / PAUSE).unlink(missing_ok=True)
        else:
            self.write(PAUSE, json.dumps(asdict(pause)))

    @property
    def total(self) -> int:
        """How many records each arm judges, over all sittings."""
        return self.about.census.records * len(self.plan.sittings)

    @property
    def judged(self) -> int:
        """How many judgements are in the journal, over all arms."""
        if not self.journal.exists():
            return 0
        with RunJournal(self.journal) as journal:
            return Tally.of(journal, self.about.arms, self.total).done

    def require_finished(self) -> None:
        """Refuse to conclude anything from half a run."""
        if self.state != "finished":
            raise ConfigError(
                "run",
                f"{self.about.run_id} is unfinished",
                f"`firecircle lab run {self.path}` finishes it first",
            )
        if not self.has_whole_table:
            raise StoreError(self.damaged_table)

    @property
    def damaged_table(self) -> str:
        """The line about a table that is not whole."""
        return (
            f"{self.records}: was changed since the run was finished;"
            f" `firecircle lab run {self.path}` rewrites it from the journal"
        )

    def begin(
        self,
        plan: Plan,
        text: str,
        base: Path,
        *,
        arms: tuple[str, ...],
        seats: tuple[str, ...],
        families: Mapping[str, str],
        census: Census,
    ) -> None:
        """Write down what the run begins with; the last file written makes it a run."""
        started = time.time()
        about = RunAbout(
            run_id=self.path.name,
            digest=plan.digest,
            started_at=started,
            plan_folder=str(base.absolute()),
            arms=arms,
            census=census,
            versions={name: installed for name in _VERSIONS if (installed := _version(name))},
            python=platform.python_version(),
            platform=platform.platform(),
            default_models=seats,
            families=dict(families),
        )
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.write(PLAN, text)
            self.write(ABOUT, about.model_dump_json(indent=2) + "\n")
        except OSError as unwritable:
            raise StoreError(f"{self.path}: cannot write there: {unwritable.strerror}") from None

    def finish(self, summary: Mapping[str, object]) -> None:
        """Note that everything is done, and how journal and table look now."""
        with RunJournal(self.journal) as journal:
            held = journal.verified()
        whole = {"journal": held._asdict(), "records_sha256": sha256_of(self.records)}
        noted = {"finished_at": time.time(), **summary, **whole}
        self.write(END, json.dumps(noted, indent=2) + "\n")

    def reopen(self) -> None:
        """Take back that everything is done."""
        (self.path / END).unlink(missing_ok=True)

    def _content(self, name: str) -> bytes:
        return read_regular(self.path / name, LARGEST_NOTE)

    def write(self, name: str, text: str) -> None:
        """Write a file, all of it or nothing."""
        write_whole(self.path / name, text)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run: two processes would pay for the same calls. A killed process lets go of it."""
        busy = ConfigError("run", f"{self.path.name} is being carried out by another process")
        with exclusive_lock(self.path / ".lock", busy):
            yield


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=256)
def _damage(run: RunFolder, _stamps: object) -> Damage:
    """Looked at once: the viewer asks at every visit."""
    end = None if run._end else f"{run.path / END}: cannot be read; how the run ended is not known"
    journal = None
    try:
        with RunJournal(run.journal) as opened:
            opened.verified(run.finished_with)
    except StoreError as damaged:
        journal = str(damaged)
    return Damage(end, journal, None if run.has_whole_table else run.damaged_table)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def runs_folder() -> Path:
    """Where runs are kept unless a folder is named."""
    return user_folder("data") / "runs"


def new_run_id(plan: Plan) -> str:
    """A name made of the plan and the time."""
    return f"{plan.name}-{plan.digest[:8]}-{time.strftime('%Y%m%d-%H%M%S')}"


def list_runs() -> list[RunFolder]:
    """Every run in the usual folder or known to the store, the newest first."""
    place = runs_folder()
    usual = list(place.iterdir()) if place.is_dir() else []
    paths = dict.fromkeys((*usual, *registered_folders()))
    runs = [RunFolder(path) for path in paths if (path / ABOUT).is_file()]
    readable = [run for run in runs if _is_readable(run)]
    return sorted(readable, key=lambda run: run.about.started_at, reverse=True)


def _is_readable(run: RunFolder) -> bool:
    try:
        return run.total > 0
    except FireCircleError:
        return False


def unfinished_run(plan: Plan, base: Path) -> RunFolder | None:
    """The newest run of this very plan that was begun and not finished, or has something to mend."""
    bundled = all(dataset.is_bundled for dataset in plan.datasets)
    for run in list_runs():
        same = run.about.digest == plan.digest and (bundled or run.base == base.absolute())
        if same and (run.state == "unfinished" or run.mendable):
            return run
    return None


def _is_run(path: Path) -> bool:
    try:
        return (path / ABOUT).is_file()
    except OSError:
        return False  # too long for a file's name


def find_run(name: str) -> RunFolder:
    """A run by its folder, its id, the beginning of its id, or `last`."""
    if _is_run(Path(name)):
        return RunFolder(Path(name))
    runs = list_runs()
    if name == "last" and runs:
        return runs[0]
    matching = [run for run in runs if run.about.run_id.startswith(name)]
    exact = [run for run in matching if run.about.run_id == name]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    if matching:
        raise ConfigError("run", f"{len(matching)} runs begin with {name!r}", "write more of the name")
    raise ConfigError("run", f"there is no {name!r}", "`firecircle lab report` lists them")


class Damage(NamedTuple):
    """What of a finished run is no longer as it was left: a line for each file, None where it is whole."""

    end: str | None = None
    journal: str | None = None
    table: str | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What there is to tell."""
        return tuple(filter(None, self))
