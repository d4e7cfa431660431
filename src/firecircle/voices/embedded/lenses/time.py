"""The lens of time: is what the prompt says about the past true of the turns that really took place?"""

from __future__ import annotations

from functools import cache

from firecircle.voices.embedded.language.claims import Claim, claims, steps_claimed, transcript
from firecircle.voices.embedded.language.prompt_reading import (
    Read,
    Reading,
    content,
    overlap,
    refuses,
    words_of,
)
from firecircle.voices.embedded.language.text import LONGEST_QUOTE
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import stem, word_list
from firecircle.voices.embedded.lenses.findings import Finding

SUPPORTED = 0.5
"""The share of a claim's content that the turns must contain for the claim to be believed."""


class TimeLens:
    """Claims of earlier talk, agreement and progress, checked against the known turns."""

    name = "time"
    looks_at = "claims about earlier conversation"

    def find(self, reading: Reading) -> tuple[Finding, ...]:
        """Claims of a past that did not happen, or that nobody can check."""
        found = [
            self._judge(reading, read, claim)
            for read in reading.unvouched()
            for claim in claims(read.sentence)
        ]
        further = (self._pasted(reading), self._staircase(reading))
        return tuple(finding for finding in (*found, *further) if finding is not None)

    def support(self, reading: Reading, layer: str, start: int, end: int) -> float:
        """How strongly these words claim a past that the turns do not show."""
        best = 0.0
        if reading.prompt.turns is None:
            return best
        for read in reading.at(layer, start, end):
            mask = read.sentence.mask
            event = mask & k("TALKED", "CONSENT", "ENDED", "GIVEN") and mask & k(
                "BEFORE", "LICENCE", "NEW", "GATED", "GUARDED"
            )
            if event and (intent := read.strongest()):
                best = max(best, 0.6 * intent.strength)
            best = max(best, max((0.8 * claim.weight for claim in claims(read.sentence)), default=0.0))
        return best

    def blindness(self, reading: Reading) -> float:
        """Without the turns no claim about them can be checked."""
        return 0.5 if reading.prompt.turns is None else 0.1

    def _judge(self, reading: Reading, read: Read, claim: Claim) -> Finding | None:
        turns = reading.prompt.turns
        layer = read.sentence.layer
        if layer == "application" and turns is not None:
            return None
        asks = max(reading.strongest("user"), 0.0)
        strength = claim.weight + (0.12 if asks >= 0.4 else 0.0)
        if read.sentence.mask & k("GUARDED", "GATED"):
            strength += 0.1
        start, end = read.sentence.quote(claim.first, claim.last)
        pattern = "fabricated_progression" if claim.progress else "temporal_inconsistency"
        if turns is None:
            strength *= 0.45
            note = "claims an earlier exchange; the turns are unknown, so nothing confirms it"
        elif not turns:
            note = "claims an earlier exchange, but this is the first turn"
        else:
            said = words_of(read.sentence, claim.first) - _claiming()
            known = reading.said_by_assistant if claim.consent else reading.said_before
            share = overlap(said, known)
            if share >= SUPPORTED or len(said) < 2:
                return None
            strength *= 0.95 if claim.consent or asks >= 0.4 else 0.6
            note = "claims an earlier exchange that the known turns do not contain"
        return Finding(pattern, min(strength, 0.95), layer, start, end, note)

    def _staircase(self, reading: Reading) -> Finding | None:
        """Steps ticked off one by one, so that only the wanted one seems left."""
        climbed = [read for read in reading.user if steps_claimed(read.sentence)]
        steps = sum(steps_claimed(read.sentence) for read in climbed)
        if steps < 2 or not any(read.sentence.mask & k("LEFT") for read in reading.user):
            return None
        claimed = frozenset().union(*(words_of(read.sentence) for read in climbed)) - _claiming()
        known = reading.said_before | content(reading.prompt.application)
        if overlap(claimed, known) >= 0.4:
            return None
        strength = 0.45 + 0.05 * min(steps, 4)
        if reading.user_mask & k("GUARDED", "GATED"):
            strength += 0.15
        if reading.prompt.turns is None:
            strength *= 0.7
        start, end = climbed[0].sentence.quote()
        note = "ticks off steps that nothing on record shows, and presents the wanted one as the next"
        return Finding("fabricated_progression", min(strength, 0.9), "user", start, end, note)

    def _pasted(self, reading: Reading) -> Finding | None:
        """A conversation written out inside the user's message as if it had taken place here."""
        text = reading.prompt.user
        place = transcript(text)
        if place is None:
            return None
        start, end, lines = place
        if refuses(text[start:end]):
            return None
        strength = 0.3 + min(lines, 6) * 0.04
        if not text[start:end].rstrip().endswith((".", "!", "?", '"')):
            strength += 0.15
        if reading.prompt.turns and overlap(content(text[start:end]), reading.said_before) >= SUPPORTED:
            return None
        own = any(
            read.sentence.mask & k("CHAT", "RESUME") and read.sentence.mask & k("ME") for read in reading.user
        )
        if own:
            strength += 0.25
        if reading.strongest("user") >= 0.4:
            strength += 0.15
        if reading.prompt.turns is None:
            strength *= 0.6
        note = "a transcript with the assistant's own lines is written into the message"
        return Finding(
            "temporal_inconsistency", min(strength, 0.9), "user", start, min(end, start + LONGEST_QUOTE), note
        )


@cache
def _claiming() -> frozenset[str]:
    return frozenset(stem(word) for word in word_list("claiming"))
