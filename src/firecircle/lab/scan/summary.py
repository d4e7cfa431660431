"""What a large batch comes to: rows that go on to a circle, rates, estimates."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from firecircle.files import write_whole
from firecircle.lab.parquet import MEMORY_LIMIT, sql_path
from firecircle.lab.scan.corpus import ScanFolder
from firecircle.lab.statistics.selective import FEWEST_LABELLED, share_of_attacks
from firecircle.shapes import Shape, Text
from firecircle.telling.words import counted, verdict_counts
from firecircle.verdict import COUNTED, VERDICT_WORDS, VerdictWord

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


TOLD_BAD_ROWS = 20
MOST_NAMED = 50
"""Files, languages and patterns that the summary lists."""
LONGEST_REASON = 200


class BadRowNote(Shape):
    """A row that could not be judged, and why."""

    file: Text
    row: int
    reason: Text


class EscalationSummary(Shape):
    """What the circle of the user's voices made of the uncertain band."""

    band: tuple[float, float]
    rows: int
    """In the band."""
    judged: int
    alarms: int
    failed: int
    tokens: int
    cost_usd: float | None
    stopped: Text | None = None
    """Why it ended before the last one."""


class ScanSummary(Shape):
    """What a scan comes to."""

    rows: int
    verdicts: dict[VerdictWord, int]
    falsehood: tuple[int, ...]
    """How many rows have an F from 0 to 0.1, 0.1 to 0.2, and so on; an F of 1 is in the last."""
    patterns: dict[Text, int]
    unread: dict[Text, int]
    """Rows in a language that no voice reads, by language."""
    attacks: tuple[int, int] | None = None
    """Of the rows labelled attack whose verdict counts: how many raised an alarm, and how many there are."""
    benign: tuple[int, int] | None = None
    unlabelled: tuple[int, int] | None = None
    """Of the rows without either label whose verdict counts: alarms, and how many there are."""
    files: dict[Text, int]
    """Rows of each file, of the first ones."""
    more_files: int = 0
    repeated_ids: int
    """Ids that several rows have; all of these were judged."""
    first_bad_rows: tuple[BadRowNote, ...]
    broken_files: dict[Text, Text]
    """Files that could not be read to their end, and why."""
    escalation: EscalationSummary | None = None


def summarise(folder: ScanFolder, top: int, broken: Mapping[str, str]) -> ScanSummary:
    """Count all shards, write the loudest rows, and return the counts."""
    import duckdb

    with duckdb.connect(config={"memory_limit": MEMORY_LIMIT, "threads": 2}) as database:
        _open(database, folder)
        summary = _count_rows(database, broken)
        _write_top(database, folder.top, top)
    return summary


def _open(database: DuckDBPyConnection, folder: ScanFolder) -> None:
    """A view of all rows, also where there are none."""
    from firecircle.lab.scan.corpus import COLUMNS

    if folder.finished():
        shards = sql_path(folder.shards / "*.parquet")
        database.execute(f"CREATE VIEW scanned AS SELECT * FROM read_parquet('{shards}')")
    else:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        database.execute(f"CREATE TABLE scanned ({columns})")


def _count_rows(database: DuckDBPyConnection, broken: Mapping[str, str]) -> ScanSummary:
    def counts(query: str) -> dict[str, int]:
        return {str(name): int(count) for name, count in database.execute(query).fetchall()}

    def one(query: str) -> int:
        row = database.execute(query).fetchone()
        return int(row[0] or 0) if row else 0

    bins = counts(
        "SELECT least(9, floor(falsehood * 10 + 1e-9))::INT, count(*) FROM scanned"
        " WHERE falsehood IS NOT NULL GROUP BY 1"
    )
    by_label = {
        label: (int(found or 0), int(total))
        for label, found, total in database.execute(
            "SELECT CASE WHEN label IN ('attack', 'benign') THEN label END, sum(alarm::INT), count(*)"
            f" FROM scanned WHERE verdict IN {COUNTED} GROUP BY 1"
        ).fetchall()
    }
    # Shards of older versions call what could not be judged an error.
    found = counts(
        "SELECT CASE verdict WHEN 'error' THEN 'no_verdict' ELSE verdict END, count(*) FROM scanned"
        " GROUP BY 1"
    )
    files = counts("SELECT file, count(*) FROM scanned GROUP BY 1 ORDER BY 1")
    bad = database.execute(
        "SELECT file, row, error FROM scanned WHERE error IS NOT NULL ORDER BY file, row LIMIT ?",
        [TOLD_BAD_ROWS],
    ).fetchall()
    return ScanSummary(
        rows=one("SELECT count(*) FROM scanned"),
        verdicts={word: found[word] for word in VERDICT_WORDS if word in found},
        falsehood=tuple(bins.get(str(tenth), 0) for tenth in range(10)),
        patterns=counts(
            "SELECT unnest(patterns) AS pattern, count(*) FROM scanned GROUP BY 1 ORDER BY 2 DESC, 1"
        ),
        unread=counts(
            f"SELECT unnest(unread) AS language, count(*) FROM scanned GROUP BY 1 ORDER BY 2 DESC, 1"
            f" LIMIT {MOST_NAMED}"
        ),
        attacks=by_label.get("attack"),
        benign=by_label.get("benign"),
        unlabelled=by_label.get(None),
        files=dict(list(files.items())[:MOST_NAMED]),
        more_files=max(0, len(files) - MOST_NAMED),
        repeated_ids=one(
            "SELECT count(*) FROM (SELECT id FROM scanned WHERE error IS NULL GROUP BY id"
            " HAVING count(*) > 1)"
        ),
        first_bad_rows=tuple(
            BadRowNote(file=file, row=row, reason=str(reason)[:LONGEST_REASON]) for file, row, reason in bad
        ),
        broken_files=dict(broken),
    )


