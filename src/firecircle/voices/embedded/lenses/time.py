"""The lens of time: is what the prompt says about the past true of the turns that really took place?"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from firecircle.voices.embedded.language.claims import Claim, claims, transcript
from firecircle.voices.embedded.language.objects import TELLING
from firecircle.voices.embedded.language.prompt_reading import (
    PromptReading,
    ReadSentence,
    content,
    overlap,
    refuses,
    words_of,
)
from firecircle.voices.embedded.language.text import quote_end
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import stem, word_list
from firecircle.voices.embedded.lenses.findings import Finding


class TimeStrengths(NamedTuple):
    """How much an unconfirmed past counts, from 0 to 1; how clear a claim is says `claims.ClaimStrengths`.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    # A claim of an earlier exchange.
    asks: float = 0.12  # added where the user wants something protected
    guarded: float = 0.1  # added where the claim touches what the operator holds back
    turns_unknown: float = 0.45  # what is left of a claim that nobody can check
    turns_differ: float = 0.95  # what is left where the known turns do not contain it
    turns_differ_mildly: float = 0.6  # the same where nothing is gained by the claim
    claim_known: float = 0.5  # the share of a claim's words that the turns must contain
    claim_most: float = 0.95

    # A conversation written out in the message.
    pasted: float = 0.3
    pasted_line: float = 0.04  # for each line, up to six
    pasted_open: float = 0.15  # it stops in the middle, for the assistant to go on
    pasted_own: float = 0.25  # it is said to be the speaker's own
    pasted_named: float = 0.25  # a line has the name that the operator gave the assistant
    pasted_asks: float = 0.15
    pasted_unknown: float = 0.6
    pasted_most: float = 0.9


STRENGTHS = TimeStrengths()


class TimeLens:
    """Claims of earlier talk, agreement and progress, checked against the known turns."""

    name = "time"
    looks_at = "claims about earlier conversation"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Claims of a past that did not happen, or that nobody can check."""
        judged = [
            self._judge(reading, read, claim)
            for read in reading.user  # the past of a document is none of the conversation's
            for claim in claims(read.sentence)
        ]
        return tuple(finding for finding in (*judged, self._pasted(reading)) if finding is not None)

    def _judge(self, reading: PromptReading, read: ReadSentence, claim: Claim) -> Finding | None:
        turns = reading.prompt.turns
        asks = max(reading.strongest("user"), 0.0)
        strength = claim.weight + (STRENGTHS.asks if asks >= TELLING else 0.0)
        if read.sentence.mask & k("GUARDED", "GATED"):
            strength += STRENGTHS.guarded
        start, end = read.sentence.quote(claim.first, claim.last)
        pattern = "fabricated_progression" if claim.progress else "temporal_inconsistency"
        if turns is None:
            strength *= STRENGTHS.turns_unknown
            note = "The user refers to an earlier exchange; the turns are unknown, so nothing confirms it"
        elif not turns:
            note = "The user refers to an earlier exchange, but this is the first turn"
        else:
            claimed = words_of(read.sentence, claim.first) - _claiming()
            known = reading.said_by_assistant if claim.consent else reading.said_before
            share = overlap(claimed, known)
            if share >= STRENGTHS.claim_known or len(claimed) < 2:
                return None
            gains = claim.consent or asks >= TELLING
            strength *= STRENGTHS.turns_differ if gains else STRENGTHS.turns_differ_mildly
            note = "The user refers to an earlier exchange that the known turns do not contain"
        return Finding(pattern, min(strength, STRENGTHS.claim_most), "user", start, end, note)

    def _pasted(self, reading: PromptReading) -> Finding | None:
        """A conversation written out inside the user's message as if it had taken place here."""
        text = reading.prompt.user
        place = transcript(text, reading.assistant_names)
        if place is None:
            return None
        start, end, lines, named = place
        if refuses(text[start:end]):
            return None
        strength = STRENGTHS.pasted + min(lines, 6) * STRENGTHS.pasted_line
        if not text[start:end].rstrip().endswith((".", "!", "?", '"')):
            strength += STRENGTHS.pasted_open
        if reading.prompt.turns:
            share = overlap(content(text[start:end]), reading.said_before)
            if share >= STRENGTHS.claim_known:
                return None
        own = any(
            read.sentence.mask & k("CHAT", "RESUME") and read.sentence.mask & k("ME") for read in reading.user
        )
        if own:
            strength += STRENGTHS.pasted_own
        if named:
            strength += STRENGTHS.pasted_named
        if reading.strongest("user") >= TELLING:
            strength += STRENGTHS.pasted_asks
        if reading.prompt.turns is None:
            strength *= STRENGTHS.pasted_unknown
        note = "The user message contains an invented conversation with lines of the assistant"
        return Finding(
            "temporal_inconsistency",
            min(strength, STRENGTHS.pasted_most),
            "user",
            start,
            quote_end(text, start, end),
            note,
        )


@cache
def _claiming() -> frozenset[str]:
    return frozenset(stem(word) for word in word_list("claiming"))
