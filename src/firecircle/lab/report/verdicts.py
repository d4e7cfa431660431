"""Which prompts the reference arm judged wrongly, or raised an alarm on where nobody labelled them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from firecircle.errors import FireCircleError
from firecircle.lab.records import alarm_value, records_table
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.store.rows import title_of
from firecircle.thresholds import format_figure, lowest_reaching

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 50
"""Prompts listed in a table; the records have them all."""

Kind = Literal["missed", "false_alarms", "alarms"]
TITLES: dict[Kind, str] = {
    "missed": "Missed attacks",
    "false_alarms": "False alarms",
    "alarms": "Alarms on prompts without a label",
}
_CONDITIONS: dict[Kind, str] = {
    "missed": "label = 'attack' AND falsehood < $threshold",
    "false_alarms": "label = 'benign' AND falsehood >= $threshold",
    "alarms": "label IS NULL AND falsehood >= $threshold",
}


class JudgedPrompt(Shape):
    """One prompt as the reference arm judged it."""

    dataset: Text
    record_id: Text
    family: Text | None
    falsehood: float
    """The mean over repeats."""
    pattern_types: tuple[Text, ...]
    other_arms: dict[Text, float]
    """F of the other arms."""
    words: Text | None
    """How it begins; None if the data is no longer there."""
    prompt: MultiNeutrosophicPrompt | None
    link: Text
    """Where the viewer shows its circle, from the place of the report."""


class VerdictTable(Shape):
    """Prompts of one kind: misses by how close they were, alarms by how strong."""

    kind: Kind
    arm: Text
    total: int
    threshold: float
    rows: tuple[JudgedPrompt, ...]

    @property
    def title(self) -> str:
        """What they are."""
        return TITLES[self.kind]

    def figure(self, falsehood: float) -> str:
        """A falsehood that never seems to lie on the other side of the threshold."""
        return format_figure(falsehood, self.threshold)


def verdict_tables(run: RunFolder, arm: str, most: int = MOST) -> tuple[VerdictTable, ...]:
    """The tables of an arm that have a row."""
    import duckdb

    prompts: dict[tuple[str, str], MultiNeutrosophicPrompt] = {}
    with duckdb.connect(":memory:") as database:
        records = records_table(database, run.records)
        database.execute(
            "CREATE TABLE judged AS SELECT arm, dataset, record_id, any_value(label) AS label,"
            f" any_value(family) AS family, avg({alarm_value(database, records)}) AS falsehood,"
            f" first(pattern_types) AS pattern_types FROM {records} WHERE f IS NOT NULL"
            " GROUP BY arm, dataset, record_id"
        )
        found = {kind: _rows(database, kind, arm, run.plan.alarm_threshold) for kind in TITLES}
        shown = {(row[0], row[1]) for rows in found.values() for row in rows[:most]}
        others: dict[tuple[str, str], dict[str, float]] = {}
        for name, dataset, record_id, falsehood in database.execute(
            "SELECT arm, dataset, record_id, falsehood FROM judged WHERE arm <> ? ORDER BY arm", [arm]
        ).fetchall():
            if (dataset, record_id) in shown:
                others.setdefault((dataset, record_id), {})[name] = falsehood
    try:
        for chosen in chosen_records(run.plan, run.base) if shown else ():
            if (place := (chosen.dataset, chosen.record.id)) in shown:
                prompts[place] = chosen.record.prompt
    except FireCircleError:
        pass  # the data is no longer there; the figures are
    tables = (
        VerdictTable(
            kind=kind,
            arm=arm,
            total=len(rows),
            threshold=run.plan.alarm_threshold,
            rows=tuple(
                JudgedPrompt(
                    dataset=dataset,
                    record_id=record_id,
                    family=family,
                    falsehood=falsehood,
                    pattern_types=tuple(types or ()),
                    other_arms=others.get((dataset, record_id), {}),
                    words=title_of(prompt) if (prompt := prompts.get((dataset, record_id))) else None,
                    prompt=prompt,
                    link=f"circle?{urlencode({'arm': arm, 'dataset': dataset, 'record': record_id})}",
                )
                for dataset, record_id, family, falsehood, types in rows[:most]
            ),
        )
        for kind, rows in found.items()
    )
    return tuple(table for table in tables if table.rows)


def _rows(
    database: DuckDBPyConnection, kind: Kind, arm: str, threshold: float
) -> list[tuple[str, str, str | None, float, list[str] | None]]:
    return database.execute(
        "SELECT dataset, record_id, family, falsehood, pattern_types FROM judged"
        f" WHERE arm = $arm AND {_CONDITIONS[kind]} ORDER BY falsehood DESC, dataset, record_id",
        {"arm": arm, "threshold": lowest_reaching(threshold)},
    ).fetchall()
