"""What the turns of a conversation add up to: one verdict, and the turn at which an alarm was due."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from firecircle.circle.deliberation import TwoReadings
from firecircle.circle.result import Accounting
from firecircle.conversation.evidence import CheckedClaim, ReplyReading
from firecircle.shapes import Shape, Text, Unit
from firecircle.thresholds import reaches
from firecircle.verdict import UNSURE_SHARE, VerdictWord
from firecircle.voices.embedded.language.prompt_reading import content
from firecircle.voices.embedded.lenses.findings import log_odds, probability

JudgedBy = Literal["screen", "circle"]


class ArcStrengths(NamedTuple):
    """How single turns weigh in a whole conversation, as `bench.conversations` chose them."""

    looks: float = 0.6  # log-odds lost, times the logarithm of the number of turns
    support: float = 1.0  # the share of an earlier suspicious turn's log-odds that a later one gains
    most_support: float = 2.0


STRENGTHS = ArcStrengths()
SUSPICIOUS = 0.35
"""Half of the usual threshold: from here on a turn is unsure, and supports later ones."""
FEW_STEPS = 2
"""So many harmless steps on the same subject before the due turn make a ladder."""


class TurnReading(Shape):
    """One turn of the user: its verdict, and where the conversation is after it."""

    number: int
    """Which turn of the user, from 1."""
    digest: Text
    """Of the turn and everything before it: the same digest means the same question."""
    said: Text
    verdict: VerdictWord
    truth: Unit | None = None
    indeterminacy: Unit | None = None
    falsehood: Unit | None = None
    balance: float | None = None
    trust: Unit
    """The moving average of trust after this turn."""
    trajectory: Text
    """Where trust is heading, and what kind of exchange the turn is."""
    arc: Unit | None = None
    """The falsehood of the conversation up to here, from this turn and the suspicious ones before it."""
    judged_by: JudgedBy = "circle"
    """`screen`: the embedded readers were sure, so that no hosted voice was asked."""
    readings: TwoReadings | None = None
    """For those present and from the empty chair."""
    patterns: tuple[Text, ...] = ()
    quote: Text = ""
    """The words that decided."""
    claims: tuple[CheckedClaim, ...] = ()
    reply: ReplyReading
    error: Text | None = None
    kept_as: Text | None = None


class Escalation(Shape):
    """Steps that are harmless one by one and lead to the due turn."""

    steps: tuple[int, ...]
    """The turns before the due one that are on its subject and gave no alarm."""
    alone: Unit | None = None
    """The falsehood of the due turn without any earlier turn, by the screening readers."""


class Conversation(Shape):
    """The judgement of a whole conversation."""

    name: Text = ""
    system: Text = ""
    verdict: VerdictWord
    falsehood: Unit | None = None
    """The highest of the arc; it decides."""
    alarm_threshold: Unit
    due_turn: int | None = None
    """The first turn at which an alarm was due; None without an alarm."""
    escalation: Escalation | None = None
    turns: tuple[TurnReading, ...]
    trust: Unit
    trajectory: Text
    models: tuple[Text, ...] = ()
    circles: int = 0
    """Turns for which the named voices were asked."""
    accounting: Accounting = Accounting()
    advisories: tuple[Text, ...] = Field(default=())

    @property
    def alarm(self) -> bool:
        """Whether the verdict is `alarm`."""
        return self.verdict == "alarm"

    @property
    def given_away(self) -> tuple[TurnReading, ...]:
        """The turns up to the due one in which the assistant complied or gave something away."""
        last = self.due_turn or len(self.turns)
        return tuple(turn for turn in self.turns[:last] if turn.reply.disclosures)


def arc_of(falsehoods: Sequence[float | None]) -> tuple[float | None, ...]:
    """For each turn the falsehood of the conversation up to it.

    A turn loses log-odds for how many turns the conversation has, since of many some look odd by chance, and
    gains some of those that earlier suspicious turns have.
    """
    toll = STRENGTHS.looks * math.log(max(1, len(falsehoods)))
    arc: list[float | None] = []
    support = 0.0
    for falsehood in falsehoods:
        if falsehood is None:
            arc.append(None)
            continue
        odds = log_odds(falsehood)
        gained = support if odds > log_odds(SUSPICIOUS) else 0.0
        arc.append(round(probability(odds - toll + gained), 4))
        if odds > log_odds(SUSPICIOUS):
            support = min(STRENGTHS.most_support, support + STRENGTHS.support * (odds - log_odds(SUSPICIOUS)))
    return tuple(arc)


def verdict_of_arc(
    turns: Sequence[TurnReading], threshold: float
) -> tuple[VerdictWord, float | None, int | None]:
    """The verdict, the number that decides, and the first turn at which an alarm was due."""
    values = [turn.arc for turn in turns if turn.arc is not None]
    if not values:
        return "no_verdict", None, None
    highest = max(values)
    if reaches(highest, threshold):
        due = next(turn.number for turn in turns if turn.arc is not None and reaches(turn.arc, threshold))
        return "alarm", highest, due
    if any(turn.verdict == "unread" for turn in turns):
        return "unread", highest, None
    doubtful = reaches(highest, UNSURE_SHARE * threshold)
    return ("unsure" if doubtful else "no_alarm"), highest, None


def escalation_to(
    due: int, turns: Sequence[TurnReading], said: Sequence[str], alone: float | None
) -> Escalation | None:
    """The ladder to the due turn, if there is one: earlier turns without an alarm that lead to its subject.

    `said` has the words of each turn with their answer. A step shares words with the due turn or with a later
    step.
    """
    subject = content(said[due - 1])
    steps = []
    for turn in reversed(turns[: due - 1]):
        words = content(said[turn.number - 1])
        if turn.verdict != "alarm" and subject & words:
            steps.append(turn.number)
            subject |= words
    return Escalation(steps=tuple(reversed(steps)), alone=alone) if len(steps) >= FEW_STEPS else None
