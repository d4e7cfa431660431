"""The table of columns: every flat form of a verdict has its columns, names and types from there."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import sqlalchemy as sa

from firecircle.circle.columns import COLUMNS, Column, Kind, columns_of
from firecircle.cli.evaluate.compact import CompactResult
from firecircle.cli.main import run
from firecircle.lab.records import IN_CODE, RunRecord
from firecircle.store.finding import CircleSummary
from firecircle.store.tables import circles


def kind_of(hint: Any) -> Any:
    """The kind that a declared field has, whether or not it may be None."""
    if get_origin(hint) in (UnionType, Union):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    return str if get_origin(hint) is Literal else hint


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_every_column_is_complete(column: Column) -> None:
    assert column.meaning
    assert column.forms
    assert [other for other in COLUMNS if other.name == column.name] == [column]


@pytest.mark.parametrize("column", columns_of("json"), ids=lambda column: column.name)
def test_json_declares_it(column: Column) -> None:
    assert kind_of(get_type_hints(CompactResult)[column.name]) is column.kind


@pytest.mark.parametrize("column", columns_of("store"), ids=lambda column: column.name)
def test_the_store_and_its_lists_declare_it(column: Column) -> None:
    of_sql: dict[Kind, type] = {str: sa.Text, int: sa.Integer, float: sa.Double, bool: sa.Boolean}
    assert isinstance(circles.c[column.name].type, of_sql[column.kind])
    assert kind_of(get_type_hints(CircleSummary)[column.name]) is column.kind


@pytest.mark.parametrize("column", columns_of("run"), ids=lambda column: column.name)
def test_the_records_of_a_run_declare_it(column: Column) -> None:
    field = IN_CODE.get(column.name, column.name)
    assert kind_of(get_type_hints(RunRecord)[field]) is column.kind


def test_what_is_declared_is_in_the_table() -> None:
    """Fields of `--json` that hold several facts, or facts of the request, are the only others."""
    own = {"kind", "format", "reason", "patterns", "single_voice_patterns", "voices", "lost", "cautions"}
    declared = set(CompactResult.model_fields) - own - {"label", "error"}
    assert declared == {column.name for column in columns_of("json")}


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Column:
    """A column that is one more entry of the table."""
    from firecircle.circle import columns
    from firecircle.cli.batch import journal

    column = Column("heard_share", float, "share of voices heard", lambda one: one.voices / 10, ("row",))
    monkeypatch.setattr(columns, "COLUMNS", (*COLUMNS, column))
    monkeypatch.setitem(journal.FLAT_COLUMNS, "heard_share", float)
    return column


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_one_more_entry_reaches_every_file_of_a_batch(
    another: Column, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / f"rows.{ending}"
    prompts.write_text('{"user": "Is the library open on Sunday?"}\n')
    assert run(["evaluate", "--batch", str(prompts), "--out", str(out), "--no-save", "--offline"]) == 0
    if ending == "parquet":
        duckdb = pytest.importorskip("duckdb", reason="the extra `lab` is not installed")
        (found,) = duckdb.sql(f"SELECT {another.name} FROM '{out}'").fetchall()[0]
        assert isinstance(found, float)
    else:
        text = out.read_text()
        row = next(csv.DictReader(text.splitlines())) if ending == "csv" else json.loads(text)
        found = float(row[another.name])
    assert found > 0
