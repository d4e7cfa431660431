"""Add the patterns of saved circles to the bank, each circle once.

Only circles with an alarm teach, and never one whose prompt is labelled benign: a pattern found there is a
mistake, and the bank would pass it to the cheap modes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.names import is_benign
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.store.bank.entries import NewSighting, content_of
from firecircle.store.finding import CircleSummary, Filters

if TYPE_CHECKING:
    from firecircle.store.bank.bank import Bank
    from firecircle.store.circles import CircleStore


@dataclass(slots=True)
class Learnt:
    """The progress of learning."""

    circles: int = 0
    """Circles that added patterns."""
    sightings: int = 0
    """Sightings that are new to the bank."""
    known: int = 0
    """Sightings that the bank had already."""
    benign: int = 0
    """Circles left out because their prompt is labelled benign."""
    unreadable: int = 0


def learn(bank: Bank, circles: CircleStore, filters: Filters) -> Iterator[Learnt]:
    """Add the patterns of every matching circle, once; yields the progress after each circle."""
    if filters.alarm is False or filters.mode not in (None, "fire_circle"):
        raise ConfigError("learn", "only circles that raised an alarm have something to teach")
    learnt = Learnt()
    for summary in circles.each_summary(filters.model_copy(update={"alarm": True, "mode": "fire_circle"})):
        if is_benign(summary.label):
            learnt.benign += 1
        else:
            _learn_from(bank, circles, summary, learnt)
        yield learnt


def attack_id_of(prompt: MultiNeutrosophicPrompt) -> str:
    """A name for an unnamed attack: the same for the same prompt every time."""
    return f"prompt-{hashlib.sha256(prompt.model_dump_json().encode()).hexdigest()[:12]}"


def _learn_from(bank: Bank, circles: CircleStore, summary: CircleSummary, learnt: Learnt) -> None:
    try:
        circle = circles.load(summary.id)
    except StoreError:
        learnt.unreadable += 1
        return
    if not isinstance(circle, FireCircleResult) or not circle.patterns:
        return
    learnt.circles += 1
    # label:attack must also find attack:TYPE.
    labels = dict.fromkeys((summary.label, (summary.label or "").partition(":")[0]))
    facts = [*(("label", label) for label in labels), ("run", summary.run_id)]
    tags = [f"{name}:{value}" for name, value in facts if value]
    for pattern in circle.patterns:
        content = content_of(pattern, attack_id_of(circle.prompt), summary.id, circle.started_at, tags)
        _, is_new = bank.add(NewSighting.load(dict(content)), pattern_type=pattern.pattern_type)
        learnt.sightings += is_new
        learnt.known += not is_new
