"""Blind spots: what voices missed in round 1 and found after discussion.

Computed from the saved circles and grouped by pattern; a prompt counts once however often it was judged. A
voice overlooked a pattern if it supported it with a quote later, but in round 1 was below the alarm threshold
and named neither the words nor the type. If it named them, it underrated the pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firecircle.circle.result import FireCircleResult
from firecircle.errors import StoreError
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation
from firecircle.names import is_attack, is_benign
from firecircle.shapes import Shape, Text
from firecircle.store.bank.bank import GUIDED_TYPES, attack_id_of, author_text, judge_text
from firecircle.store.finding import CircleSummary, Filters
from firecircle.thresholds import reaches

if TYPE_CHECKING:
    from firecircle.store.circles import CircleStore

MOST_QUOTES = 8
"""Quotes shown per group: the first of different prompts."""
MOST_DESCRIPTIONS = 200
"""Descriptions counted per group to find the usual one; models rarely repeat one."""
MOST_MISSED = 20
"""Number of missed attacks listed by circle id."""


class ByLabel(Shape):
    """A count, and the labels of the counted prompts."""

    total: int = 0
    attacks: int = 0
    benign: int = 0

    def plus(self, label: str | None) -> ByLabel:
        """Add one prompt with this label."""
        return ByLabel(
            total=self.total + 1,
            attacks=self.attacks + is_attack(label),
            benign=self.benign + is_benign(label),
        )

    @property
    def unlabelled(self) -> int:
        """Prompts without an attack or benign label."""
        return self.total - self.attacks - self.benign


class ShownBy(Shape):
    """Words of a prompt that show an overlooked pattern, and their circle."""

    quote: Text
    circle_id: Text


class Blindspot(Shape):
    """A pattern that voices missed in round 1; counts are of different prompts."""

    pattern_type: Text
    overlooked: ByLabel
    """Prompts in which a voice saw it only after discussion."""
    underrated: ByLabel
    """Prompts whose verdict changed, and in which voices had named it in round 1 without an alarm."""
    unnoticed: ByLabel
    """Overlooked prompts in which no voice had named it in round 1."""
    turned: ByLabel
    """Overlooked prompts in which round 1 raised no alarm and the dialogue did."""
    voices: dict[Text, int]
    """Number of prompts in which each voice overlooked it, highest first."""
    layers: dict[Text, int]
    """Number of prompts with the pattern in each layer, highest first."""
    quotes: tuple[ShownBy, ...] = ()
    for_author: Text | None = None
    """What a system prompt could say against it, in our words; None for an untyped pattern."""
    for_judge: Text | None = None
    """What a single-pass judge's prompt could add, in our words; None for an untyped pattern."""


class Blindspots(Shape):
    """What round 1 missed and the dialogue found, over all circles."""

    circles: ByLabel = ByLabel()
    turned: ByLabel = ByLabel()
    """Different prompts for which round 1 raised no alarm and the dialogue did."""
    missed: int = 0
    """Circles on prompts labelled attack that raised no alarm in any round."""
    missed_in: tuple[Text, ...] = ()
    """The ids of the first of these circles."""
    unreadable: int = 0
    groups: tuple[Blindspot, ...] = ()
    """From labelled prompts, those that changed the verdict on most attacks first."""
    unlabelled: tuple[Blindspot, ...] = ()
    """From prompts without a label, where it is unknown whether the discussion was right."""

    @property
    def nothing_overlooked(self) -> bool:
        """Whether no matching circle shows anything overlooked or missed."""
        return not (self.groups or self.unlabelled or self.turned.total or self.missed or self.unreadable)


@dataclass(slots=True)
class _Group:
    """The data on one pattern: its prompts by digest, and their labels."""

    labels: dict[str, str | None] = field(default_factory=dict)
    overlooked: set[str] = field(default_factory=set)
    underrated: set[str] = field(default_factory=set)
    unnoticed: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)
    voices: dict[str, set[str]] = field(default_factory=dict)
    layers: dict[str, set[str]] = field(default_factory=dict)
    quotes: dict[str, ShownBy] = field(default_factory=dict)
    descriptions: Counter[str] = field(default_factory=Counter)

    def add(self, prompt: str, label: str | None, spot: _Spot, circle_id: str, *, turned: bool) -> None:
        self.labels.setdefault(prompt, label)
        (self.underrated if spot.pointed_at else self.overlooked).add(prompt)
        if not spot.pointed_at:
            self.voices.setdefault(spot.voice, set()).add(prompt)
        if not spot.seen_by_any:
            self.unnoticed.add(prompt)
        if turned:
            self.turned.add(prompt)
        self.layers.setdefault(spot.quote.layer, set()).add(prompt)
        if spot.description in self.descriptions or len(self.descriptions) < MOST_DESCRIPTIONS:
            self.descriptions[spot.description] += 1
        if len(self.quotes) < MOST_QUOTES:
            self.quotes.setdefault(prompt, ShownBy(quote=spot.quote.text, circle_id=circle_id))

    def counted(self, prompts: Collection[str]) -> ByLabel:
        count = ByLabel()
        for prompt in prompts:
            count = count.plus(self.labels[prompt])
        return count


@dataclass(frozen=True, slots=True)
class _Spot:
    """An observation of a later round, and what the voices said about it in round 1."""

    pattern_type: str
    voice: str
    description: str
    quote: GroundedQuote
    pointed_at: bool
    """Its voice had named it in round 1, below the threshold."""
    seen_by_any: bool


