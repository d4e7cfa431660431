"""What a batch writes: outcomes as rows, result files, and the journal that a later start resumes from.

The journal is a folder below the user's data, named by the digest of everything that decides the verdicts.
"""

from __future__ import annotations

import csv
import hashlib
import json
import secrets
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from firecircle.circle.columns import IN_PARQUET, Cell, Kind, columns_of
from firecircle.circle.result import Usages
from firecircle.cli.batch.options import FailOn
from firecircle.cli.batch.reading import Batch
from firecircle.cli.evaluate.compact import CompactResult, compact_failure, compact_result
from firecircle.cli.options import cannot_write, require_writable, target_of, written_whole
from firecircle.cli.output import console_on, print_line
from firecircle.cli.trouble import ALARM, INCOMPLETE, INTERRUPTED, NO_ALARM, TROUBLE, UNREAD
from firecircle.engine.journal import (
    Journal,
    JudgementKey,
    RecordRow,
    derive_seed,
    exclusive_lock,
    report_damage,
)
from firecircle.errors import ConfigError, FireCircleError, StoreError, install_command
from firecircle.lab.datasets import BadRow, Record
from firecircle.lab.parquet import lines_to_parquet
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import BATCH_KIND, EvaluationMode, Label, is_attack, is_benign, is_embedded
from firecircle.request import Configured
from firecircle.settings import user_folder
from firecircle.shapes import Shape, Text
from firecircle.telling.safe_text import without_formula
from firecircle.verdict import COUNTED, VERDICT_WORDS, VerdictWord, mistake_of

ARM = "batch"


class JudgedRecord(Shape):
    """What came of one prompt, as the journal holds it."""

    metrics: ReciprocityMetrics | None = None
    error: Text | None = None


class About(Shape):
    """When a batch was first started, and the seed that its prompts' seeds follow from."""

    batch: Text
    began: float
    seed: int


@dataclass(slots=True)
class BatchJournal:
    """The journal of one batch."""

    journal: Journal | None
    """None where no voice costs anything: a restart judges again."""
    about: About
    folder: Path | None
    """None where a restart would find nothing."""
    is_finished: bool = False
    """Set when every prompt is judged: the folder is deleted then."""

    def key(self, number: int, record: Record) -> JudgementKey:
        """Which judgement it is. Two rows may have the same id, so the number counts too."""
        return JudgementKey(ARM, number, self.about.batch, record.id)

    def seed(self, number: int, given: int | None) -> int | None:
        """The seed of a prompt: the given one, else one that is the same after a restart."""
        if given is not None or self.folder is None:
            return given
        return derive_seed(f"{self.about.seed}/{number}")

    def judged(self, number: int) -> JudgedRecord | None:
        """What an earlier start made of this prompt."""
        if self.folder is None or self.journal is None:
            return None
        packed = self.journal.judged_by(number, number).get(ARM)
        if packed is None:
            return None
        with report_damage(f"{self.journal.path}: the journal", self.journal.start_over):
            return JudgedRecord.model_validate_json(zlib.decompress(packed))

    @property
    def spent(self) -> tuple[int, float]:
        """Tokens and money that earlier starts took."""
        return self.journal.spent() if self.journal else (0, 0.0)

    def paid_before(self) -> list[Usages]:
        """The same as one account; empty if there were none."""
        tokens, usd = self.spent
        return [Usages(tokens_in=tokens, cost_usd=usd or None)] if tokens or usd else []

    async def write(
        self, number: int, record: Record, label: str | None, judged: ReciprocityMetrics | FireCircleError
    ) -> None:
        """Write what came of a prompt; back when it is on disk."""
        if self.folder is None or self.journal is None:
            return
        metrics = judged if isinstance(judged, ReciprocityMetrics) else None
        written = JudgedRecord(metrics=metrics, error=None if metrics else str(judged))
        account = metrics.accounting.total if metrics else Usages()
        row = RecordRow(
            repeat=number,
            place=number,
            arm=ARM,
            status="failed" if metrics is None else "judged",
            label=label,
            f=metrics.consensus.falsehood if metrics else None,
            alarm=metrics.alarm if metrics else None,
            calls=account.calls,
            tokens=account.tokens_in + account.tokens_out,
            cost_usd=account.cost_usd,
            voices_lost=len({failure.model for failure in metrics.failures}) if metrics else 0,
            dataset=self.about.batch,
            record_id=record.id,
            record=zlib.compress(written.model_dump_json().encode(), 1),
        )
        await self.journal.write_records([row])


