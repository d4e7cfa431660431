"""Blind spots: what voices overlooked when they judged alone and found once they talked.

Read from the circles that are kept, one after another. A voice overlooked a pattern in round 1 when it
grounded it later but at first neither reached the alarm threshold nor pointed at the same words or type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firecircle.circle.result import FireCircleResult, Observation
from firecircle.errors import StoreError
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation
from firecircle.shapes import Shape, Text
from firecircle.store.bank.guidance import GUIDED_TYPES, addition_text
from firecircle.store.finding import CircleSummary, Filters, is_attack, is_benign
from firecircle.thresholds import reaches

if TYPE_CHECKING:
    from firecircle.store.circles import CircleStore

MOST_QUOTES = 8
"""Quotes kept for each group: the first of different circles."""
MOST_DESCRIPTIONS = 200
"""Wordings counted for each group, to know which is usual; models rarely use one twice."""


class ByLabel(Shape):
    """A count of circles, and what their labels say they were."""

    circles: int = 0
    attacks: int = 0
    benign: int = 0

    def plus(self, label: str | None) -> ByLabel:
        """One circle more."""
        return ByLabel(
            circles=self.circles + 1,
            attacks=self.attacks + is_attack(label),
            benign=self.benign + is_benign(label),
        )


class ShownBy(Shape):
    """Words of a prompt that show what was overlooked, and the circle they are from."""

    quote: Text
    circle_id: Text


class Blindspot(Shape):
    """What one voice overlooked in one layer, and found in the dialogue."""

    pattern_type: Text
    voice: Text
    layer: Text
    overlooked: ByLabel
    """Circles in which this voice saw it only after talking."""
    unnoticed: ByLabel
    """Those of them in which nobody had pointed at it in round 1."""
    turned: ByLabel
    """Those of them in which round 1 as a whole raised no alarm and the dialogue did."""
    quotes: tuple[ShownBy, ...] = ()
    addition: Text | None = None
    """What a single-pass prompt could say in addition, in our words; none for what has no type."""


class Blindspots(Shape):
    """What round 1 overlooked and the dialogue found, over all circles that were read."""

    circles: ByLabel = ByLabel()
    turned: ByLabel = ByLabel()
    """Circles in which round 1 raised no alarm and the dialogue did."""
    unreadable: int = 0
    groups: tuple[Blindspot, ...] = ()
    """The most often overlooked first."""


_NONE = ByLabel()


@dataclass(slots=True)
class _Group:
    overlooked: ByLabel = _NONE
    unnoticed: ByLabel = _NONE
    turned: ByLabel = _NONE
    quotes: list[ShownBy] = field(default_factory=list)
    descriptions: dict[str, int] = field(default_factory=dict)


def find_blindspots(
    circles: CircleStore,
    filters: Filters | None = None,
    *,
    threshold: float | None = None,
    on_circle: Callable[[int], None] | None = None,
) -> Blindspots:
    """Read every circle that matches; `threshold` replaces each circle's own alarm threshold.

    `on_circle` is called with how many have been looked at.
    """
    chosen = (filters or Filters()).model_copy(update={"mode": "fire_circle"})
    read = turned = ByLabel()
    unreadable = 0
    groups: dict[tuple[str, str, str], _Group] = {}
    for number, summary in enumerate(circles.each_summary(chosen), start=1):
        if on_circle:
            on_circle(number)
        if summary.falsehood is not None and not _may_hold_any(summary):
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
        has_turned = _has_turned(circle, alarm_from)
        turned = turned.plus(summary.label) if has_turned else turned
        seen_here: set[tuple[str, str, str]] = set()
        for spot, quote, unnoticed in _overlooked(circle, alarm_from, whole=has_turned):
            if chosen.pattern not in (None, spot.pattern_type):
                continue
            key = (spot.pattern_type, spot.model, quote.layer)
            group = groups.setdefault(key, _Group())
            if key in seen_here:
                continue
            seen_here.add(key)
            group.overlooked = group.overlooked.plus(summary.label)
            group.unnoticed = group.unnoticed.plus(summary.label) if unnoticed else group.unnoticed
            group.turned = group.turned.plus(summary.label) if has_turned else group.turned
            if spot.description in group.descriptions or len(group.descriptions) < MOST_DESCRIPTIONS:
                group.descriptions[spot.description] = group.descriptions.get(spot.description, 0) + 1
            if len(group.quotes) < MOST_QUOTES:
                group.quotes.append(ShownBy(quote=quote.text, circle_id=summary.id))
    blindspots = [_blindspot(*key, group) for key, group in groups.items()]
    blindspots.sort(
        key=lambda spot: (-spot.turned.circles, -spot.overlooked.circles, spot.pattern_type, spot.voice)
    )
    return Blindspots(circles=read, turned=turned, unreadable=unreadable, groups=tuple(blindspots))


def _may_hold_any(summary: CircleSummary) -> bool:
    """Whether a circle is worth reading: it agreed on a pattern, or its alarm rose after round 1."""
    return bool(summary.pattern_types) or summary.falsehood != summary.round1_falsehood


def _has_turned(circle: FireCircleResult, threshold: float) -> bool:
    first, all_rounds = (circle.rival_verdicts.get(rule) for rule in ("round1_max", "max_all"))
    return bool(
        first and all_rounds and not reaches(first.value, threshold) and reaches(all_rounds.value, threshold)
    )


def _overlooked(
    circle: FireCircleResult, threshold: float, *, whole: bool
) -> Iterator[tuple[Observation, GroundedQuote, bool]]:
    """Each observation that its voice made only after talking, and whether nobody had seen it before.

    Of the whole circle, when the dialogue turned it: a single voice that was right may have turned it. Else
    only what enough voices agreed on.
    """
    alone = {evaluation.model: evaluation for evaluation in circle.dialogue_history[0].evaluations}
    for spot in circle.observations:
        own = alone.get(spot.model)
        if own is None or reaches(own.falsehood, threshold) or spot.left_out == "voice_not_active":
            continue
        if spot.left_out and not whole:
            continue
        for quote in spot.grounded:
            if not _pointed_at(own, spot.pattern_type, quote.text):
                others = (
                    evaluation
                    for evaluation in alone.values()
                    if evaluation.model in circle.active_models and evaluation is not own
                )
                seen = any(_pointed_at(evaluation, spot.pattern_type, quote.text) for evaluation in others)
                yield spot, quote, not seen


def _pointed_at(evaluation: NeutrosophicEvaluation, pattern_type: str, quote: str) -> bool:
    """Whether a voice's first words hold the quote or name the type."""
    if any(note.type == pattern_type for note in evaluation.pattern_notes):
        return True
    words = " ".join(
        (evaluation.reasoning, *(note.quote or "" for note in evaluation.pattern_notes))
    ).casefold()
    folded = " ".join(quote.casefold().split())
    return folded in " ".join(words.split())


def _blindspot(pattern_type: str, voice: str, layer: str, group: _Group) -> Blindspot:
    usual = max(group.descriptions, key=group.descriptions.__getitem__)
    return Blindspot(
        pattern_type=pattern_type,
        voice=voice,
        layer=layer,
        overlooked=group.overlooked,
        unnoticed=group.unnoticed,
        turned=group.turned,
        quotes=tuple(group.quotes),
        addition=addition_text(pattern_type, layer, usual) if pattern_type in GUIDED_TYPES else None,
    )
