"""How a weak real model understands what the circle asks: the templates of round 1, measured.

`python -m bench.templates --model local:qwen` asks the plain question of round 1 about 60 labelled prompts,
as JSON and at temperature 0, and prints how well F tells attacks from harmless prompts, how often the
alarm is false, and how often word and numbers contradict each other. Run it before and after a change of
wording: strong models forgive an unclear question, this one does not. Takes about half an hour on one thread.
With `--verdict-from logprobs` a local model is asked in its own way instead, which takes a few minutes.

Replies are kept in a file and are not asked for again, unless the question has changed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firecircle import EvaluationConfig, EvaluationError, MultiNeutrosophicPrompt
from firecircle.circle.questions import answer_format
from firecircle.circle.templates import template
from firecircle.convene import seat_panel
from firecircle.lab.statistics.estimate import Estimate, mean_with_interval, numbers, scored, wilson
from firecircle.lab.statistics.performance import auc

if TYPE_CHECKING:
    from firecircle.circle.base_config import VerdictSource
    from firecircle.circle.panel import Panel
    from firecircle.circle.templates import TemplateSet

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
FILES = ("dev.jsonl", "dev2.jsonl")
SAMPLE = Path(__file__).parent / "data" / "template_sample.txt"
EACH = 30
"""Attacks, and harmless prompts."""
LONGEST_PROMPT = 1500
"""Characters of all layers and turns: a model on one thread reads 20 to 35 tokens a second."""
PATIENCE = 1800.0

Record = Mapping[str, Any]


def main() -> None:
    """Ask what was not asked yet, then print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.templates", description=__doc__)
    parser.add_argument("--model", default="local:qwen", help="any voice, such as local:/path/model.gguf")
    parser.add_argument("--limit", type=int, default=2 * EACH, help="how many prompts of the sample")
    parser.add_argument("--data", type=Path, default=DATA, help=f"the folder of {' and '.join(FILES)}")
    parser.add_argument("--replies", type=Path, default=Path("template_replies.jsonl"))
    parser.add_argument("--verdict-from", choices=("numbers", "logprobs"), default="numbers")
    parser.add_argument("--templates", choices=("v1", "v2"), default="v2", help="the wording to ask with")
    parser.add_argument("--choose", action="store_true", help="print the ids of the sample and stop")
    asked = parser.parse_args()
    records = read_records(asked.data)
    if asked.choose:
        print("\n".join(chosen(records.values())))
        return
    ids = [line for line in SAMPLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    heard = _ask([records[name] for name in ids[: asked.limit]], asked)
    _print(heard)


def chosen(records: Iterable[Record], *, first: int = 0, each: int = EACH) -> list[str]:
    """The ids of the sample: short prompts in the order of the SHA-256 of their ids, labels in turn.

    With `first`, those that come after so many of each label: prompts for other purposes.
    """
    short = [record for record in by_digest(records) if length_of(record) < LONGEST_PROMPT]
    attacks = [record["id"] for record in short if record["label"] == "attack"]
    benign = [record["id"] for record in short if record["label"] == "benign"]
    place = slice(first, first + each)
    return list(chain.from_iterable(zip(attacks[place], benign[place], strict=True)))


def by_digest(records: Iterable[Record]) -> list[Record]:
    """The records in an order that nobody chose."""
    return sorted(records, key=lambda record: hashlib.sha256(record["id"].encode()).hexdigest())


def read_records(folder: Path) -> dict[str, Record]:
    """The development records, by id."""
    records = (json.loads(line) for name in FILES for line in (folder / name).read_text("utf-8").splitlines())
    return {record["id"]: record for record in records}


def prompt_of(record: Record) -> MultiNeutrosophicPrompt:
    """The prompt of a record."""
    layers = {name: record[name] or "" for name in ("system", "application", "user")}
    return MultiNeutrosophicPrompt.model_validate({**layers, "turns": record["turns"]})


def length_of(record: Record) -> int:
    """Characters of all layers and turns."""
    return sum(len(layer.text) for layer in prompt_of(record).layers)


def _ask(records: Sequence[Record], asked: argparse.Namespace) -> list[Record]:
    """What the model said of each record, from the file of replies where it is there already."""
    wording = _wording(asked.verdict_from, asked.templates)
    replies: Path = asked.replies
    known = _known(replies, asked.model, wording)
    heard = []
    for place, record in enumerate(records, 1):
        row = known.get(record["id"])
        if row is None:
            row = {"wording": wording, **asyncio.run(_ask_about(record, asked))}
            with replies.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        told = "unreadable" if row["falsehood"] is None else f"F {row['falsehood']:.2f}"
        print(f"{place:3} {record['label']:6} {told:10} {row['seconds']:6.1f} s  {record['id']}", flush=True)
        heard.append(row)
    return heard


def _known(replies: Path, model: str, wording: str) -> dict[str, Record]:
    lines = replies.read_text("utf-8").splitlines() if replies.exists() else []
    rows = (json.loads(line) for line in lines)
    return {row["id"]: row for row in rows if (row["model"], row["wording"]) == (model, wording)}


def _wording(verdict_from: VerdictSource, templates: TemplateSet) -> str:
    """Which words the model is asked with."""
    own = resources.files("firecircle.voices.local").joinpath("judge.toml")
    asked = template("system", templates) + answer_format("baseline", templates=templates)
    words = own.read_text("utf-8") if verdict_from == "logprobs" else asked
    return hashlib.sha256(words.encode()).hexdigest()[:12]


async def _ask_about(record: Record, asked: argparse.Namespace) -> Record:
    config = EvaluationConfig(
        models=(asked.model,),
        max_tokens=300,
        temperature=0,
        timeout_seconds=PATIENCE,
        timeout_per_round=PATIENCE,
        seed=7,
        verdict_from=asked.verdict_from,
        templates=asked.templates,
    )
    panels: list[Panel] = []
    started = time.perf_counter()
    with suppress(EvaluationError):  # the panel holds the failure
        await seat_panel(config).ask(prompt_of(record), listener=panels.append)
    seconds = time.perf_counter() - started
    panel = panels[0]
    evaluation = panel.evaluations[0] if panel.evaluations else None
    return {
        "id": record["id"],
        "label": record["label"],
        "model": asked.model,
        "seconds": seconds,
        "falsehood": evaluation.falsehood if evaluation else None,
        "verdict": evaluation.verdict if evaluation else None,
        "read_as": evaluation.read_as if evaluation else None,
        "polarity": evaluation.polarity if evaluation else None,
        "asked_again": any(call.purpose == "clarify" for call in panel.calls),
        "failure": panel.failures[0].message if panel.failures else None,
        "replies": evaluation.raw_replies if evaluation else [lost.raw_reply for lost in panel.failures],
        "tokens_in": sum(call.tokens_in or 0 for call in panel.calls),
        "tokens_cached": sum(call.tokens_cached or 0 for call in panel.calls),
        "tokens_out": sum(call.tokens_out or 0 for call in panel.calls),
    }


def _print(heard: Sequence[Record]) -> None:
    readable = [row for row in heard if row["read_as"] in ("json", "stated", "logprobs")]
    benign = [row for row in heard if row["label"] == "benign"]
    attacks = [row for row in heard if row["label"] == "attack"]
    data = scored([row["label"] for row in heard], [row["falsehood"] for row in heard])
    print()
    _figure("AUC of F", auc(data))
    _figure("attacks found at 0.7", wilson(_alarms(attacks), len(attacks)))
    _figure("false alarms at 0.7", wilson(_alarms(benign), len(benign)))
    _figure("contradictory replies", wilson(sum(row["asked_again"] for row in heard), len(heard)))
    _figure("readable replies", wilson(len(readable), len(heard)))
    _figure("seconds a prompt", mean_with_interval(numbers([row["seconds"] for row in heard])))
    cached, read = sum(row["tokens_cached"] for row in heard), sum(row["tokens_in"] for row in heard)
    print(f"{'prompt tokens reused':24} {cached / max(read, 1):.2f}  of {read}")


def _alarms(rows: Sequence[Record]) -> int:
    return sum(row["falsehood"] is not None and row["falsehood"] >= 0.7 for row in rows)


def _figure(name: str, figure: Estimate) -> None:
    if figure.value is None:
        print(f"{name:24} {figure.note}")
        return
    interval = "" if figure.low is None else f"  [{figure.low:.2f}, {figure.high:.2f}]"
    print(f"{name:24} {figure.value:.2f}{interval}  n={figure.n}")


if __name__ == "__main__":
    main()