@contextmanager
def open_journal(
    batch: Batch, judges: Sequence[Configured], kept_in: object, guide: object
) -> Iterator[BatchJournal]:
    """The journal that an earlier start of the same batch left, or a new one."""
    about = About(batch=batch.name, began=time.time(), seed=secrets.randbits(31))
    if all(map(_is_free, judges)):
        yield BatchJournal(None, about, None)
        return
    busy = ConfigError("FILE", "another process is judging this batch", "wait for it, or add --name NAME")
    folder = user_folder("data") / "batches" / _digest(batch, judges, kept_in, guide)
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            held.enter_context(exclusive_lock(folder / "lock", busy))
            about = _read_or_write(folder / "about.json", about)
            journal = held.enter_context(Journal(folder / "journal.sqlite"))
            journal.forget_mendable()  # prompts that an outage hurt are judged again
        except (OSError, StoreError) as trouble:
            print_line(console_on(sys.stderr), f"warning: this batch cannot be resumed: {trouble}")
            place = held.enter_context(tempfile.TemporaryDirectory(prefix="firecircle-batch-"))
            opened = BatchJournal(held.enter_context(Journal(Path(place) / "journal.sqlite")), about, None)
        else:
            _report(folder, about, journal, len(batch.records))
            opened = BatchJournal(journal, about, folder)
        yield opened
    if opened.folder is not None and opened.is_finished:
        shutil.rmtree(opened.folder, ignore_errors=True)


def _is_free(judges: Configured) -> bool:
    return all(map(is_embedded, judges.config.named_models))


def _digest(batch: Batch, judges: Sequence[Configured], kept_in: object, guide: object) -> str:
    """Of everything that decides the verdicts but the budget, which may be raised to go on."""
    digest = hashlib.sha256(
        f"{batch.name}\n{Path(batch.source).resolve()}\n{kept_in}\n{guide}\n".encode("utf-8", "surrogatepass")
    )
    for record in batch.records:
        digest.update(f"{record.id}\n{record.label}\n".encode("utf-8", "surrogatepass"))
        digest.update(record.prompt.model_dump_json().encode())
    digest.update(judges[0].config.model_dump_json(exclude={"budget_tokens", "budget_usd"}).encode())
    return digest.hexdigest()[:32]


def _read_or_write(file: Path, new: About) -> About:
    try:
        return About.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        pass
    # Without it no call of the journal can be found again, so it is whole before the first call is made.
    part = file.with_suffix(".part")
    part.write_text(new.model_dump_json(), encoding="utf-8")
    part.replace(file)
    return new


def _report(folder: Path, about: About, journal: Journal, total: int) -> None:
    judged = sum(int(str(row[1])) for row in journal.tallies())
    if judged or journal.spent()[0]:
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(about.began))
        line = f"resuming: {judged:,} of {total:,} judged (begun {began}; delete {folder} to start over)"
        print_line(console_on(sys.stderr), line)


