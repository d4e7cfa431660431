"""What people say of saved prompts: who is asked what next, and how well they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from firecircle.lab.statistics.estimate import Estimate
from firecircle.lab.statistics.labelling import Labelling, labelling
from firecircle.lab.statistics.voices import krippendorff_alpha
from firecircle.names import is_attack, is_benign
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary
from firecircle.thresholds import reaches

SECOND_READING = 4
"""Every so many prompts a person is given one that another has labelled, so that agreement is known."""
NEVER_READ = "no voice could read it"
LABELLED = "somebody else has labelled it"
WORTH = {"attack": 1.0, "unclear": 0.5, "benign": 0.0}
"""Labels as numbers: `unclear` is as far from one as from the other."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """The prompts that wait for a person, each with the reason, and what all labels tell so far."""

    waiting: tuple[tuple[CircleSummary, str], ...]
    raters: dict[str, int]
    """How many prompts each person labelled."""
    both: int
    """Prompts that at least two people labelled."""
    agreement: Estimate | None
    """Krippendorff's alpha; None where none can be computed."""
    labels: int
    """Prompts of the review that are labelled attack or benign."""
    threshold: Estimate | None
    effective: Estimate | None
    voices: int
    alarm_threshold: float

    def reason(self, circle_id: str) -> str | None:
        """Why a circle waits."""
        return next((reason for one, reason in self.waiting if one.id == circle_id), None)


def reviews(circles: CircleStore, rater: str = "") -> Reviews:
    """The queue of one person, with what all of them said."""
    listed, said = circles.to_review()
    rated = [one.said_by for one in listed if one.said_by]
    raters = Counter(name for by in rated for name in by)
    new = [one for one in listed if one.label is None and rater not in one.said_by]
    unread = [one for one in new if one.verdict == "unread" or one.falsehood is None]
    read = [one for one in listed if one.falsehood is not None and one.alarm_threshold is not None]
    known, voices, threshold = _known(read, said)
    gains = dict(zip((one.pk for one in read), known.gains if known else (), strict=True))
    ranked = sorted((one for one in new if one not in unread), key=lambda one: -gains.get(one.pk, 0.0))
    order = {one.pk: place for place, one in enumerate(read)}
    waiting = [(one, NEVER_READ) for one in unread]
    waiting += [(one, _reason(known, order[one.pk])) for one in ranked if known]
    again = [(one, LABELLED) for one in listed if rater and one.said_by and rater not in one.said_by]
    again.sort(
        key=lambda one: sha256(f"{rater} {one[0].id}".encode()).digest()
    )  # by chance, so that it is fair
    return Reviews(
        waiting=tuple(_alternate(waiting, again, raters[rater])),
        raters=dict(raters.most_common()),
        both=sum(len(by) > 1 for by in rated),
        agreement=_agreement(rated, list(raters)),
        labels=0 if known is None else known.threshold.n,
        threshold=known.threshold if known else None,
        effective=known.effective if known else None,
        voices=voices,
        alarm_threshold=threshold,
    )


def _known(
    read: Sequence[CircleSummary], said: dict[int, dict[str, float]]
) -> tuple[Labelling | None, int, float]:
    """What the labels tell of the newest circle's threshold and voices."""
    if not read:
        return None, 0, 0.0
    newest = max(read, key=lambda one: one.pk)
    threshold, voices = newest.alarm_threshold or 0.0, tuple(said[newest.pk])
    alarms = [
        [float(reaches(by[voice], threshold)) if voice in by else np.nan for voice in voices]
        for by in (said[one.pk] for one in read)
    ]
    attack = [1.0 if is_attack(one.label) else 0.0 if is_benign(one.label) else np.nan for one in read]
    falsehood = np.array([one.falsehood for one in read], dtype=np.float64)
    table = np.array(alarms, dtype=np.float64).reshape(len(read), len(voices))
    return labelling(falsehood, table, np.array(attack), threshold), len(voices), threshold


def _reason(known: Labelling, place: int) -> str:
    if known.about_voices[place] > known.about_threshold[place]:
        return "its label shows most about how independently the voices err"
    return "its label shows most about where the alarm threshold belongs"


def _alternate(
    new: list[tuple[CircleSummary, str]], again: list[tuple[CircleSummary, str]], done: int
) -> list[tuple[CircleSummary, str]]:
    """New prompts, and every so often one that has a label of another person."""
    queue: list[tuple[CircleSummary, str]] = []
    while new or again:
        is_second = again and (not new or (done + len(queue)) % SECOND_READING == SECOND_READING - 1)
        queue.append((again if is_second else new).pop(0))
    return queue


def _agreement(rated: Sequence[dict[str, tuple[str | None, str]]], raters: Sequence[str]) -> Estimate | None:
    numbers = [
        [WORTH.get((by[rater][0] or "") if rater in by else "", np.nan) for by in rated] for rater in raters
    ]
    if len(raters) < 2:
        return None
    try:
        return krippendorff_alpha(np.array(numbers, dtype=np.float64))
    except ModuleNotFoundError:  # its interval needs the extra `lab`
        return None
