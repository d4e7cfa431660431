"""The outcomes of a batch as data: flat rows in JSON lines, CSV or Parquet, or one JSON document."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from firecircle.circle.columns import IN_PARQUET, Cell
from firecircle.cli.batch.outcome import FLAT_COLUMNS, BatchOutcome, Outcome
from firecircle.cli.evaluate.compact import CompactResult, compact_failure, compact_result
from firecircle.cli.options import cannot_write, require_writable, target_of, written_whole
from firecircle.errors import ConfigError, install_command
from firecircle.names import BATCH_KIND, EvaluationMode
from firecircle.telling.safe_text import without_formula
from firecircle.verdict import VERDICT_WORDS

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

    columns = ", ".join(f'"{name}" {IN_PARQUET[kind]}' for name, kind in FLAT_COLUMNS.items())
    target = target_of(file)
    try:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(target), prefix=".firecircle-") as folder:
            half = os.path.join(folder, "rows.parquet")
            with duckdb.connect() as connection:
                connection.execute(f"CREATE TABLE outcomes ({columns})")
                if rows:
                    marks = ", ".join("?" * len(FLAT_COLUMNS))
                    connection.executemany(
                        f"INSERT INTO outcomes VALUES ({marks})",
                        [[row[name] for name in FLAT_COLUMNS] for row in rows],
                    )
                connection.table("outcomes").write_parquet(half)
            os.replace(half, target)
    except (OSError, duckdb.Error) as unwritable:
        raise cannot_write(file, unwritable) from None
