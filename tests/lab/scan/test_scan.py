"""`firecircle batch --out FOLDER`, as a process: what it writes, and that it goes on after whatever ended it."""

from __future__ import annotations

import asyncio
import csv
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from firecircle import FireCircleConfig, PromptGuard
from firecircle.examples import load_examples
from firecircle.names import EMBEDDED_MODELS
from tests.cli.running import Ran, assert_one_line_of_trouble, command, endpoint, ran_apart
from tests.lab.hosting import TRIO, opinion

duckdb = pytest.importorskip("duckdb")

EXAMPLES = load_examples()[:24]
ROWS_EACH = 5
READERS = ("--models", ",".join(EMBEDDED_MODELS[:2]))
"""The two that need no weights and little time."""


def scan_apart(*arguments: str, **environment: str) -> Ran:
    """Run a scan as a process, on a machine that may be busy."""
    return ran_apart("batch", *arguments, seconds=300, **environment)


def table(folder: Path) -> list[tuple[Any, ...]]:
    """Every cell of every row."""
    rows: list[tuple[Any, ...]] = duckdb.sql(
        f"SELECT * FROM read_parquet('{folder}/shards/*.parquet') ORDER BY file, row"
    ).fetchall()
    return rows


def as_json_lines(path: Path, copies: int = 1) -> Path:
    with path.open("w") as file:
        for copy in range(copies):
            for example in EXAMPLES:
                prompt = example.prompt.model_dump()
                file.write(
                    json.dumps({"id": f"{example.id}/{copy}", **prompt, "label": example.label}) + "\n"
                )
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files in three formats, among them rows that are no prompt."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = as_json_lines(folder / "a.jsonl")
    with lines.open("a") as file:
        file.write("{broken\n" + json.dumps({"id": "empty", "user": "  "}) + "\n")
    with (folder / "b.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["Frage"], ["When do you open?"], ["Wann habt ihr am Sonntag geöffnet?"]])
    duckdb.sql("SELECT 'q' || i AS id, 'Question ' || i AS prompt FROM range(7) t(i)").write_parquet(
        str(folder / "c.parquet")
    )
    return folder


@pytest.fixture(scope="module")
def scanned(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("scanned") / "out"
    done = scan_apart(
        f"{corpus}/[ac].*", "--out", str(out), "--part-rows", str(ROWS_EACH), "--workers", "2", *READERS
    )
    assert done.status == 0, done.err
    assert "2 without a verdict" in done.out
    return out


def test_every_row_is_there_with_the_engines_own_verdict(scanned: Path) -> None:
    rows = {
        row["id"]: row for row in duckdb.sql(f"FROM '{scanned}/shards/*.parquet'").df().to_dict("records")
    }
    guard = PromptGuard()
    for example in EXAMPLES[:6]:
        judged = asyncio.run(
            guard.evaluate_prompt(
                example.prompt, fire_circle_config=FireCircleConfig(models=EMBEDDED_MODELS[:2])
            )
        )
        row = rows[f"{example.id}/0"]
        assert row["falsehood"] == judged.consensus.falsehood
        assert bool(row["alarm"]) == judged.alarm
        assert list(row["patterns"]) == list(dict.fromkeys(p.pattern_type for p in judged.patterns))
        quoted = {quote["quote"] for quote in row["quotes"]}
        assert quoted <= {place.text for pattern in judged.all_patterns for place in pattern.evidence}
    assert len(rows) == len(EXAMPLES) + 2 + 7


def test_bad_rows_are_counted_and_named(scanned: Path, corpus: Path) -> None:
    summary = json.loads((scanned / "summary.json").read_text())
    assert summary["rows"] == len(EXAMPLES) + 2 + 7
    assert summary["verdicts"]["no_verdict"] == 2
    named = {(Path(bad["file"]).name, bad["row"]): bad["reason"] for bad in summary["first_bad_rows"]}
    assert "not JSON" in named["a.jsonl", len(EXAMPLES) + 1]
    assert ("a.jsonl", len(EXAMPLES) + 2) in named
    assert "bad row" in (scanned / "summary.txt").read_text()


def test_the_loudest_rows_come_first(scanned: Path) -> None:
    top = [json.loads(line) for line in (scanned / "top.jsonl").read_text().splitlines()]
    figures = [row["falsehood"] for row in top]
    assert figures == sorted(figures, reverse=True)
    assert max(row[6] for row in table(scanned) if row[6] is not None) == figures[0]


def test_unread_languages_are_told_and_columns_are_mapped(corpus: Path, tmp_path: Path) -> None:
    done = scan_apart(
        str(corpus / "b.csv"), "--out", str(tmp_path / "o"), "--field", "user=Frage", "--json", *READERS
    )
    assert done.status == 0, done.err
    summary = json.loads(done.out)
    assert summary["unread"] == {"German": 1}
    assert summary["verdicts"] == {"no_alarm": 1, "unread": 1}
    assert_one_line_of_trouble(
        scan_apart(str(corpus / "b.csv"), "--out", str(tmp_path / "p")), "--field", "user=Frage"
    )


def test_a_scan_goes_on_after_whatever_ended_it_and_comes_to_the_same(tmp_path: Path) -> None:
    """Ctrl-C, then kill -9, then the loss of a worker."""
    corpus = as_json_lines(tmp_path / "many.jsonl", copies=4)
    out = tmp_path / "out"
    arguments = ["batch", str(corpus), "--part-rows", "4", "--workers", "2", "--out", str(out), *READERS]

    told = ended(arguments, out, lambda process: process.send_signal(signal.SIGINT), status=130)
    assert "continue with: firecircle batch" in told
    assert "Traceback" not in told
    kept = {path: path.stat().st_mtime_ns for path in out.glob("shards/*.parquet")}
    ended(arguments, out, lambda process: process.kill(), status=-signal.SIGKILL)
    told = ended(arguments, out, kill_a_worker, status=0)
    assert "going on after" in told
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    rows = table(out)
    assert [row[2] for row in rows] == [f"{example.id}/{copy}" for copy in range(4) for example in EXAMPLES]
    copies = [[row[4:13] for row in rows[24 * copy : 24 * copy + 24]] for copy in range(4)]
    assert all(copy == copies[0] for copy in copies)


def ended(
    arguments: list[str], out: Path, end: Callable[[subprocess.Popen[str]], object], *, status: int
) -> str:
    """Begin a scan, end it when it has written two more shards; what it told."""
    before = len(list(out.glob("shards/*.parquet")))
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while len(list(out.glob("shards/*.parquet"))) < before + 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    end(process)
    _, told = process.communicate(timeout=120)
    assert process.returncode == status, told
    return told


def kill_a_worker(process: subprocess.Popen[str]) -> None:
    workers = [
        child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())
    ]
    workers[-1].kill()


def test_what_has_changed_is_noticed(corpus: Path, scanned: Path, tmp_path: Path) -> None:
    same = [f"{corpus}/[ac].*", "--out", str(scanned), *READERS, "--part-rows", str(ROWS_EACH)]
    assert_one_line_of_trouble(scan_apart(*same, "--threshold", "0.5"), "alarm_threshold", "--restart")
    assert_one_line_of_trouble(scan_apart(*same[:-1], "9"), "--part-rows")
    assert_one_line_of_trouble(scan_apart(f"{corpus}/*", *same[1:]), "--field")
    assert_one_line_of_trouble(scan_apart(f"{corpus}/a.*", *same[1:]), "c.parquet is gone")
    assert_one_line_of_trouble(scan_apart("nowhere.jsonl", "--out", str(tmp_path / "x")), "nowhere.jsonl")
    assert_one_line_of_trouble(scan_apart(f"{corpus}/a.*", "--out", str(corpus)), "neither empty nor a batch")


def test_the_uncertain_band_goes_to_a_circle_within_a_budget_and_is_paid_once(
    corpus: Path, tmp_path: Path
) -> None:
    same = [
        *(str(corpus / "a.jsonl"), "--out", str(tmp_path / "out"), "--workers", "1", "--json", *READERS),
        *("--escalate", ",".join(TRIO), "--band", "0.2", "0.9"),
    ]
    assert_one_line_of_trouble(scan_apart(*same), "--escalate", "--budget-usd")
    with endpoint(opinion) as server:
        environment = {"OPENROUTER_API_KEY": "sk-test", "FIRECIRCLE_OPENROUTER_BASE_URL": server.base_url}
        short = scan_apart(*same, "--set", "budget_tokens=60000", **environment)
        assert short.status == 4, short.err
        first = json.loads(short.out)["escalation"]
        assert 0 < first["judged"] < first["rows"]
        assert first["tokens"] <= 60000
        assert "budget" in first["stopped"]
        whole = scan_apart(*same, "--set", "budget_tokens=10000000", **environment)
        assert whole.status == 0, whole.err
        escalation = json.loads(whole.out)["escalation"]
        assert escalation["judged"] == escalation["rows"]
        asked = [request.raw for request in server.requests]
        assert len(asked) == len(set(asked))
    rows = duckdb.sql(f"FROM '{tmp_path}/out/escalated.parquet'").fetchall()
    assert len(rows) == escalation["rows"]
    assert [row[3] for row in rows] == sorted((row[3] for row in rows), reverse=True)
    assert all(0.2 <= row[3] < 0.9 for row in rows)