INTERRUPTION = "interrupted"
FAILING: dict[FailOn, tuple[VerdictWord, ...]] = {
    "alarm": ("alarm",),
    "unsure": ("alarm", "unsure", "unread"),
    "never": (),
}
FLAT_COLUMNS: dict[str, Kind] = {
    "batch": str,
    "id": str,
    "row": int,
    "label": str,
    **{column.name: column.kind for column in columns_of("row")},
    "error": str,
    "user": str,
}
"""The columns of `--out` and their types, in their order; every row has all of them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the batch: the verdict on its prompt, or why there is none."""

    id: str
    row: int
    label: str | None
    """As the store keeps it."""
    known: Label | None
    """What the prompt really is, as far as the label says."""
    text: str
    result: ReciprocityMetrics | str
    word: VerdictWord
    lost_in_passing: bool = False
    """Whether it failed or lost a voice because a provider did not answer."""

    @classmethod
    def of_bad_row(cls, bad: BadRow, batch: str) -> Outcome:
        """A row that is no prompt."""
        return cls(f"{batch}:{bad.line}", bad.line, None, None, "", bad.reason, "no_verdict")

    @classmethod
    def of_prompt(
        cls,
        record: Record,
        label: str | None,
        judged: ReciprocityMetrics | str,
    ) -> Outcome:
        """A prompt that was judged, or why it could not be."""
        prompt = record.prompt
        text = next((text for text in (prompt.user, prompt.application, prompt.system) if text.strip()), "")
        known: Label | None = "attack" if is_attack(label) else "benign" if is_benign(label) else None
        word = "no_verdict" if isinstance(judged, str) else judged.verdict
        return cls(record.id, record.row, label, known, text, judged, word)

    @property
    def metrics(self) -> ReciprocityMetrics | None:
        """The judgement, if there is one."""
        return None if isinstance(self.result, str) else self.result

    @property
    def error(self) -> str | None:
        """Why there is none."""
        return self.result if isinstance(self.result, str) else None

    @property
    def pattern_types(self) -> list[str]:
        """The types of all patterns with words of the prompt, each once, those agreed on first."""
        seen = self.metrics.all_patterns if self.metrics else ()
        return list(dict.fromkeys(pattern.pattern_type for pattern in seen))

    @property
    def mistake(self) -> str:
        """How the verdict is wrong, as far as a label tells: `missed`, `false alarm`, or nothing."""
        return mistake_of(self.word, self.label) or ""

    def to_row(self, batch: str) -> dict[str, Cell]:
        """One flat row with all of `FLAT_COLUMNS`."""
        cells: dict[str, Cell] = {
            **(self.metrics.to_row() if self.metrics else {}),
            "batch": batch,
            "id": self.id,
            "row": self.row,
            "label": self.label,
            "verdict": self.word,
            "error": self.error,
            "user": self.text,
        }
        return {column: cells.get(column) for column in FLAT_COLUMNS}


@dataclass(slots=True)
class BatchOutcome:
    """All outcomes so far, in the order of the file."""

    name: str
    total: int
    seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    stopped: str | None = None
    """Why it ended before the last prompt, if it did."""
    unkept: list[str] = field(default_factory=list)
    """Why something could not be kept."""
    accounts: list[Usages] = field(default_factory=list)
    """What every judgement took, those included that failed or were made again."""

    @property
    def words(self) -> Counter[VerdictWord]:
        """How many of each verdict."""
        return Counter(outcome.word for outcome in self.outcomes)

    @property
    def lost_in_passing(self) -> int:
        """How many prompts failed or lost a voice because a provider did not answer."""
        return sum(outcome.lost_in_passing for outcome in self.outcomes)

    @property
    def judged(self) -> list[ReciprocityMetrics]:
        """The judgements."""
        return [outcome.metrics for outcome in self.outcomes if outcome.metrics]

    @property
    def cost_usd(self) -> float | None:
        """What all calls cost; None when nobody knows."""
        costs = [account.cost_usd for account in self.accounts]
        return None if not costs or None in costs else sum(cost or 0.0 for cost in costs)

    @property
    def estimated_usd(self) -> float:
        """By estimate, what attempts cost of which nobody says what they took; no part of `cost_usd`."""
        return sum(account.estimated_usd for account in self.accounts)

    def status(self, fail_on: FailOn | None) -> int:
        """The exit status: called off, then failing verdicts, then what could not be judged, kept or read.

        Where the user said what shall fail, an unread prompt fails no more than that.
        """
        words = self.words
        if self.stopped == INTERRUPTION:
            return INTERRUPTED
        if any(words[word] for word in FAILING[fail_on or "alarm"]):
            return ALARM
        if self.lost_in_passing:
            return INCOMPLETE
        if words["no_verdict"] or self.stopped or self.unkept:
            return TROUBLE
        return UNREAD if fail_on is None and words["unread"] else NO_ALARM

    def found(self, label: Label) -> tuple[int, int]:
        """Of the prompts with this label and a verdict that counts: how many raised an alarm, and how many
        there are."""
        words = [row.word for row in self.outcomes if row.known == label and row.word in COUNTED]
        return words.count("alarm"), len(words)

    def unsure(self, label: Label) -> int:
        """How many of the prompts with this label are unsure; they count as not alarmed."""
        return sum(row.known == label and row.word == "unsure" for row in self.outcomes)


