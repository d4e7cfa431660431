"""The lens of extraction: what is really asked for under courtesy, purpose or teaching."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from firecircle.voices.embedded.language.objects import TELLING, Intent
from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence
from firecircle.voices.embedded.language.text import sentences
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.lenses.findings import Finding

PROTECTED = ("config", "secret", "private", "guarded", "unchecked")


class ExtractionStrengths(NamedTuple):
    """How much is added to a request for something protected, and how telling a ladder of questions is.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    names_guarded: float = 0.3  # of the doubt, taken off where the sentence names what is held back
    in_a_document: float = 0.3  # of the doubt, taken off where a document asks
    masked: float = 0.15  # of the doubt, taken off under courtesy, purpose or teaching
    for_people: float = 0.3  # what is left of a request in a document written for people
    in_a_game: float = 0.7  # what is left of a request that is part of a game
    most: float = 0.95
    ladder: float = 0.58  # the last step reaches for the real thing and says whose
    ladder_impersonal: float = 0.45
    ladder_shown: float = 0.14  # added where the last step asks to be shown or given something
    ladder_harm: float = 0.45  # the last step reaches for harm under teaching, fiction or a purpose


STRENGTHS = ExtractionStrengths()
_AT_HAND = frozenset(("case", "service", "yourself", "here", "ours", "yours", "that", "those"))
_IN_THAT_CASE = ("in", "that", "case")
_NEAR = 200
"""Within how many characters of a request its frame is a lesson."""
_LADDER = 2
"""How many harmless questions make a ladder."""


class ExtractionLens:
    """Requests for what the operator keeps: the set-up, secrets, other people's data, skipped checks."""

    name = "extraction"
    looks_at = "what is asked for and under which cover"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Requests for protected things, and ladders of questions that end in one."""
        requests = [
            self._judge(reading, read, intent)
            for read in reading.unvouched()
            for intent in read.intents
            if intent.name in PROTECTED
        ]
        return (*requests, *self._ladder(reading))

    def _judge(self, reading: PromptReading, read: ReadSentence, intent: Intent) -> Finding:
        sentence = read.sentence
        strength = intent.strength
        if intent.name != "guarded" and sentence.mask & k("GUARDED"):
            strength += STRENGTHS.names_guarded * (1 - strength)
        if sentence.layer == "application":
            if reading.is_for_people and not read.is_for_machines:
                strength *= STRENGTHS.for_people
            elif intent.strength >= TELLING:
                strength += STRENGTHS.in_a_document * (1 - strength)
        masked = reading.user_mask & k("COURTEOUS", "PRETEXT", "TEACHING")
        if masked:
            strength += STRENGTHS.masked * (1 - strength)
        taught = intent.name != "unchecked" and _is_near(reading.lessons, sentence.start, sentence.end)
        teaching = taught and sentence.layer == "user"
        if reading.is_a_game:
            strength *= STRENGTHS.in_a_game
        start, end = sentence.quote(intent.first, intent.last)
        return Finding(
            "educational_escalation" if teaching else "polite_extraction",
            min(strength, STRENGTHS.most),
            sentence.layer,
            start,
            end,
            f"The {_LAYERS[sentence.layer]} asks for {_NAMES[intent.name]}",
        )

    def _ladder(self, reading: PromptReading) -> list[Finding]:
        """Harmless questions in the earlier turns, then an order that reaches for the real thing."""
        asked = [turn.content for turn in reading.prompt.turns or () if turn.role == "user"]
        questions = sum(_asks(text) for text in asked)
        if questions < _LADDER or not reading.user:
            return []
        steps = []
        for read in reading.user:
            sentence = read.sentence
            if not read.orders or sentence.question:
                continue
            harm = sentence.mask & k("HARM")
            words = set(sentence.words[3:] if sentence.words[:3] == _IN_THAT_CASE else sentence.words)
            if sentence.mask & k("OWN") or words & _AT_HAND:
                named = sentence.mask & k("YOU", "ME")
                strength = STRENGTHS.ladder if named else STRENGTHS.ladder_impersonal
                strength += STRENGTHS.ladder_shown if sentence.mask & k("SHOW", "GRANT") else 0.0
            elif harm and reading.user_mask & k("TEACHING", "FICTION", "PRETEXT"):
                strength = STRENGTHS.ladder_harm
            else:
                continue
            start, end = sentence.quote()
            note = "After general questions the user asks for the real thing"
            steps.append(Finding("educational_escalation", strength, "user", start, end, note))
        return steps


_LAYERS = {"application": "document", "user": "user"}
_NAMES = {
    "config": "the assistant's own instructions",
    "secret": "a secret",
    "guarded": "something that the system prompt holds back",
    "private": "data or rights that belong to others",
    "unchecked": "an action without the check that protects it",
}


def _is_near(places: tuple[int, ...], start: int, end: int) -> bool:
    """Whether one of the places, in order, is close to this one; a message may have very many requests."""
    at = bisect_left(places, start - _NEAR)
    return at < len(places) and places[at] <= end + _NEAR


def _asks(text: str) -> bool:
    return any(s.question or s.bits[0] & k("ASK") for s in sentences(text[:600], "turns"))