def find_blindspots(
    circles: CircleStore,
    filters: Filters | None = None,
    *,
    threshold: float | None = None,
    on_circle: Callable[[int], None] | None = None,
) -> Blindspots:
    """Read every matching circle; `threshold` replaces each circle's own alarm threshold.

    A prompt judged several times counts once. `on_circle` receives the number of circles read so far.
    """
    chosen = (filters or Filters()).model_copy(update={"mode": "fire_circle"})
    read = ByLabel()
    turned: dict[str, str | None] = {}
    missed: list[str] = []
    unreadable = 0
    labelled: dict[str, _Group] = {}
    unlabelled: dict[str, _Group] = {}
    for number, summary in enumerate(circles.each_summary(chosen), start=1):
        if on_circle:
            on_circle(number)
        if _was_missed(summary, threshold):
            missed.append(summary.id)
        # Only a circle that agreed on a pattern, or moved after round 1, is worth reading.
        if summary.falsehood is not None and not (
            summary.pattern_types or summary.falsehood != summary.round1_falsehood
        ):
            read = read.plus(summary.label)
            continue
        try:
            circle = circles.load(summary.id)
        except StoreError:
            unreadable += 1
            continue
        if not isinstance(circle, FireCircleResult) or circle.consensus is None:
            continue
        read = read.plus(summary.label)
        alarm_from = circle.config.alarm_threshold if threshold is None else threshold
        prompt = attack_id_of(circle.prompt)
        has_turned = _has_turned(circle, alarm_from)
        if has_turned:
            turned.setdefault(prompt, summary.label)
        is_labelled = is_attack(summary.label) or is_benign(summary.label)
        groups = labelled if is_labelled else unlabelled
        for spot in _spots(circle, alarm_from, whole=has_turned):
            if chosen.pattern in (None, spot.pattern_type):
                group = groups.setdefault(spot.pattern_type, _Group())
                group.add(prompt, summary.label, spot, summary.id, turned=has_turned)
    count = ByLabel()
    for label in turned.values():
        count = count.plus(label)
    return Blindspots(
        circles=read,
        turned=count,
        missed=len(missed),
        missed_in=tuple(missed[:MOST_MISSED]),
        unreadable=unreadable,
        groups=_sort(labelled),
        unlabelled=_sort(unlabelled),
    )


def _was_missed(summary: CircleSummary, threshold: float | None) -> bool:
    if not is_attack(summary.label) or summary.falsehood is None:
        return False
    return summary.alarm is False if threshold is None else not reaches(summary.falsehood, threshold)


def _has_turned(circle: FireCircleResult, threshold: float) -> bool:
    first, all_rounds = (circle.rival_verdicts.get(rule) for rule in ("round1_max", "max_all"))
    return bool(
        first and all_rounds and not reaches(first.value, threshold) and reaches(all_rounds.value, threshold)
    )


def _spots(circle: FireCircleResult, threshold: float, *, whole: bool) -> Iterator[_Spot]:
    """Quotes that a voice below the threshold in round 1 used after discussion.

    All quotes if the dialogue changed the verdict, because a single voice may have been the cause. Otherwise
    only those of agreed patterns that the voice had not named in round 1.
    """
    alone = {evaluation.model: evaluation for evaluation in circle.dialogue_history[0].evaluations}
    for seen in circle.observations:
        own = alone.get(seen.model) if seen.round_number > 1 else None
        if own is None or reaches(own.falsehood, threshold) or seen.left_out == "voice_not_active":
            continue
        if seen.left_out and not whole:
            continue
        for quote in seen.grounded:
            pointed_at = _pointed_at(own, seen.pattern_type, quote.text)
            if pointed_at and not whole:
                continue
            others = (
                evaluation
                for evaluation in alone.values()
                if evaluation.model in circle.active_models and evaluation is not own
            )
            seen_by_any = pointed_at or any(
                _pointed_at(evaluation, seen.pattern_type, quote.text) for evaluation in others
            )
            yield _Spot(seen.pattern_type, seen.model, seen.description, quote, pointed_at, seen_by_any)


def _pointed_at(evaluation: NeutrosophicEvaluation, pattern_type: str, quote: str) -> bool:
    """Whether a voice's first reply contains the quote or names the type."""
    if any(note.type == pattern_type for note in evaluation.pattern_notes):
        return True
    words = " ".join(
        (evaluation.reasoning, *(note.quote or "" for note in evaluation.pattern_notes))
    ).casefold()
    folded = " ".join(quote.casefold().split())
    return folded in " ".join(words.split())


def _sort(groups: Mapping[str, _Group]) -> tuple[Blindspot, ...]:
    """By attacks whose verdict changed, then by prompts that overlooked it; benign-only ones last."""
    spots = [_blindspot(pattern_type, group) for pattern_type, group in groups.items()]

    def rank(spot: Blindspot) -> tuple[object, ...]:
        harmful = [count.total - count.benign for count in (spot.turned, spot.overlooked, spot.underrated)]
        return (*(-number for number in harmful), spot.pattern_type)

    return tuple(sorted(spots, key=rank))


def _blindspot(pattern_type: str, group: _Group) -> Blindspot:
    layers = _counts(group.layers)
    usual = group.descriptions.most_common(1)[0][0]
    proposed = pattern_type in GUIDED_TYPES and any(not is_benign(label) for label in group.labels.values())
    return Blindspot(
        pattern_type=pattern_type,
        overlooked=group.counted(group.overlooked),
        underrated=group.counted(group.underrated - group.overlooked),
        unnoticed=group.counted(group.unnoticed),
        turned=group.counted(group.turned),
        voices=_counts(group.voices),
        layers=layers,
        quotes=tuple(group.quotes.values()),
        for_author=author_text(pattern_type) if proposed else None,
        for_judge=judge_text(pattern_type, next(iter(layers)), usual) if proposed else None,
    )


def _counts(prompts: Mapping[str, Collection[str]]) -> dict[str, int]:
    ordered = sorted(prompts.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: len(of_name) for name, of_name in ordered}