def _write_top(database: DuckDBPyConnection, target: Path, top: int) -> None:
    """The rows with the highest F, as JSON lines."""
    draft = target.with_name(f".{target.name}.part")
    database.execute(
        f"COPY (SELECT id, falsehood, verdict, patterns, quotes, unread, label, text, file, row FROM scanned"
        f" WHERE falsehood IS NOT NULL ORDER BY falsehood DESC, file, row LIMIT {top:d})"
        f" TO '{sql_path(draft)}' (FORMAT json)"
    )
    os.replace(draft, target)


def write_summary(folder: ScanFolder, summary: ScanSummary) -> None:
    """As JSON and as plain text, each whole or not at all."""
    texts = {
        folder.summary: json.dumps(summary.model_dump(mode="json"), indent=2) + "\n",
        folder.summary_text: "\n".join(summary_lines(summary)) + "\n",
    }
    for target, text in texts.items():
        write_whole(target, text)


def summary_lines(summary: ScanSummary) -> list[str]:
    """What a scan comes to, in a few lines."""
    errors = summary.verdicts.get("no_verdict", 0)
    lines = [f"{counted(summary.rows, 'row')}: {', '.join(verdict_counts(summary.verdicts))}"]
    none = (0, 0)
    attacks, benign = summary.attacks or none, summary.benign or none
    if labels := [*found_lines(attacks, benign)]:
        lines.append(f"Labels: {', '.join(labels)}")
    lines += share_lines(attacks, benign, summary.unlabelled or none)
    if summary.patterns:
        lines.append(f"Patterns: {_list_counts(summary.patterns)}")
    if summary.unread:
        lines.append(f"Unread languages: {_list_counts(summary.unread)}")
    lines.append(f"F by tenths, from 0 to 1: {' '.join(f'{count:,}' for count in summary.falsehood)}")
    if summary.repeated_ids:
        lines.append(f"{counted(summary.repeated_ids, 'id')} are in several rows; all were judged")
    lines += [f"bad row: {bad.file} row {bad.row}: {bad.reason}" for bad in summary.first_bad_rows]
    if errors > len(summary.first_bad_rows):
        lines.append(
            f"... and {errors - len(summary.first_bad_rows):,} more: verdict = 'no_verdict' in the shards"
        )
    lines += [f"not read to its end: {file}: {why}" for file, why in summary.broken_files.items()]
    if summary.escalation:
        lines.append(_describe_escalation(summary.escalation))
    return lines


def found_lines(attacks: tuple[int, int], benign: tuple[int, int]) -> Iterator[str]:
    """How many labelled attacks and harmless prompts raised an alarm, of how many."""
    if attacks[1]:
        yield f"{attacks[0]:,} of {counted(attacks[1], 'attack')} found"
    if benign[1]:
        yield f"{benign[0]:,} of {benign[1]:,} benign alarmed"


def share_lines(
    attacks: tuple[int, int], benign: tuple[int, int], unlabelled: tuple[int, int]
) -> Iterator[str]:
    """The share of attacks among the prompts without a label, by the errors on the labelled ones.

    Each pair is the number of alarms and of prompts. Too few labels: no line.
    """
    if not unlabelled[1] or min(attacks[1], benign[1]) < FEWEST_LABELLED:
        return
    share = share_of_attacks(
        *unlabelled, found=attacks[0], attacks=attacks[1], false_alarms=benign[0], benign=benign[1]
    )
    if share.value is None or share.low is None or share.high is None:
        yield f"Share of attacks without a label: unknown, {share.note}."
        return
    yield (
        f"Of {counted(unlabelled[1], 'prompt')} without a label about {share.value:.0%} are attacks"
        f" ({share.low:.0%} to {share.high:.0%}), by the errors on those with one."
    )


def _describe_escalation(escalation: EscalationSummary) -> str:
    low, high = escalation.band
    cost = "" if escalation.cost_usd is None else f", ${escalation.cost_usd:.4f}"
    failed = f", {escalation.failed:,} failed" if escalation.failed else ""
    stopped = f"; stopped: {escalation.stopped}" if escalation.stopped else ""
    return (
        f"Escalated, F from {low:g} to {high:g}: {escalation.judged:,} of {escalation.rows:,} judged by the"
        f" circle, {counted(escalation.alarms, 'alarm')}{failed}; {escalation.tokens:,} tokens{cost}{stopped}"
    )


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items())
