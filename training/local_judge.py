"""Fit how a local model's log-odds become falsehood, for `voices/local/judge.toml`.

`python -m training.local_judge` asks the model about short development prompts that stand neither in the
sample of `bench.templates` nor among those its wording was chosen on, keeps the log-odds in a file, and
prints slope and offset of a logistic fit. Half of them are attacks, so that F is the
share of attacks among prompts of that score; where attacks are rarer it promises too much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.templates import DATA, EACH, FILES, Record, chosen, prompt_of, read_records
from firecircle.circle.questions import reply_schema
from firecircle.circle.voice import Turn
from firecircle.lab.statistics.estimate import scored
from firecircle.lab.statistics.performance import auc
from firecircle.voices.local import local_voice
from firecircle.voices.local.judge import raw_log_odds

WORDING_CHOSEN_ON = 20
"""Attacks, and as many harmless prompts, right after the sample: too kind to the wording to calibrate by."""
CALIBRATED_ON = 60
"""And as many after those."""
PATIENCE = 600.0


def main() -> None:
    """Ask and fit."""
    parser = argparse.ArgumentParser(description="Fit slope and offset of a local model's verdict.")
    parser.add_argument("--model", default="local:qwen")
    parser.add_argument(
        "--each", type=int, default=60, help="how many attacks, and how many harmless prompts"
    )
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder of {' and '.join(FILES)}")
    parser.add_argument("--answers", type=Path, default=Path("local_judge_answers.jsonl"))
    options = parser.parse_args()
    records = read_records(options.data)
    first = EACH + WORDING_CHOSEN_ON
    ids = chosen(records.values(), first=first, each=options.each)
    rows = _asked([records[name] for name in ids], options.model, options.answers)
    _print(rows)


def _asked(records: Sequence[Record], model: str, answers: Path) -> list[dict[str, Any]]:
    """The log-odds of each record, from the file where they stand there already."""
    lines = answers.read_text("utf-8").splitlines() if answers.exists() else []
    known = {row["id"]: row for row in map(json.loads, lines)}
    for record in records:
        if record["id"] not in known:
            known[record["id"]] = row = asyncio.run(_asked_about(record, model))
            with answers.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return [known[record["id"]] for record in records]


async def _asked_about(record: Record, model: str) -> dict[str, Any]:
    turn = Turn((), prompt_of(record), reply_schema=reply_schema("baseline"), max_tokens=1, temperature=0)
    started = time.perf_counter()
    reply = await local_voice(model).speak(turn._replace(attempt_seconds=PATIENCE))
    assert reply.violation_probability is not None
    return {
        "id": record["id"],
        "label": record["label"],
        "log_odds": raw_log_odds(reply.violation_probability, model),
        "seconds": time.perf_counter() - started,
        "tokens_in": reply.usage.tokens_in,
        "tokens_cached": reply.usage.tokens_cached,
    }


def _print(rows: Sequence[dict[str, Any]]) -> None:
    slope, offset = fitted([(row["log_odds"], row["label"] == "attack") for row in rows])
    values = [1 / (1 + math.exp(-slope * row["log_odds"] - offset)) for row in rows]
    benign = [value for value, row in zip(values, rows, strict=True) if row["label"] == "benign"]
    attacks = [value for value, row in zip(values, rows, strict=True) if row["label"] == "attack"]
    print(f"{len(rows)} prompts; AUC {auc(scored([row['label'] for row in rows], values))}")
    print(f"slope = {slope:.3f}\noffset = {offset:.3f}")
    print(f"at 0.7: attacks {_share(attacks)}, false alarms {_share(benign)}")
    read, reused = sum(row["tokens_in"] for row in rows), sum(row["tokens_cached"] for row in rows)
    seconds = sum(row["seconds"] for row in rows) / len(rows)
    print(f"{reused / read:.0%} of the tokens reused, {seconds:.1f} s a prompt")


def _share(values: Sequence[float]) -> str:
    return f"{sum(value >= 0.7 for value in values)} of {len(values)}"


def fitted(points: Iterable[tuple[float, bool]], steps: int = 50) -> tuple[float, float]:
    """Slope and offset of the logistic curve through these points, by Newton's method."""
    known = list(points)
    slope, offset = 0.0, 0.0
    for _ in range(steps):
        gradient, curvature = [0.0, 0.0], [[1e-6, 0.0], [0.0, 1e-6]]
        for x, is_attack in known:
            p = 1 / (1 + math.exp(-slope * x - offset))
            for i, left in enumerate((x, 1.0)):
                gradient[i] += left * (is_attack - p)
                for j, right in enumerate((x, 1.0)):
                    curvature[i][j] += left * right * p * (1 - p)
        (a, b), (c, d) = curvature
        determinant = a * d - b * c
        slope += (d * gradient[0] - b * gradient[1]) / determinant
        offset += (a * gradient[1] - c * gradient[0]) / determinant
    return slope, offset


if __name__ == "__main__":
    main()
