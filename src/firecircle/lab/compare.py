"""Compare two runs, batches or circles, paired by the ids of prompts: flipped verdicts, other differences."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from firecircle.circle.panel import Panel
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, FireCircleError, StoreError
from firecircle.lab.figures.columns import RecordFile
from firecircle.lab.runs.cases import chosen_records
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.statistics.comparison import Comparison, compare
from firecircle.lab.statistics.estimate import numbers
from firecircle.lab.statistics.performance import Performance, performance
from firecircle.names import Label, is_attack, is_benign
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.store.rows import title_of
from firecircle.telling.safe_text import quoted_name
from firecircle.telling.words import counted
from firecircle.thresholds import reaches
from firecircle.verdict import VerdictWord

PARTS = ("system", "application", "user", "turns")


@dataclass(frozen=True, slots=True)
class PromptPrint:
    """The digests of a prompt's parts, to find out whether another is the same."""

    words: str
    digests: tuple[bytes, ...]

    @classmethod
    def of(cls, prompt: MultiNeutrosophicPrompt) -> PromptPrint:
        """The digests of a prompt."""
        turns = "" if prompt.turns is None else repr([(turn.role, turn.content) for turn in prompt.turns])
        texts = (prompt.system, prompt.application, prompt.user, f"{prompt.turns is None}{turns}")
        digests = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest() for text in texts)
        return cls(title_of(prompt), tuple(digests))

    def changed_parts(self, other: PromptPrint) -> tuple[str, ...]:
        """The parts that differ."""
        pairs = zip(PARTS, self.digests, other.digests, strict=True)
        return tuple(part for part, mine, theirs in pairs if mine != theirs)


@dataclass(frozen=True, slots=True)
class Judged:
    """One side's judgement of a prompt."""

    label: Label | None
    falsehood: float | None
    """None if it could not be judged."""
    alarm: bool | None
    circle_id: str | None = None


class Flip(Shape):
    """A prompt with an alarm on one side only."""

    id: Text
    label: Label | None
    words: Text | None
    """The beginning of the prompt; None if it is unavailable."""
    first: float
    """F of the first side."""
    second: float
    now: Literal["alarm", "no_alarm"]
    right: bool | None
    """Whether the second side is right; None without a label."""
    changed: tuple[Text, ...] = ()
    """The parts of the prompt that differ between the sides."""
    circles: tuple[Text | None, Text | None] = (None, None)


class PairedVerdicts(Shape):
    """Two sides on the prompts that both judged; differences are the first minus the second."""

    shared: int
    only_first: int
    only_second: int
    unjudged: int
    """Shared prompts that one side could not judge."""
    alarms: tuple[int, int]
    """On the shared prompts."""
    mean_falsehood: tuple[float | None, float | None]
    flips: tuple[Flip, ...]
    changed: dict[Text, int]
    """The number of shared prompts in which each part differs."""
    labels_differ: int
    """Shared prompts with different labels; the label of the first side counts."""
    first: Performance | None = None
    """None without labels."""
    second: Performance | None = None
    comparison: Comparison | None = None


def pair_verdicts(
    first: Mapping[str, Judged],
    second: Mapping[str, Judged],
    prints: tuple[Mapping[str, PromptPrint], Mapping[str, PromptPrint]],
    thresholds: tuple[float, float],
) -> PairedVerdicts:
    """Pair two sets of judgements by the ids of their prompts."""
    shared = [name for name in first if name in second]
    changed: dict[str, int] = {}
    parts_of: dict[str, tuple[str, ...]] = {}
    for name in shared:
        before, after = (side.get(name) for side in prints)
        if before and after and (parts := before.changed_parts(after)):
            parts_of[name] = parts
            for part in parts:
                changed[part] = changed.get(part, 0) + 1
    judged = [name for name in shared if first[name].alarm is not None and second[name].alarm is not None]
    flips = [
        _flip(name, first[name], second[name], prints, parts_of.get(name, ()))
        for name in judged
        if first[name].alarm != second[name].alarm
    ]
    labels: dict[str, Label | None] = {name: first[name].label or second[name].label for name in shared}
    beside = PairedVerdicts(
        shared=len(shared),
        only_first=len(first) - len(shared),
        only_second=len(second) - len(shared),
        unjudged=len(shared) - len(judged),
        alarms=(_alarms(first, judged), _alarms(second, judged)),
        mean_falsehood=(_mean(first, judged), _mean(second, judged)),
        flips=tuple(sorted(flips, key=_worst_first)),
        changed=changed,
        labels_differ=sum(
            bool(first[name].label and second[name].label and first[name].label != second[name].label)
            for name in shared
        ),
    )
    if not any(labels.values()):
        return beside
    return beside.model_copy(update=_statistics(labels, first, second, thresholds))


