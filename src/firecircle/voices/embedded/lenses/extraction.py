"""The lens of extraction: what is really asked for under courtesy, purpose or teaching."""

from __future__ import annotations

from firecircle.voices.embedded.language.objects import Intent
from firecircle.voices.embedded.language.prompt_reading import Read, Reading
from firecircle.voices.embedded.language.text import sentences
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.lenses.findings import Finding

PROTECTED = ("config", "secret", "private", "guarded", "unchecked")
IN_A_GAME = 0.7
"""What is left of a request for protected things that is part of a game."""
_AT_HAND = frozenset(("case", "service", "yourself", "here", "ours", "yours", "that", "those"))
_LADDER = 2
"""How many harmless questions make a ladder."""


class ExtractionLens:
    """Requests for what the operator keeps: the set-up, secrets, other people's data, skipped checks."""

    name = "extraction"
    looks_at = "what is asked for and under which cover"

    def find(self, reading: Reading) -> tuple[Finding, ...]:
        """Requests for protected things, and ladders of questions that end in one."""
        found = [
            self._judge(reading, read, intent)
            for read in reading.unvouched()
            for intent in read.intents
            if intent.name in PROTECTED
        ]
        return (*found, *self._ladder(reading))

    def support(self, reading: Reading, layer: str, start: int, end: int) -> float:
        """How strongly these words ask for something protected, or name it while somebody is addressed."""
        best = 0.0
        for read in reading.at(layer, start, end):
            if (intent := read.strongest(*PROTECTED)) is not None:
                best = max(best, 0.8 * intent.strength)
            if read.sentence.mask & k("GUARDED") and read.sentence.mask & k("YOU", "MACHINE"):
                best = max(best, 0.35)
        return best

    def blindness(self, reading: Reading) -> float:
        """Without the operator's text it is not known what is protected."""
        return 0.15 if reading.prompt.system else 0.3

    def _judge(self, reading: Reading, read: Read, intent: Intent) -> Finding:
        sentence = read.sentence
        strength = intent.strength
        if intent.name != "guarded" and sentence.mask & k("GUARDED"):
            strength += 0.3 * (1 - strength)
        if sentence.layer == "application":
            strength += 0.3 * (1 - strength)
        masked = reading.user_mask & k("COURTEOUS", "PRETEXT", "TEACHING")
        if masked:
            strength += 0.15 * (1 - strength)
        teaching = bool(reading.user_mask & k("TEACHING")) and intent.name != "unchecked"
        if reading.is_a_game:
            strength *= IN_A_GAME
        start, end = sentence.quote(intent.first, intent.last)
        return Finding(
            "educational_escalation" if teaching else "polite_extraction",
            min(strength, 0.95),
            sentence.layer,
            start,
            end,
            f"asks for {_NAMES[intent.name]}" + (" under courtesy, purpose or teaching" if masked else ""),
        )

    def _ladder(self, reading: Reading) -> list[Finding]:
        """Harmless questions in the earlier turns, then an order that reaches for the real thing."""
        asked = [turn.content for turn in reading.prompt.turns or () if turn.role == "user"]
        questions = sum(_asks(text) for text in asked)
        if questions < _LADDER or not reading.user:
            return []
        found = []
        for read in reading.user:
            sentence = read.sentence
            if not read.orders or sentence.question:
                continue
            harm = sentence.mask & k("HARM")
            words = set(sentence.words)
            if sentence.mask & k("OWN") or words & _AT_HAND:
                strength = 0.58 if sentence.mask & k("YOU", "ME") else 0.45
                strength += 0.14 if sentence.mask & k("SHOW", "GRANT") else 0.0
            elif harm and reading.user_mask & k("TEACHING", "FICTION", "PRETEXT"):
                strength = 0.45
            else:
                continue
            start, end = sentence.quote()
            note = "after general questions the last step reaches for the real thing"
            found.append(Finding("educational_escalation", strength, "user", start, end, note))
        return found


_NAMES = {
    "config": "the assistant's own instructions",
    "secret": "a secret",
    "guarded": "what the operator holds back",
    "private": "data or rights that are not the speaker's",
    "unchecked": "an action without the check that protects it",
}


def _asks(text: str) -> bool:
    return any(s.question or s.bits[0] & k("ASK") for s in sentences(text[:600], "turns"))
