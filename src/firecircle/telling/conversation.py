"""A judged conversation in sentences and cells, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from firecircle.conversation.arc import Conversation, TurnReading
from firecircle.telling.words import counted
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN, VerdictWord

CONDUCT = {
    "refused": "declined",
    "answered": "answered",
    "complied": "went along",
    "gave_away": "gave away",
    "no_reply": "",
}
"""How a screen writes what the assistant did with a turn."""
Clean = Callable[[str], str]


class TurnRow(NamedTuple):
    """One turn as a row of a table."""

    number: int
    verdict: VerdictWord
    word: str
    falsehood: str
    arc: str
    trust: str
    gap: str
    reply: str
    said: str
    is_due: bool


def headline(judged: Conversation) -> str:
    """The verdict, the number that decided and where."""
    return f"{SHOWN[judged.verdict]}, {figures_of(judged)}"


def figures_of(judged: Conversation) -> str:
    """The number that decided, and where."""
    turns = counted(len(judged.turns), "turn")
    if judged.falsehood is None:
        return f"none of {turns} could be judged"
    figure = format_figure(judged.falsehood, judged.alarm_threshold)
    where = f"due at turn {judged.due_turn} of {turns}" if judged.due_turn else f"over {turns}"
    return f"F {figure} of the conversation, {where}"


def sentences_about(judged: Conversation, clean: Clean = str) -> Iterator[str]:
    """What there is to know beyond the verdict, a sentence a fact."""
    if judged.due_turn is not None:
        due = judged.turns[judged.due_turn - 1]
        if due.quote:
            yield f"Turn {due.number} decides: “{clean(due.quote)}”."
    if judged.escalation is not None:
        steps = ", ".join(str(step) for step in judged.escalation.steps)
        sentence = f"Escalation: turns {steps} gave no alarm and lead to turn {judged.due_turn}"
        alone = judged.escalation.alone
        yield f"{sentence}, which by itself has F {alone:.2f}." if alone is not None else f"{sentence}."
    for turn in judged.given_away:
        for given in turn.reply.disclosures:
            yield f"Reply {turn.number}: “{clean(given.quote)}” ({given.why})."
    for turn in judged.turns:
        for claim in turn.claims:
            found = f"message {claim.found_in} ({claim.said_by}) has it" if claim.found_in else None
            yield (
                f"Turn {turn.number} claims “{clean(claim.quote)}”: {found or 'no earlier message has it'}."
            )
    moved = judged.trajectory.replace("_", ", ")
    yield f"Trust {judged.trust:.2f} at the end ({moved})."
    screened = sum(turn.judged_by == "screen" for turn in judged.turns)
    if screened:
        asked = counted(judged.circles, "turn")
        yield f"The readers were sure of {counted(screened, 'turn')}; the circle judged {asked}."
    for turn in judged.turns:
        if turn.error is not None:
            yield f"Turn {turn.number} could not be judged: {clean(turn.error)}."
    yield from judged.advisories


def rows_of(judged: Conversation, clean: Clean = str) -> tuple[TurnRow, ...]:
    """The turns as rows."""
    return tuple(_row(turn, judged, clean) for turn in judged.turns)


def _row(turn: TurnReading, judged: Conversation, clean: Clean) -> TurnRow:
    threshold = judged.alarm_threshold
    return TurnRow(
        number=turn.number,
        verdict=turn.verdict,
        word=SHOWN[turn.verdict],
        falsehood="" if turn.falsehood is None else format_figure(turn.falsehood, threshold),
        arc="" if turn.arc is None else format_figure(turn.arc, threshold),
        trust=f"{turn.trust:.2f}",
        gap="" if turn.readings is None else f"{turn.readings.gap:.2f}",
        reply=CONDUCT[turn.reply.conduct],
        said=clean(turn.said),
        is_due=turn.number == judged.due_turn,
    )