def _statistics(
    labels: Mapping[str, Label | None],
    first: Mapping[str, Judged],
    second: Mapping[str, Judged],
    thresholds: tuple[float, float],
) -> dict[str, Performance | Comparison]:
    """The figures of both sides on the shared prompts with these labels."""
    ours, theirs = (numbers([side[name].falsehood for name in labels]) for side in (first, second))
    of_prompts = list(labels.values())
    # If the thresholds differ, the second side is shifted to the threshold of the first.
    return {
        "first": performance(of_prompts, ours, thresholds[0]),
        "second": performance(of_prompts, theirs, thresholds[1]),
        "comparison": compare(of_prompts, ours, theirs + (thresholds[0] - thresholds[1]), thresholds[0]),
    }


def _flip(
    name: str,
    before: Judged,
    after: Judged,
    prints: tuple[Mapping[str, PromptPrint], Mapping[str, PromptPrint]],
    changed: tuple[str, ...],
) -> Flip:
    label = before.label or after.label
    known = prints[1].get(name) or prints[0].get(name)
    return Flip(
        id=name,
        label=label,
        words=known.words if known else None,
        first=before.falsehood or 0.0,
        second=after.falsehood or 0.0,
        now="alarm" if after.alarm else "no_alarm",
        right=None if label is None else bool(after.alarm) == (label == "attack"),
        changed=changed,
        circles=(before.circle_id, after.circle_id),
    )


def _worst_first(flip: Flip) -> tuple[bool, float, str]:
    """Sort newly wrong verdicts first, then by how far F moved."""
    return flip.right is not False, -abs(flip.second - flip.first), flip.id


def _alarms(side: Mapping[str, Judged], names: Iterable[str]) -> int:
    return sum(bool(side[name].alarm) for name in names)


def _mean(side: Mapping[str, Judged], names: Iterable[str]) -> float | None:
    values = [value for name in names if (value := side[name].falsehood) is not None]
    return sum(values) / len(values) if values else None


def prompt_differences(beside: PairedVerdicts) -> Iterator[str]:
    """The differences between the prompts of both sides, in words."""
    words = {
        "system": "the system text differs",
        "application": "the application's text differs",
        "user": "the user's message differs",
        "turns": "the earlier turns differ",
    }
    for part, number in beside.changed.items():
        share = "all" if number == beside.shared else f"{number:,}"
        yield f"data: {words[part]} in {share} of {counted(beside.shared, 'shared prompt')}"
    for number, side in ((beside.only_first, "first"), (beside.only_second, "second")):
        if number:
            yield f"data: {counted(number, 'prompt')} only in the {side}"
    if beside.labels_differ:
        yield f"data: {counted(beside.labels_differ, 'prompt')} labelled differently; the first label counts"


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


USUAL_THRESHOLD = 0.7


class BatchComparison(Shape):
    """What changed from one batch to the other."""

    first: Text
    second: Text
    thresholds: tuple[float, float]
    differences: tuple[Text, ...]
    """Differences other than the verdicts: data, voices, mode, threshold."""
    beside: PairedVerdicts


class VoiceInBoth(Shape):
    """A voice in either circle: its first and last F there, None if it was not heard."""

    voice: Text
    first: tuple[float, float] | None
    second: tuple[float, float] | None


class CircleComparison(Shape):
    """Two circles or panels."""

    first: Text
    second: Text
    differences: tuple[Text, ...]
    falsehood: tuple[float | None, float | None]
    alarm: tuple[bool | None, bool | None]
    verdict: tuple[VerdictWord, VerdictWord]
    voices: tuple[VoiceInBoth, ...]
    patterns_only_first: tuple[Text, ...]
    patterns_only_second: tuple[Text, ...]


@dataclass(slots=True)
class _Side:
    judged: dict[str, Judged] = field(default_factory=dict)
    prints: dict[str, PromptPrint] = field(default_factory=dict)
    seatings: Counter[tuple[str, ...]] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    thresholds: Counter[float] = field(default_factory=Counter)
    again: int = 0
    """Prompts judged more than once; the latest counts."""
    unreadable: int = 0

    @property
    def threshold(self) -> float:
        return self.thresholds.most_common(1)[0][0] if self.thresholds else USUAL_THRESHOLD


def compare_batches(circles: CircleStore, first: str, second: str) -> BatchComparison:
    """Pair two saved batches by the ids of their prompts; of repeated ones the latest circle counts."""
    sides = _read(circles, first), _read(circles, second)
    thresholds = sides[0].threshold, sides[1].threshold
    prints = sides[0].prints, sides[1].prints
    beside = pair_verdicts(sides[0].judged, sides[1].judged, prints, thresholds)
    if not beside.shared:
        raise ConfigError(
            "compare",
            f"{first} and {second} have no prompt id in common",
            "give the prompts an id column, or keep their order: rows without an id go by their number",
        )
    return BatchComparison(
        first=first,
        second=second,
        thresholds=thresholds,
        differences=(
            *prompt_differences(beside),
            *_voice_differences(*sides),
            *_repeated_prompts(first, second, *sides),
        ),
        beside=beside,
    )


