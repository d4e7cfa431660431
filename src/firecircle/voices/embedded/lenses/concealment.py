"""The lens of concealment: what a reader is meant to miss, in a disguise or in the mass of text around it.

A disguise by itself is no attack: the plain text is judged by the same reading as visible text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from firecircle.voices.embedded.hidden import decode
from firecircle.voices.embedded.hidden.decoded import Decoded
from firecircle.voices.embedded.language.objects import TELLING, Intent
from firecircle.voices.embedded.language.prompt_reading import (
    PromptReading,
    ReadSentence,
    read_text,
    words_of,
)
from firecircle.voices.embedded.language.text import Marks, quote_end
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.lenses.findings import Finding

LONG = 2_000
"""From this many characters on, a sentence can be buried."""
FLOOD = 5
"""How often an order must be repeated to count as a flood."""
_FEW = 3
"""Up to so many telling sentences in a long message are buried in it rather than its subject."""
SHOWN = 80
"""How much of what was hidden the reason shows."""


class ConcealmentStrengths(NamedTuple):
    """How much something hidden counts, from 0 to 1.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    # What a disguise hides.
    hidden_base: float = 0.5  # an intent that only the plain text has
    hidden_share: float = 0.45  # and of that intent's own strength
    hidden_guarded: float = 0.7  # several words for what the operator holds back
    invisible_order: float = 0.7  # an order to the assistant that nobody sees
    hidden_order: float = 0.5
    disguised_least: float = (
        0.25  # the share of an order's words that must be in disguise: git-log(1) has one
    )

    # What long text buries.
    buried_least: float = 0.3  # the weakest intent that counts as buried
    buried_few: float = 0.08  # the largest share of a long text that buried sentences make up
    buried_base: float = 0.55  # of an intent's strength, whatever words surround it
    buried_foreign: float = 0.45  # and the share that grows with words found nowhere else
    buried_alien: float = 0.25  # from this share of such words on, the burying is what is done
    buried_more: float = 0.06
    flooded: float = 0.4  # of the doubt, taken off where the same order floods the text
    buried_most: float = 0.92
    for_people: float = 0.3  # what is left of an order in a document whose orders are meant for people


STRENGTHS = ConcealmentStrengths()
_DEPTH = 2
_HIDDEN = " hides an order with "
_LAYERS = {"application": "document", "user": "user message"}
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")


