"""What the study of docs/evidence.md shows: `python -m bench.evidence_figures RUN [RUN …]` reads its runs.

Beside each arm's verdict it looks at the language model alone, round by round: what talking does to it is
hidden in a verdict that is the highest F of all voices. Unfinished runs are read as far as they came.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from firecircle.lab.records import RunRecord, unpack_record
from firecircle.lab.statistics.comparison import Difference, compare
from firecircle.lab.statistics.dialogue import Opinions, excess_flips, flips
from firecircle.lab.statistics.estimate import Estimate, mean_with_interval, numbers, scored
from firecircle.lab.statistics.performance import auc, rates

Arms = dict[str, dict[str, RunRecord]]
"""By arm and by the id of the record."""


def main() -> None:
    """Print the figures of all arms on the records that every arm has judged."""
    parser = argparse.ArgumentParser(description="Print what a study with a local model shows.")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="the folder of a run")
    parser.add_argument("--voice", default="local:qwen", help="the voice to look at alone")
    parser.add_argument("--against", default="dialogue", help="the arm that others are compared with")
    options = parser.parse_args()
    arms = _judged(options.runs)
    for line in (*_verdicts(arms, options.against), "", *_of_one_voice(arms, options.voice, options.against)):
        print(line)


def _judged(runs: Sequence[Path]) -> Arms:
    arms: Arms = {}
    for run in runs:
        with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True) as journal:
            for (packed,) in journal.execute("SELECT record FROM records"):
                record = unpack_record(packed)
                if record.f is not None:
                    arms.setdefault(record.arm, {})[record.record_id] = record
    return arms


def _verdicts(arms: Arms, against: str) -> Iterator[str]:
    yield "verdicts: n, AUC, attacks found and false alarms at 0.7, cost; gain of AUC over round 1"
    for arm, records in arms.items():
        told = list(records.values())
        labels = [record.label for record in told]
        first, last = [record.round1_f for record in told], [record.f for record in told]
        at = rates(scored(labels, last), 0.7)
        tokens = np.mean([record.tokens_in + record.tokens_out for record in told])
        yield (
            f"{arm:12} {len(told):3}  AUC {_of(auc(scored(labels, last)))}  found {_of(at.recall)}"
            f"  false {_of(at.false_alarm_rate)}  {tokens:,.0f} tokens"
            f" {np.mean([record.calls for record in told]):.1f} calls"
            f"  round 1: {_by(compare(labels, last, first, 0.7).auc)}"
        )
    for arm, records in arms.items():
        shared = [name for name in records if name in arms[against]]
        if arm != against and shared:
            labels = [records[name].label for name in shared]
            ours, theirs = ([arms[which][name].f for name in shared] for which in (against, arm))
            pair = compare(labels, ours, theirs, 0.7)
            yield (
                f"{against} against {arm:12} n {len(shared)}  AUC {_by(pair.auc)}"
                f"  right only {against} {pair.right.only_first}, only {arm} {pair.right.only_second}"
            )


def _of_one_voice(arms: Arms, voice: str, against: str) -> Iterator[str]:
    yield f"{voice} alone: AUC and mean F of attacks and harmless prompts, by round"
    opinions = {arm: told for arm, records in arms.items() if (told := _opinions(records, voice))}
    for arm, told in opinions.items():
        for number, values in ((1, told.before), (2, told.after)):
            attack = np.array([label == "attack" for label in told.labels])
            yield (
                f"{arm:12} round {number}  AUC {_of(auc(scored(told.labels, values)))}"
                f"  attacks {_of(mean_with_interval(numbers(values[attack])))}"
                f"  harmless {_of(mean_with_interval(numbers(values[~attack])))}"
            )
        change = compare(told.labels, told.after, told.before, 0.7).auc
        moved = flips(told, 0.7)
        yield (
            f"{arm:12} round 2 against 1: AUC {_by(change)}; flips at 0.7 {_of(moved.flipped)},"
            f" raised {moved.raised} ({moved.rescued_attacks} attacks),"
            f" dropped {moved.dropped} ({moved.lost_attacks} attacks),"
            f" toward peers {moved.toward_peers}, away {moved.away_from_peers}; nearer to peers"
            f" {_of(_nearer(told))}"
        )
    for arm, told in opinions.items():
        if arm != against and against in opinions:
            more = excess_flips(opinions[against], told, 0.7)
            yield f"flips in {against} beyond {arm:12} {_of(more.excess)} ({more.pairs} pairs)"


def _opinions(records: dict[str, RunRecord], voice: str) -> Opinions | None:
    """The voice's first and second F on each record, and the mean first F of the others."""
    rows = []
    for name, record in records.items():
        own = {said.round_number: said.falsehood for said in record.voices if said.model == voice}
        others = [said.falsehood for said in record.voices if said.model != voice and said.round_number == 1]
        if 1 in own and 2 in own:
            rows.append((name, record.label, own[1], own[2], np.mean(others) if others else np.nan))
    if not rows:
        return None
    names, labels, before, after, peers = zip(*rows, strict=True)
    return Opinions(names, [voice] * len(names), labels, numbers(before), numbers(after), numbers(peers))


def _nearer(told: Opinions) -> Estimate:
    """In how many of the moves of at least 0.05 the voice came nearer to the mean of its peers."""
    assert told.peers is not None
    moved = (np.abs(told.after - told.before) >= 0.05) & np.isfinite(told.peers)
    nearer = np.abs(told.after - told.peers) < np.abs(told.before - told.peers)
    return mean_with_interval(numbers(nearer[moved]), "it never moved")


def _of(estimate: Estimate) -> str:
    if estimate.value is None:
        return estimate.note or "-"
    interval = "" if estimate.low is None else f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{interval}"


def _by(difference: Difference) -> str:
    return f"{_of(difference.difference)}"


if __name__ == "__main__":
    main()
