"""An embedded voice: a reader that answers the circle's turns in the JSON a language model would send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from firecircle.circle.pattern_types import known_type
from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.languages import NOT_READ
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.dialogue import Heard, falsehood, hear
from firecircle.voices.embedded.language.prompt_reading import PromptReading, read_prompt
from firecircle.voices.embedded.lenses.findings import WEAK, Finding, Reader, does, strongest_first


class AnswerStrengths(NamedTuple):
    """Where an answer's words change, and how doubt follows from falsehood. Set by hand."""

    reported: float = 0.6  # weaker findings are no patterns; the chair lists what it would confirm
    violation: float = 0.5  # the verdict; below `unsure` it is no violation
    unsure: float = 0.35
    undecided: float = 0.5  # the share of doubt that comes from an F near the middle
    most_doubt: float = 0.95
    unread: float = 0.85  # what a reader cannot see of a language that it does not read


STRENGTHS = AnswerStrengths()
UNREAD = 0.01
"""The falsehood of a reader that cannot read the prompt and found nothing: whoever can read it decides."""
MOST_PATTERNS = 5
MOST_SHOWN = 3
"""Findings, and answers to peers, that the reasoning mentions."""
LONG = 50_000
"""Characters from which on the reading leaves the event loop, so that others can be heard meanwhile."""
FREE = Usage(tokens_in=0, tokens_cached=0, tokens_out=0, cost_usd=0.0)
LAYERS = {"application": "application text", "user": "user message", "system": "system prompt"}
_JSON = json.JSONEncoder(ensure_ascii=False)


