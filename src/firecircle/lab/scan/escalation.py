"""Have a circle of the user's voices judge the uncertain rows of a large batch, as a run within a budget."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firecircle.files import write_whole
from firecircle.lab.datasets import Record
from firecircle.lab.parquet import MEMORY_LIMIT, sql_path
from firecircle.lab.plan import Plan, read_plan
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.runs.runner import RunState
from firecircle.lab.runs.starting import Following, complete, export_records, open_run
from firecircle.lab.scan.corpus import CorpusFile, FileCursor, ScanFolder
from firecircle.lab.scan.summary import EscalationSummary
from firecircle.prompt import MultiNeutrosophicPrompt

ARM = "circle"
READ_AT_ONCE = 1000
ESCALATED = """
SELECT scanned.file, scanned.row, scanned.id, scanned.falsehood AS screened_falsehood, judged.status,
       judged.falsehood, judged.alarm, judged.pattern_types AS patterns,
       judged.tokens_in + judged.tokens_out AS tokens, judged.cost_usd, judged.error
FROM read_parquet('{records}') judged
JOIN read_json('{names}', format = 'newline_delimited',
               columns = {{id: 'VARCHAR', file: 'VARCHAR', row: 'BIGINT'}}) named
  ON named.id = judged.record_id
JOIN read_parquet('{shards}') scanned ON scanned.file = named.file AND scanned.row = named.row
ORDER BY screened_falsehood DESC, scanned.file, scanned.row
"""


async def escalate(
    folder: ScanFolder,
    files: Sequence[CorpusFile],
    shared: MultiNeutrosophicPrompt,
    request: EscalationRequest,
    threshold: float,
    following: Following,
) -> EscalationSummary:
    """Have the band judged, as far as the budget goes, and write what came of it."""
    rows = _rows_in(folder, request.band)
    if not rows:
        return _summary(request, 0, None, None)
    identity = json.dumps([request.models, request.band, threshold, sorted(file.digest for file in files)])
    place = folder.escalation / hashlib.sha256(identity.encode()).hexdigest()[:8]
    place.mkdir(parents=True, exist_ok=True)
    _write_prompts(place, files, shared, rows)
    run = _open_run(place, request, threshold)
    state = await complete(run, following)
    if not run.records.exists():  # stopped by the budget: what there is counts all the same
        export_records(run.journal, run.about.arms, place / "records.parquet")
    records = run.records if run.records.exists() else place / "records.parquet"
    _write_escalated(folder, place, records)
    return _summary(request, len(rows), state, folder.escalated)


def _rows_in(folder: ScanFolder, band: tuple[float, float]) -> list[tuple[str, int]]:
    """The rows of the band, those nearest to an alarm first, for a budget that ends before they do."""
    import duckdb

    if not folder.finished():
        return []
    with duckdb.connect(config={"memory_limit": MEMORY_LIMIT}) as database:
        return [
            (str(file), int(row))
            for file, row in database.execute(
                f"SELECT file, row FROM read_parquet('{sql_path(folder.shards / '*.parquet')}')"
                " WHERE falsehood >= ? AND falsehood < ? ORDER BY falsehood DESC, file, row",
                band,
            ).fetchall()
        ]


def _write_prompts(
    place: Path,
    files: Sequence[CorpusFile],
    shared: MultiNeutrosophicPrompt,
    rows: Sequence[tuple[str, int]],
) -> None:
    """The prompts of these rows, whole, as a dataset; and which row each of its ids is."""
    wanted: dict[str, set[int]] = {}
    for path, row in rows:
        wanted.setdefault(path, set()).add(row)
    prompts: dict[tuple[str, int], Record] = {}
    for file in files:
        if file.path in wanted:
            cursor, start = FileCursor(file), 0
            while read := cursor.take(start, READ_AT_ONCE):
                start += len(read)
                for record in read:
                    if isinstance(record, Record) and record.row in wanted[file.path]:
                        prompts[file.path, record.row] = record.completed(shared)
    numbers = {file.path: number for number, file in enumerate(files)}
    names = {(path, row): f"{numbers[path]}:{row}" for path, row in rows}
    prompts_as_rows = (
        {"id": names[at], **prompts[at].prompt.model_dump(mode="json"), "label": prompts[at].label}
        for at in rows
    )
    write_whole(place / "prompts.jsonl", _lines(prompts_as_rows))
    write_whole(place / "names.jsonl", _lines({"id": names[at], "file": at[0], "row": at[1]} for at in rows))


def _lines(rows: Iterable[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _open_run(place: Path, request: EscalationRequest, threshold: float) -> RunFolder:
    """The run of this escalation, as a plan that the user can read and report on."""
    limits = {"usd": request.usd, "tokens": request.tokens}
    stated = "".join(f"{name} = {value}\n" for name, value in limits.items() if value is not None)
    path = place / "plan.toml"
    path.write_text(
        f"""name = "escalation"
alarm_threshold = {threshold}
[budget]
{stated}[[datasets]]
path = "prompts.jsonl"
[circle]
models = {json.dumps(list(request.models))}
[[arms]]
name = "{ARM}"
kind = "fire_circle"
""",
        "utf-8",
    )
    plan: Plan
    plan, text = read_plan(path)
    return open_run(plan, text, place, out=place / "run")


def _write_escalated(folder: ScanFolder, place: Path, records: Path) -> None:
    import duckdb

    draft = folder.path / f".{folder.escalated.name}.part"
    query = ESCALATED.format(
        records=sql_path(records),
        names=sql_path(place / "names.jsonl"),
        shards=sql_path(folder.shards / "*.parquet"),
    )
    with duckdb.connect(config={"memory_limit": MEMORY_LIMIT}) as database:
        database.execute(f"COPY ({query}) TO '{sql_path(draft)}' (FORMAT parquet, COMPRESSION zstd)")
    os.replace(draft, folder.escalated)


def _summary(
    request: EscalationRequest, rows: int, state: RunState | None, escalated: Path | None
) -> EscalationSummary:
    import duckdb

    figures: tuple[int, int, int] = (0, 0, 0)
    if escalated is not None:
        with duckdb.connect() as database:
            counted = database.execute(
                "SELECT count(*) FILTER (status = 'judged'), count(*) FILTER (alarm),"
                f" count(*) FILTER (status = 'failed') FROM read_parquet('{sql_path(escalated)}')"
            ).fetchone()
            figures = counted or figures
    return EscalationSummary(
        band=request.band,
        rows=rows,
        judged=figures[0],
        alarms=figures[1],
        failed=figures[2],
        tokens=state.tally.spent_tokens if state else 0,
        cost_usd=state.tally.spent_usd if state else None,
        stopped=state.stopped if state else None,
    )


@dataclass(frozen=True, slots=True)
class EscalationRequest:
    """Who judges what again, and for how much."""

    models: tuple[str, ...]
    band: tuple[float, float]
    usd: float | None
    tokens: int | None
