"""Compare two runs: the arms of the same name, on the prompts that both runs judged."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from firecircle.errors import ConfigError, FireCircleError
from firecircle.lab.figures.columns import RecordFile
from firecircle.lab.pairing import Judged, PairedVerdicts, PromptPrint, pair_verdicts, prompt_differences
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.shapes import Shape, Text
from firecircle.telling.safe_text import quoted_name
from firecircle.thresholds import reaches

LONGEST_VALUE = 60


class ArmInBothRuns(Shape):
    """An arm in both runs."""

    arm: Text
    beside: PairedVerdicts


class RunComparison(Shape):
    """What changed from one run to the other."""

    first: Text
    second: Text
    same_plan: bool
    thresholds: tuple[float, float]
    differences: tuple[Text, ...]
    """Differences other than the verdicts: data, plan, voices, version."""
    arms: tuple[ArmInBothRuns, ...]
    only_first: tuple[Text, ...]
    only_second: tuple[Text, ...]


def compare_runs(first: RunFolder, second: RunFolder) -> RunComparison:
    """Pair two finished runs by the ids of their records."""
    for run in (first, second):
        run.require_finished()
    files = RecordFile(first.records), RecordFile(second.records)
    names = files[0].arms(), files[1].arms()
    both = [name for name in names[0] if name in names[1]]
    if not both:
        raise ConfigError(
            "compare",
            (
                f"no arm is in both runs; the first has {', '.join(names[0])}, the second"
                f" {', '.join(names[1])}"
            ),
        )
    thresholds = first.plan.alarm_threshold, second.plan.alarm_threshold
    # One dataset each, under different names: the data was renamed, and the ids identify the prompts.
    by_id_alone = len(first.plan.datasets) == len(second.plan.datasets) == 1
    prints = _prints(first, by_id_alone), _prints(second, by_id_alone)
    arms: list[ArmInBothRuns] = []
    voices: list[str] = []
    for name in both:
        ours = _judgements(files[0], name, thresholds[0], by_id_alone)
        theirs = _judgements(files[1], name, thresholds[1], by_id_alone)
        arms.append(ArmInBothRuns(arm=name, beside=pair_verdicts(ours, theirs, prints, thresholds)))
        voices += _voices(
            name, *(frozenset(file.spoken(name, file.columns(name).records).voices) for file in files)
        )
    if not any(arm.beside.shared for arm in arms):
        raise ConfigError(
            "compare",
            "the runs have no prompt id in common",
            "give the prompts an id column, or keep their order: rows without an id go by their number",
        )
    return RunComparison(
        first=first.about.run_id,
        second=second.about.run_id,
        same_plan=first.about.digest == second.about.digest,
        thresholds=thresholds,
        differences=(
            *prompt_differences(arms[0].beside),
            *_unread(first, second, prints),
            *_plan_differences(first, second),
            *voices,
            *_version_differences(first, second),
        ),
        arms=tuple(arms),
        only_first=tuple(name for name in names[0] if name not in both),
        only_second=tuple(name for name in names[1] if name not in both),
    )


def _judgements(file: RecordFile, arm: str, threshold: float, by_id_alone: bool) -> dict[str, Judged]:
    columns = file.columns(arm)
    judged: dict[str, Judged] = {}
    for record, label, score in zip(columns.records, columns.labels, columns.verdict, strict=True):
        falsehood = None if math.isnan(score) else float(score)
        alarm = None if falsehood is None else reaches(falsehood, threshold)
        judged[_name(record, by_id_alone)] = Judged(label, falsehood, alarm)
    return judged


def _name(record: str, by_id_alone: bool) -> str:
    """The name that pairs a record. For an id made from the name of its file, the row."""
    dataset, _, name = record.partition("/")
    return name.removeprefix(f"{dataset}:") if by_id_alone else record


def _prints(run: RunFolder, by_id_alone: bool) -> Mapping[str, PromptPrint]:
    """The digests of a run's prompts; empty if the data is gone."""
    try:
        return {
            _name(f"{chosen.dataset}/{chosen.record.id}", by_id_alone): PromptPrint.of(chosen.record.prompt)
            for chosen in chosen_records(run.plan, run.base)
        }
    except FireCircleError:
        return {}


def _unread(
    first: RunFolder, second: RunFolder, prints: tuple[Mapping[str, PromptPrint], Mapping[str, PromptPrint]]
) -> Iterator[str]:
    fingerprints = [[dataset.fingerprint for dataset in run.about.census.datasets] for run in (first, second)]
    if fingerprints[0] != fingerprints[1] and not all(prints):
        yield "data: the datasets differ; one no longer exists, so the difference cannot be shown"


def _plan_differences(first: RunFolder, second: RunFolder) -> Iterator[str]:
    """The keys of the plans that differ, with both values; budget and concurrency change no figure."""
    ours, theirs = (
        dict(_flat(run.plan.model_dump(mode="json", exclude={"budget", "concurrency", "name", "about"})))
        for run in (first, second)
    )
    for key in dict.fromkeys((*ours, *theirs)):
        before, after = ours.get(key), theirs.get(key)
        if before != after and not key.endswith((".path", ".system", ".application")):
            yield f"plan: {key} {_value(before)} → {_value(after)}"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for place, part in enumerate(value, 1):
            yield from _flat(part, f"{name}.{part.get('name') or place}")
    else:
        yield name, value


def _value(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= LONGEST_VALUE else f"{written[: LONGEST_VALUE - 1]}…"


def _voices(arm: str, first: frozenset[str], second: frozenset[str]) -> Iterator[str]:
    for voices, side in ((first - second, "first"), (second - first, "second")):
        if voices:
            names = ", ".join(map(quoted_name, sorted(voices)))
            yield f"voices: {quoted_name(arm)} has {names} only in the {side}"


def _version_differences(first: RunFolder, second: RunFolder) -> Iterator[str]:
    ours, theirs = first.about.versions, second.about.versions
    for package in dict.fromkeys((*ours, *theirs)):
        if ours.get(package) != theirs.get(package):
            yield f"version: {package} {ours.get(package, '–')} → {theirs.get(package, '–')}"
