"""`records.parquet` of runs that were never held, to see what is said of odd ones."""

from __future__ import annotations

from pathlib import Path

import duckdb

from firecircle.lab.figures.columns import RecordFile
from firecircle.lab.figures.run import RunFigures, run_figures
from firecircle.lab.records import RunRecord, VoiceRound
from firecircle.lab.runs.starting import column_types
from firecircle.names import Label

THRESHOLD = 0.7


def judgement(
    arm: str,
    number: int,
    label: Label | None,
    rounds: list[list[float]],
    kind: str = "fire_circle",
    **more: object,
) -> RunRecord:
    """What `arm` made of prompt `number`: the F of every voice in every round."""
    said = tuple(
        VoiceRound(model=f"v{voice}", round_number=held, truth=1 - f, indeterminacy=0.1, falsehood=f)
        for held, voices in enumerate(rounds, 1)
        for voice, f in enumerate(voices)
    )
    highest = max(max(voices) for voices in rounds) if rounds else None
    told: dict[str, object] = {
        "status": "judged",
        "run_id": "run",
        "arm": arm,
        "kind": kind,
        "repeat": 0,
        "seed": 1,
        "dataset": "d",
        "record_id": f"p{number}",
        "source": "s",
        "family": None,
        "label": label,
        "turn_count": 1,
        "layers": ("user",),
        "f": highest,
        "round1_f": max(rounds[0]) if rounds else None,
        "alarm": None if highest is None else highest >= THRESHOLD,
        "calls": sum(len(voices) for voices in rounds),
        "voices": said,
    }
    return RunRecord.model_validate({**told, **more})


def written(path: Path, records: list[RunRecord]) -> Path:
    """The table on disk."""
    lines = path.with_suffix(".jsonl")
    lines.write_text("".join(record.model_dump_json() + "\n" for record in records))
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in column_types().items())
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT * FROM read_json(?, format='newline_delimited', columns={{{columns}}}))"
            f" TO '{path}' (FORMAT parquet)",
            [str(lines)],
        )
    return path


def figures_of(path: Path, records: list[RunRecord]) -> RunFigures:
    """The figures of such a run."""
    return run_figures(RecordFile(written(path, records)), THRESHOLD)
