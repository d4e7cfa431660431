"""What a lens makes of its peers: it reads the words they quote itself, and trusts none of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from firecircle.circle.voice import Peer
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.language.prompt_reading import UNVOUCHED, PromptReading
from firecircle.voices.embedded.lenses.findings import FAINT, STRONG, WEAK, Finding, Lens


class DialogueStrengths(NamedTuple):
    """How far peers move a lens, up and down.

    Set by hand on the development prompts of all but five sources; `bench.detection` counts the moves.
    """

    lift: tuple[float, ...] = (0.5, 0.3, 0.2)  # of peers' alarm about the same words, the loudest first
    in_documents: float = 0.5  # of that lift: what alarms one lens in a document alarms the others likewise
    confirmed_lift: float = 0.25  # of a peer's alarm about words that only the peer had noticed
    drop: float = 0.6  # what is left of a weak finding when nobody else sees anything there
    confirm: float = 0.3  # how strongly a lens must read a peer's words itself to confirm its pattern
    alarmed: float = 0.4  # a peer whose falsehood is below this sees nothing to speak of


STRENGTHS = DialogueStrengths()


class PeerQuote(NamedTuple):
    """Words of the prompt that a peer quoted: where they stand, and how alarmed the peer is."""

    label: str
    falsehood: float
    layer: str
    start: int
    end: int


def reconsider(
    lens: Lens, reading: PromptReading, own: Sequence[Finding], peers: Sequence[Peer]
) -> tuple[Finding, ...]:
    """The lens's own findings in the light of the peers' quotes, and quoted words it finds suspicious too.

    A peer's type is never taken over: who names a type must see it. Who agrees is counted from the
    answers, and does not stand in their words.
    """
    quotes = tuple(_peer_quotes(peers, reading.prompt))
    alarmed = any(peer.evaluation.falsehood >= STRENGTHS.alarmed for peer in peers)
    weighed = tuple(_weigh_again(finding, quotes, alarmed) for finding in own)
    return (*weighed, *_confirmed(lens, reading, own, quotes))


def _weigh_again(finding: Finding, quotes: Iterable[PeerQuote], alarmed: bool) -> Finding:
    alarms: dict[str, float] = {}
    for quote in quotes:
        if quote.falsehood >= STRENGTHS.alarmed and finding.touches(quote.layer, quote.start, quote.end):
            alarms[quote.label] = quote.falsehood
    if finding.strength >= WEAK and alarms:
        doubt = 1 - finding.strength
        loudest_first = sorted(alarms, key=lambda label: (-alarms[label], label))[: len(STRENGTHS.lift)]
        for label, share in zip(loudest_first, STRENGTHS.lift, strict=False):
            doubt *= 1 - share * alarms[label]
        rise = 1 - doubt - finding.strength
        if finding.layer == "application":
            rise *= STRENGTHS.in_documents
        return finding._replace(strength=finding.strength + rise)
    if not alarmed and finding.strength < STRONG:
        return finding._replace(strength=finding.strength * STRENGTHS.drop)
    return finding


def _confirmed(
    lens: Lens, reading: PromptReading, own: Sequence[Finding], quotes: Iterable[PeerQuote]
) -> Iterator[Finding]:
    """Words that only peers had noticed and that this lens, reading them, finds suspicious as well."""
    loudest: dict[tuple[str, int, int], float] = {}
    noticed = [finding for finding in own if finding.strength >= FAINT]
    for quote in quotes:
        place = (quote.layer, quote.start, quote.end)
        if quote.falsehood >= STRENGTHS.alarmed and not any(finding.touches(*place) for finding in noticed):
            loudest[place] = max(loudest.get(place, 0.0), quote.falsehood)
    for place, alarm in loudest.items():
        support = lens.support(reading, *place)
        if support >= STRENGTHS.confirm:
            strength = 1 - (1 - support) * (1 - STRENGTHS.confirmed_lift * alarm)
            yield Finding(None, strength, *place, "reads as suspicious", echo=True)


def _peer_quotes(peers: Iterable[Peer], prompt: MultiNeutrosophicPrompt) -> Iterator[PeerQuote]:
    for peer in peers:
        for quote in peer.quotes:
            for layer in UNVOUCHED:
                start = str(getattr(prompt, layer)).find(quote)
                if start >= 0:
                    yield PeerQuote(peer.label, peer.evaluation.falsehood, layer, start, start + len(quote))
                    break