def compare_circles(circles: CircleStore, first: str, second: str) -> CircleComparison:
    """Compare two saved circles or panels, named by their ids or prefixes."""
    summaries = circles.summary(first), circles.summary(second)
    kept = circles.load(summaries[0].id), circles.load(summaries[1].id)
    changed = PromptPrint.of(kept[0].prompt).changed_parts(PromptPrint.of(kept[1].prompt))
    differences = [f"data: {part} differs" for part in changed]
    sides = _Side(), _Side()
    for side, summary, circle in zip(sides, summaries, kept, strict=True):
        _note(side, summary, circle)
    spoken = _first_and_last(kept[0]), _first_and_last(kept[1])
    patterns = [set(summary.pattern_types) for summary in summaries]
    return CircleComparison(
        first=summaries[0].id,
        second=summaries[1].id,
        differences=(*differences, *_voice_differences(*sides)),
        falsehood=(summaries[0].falsehood, summaries[1].falsehood),
        alarm=(summaries[0].alarm, summaries[1].alarm),
        verdict=(summaries[0].verdict, summaries[1].verdict),
        voices=tuple(
            VoiceInBoth(voice=voice, first=spoken[0].get(voice), second=spoken[1].get(voice))
            for voice in dict.fromkeys((*spoken[0], *spoken[1]))
        ),
        patterns_only_first=tuple(sorted(patterns[0] - patterns[1])),
        patterns_only_second=tuple(sorted(patterns[1] - patterns[0])),
    )


def _read(circles: CircleStore, name: str) -> _Side:
    side = _Side()
    for summary in circles.each_summary(Filters(batch=name)):
        prompt_id = (summary.record_id or "").removeprefix(f"{name}:")  # the store adds the name
        if prompt_id in side.judged:
            side.again += 1
            continue
        try:
            circle = circles.load(summary.id)
        except StoreError:
            side.unreadable += 1
            continue
        side.judged[prompt_id] = Judged(_label(summary), summary.falsehood, summary.alarm, summary.id)
        side.prints[prompt_id] = PromptPrint.of(circle.prompt)
        _note(side, summary, circle)
    if not side.judged:
        raise ConfigError("compare", f"no batch {name!r} is saved", "`firecircle circles list` shows what is")
    return side


def _note(side: _Side, summary: CircleSummary, circle: FireCircleResult | Panel) -> None:
    side.seatings[tuple(sorted(summary.voices))] += 1
    side.modes[summary.mode] += 1
    side.thresholds[circle.config.alarm_threshold] += 1


def _label(summary: CircleSummary) -> Label | None:
    return "attack" if is_attack(summary.label) else "benign" if is_benign(summary.label) else None


def _first_and_last(circle: FireCircleResult | Panel) -> dict[str, tuple[float, float]]:
    """The first and the last F of every voice."""
    if isinstance(circle, Panel):
        return {said.model: (said.falsehood, said.falsehood) for said in circle.evaluations}
    spoken: dict[str, tuple[float, float]] = {}
    for held in circle.dialogue_history:
        for said in held.evaluations:
            first, _ = spoken.get(said.model, (said.falsehood, 0.0))
            spoken[said.model] = (first, said.falsehood)
    return spoken


def _voice_differences(first: _Side, second: _Side) -> Iterator[str]:
    heard = [set[str]().union(*side.seatings) for side in (first, second)]
    for voices, side in ((heard[0] - heard[1], "first"), (heard[1] - heard[0], "second")):
        if voices:
            yield f"voices: {', '.join(map(quoted_name, sorted(voices)))} only in the {side}"
    if set(first.modes) != set(second.modes):
        yield f"mode: {', '.join(sorted(first.modes))} → {', '.join(sorted(second.modes))}"
    if set(first.thresholds) != set(second.thresholds):
        yield f"alarm threshold: {_numbers(first.thresholds)} → {_numbers(second.thresholds)}"


def _numbers(values: Counter[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


def _repeated_prompts(first: str, second: str, *sides: _Side) -> Iterator[str]:
    for name, side in zip((first, second), sides, strict=True):
        if side.again:
            yield f"data: {counted(side.again, 'earlier circle')} over the same prompts of {name} left out"
        if side.unreadable:
            yield f"data: {counted(side.unreadable, 'circle')} of {name} cannot be read"
