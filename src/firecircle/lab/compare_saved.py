"""Compare saved judgements: two batches by the ids of their prompts, or two circles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from firecircle.circle.panel import Panel
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.lab.pairing import Judged, PairedVerdicts, PromptPrint, pair_verdicts, prompt_differences
from firecircle.names import Label, is_attack, is_benign
from firecircle.shapes import Shape, Text
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.telling.safe_text import quoted_name
from firecircle.telling.words import counted
from firecircle.verdict import VerdictWord

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
