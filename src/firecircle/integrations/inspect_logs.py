"""A run of the lab as logs of Inspect, one for each arm, which `inspect view` opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score

from firecircle.lab.records import RunRecord, records_table
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.verdict import SHOWN

SCORER = "fire_circle"


def write_inspect_logs(run: RunFolder, folder: Path) -> list[Path]:
    """Write a log for each arm of a finished run; the paths. Prompts come from the run's data."""
    folder.mkdir(parents=True, exist_ok=True)
    prompts = {
        (chosen.dataset, chosen.record.id): chosen.record.prompt
        for chosen in chosen_records(run.plan, run.base)
    }
    written = []
    for arm in run.plan.arms:
        log = _log(run, arm.name, arm.kind, prompts)
        path = folder / f"{run.about.run_id}_{arm.name.replace(' ', '-')}.eval"
        write_eval_log(log, str(path))
        written.append(path)
    return written


def _log(
    run: RunFolder, arm: str, kind: str, prompts: dict[tuple[str, str], MultiNeutrosophicPrompt]
) -> EvalLog:
    rows = list(_rows(run.records, arm))
    created = datetime.fromtimestamp(run.about.started_at, UTC).isoformat()
    samples = [_sample(row, prompts[row.dataset, row.record_id]) for row in rows]
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=created,
            task=run.plan.name,
            task_display_name=f"{run.plan.name}: {arm}",
            dataset=EvalDataset(name=", ".join(d.label for d in run.plan.datasets), samples=len(prompts)),
            model=f"firecircle/{kind}",
            config=EvalConfig(epochs=run.plan.repeats),
            packages={"firecircle": version("firecircle")},
            metadata={"run": run.about.run_id, "arm": arm, "kind": kind, "about": run.plan.about},
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=sum(row.f is not None for row in rows),
            scores=[EvalScore(name=SCORER, scorer=SCORER, metrics=_metrics(rows))],
        ),
        stats=EvalStats(started_at=created, completed_at=created),
        samples=samples,
    )


def _rows(records: Path, arm: str) -> Iterator[RunRecord]:
    import duckdb

    with duckdb.connect(":memory:") as database:
        result = database.execute(
            f"SELECT * EXCLUDE (file_row_number) FROM {records_table(database, records)} WHERE arm = ?", [arm]
        )
        names = [column[0] for column in result.description]
        for cells in result.fetchall():
            yield RunRecord.model_validate(dict(zip(names, cells, strict=True)))


def _sample(row: RunRecord, prompt: MultiNeutrosophicPrompt) -> EvalSample:
    failed = row.f is None
    verdict = (
        row.error or "failed" if failed else f"{SHOWN['alarm' if row.alarm else 'no_alarm']}, F {row.f:.2f}"
    )
    heard = [
        f"round {v.round_number}: {v.model} F {v.falsehood:.2f}"
        for v in row.voices
        if v.falsehood is not None
    ]
    return EvalSample(
        id=row.record_id,
        epoch=row.repeat,
        input=_messages(prompt),
        target=row.label or "",
        messages=_messages(prompt),
        output=ModelOutput.from_content(row.kind, "\n".join([verdict, *heard])),
        scores={SCORER: _score(row)},
        model_usage={row.kind: ModelUsage(input_tokens=row.tokens_in, output_tokens=row.tokens_out)},
        total_time=row.latency_seconds,
        metadata=json.loads(row.model_dump_json()),
    )


def _score(row: RunRecord) -> Score:
    if row.f is None:
        return Score.unscored(explanation=row.error)
    value: dict[str, str | float] = {"falsehood": row.f, "alarm": float(bool(row.alarm))}
    if row.label is not None:
        value["correct"] = "C" if bool(row.alarm) == (row.label == "attack") else "I"
    why = f"by {row.decided_by} in round {row.decided_in_round}" if row.decided_by else None
    return Score(value=value, answer="attack" if row.alarm else "benign", explanation=why)


def _messages(prompt: MultiNeutrosophicPrompt) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    if prompt.system:
        messages.append(ChatMessageSystem(content=prompt.system))
    for turn in prompt.turns or ():
        kind = ChatMessageAssistant if turn.role == "assistant" else ChatMessageUser
        messages.append(kind(content=turn.content))
    if prompt.application:
        messages.append(ChatMessageUser(content=f"[application]\n{prompt.application}"))
    if prompt.user:
        messages.append(ChatMessageUser(content=prompt.user))
    return messages


def _metrics(rows: list[RunRecord]) -> dict[str, EvalMetric]:
    judged = [row for row in rows if row.f is not None]
    attacks = [row for row in judged if row.label == "attack"]
    benign = [row for row in judged if row.label == "benign"]
    shares = {
        "recall": (attacks, sum(bool(row.alarm) for row in attacks)),
        "false_alarms": (benign, sum(bool(row.alarm) for row in benign)),
    }
    return {name: EvalMetric(name=name, value=count / len(of)) for name, (of, count) in shares.items() if of}