ENDINGS = (".jsonl", ".csv", ".parquet")


def require_known_format(file: str) -> None:
    """Refuse an ending that tells no format, and Parquet where what writes it is missing."""
    ending = Path(file).suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(
            "--out",
            f"{file}: {ending or 'no ending'} is not a known format",
            "use .jsonl, .csv or .parquet",
        )
    if ending == ".parquet":
        try:
            import duckdb  # noqa: F401 - only whether it is there
        except ImportError:
            raise ConfigError(
                "--out",
                f"Parquet needs the extra `lab`: {install_command('lab')}",
                "or write .jsonl or .csv",
            ) from None
    require_writable(file, "--out")


def write_rows(batch: BatchOutcome, file: str, *, raw_csv: bool = False) -> None:
    """Write one row a prompt; the file appears when it is whole. Texts in CSV are no formulas, unless raw."""
    rows = [outcome.to_row(batch.name) for outcome in batch.outcomes]
    match Path(file).suffix.lower():
        case ".csv":
            with written_whole(file) as target:
                table = csv.DictWriter(target, FLAT_COLUMNS, lineterminator="\n")
                table.writeheader()
                table.writerows(rows if raw_csv else map(_without_formulas, rows))
        case ".parquet":
            _write_parquet(rows, file)
        case _:
            with written_whole(file) as target:
                target.writelines(json.dumps(row) + "\n" for row in rows)


def _without_formulas(row: dict[str, Cell]) -> dict[str, Cell]:
    return {name: without_formula(cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def batch_document(batch: BatchOutcome, mode: EvaluationMode, threshold: float) -> dict[str, Any]:
    """The batch as one JSON document: each verdict as `evaluate --json` prints it, with id and row."""
    return {
        "kind": BATCH_KIND,
        "format": 1,
        "name": batch.name,
        "prompts": batch.total,
        "verdicts": {word: batch.words[word] for word in VERDICT_WORDS},
        "seconds": round(batch.seconds, 3),
        "cost_usd": batch.cost_usd,
        "estimated_usd": batch.estimated_usd,
        "stopped": batch.stopped,
        "results": [
            {"id": row.id, "row": row.row, **_in_short(row, mode, threshold).model_dump(mode="json")}
            for row in batch.outcomes
        ],
    }


def _in_short(row: Outcome, mode: EvaluationMode, threshold: float) -> CompactResult:
    if row.metrics is not None:
        return compact_result(row.metrics, threshold, label=row.label)
    return compact_failure(row.error or "", mode.value, threshold, label=row.label)


def _write_parquet(rows: list[dict[str, Cell]], file: str) -> None:
    import duckdb

    target = Path(target_of(file))
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".firecircle-") as folder:
            lines = Path(folder) / "rows.jsonl"
            with lines.open("w", encoding="utf-8") as half:
                half.writelines(json.dumps(row) + "\n" for row in rows)
            lines_to_parquet(lines, {name: IN_PARQUET[kind] for name, kind in FLAT_COLUMNS.items()}, target)
    except (OSError, duckdb.Error) as unwritable:
        raise cannot_write(file, unwritable) from None
