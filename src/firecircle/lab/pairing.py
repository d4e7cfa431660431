"""Compare two sets of judgements, paired by the ids of prompts: flipped verdicts and other differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from firecircle.lab.statistics import Comparison, Performance, compare, performance
from firecircle.lab.statistics.estimate import numbers
from firecircle.names import Label
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.store.rows import title_of
from firecircle.telling.words import counted

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
