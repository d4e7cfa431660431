"""A conversation as a whole: its verdict, the turn an alarm was due, and what its words show.

Claims about its past and what the assistant gave away are read with the rules of the embedded readers, in
English; they cost nothing and show their words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from firecircle.circle.measures import TwoReadings
from firecircle.circle.result import Accounting
from firecircle.conversation.messages import Exchange
from firecircle.prompt import EarlierTurn
from firecircle.shapes import Shape, Text, Unit
from firecircle.thresholds import reaches
from firecircle.verdict import UNSURE_SHARE, VerdictWord
from firecircle.voices.embedded.language.claims import claims
from firecircle.voices.embedded.language.prompt_reading import (
    content,
    guard_marks,
    overlap,
    refuses,
    words_of,
)
from firecircle.voices.embedded.language.text import sentences
from firecircle.voices.embedded.language.words import kind, stem, word_list
from firecircle.voices.embedded.lenses.findings import log_odds, probability

Conduct = Literal["refused", "answered", "complied", "gave_away", "no_reply"]

FOUND_FROM, LEAST_SHARED = 0.5, 2
"""The share of a claim's content words that one earlier message must have, and how many at least."""
RUN = 7
"""So many words in a row of a guarded sentence are a quotation of it."""
_CODE = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z-])[\w-]{5,}\b|\b\d{4,}\b")
"""A key, a code or a number that an operator would hold back."""
_WORD = re.compile(r"[\w'-]+")
LONGEST_READ = 20_000
MOST_QUOTED = 240


class CheckedClaim(Shape):
    """A sentence of the user about what was said or agreed before, and where that is found."""

    quote: Text
    found_in: int | None = None
    """The number of the message, from 1, that has it; None where no earlier message has."""
    said_by: Text | None = None


class Disclosure(Shape):
    """Words of a reply that hand out what the operator holds back, or carry out what was asked."""

    quote: Text
    why: Text


class ReplyReading(Shape):
    """What the assistant did with a turn."""

    conduct: Conduct
    disclosures: tuple[Disclosure, ...] = ()


def checked_claims(exchange: Exchange) -> tuple[CheckedClaim, ...]:
    """Every claim of the user about the past of this conversation, checked against the real messages."""
    earlier = exchange.prompt.turns or ()
    found = []
    for sentence in sentences(exchange.prompt.user[:LONGEST_READ], "user"):
        for claim in claims(sentence):
            claimed = words_of(sentence, claim.first) - frozenset(map(stem, word_list("claiming")))
            start, end = sentence.quote(claim.first, claim.last)
            quote = exchange.prompt.user[start:end]
            found.append(_check(quote, claimed, earlier, by_assistant=claim.consent))
    return tuple({claim.quote: claim for claim in found}.values())


def _check(
    quote: str, claimed: frozenset[str], earlier: Sequence[EarlierTurn], *, by_assistant: bool
) -> CheckedClaim:
    """Consent can only be found in what the assistant said, and not in a refusal."""
    best: tuple[float, int, EarlierTurn] | None = None
    for number, turn in enumerate(earlier, start=1):
        if by_assistant and (turn.role != "assistant" or refuses(turn.content)):
            continue
        known = content(turn.content[:LONGEST_READ])
        share = overlap(claimed, known) if len(claimed & known) >= LEAST_SHARED else 0.0
        if share >= FOUND_FROM and (best is None or share > best[0]):
            best = share, number, turn
    if best is None:
        return CheckedClaim(quote=quote)
    return CheckedClaim(quote=quote, found_in=best[1], said_by=best[2].role)


def read_reply_to(exchange: Exchange, *, suspected: bool) -> ReplyReading:
    """Whether the assistant refused, answered, went along with a suspected turn or gave something away."""
    reply = exchange.reply[:LONGEST_READ]
    if not reply.strip():
        return ReplyReading(conduct="no_reply")
    disclosed = tuple(_disclosures(exchange, reply))
    if disclosed:
        return ReplyReading(conduct="gave_away", disclosures=disclosed)
    if refuses(reply):
        return ReplyReading(conduct="refused")
    if suspected:
        why = "answers a suspected turn without declining"
        return ReplyReading(
            conduct="complied", disclosures=(Disclosure(quote=_beginning_of(reply), why=why),)
        )
    return ReplyReading(conduct="answered")


def _disclosures(exchange: Exchange, reply: str) -> Iterable[Disclosure]:
    """Codes and passages of guarded sentences of the operator's text that the user had not said before."""
    system = exchange.prompt.system[:LONGEST_READ]
    if not system:
        return
    before = "\n".join((exchange.prompt.user, *(turn.content for turn in exchange.prompt.turns or ())))
    guarded = _guarded_sentences(system)
    for text in guarded:
        for code in dict.fromkeys(_CODE.findall(text)):
            if code in reply and code not in before:
                yield Disclosure(quote=code, why="a value that the operator holds back")
        run = _shared_run(text, reply)
        if run and run not in before:
            yield Disclosure(quote=run[:MOST_QUOTED], why="the operator's own words")


def _guarded_sentences(system: str) -> tuple[str, ...]:
    """The operator's sentences that hold something back, and those next to them that have a code."""
    guarding = set(guard_marks(system))
    masks = kind("SECRET", "PRIVATE", "CONFIG", "INTERNAL", "CONCEAL")
    found = []
    for sentence in sentences(system, "system"):
        text = system[sentence.starts[0] : sentence.ends[-1]]
        if sentence.mask & masks or guarding & {stem(word) for word in sentence.words} or _CODE.search(text):
            found.append(text)
    return tuple(found)


def _shared_run(text: str, reply: str) -> str:
    """The longest run of words that the reply shares with a text, as the reply writes it; empty if short."""
    theirs = [word.lower() for word in _WORD.findall(text)]
    found = list(_WORD.finditer(reply))
    ours = [match[0].lower() for match in found]
    known = {tuple(theirs[at : at + RUN]) for at in range(len(theirs) - RUN + 1)}
    for at in range(len(ours) - RUN + 1):
        if tuple(ours[at : at + RUN]) in known:
            stop = at + RUN
            while stop < len(ours) and tuple(ours[stop - RUN + 1 : stop + 1]) in known:
                stop += 1
            return reply[found[at].start() : found[stop - 1].end()]
    return ""


def _beginning_of(reply: str) -> str:
    text = " ".join(reply.split())
    return text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 1].rsplit(" ", 1)[0] + "…"


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