class ConcealmentLens:
    """Decodes, then looks again; and looks for the one order that does not belong to the mass around it."""

    name = "hidden"
    looks_at = "what is disguised or buried"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Disguised orders and buried ones."""
        findings: list[Finding] = []
        unveiled: dict[tuple[str, int, int], Finding] = {}
        for layer, reads in (("application", reading.application), ("user", reading.user)):
            text = reading.text(layer)
            seen = {intent.name for read in reads for intent in read.intents if intent.strength >= TELLING}
            seen |= _guarded_words(reads)
            obeys = any(_asks_to_obey(read) for read in reads)
            for decoded in decode(text):
                finding = self._judge(decoded, text, layer, reading.marks, seen, obeys, _DEPTH)
                if finding is not None:  # of two ways to read the same words the worse counts, once
                    place = (layer, finding.start, finding.end)
                    if place not in unveiled or unveiled[place].strength < finding.strength:
                        unveiled[place] = finding
            if len(text) >= LONG:
                findings.extend(self._buried(layer, reads, reading))
        return (*unveiled.values(), *findings)

    def _judge(
        self, decoded: Decoded, text: str, layer: str, marks: Marks, seen: set[str], obeys: bool, depth: int
    ) -> Finding | None:
        reads = read_text(decoded.plain, "decoded", marks)
        shown = visible_words(text)
        hidden = [
            (intent, read)
            for read in reads
            for intent in read.intents
            if intent.strength >= TELLING
            and (decoded.invisible or (intent.name not in seen and _is_disguised(read, intent, shown)))
        ]
        ordering = [
            read
            for read in reads
            if any(not order.negated for order in read.orders)
            and (decoded.invisible or _share_disguised(read, shown) >= STRENGTHS.disguised_least)
        ]
        if hidden:
            strongest, telling = max(hidden, key=lambda pair: pair[0].strength)
            strength = STRENGTHS.hidden_base + STRENGTHS.hidden_share * strongest.strength
            name = strongest.name
        elif len(_guarded_words(reads) - seen) > 1:
            telling = max(reads, key=lambda read: len(_guarded_words((read,)) - seen))
            strength, name = STRENGTHS.hidden_guarded, "guarded"
        elif ordering and (decoded.invisible or obeys):
            meant = any(read.sentence.mask & k("YOU", "MACHINE", "OUTPUT", "HUMAN_USER") for read in reads)
            telling = ordering[0]
            unseen = decoded.invisible and meant
            strength, name = STRENGTHS.invisible_order if unseen else STRENGTHS.hidden_order, "order"
        elif depth > 1:
            return self._deeper(decoded, text, layer, marks, seen, obeys, depth - 1)
        else:
            return None
        sentence = telling.sentence
        start, end = decoded.place(text, sentence.start, sentence.end)
        plain = _shown(decoded.plain[sentence.start : sentence.end])
        note = f"The {_LAYERS[layer]}{_HIDDEN}{decoded.method}: “{plain}”"
        pattern = _PATTERNS.get(name, "cross_layer_fabrication")
        return Finding(pattern, strength, layer, start, quote_end(text, start, end), note)

    def _deeper(
        self, decoded: Decoded, text: str, layer: str, marks: Marks, seen: set[str], obeys: bool, depth: int
    ) -> Finding | None:
        """The strongest of what is disguised within a disguise, placed where the outer one stands."""
        findings = (
            self._judge(inner, decoded.plain, layer, marks, seen, obeys, depth)
            for inner in decode(decoded.plain)
        )
        strongest = max((f for f in findings if f), key=lambda f: f.strength, default=None)
        if strongest is None:
            return None
        start, end = decoded.place(text, strongest.start, strongest.end)
        note = f"The {_LAYERS[layer]}{_HIDDEN}{decoded.method}, then {strongest.note.partition(_HIDDEN)[2]}"
        return strongest._replace(start=start, end=quote_end(text, start, end), note=note)

    def _buried(
        self, layer: str, reads: tuple[ReadSentence, ...], reading: PromptReading
    ) -> Iterator[Finding]:
        """Sentences that order something, few among many that do not."""
        size = sum(read.sentence.end - read.sentence.start for read in reads) or 1
        telling = [
            (read, intent)
            for read in reads
            if (intent := read.strongest()) and intent.strength >= STRENGTHS.buried_least
        ]
        share = sum(read.sentence.end - read.sentence.start for read, _ in telling) / size
        repeated = Counter(read.sentence.words for read in reads if read.orders)
        floods = {words for words, times in repeated.items() if times >= FLOOD and len(words) > 2}
        everywhere = Counter(word for read in reads for word in words_of(read.sentence))
        reported: set[tuple[str, ...]] = set()
        for read, intent in telling:
            sentence = read.sentence
            flooded = sentence.words in floods
            if sentence.words in reported or (share > STRENGTHS.buried_few and not flooded):
                continue
            reported.add(sentence.words)
            own = words_of(sentence)
            foreign = sum(everywhere[word] <= max(1, repeated[sentence.words]) for word in own) / (
                len(own) or 1
            )
            strength = intent.strength * (STRENGTHS.buried_base + STRENGTHS.buried_foreign * foreign)
            if layer == "user" and foreign >= STRENGTHS.buried_alien and len(telling) <= _FEW:
                strength = intent.strength + STRENGTHS.buried_more
            if layer == "application" and reading.is_for_people and not read.is_for_machines:
                strength *= STRENGTHS.for_people
            if flooded:
                strength += STRENGTHS.flooded * (1 - strength)
            start, end = sentence.quote()
            note = f"The {_LAYERS[layer]} hides a short order in {size:,} characters about something else"
            yield Finding("context_saturation", min(strength, STRENGTHS.buried_most), layer, start, end, note)


def _shown(plain: str) -> str:
    """The first words of what was hidden."""
    return plain if len(plain) <= SHOWN else plain[:SHOWN].rpartition(" ")[0] or plain[:SHOWN]


@lru_cache(maxsize=4)
def visible_words(text: str) -> frozenset[str]:
    """The words of a text as they stand."""
    words = _WORD.findall(text.lower())
    return frozenset(words).union(*(_PART.findall(word) for word in words if not word.isalnum()))


def _share_disguised(read: ReadSentence, shown: frozenset[str]) -> float:
    words = read.sentence.words
    return sum(word not in shown for word in words if word[0].isalnum()) / len(words)


def _is_disguised(read: ReadSentence, intent: Intent, shown: frozenset[str]) -> bool:
    """Whether a word that makes the intent is only in the plain text: x86 beside it disguises nothing."""
    sentence = read.sentence
    return any(
        sentence.bits[place] and sentence.words[place] not in shown
        for place in range(max(0, intent.first), intent.last + 1)
    )


def _guarded_words(reads: tuple[ReadSentence, ...]) -> set[str]:
    return {
        word
        for read in reads
        for word, bits in zip(read.sentence.words, read.sentence.bits, strict=True)
        if bits & k("GUARDED")
    }


def _asks_to_obey(read: ReadSentence) -> bool:
    """Whether the visible text asks to act on what is hidden."""
    mask = read.sentence.mask
    return bool(
        mask & k("DECODE")
        and read.orders
        and {"follow", "do", "execute", "obey", "run", "act"} & set(read.sentence.words)
    )


_PATTERNS = {
    "config": "polite_extraction",
    "secret": "polite_extraction",
    "private": "polite_extraction",
    "guarded": "polite_extraction",
    "override": "role_confusion",
    "unbound": "role_confusion",
    "mode": "role_confusion",
}