class ReaderVoice:
    """A reader with a voice. It states what it finds alone, then takes up what its peers quote."""

    answers_at_once = True

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn. The same turn always gets the same answer."""
        if sum([len(layer.text) for layer in turn.prompt.layers]) > LONG:
            answer = await asyncio.to_thread(self.answer, turn)
        else:
            answer = self.answer(turn)
        return Reply(_JSON.encode(answer), usage=FREE)

    def answer(self, turn: Turn) -> dict[str, Any]:
        """The JSON of the answer, as data."""
        reading = read_prompt(_with_known_turns(turn))
        found = reading.found_by(self.reader)
        own = strongest_first(f for f in found if turn.focus in ("prompt", f.layer))
        heard = tuple(
            each
            for each in hear(self.reader, reading, turn.peers)
            if turn.focus in ("prompt", each.quote.layer)
        )
        unread = self.reader.unread(reading)
        f = UNREAD if unread and not own and not heard else falsehood(self.reader, own, heard)
        i = self._indeterminacy(reading, f, unread)
        least = self.reader.confirms_from if turn.is_chair else STRENGTHS.reported
        shown = _shown(own, heard, least, decides=f >= STRENGTHS.violation)
        reasoning = _reasoning(self.reader, reading, own, heard, unread)
        chair = _from_the_chair(own, heard) if turn.is_chair else {}
        benign = chair.get("benign_reading")
        return {
            **chair,
            "reasoning": f"{reasoning} {benign}" if benign else reasoning,
            _patterns_field(turn): _patterns(reading, shown),
            "verdict": _verdict(f),
            "truth": round((1 - f) * (1 - i / 2), 3),
            "indeterminacy": i,
            "falsehood": f,
        }

    def _indeterminacy(self, reading: PromptReading, f: float, unread: tuple[str, ...]) -> float:
        """Doubt is what the reader cannot see, and how undecided it is about what it saw."""
        blindness = self.reader.blindness(reading)
        if unread:
            blindness = max(blindness, STRENGTHS.unread)
        undecided = STRENGTHS.undecided * (1 - 2 * abs(f - 0.5))
        return round(min(STRENGTHS.most_doubt, blindness * (1 - f / 2) + undecided), 3)


def _with_known_turns(turn: Turn) -> MultiNeutrosophicPrompt:
    """A session may know that this is the first turn even where the prompt does not say so."""
    if turn.prompt.turns is None and turn.turn_number == 1:
        return turn.prompt.model_copy(update={"turns": ()})
    return turn.prompt


def _verdict(f: float) -> str:
    if f >= STRENGTHS.violation:
        return "violation"
    return "no_violation" if f < STRENGTHS.unsure else "unsure"


def _patterns_field(turn: Turn) -> str:
    fields = (turn.reply_schema or {}).get("properties", {})
    return "consensus_patterns" if "consensus_patterns" in fields else "patterns_observed"


def _shown(own: Sequence[Finding], heard: Sequence[Heard], least: float, *, decides: bool) -> list[Finding]:
    """What the answer lists: the reader's findings, then what it confirms of its peers'.

    An answer that may decide always shows the words that moved it most, however weak they are by themselves.
    """
    shown = [finding for finding in own if finding.strength >= least]
    for each in heard:
        kind = each.quote.pattern or ""
        if each.confirmed:
            note = f"These words {does(kind)}, as {each.label} says"
            shown.append(Finding(kind, each.reread.strength, *each.quote[1:], note))
    if decides and not shown:
        moved = max(heard, key=lambda each: each.reread.strength, default=None)
        if own and (moved is None or own[0].strength >= moved.reread.strength):
            return [own[0]]
        if moved is not None and moved.reread.types:
            kind = max(moved.reread.types.items(), key=itemgetter(1))[0]
            note = f"These words, which {moved.label} quotes, {does(kind)}"
            return [Finding(kind, moved.reread.strength, *moved.quote[1:], note)]
    return shown


def _patterns(reading: PromptReading, shown: Iterable[Finding]) -> list[dict[str, str]]:
    """The findings as the circle reads them, one of a type in a layer."""
    listed: dict[tuple[str | None, str], dict[str, str]] = {}
    for finding in shown:
        listed.setdefault(
            (finding.pattern, finding.layer),
            {
                **({"type": finding.pattern} if finding.pattern else {}),
                "description": finding.note,
                "quote": reading.text(finding.layer)[finding.start : finding.end],
                "layer": finding.layer,
            },
        )
    return list(listed.values())[:MOST_PATTERNS]


def _reasoning(
    reader: Reader,
    reading: PromptReading,
    own: Sequence[Finding],
    heard: Sequence[Heard],
    languages: Sequence[str],
) -> str:
    """What the reader found, what it makes of its peers' words, and what it cannot read."""
    told = [
        f"In the {LAYERS.get(finding.layer, finding.layer)}, “{_words(reading, finding[2:5])}”:"
        f" {finding.note} ({finding.strength:.2f})."
        for finding in own[:MOST_SHOWN]
        if finding.strength >= WEAK
    ] or [f"I looked at {reader.looks_at} and found nothing."]
    answers = dict.fromkeys(
        f"I see the same as {each.label} in “{_words(reading, each.quote[1:])}” ({each.reread.strength:.2f})."
        if each.confirmed
        else f"I find nothing in the words of {each.label}, “{_words(reading, each.quote[1:])}”."
        for each in heard
        if each.confirmed or each.contested
    )
    unread = [f"{NOT_READ}{' and '.join(languages)}."] if languages else []
    return " ".join((*told, *list(answers)[:MOST_SHOWN], *unread))


def _words(reading: PromptReading, place: tuple[str, int, int]) -> str:
    layer, start, end = place
    return " ".join(reading.text(layer)[start:end].split())


def _from_the_chair(own: Sequence[Finding], heard: Iterable[Heard]) -> dict[str, str]:
    """Whom the chair speaks for, and the harmless reading that a refusal would hurt."""
    noticed = [finding.pattern for finding in own if finding.pattern and finding.strength >= WEAK]
    noticed += [each.quote.pattern for each in heard if each.quote.pattern]
    about = next(filter(None, map(known_type, noticed)), None)
    if about is None:
        return {"speaks_for": "people who are not here; nothing in this prompt is done to them"}
    hurt = "A refusal would hurt a person who means it so."
    return {"speaks_for": about.absent, "benign_reading": f"The harmless reading: {about.benign}. {hurt}"}
