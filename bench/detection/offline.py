"""What the local model adds to the default circle: `python -m bench.detection.offline`.

Holds the lenses' circle over a set, by voices that never saw the source they judge, and where `--offline`
would ask `local:qwen`, the circle with the model too. That takes some seconds of a core for each prompt it is
asked about, so every judgement is written down at once and the same command goes on. `--most` takes so many
prompts of the set, at random and always the same; `--rounds 1` lets the model speak once, which is what
counts nearly always; `--set sealed` is an exam (see scored.toml). Judgements of other voices or settings
than today's are not noticed: name another file then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.detection.contenders import Contender
from bench.detection.run import CIRCLES, SETS
from bench.detection.seats import Seats, blind_seats, shipped
from bench.detection.tables import print_against, print_overview
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import FireCircleResult
from firecircle.circle.voice import Voice
from firecircle.convene import SeatedCircle
from firecircle.lab.datasets import Record, read_dataset
from firecircle.offline import MODEL, is_sure
from firecircle.voices.local import local_voice
from training.labelled import ALARM
from training.verdict import ROUNDS

PATIENCE = 600.0


def main() -> None:
    """Judge what was not judged yet, then print both circles."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.detection.offline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--set", choices=SETS, default="dev2")
    parser.add_argument("--most", type=int, help="how many prompts")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the circle with the model")
    parser.add_argument("--answers", type=Path, help="where judgements are kept, a file for set and rounds")
    options = parser.parse_args()
    answers = options.answers or Path(f"offline_{options.set}_{options.rounds}.jsonl")
    records = list(read_dataset(SETS[options.set]))
    random.Random(11).shuffle(records)
    records = records[: options.most]
    models = CIRCLES["circle with neural"]
    seats = shipped(records, models) if options.set == "sealed" else blind_seats(models)
    _print(records, _judged(records, seats, options.rounds, answers))


def _judged(records: Sequence[Record], seats: Seats, rounds: int, answers: Path) -> list[dict[str, Any]]:
    """What both circles say of each record, from the file where it stands there already."""
    lines = answers.read_text("utf-8").splitlines() if answers.exists() else []
    known = {row["id"]: row for row in map(json.loads, lines)}
    for record in records:
        if record.id not in known:
            known[record.id] = row = asyncio.run(_judged_twice(record, dict(seats[record.source]), rounds))
            with answers.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return [known[record.id] for record in records]


async def _judged_twice(record: Record, lenses: dict[str, Voice], rounds: int) -> dict[str, Any]:
    alone = await _held(record, lenses, ROUNDS)
    row: dict[str, Any] = {"id": record.id, "lenses": _highest(alone)}
    if not is_sure(alone):
        began = time.perf_counter()
        together = await _held(record, {**lenses, MODEL: local_voice(MODEL)}, rounds)
        said = [each for held in together.dialogue_history for each in held.evaluations]
        row["circle"] = _highest(together)
        row["model"] = [each.falsehood for each in said if each.model == MODEL]
        row["seconds"] = round(time.perf_counter() - began, 1)
    return row


async def _held(record: Record, voices: dict[str, Voice], rounds: int) -> FireCircleResult:
    config = FireCircleConfig.embedded(
        models=tuple(voices),
        max_rounds=rounds,
        seed=1,
        timeout_seconds=PATIENCE,
        timeout_per_round=PATIENCE,
    )
    return await SeatedCircle(config, voices).hold(record.prompt)


def _highest(result: FireCircleResult) -> float:
    assert result.consensus is not None
    return result.consensus.falsehood


def _print(records: Sequence[Record], rows: Sequence[dict[str, Any]]) -> None:
    seconds = [row["seconds"] for row in rows if "circle" in row]
    print(f"{MODEL} was asked about {len(seconds)} of {len(rows)} prompts, {sum(seconds):.0f} s in all")
    scores = {
        "lenses alone": [row["lenses"] for row in rows],
        "with the model's first word": [max([row["lenses"], *row.get("model", ())[:1]]) for row in rows],
        "with the model": [row.get("circle", row["lenses"]) for row in rows],
    }
    contenders = [Contender(name, each, [score >= ALARM for score in each]) for name, each in scores.items()]
    print_overview("all", records, contenders, lambda _: True)
    print_against(records, contenders[1:], contenders[0])


if __name__ == "__main__":
    main()
