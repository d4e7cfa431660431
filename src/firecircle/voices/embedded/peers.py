"""What a lens makes of its peers: it reads the words they quote itself, and trusts none of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from firecircle.circle.pattern_types import MEANINGS
from firecircle.circle.voice import Peer
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.language.prompt_reading import UNVOUCHED, PromptReading
from firecircle.voices.embedded.lenses.findings import STRONG, WEAK, Finding, Lens


class DialogueStrengths(NamedTuple):
    """How far peers move a lens, up and down.

    Set by hand on the development prompts of all but five sources; `bench.detection` counts the moves.
    """

    lift: tuple[float, ...] = (0.5, 0.3, 0.2)  # of peers' alarm about the same words, the loudest first
    confirmed_lift: float = 0.25  # of a peer's alarm about words that only the peer had noticed
    drop: float = 0.6  # what is left of a weak finding when nobody else sees anything there
    confirm: float = 0.3  # how strongly a lens must read a peer's words itself to confirm its pattern
    alarmed: float = 0.4  # a peer whose falsehood is below this sees nothing to speak of


STRENGTHS = DialogueStrengths()
READ_AGAIN = "read again after"
"""Words in the note of a finding that a voice made only because a peer had quoted the quote."""
MEANING = {kind.value: meaning for kind, meaning in MEANINGS.items()}


class PeerQuote(NamedTuple):
    """Words of the prompt that a peer quoted: where they stand, what the peer calls it, how alarmed it is."""

    label: str
    falsehood: float
    pattern: str | None
    layer: str
    start: int
    end: int
    echo: bool
    """The peer noticed these words only because another peer quoted them: it agrees, but it is no witness."""


def reconsider(
    lens: Lens, reading: PromptReading, own: Sequence[Finding], peers: Sequence[Peer]
) -> tuple[Finding, ...]:
    """The lens's own findings in the light of the peers' quotes, and the peers' patterns it can confirm."""
    quotes = tuple(_peer_quotes(peers, reading.prompt))
    alarmed = any(peer.evaluation.falsehood >= STRENGTHS.alarmed for peer in peers)
    weighed = tuple(_weigh_again(finding, quotes, alarmed) for finding in own)
    return (*weighed, *_confirmed(lens, reading, own, quotes))


def _weigh_again(finding: Finding, quotes: Iterable[PeerQuote], alarmed: bool) -> Finding:
    alarms: dict[str, float] = {}
    for quote in quotes:
        heard = quote.falsehood >= STRENGTHS.alarmed and not quote.echo
        if heard and finding.touches(quote.layer, quote.start, quote.end):
            alarms[quote.label] = quote.falsehood
    if finding.strength >= WEAK and alarms:
        doubt = 1 - finding.strength
        loudest_first = sorted(alarms, key=lambda label: (-alarms[label], label))[: len(STRENGTHS.lift)]
        for label, share in zip(loudest_first, STRENGTHS.lift, strict=False):
            doubt *= 1 - share * alarms[label]
        who = " and ".join(loudest_first)
        verb = "points" if len(loudest_first) == 1 else "point"
        return finding._replace(strength=1 - doubt, note=f"{finding.note}; {who} {verb} at the same words")
    if not alarmed and finding.strength < STRONG:
        return finding._replace(
            strength=finding.strength * STRENGTHS.drop, note=f"{finding.note}; no peer sees anything there"
        )
    return finding


def _confirmed(
    lens: Lens, reading: PromptReading, own: Sequence[Finding], quotes: Iterable[PeerQuote]
) -> Iterator[Finding]:
    """The peers' patterns that this lens, reading the same words, supports."""
    done: set[tuple[str, str]] = set()
    for quote in quotes:
        if quote.pattern is None or quote.falsehood < STRENGTHS.alarmed:
            continue
        key = (quote.pattern, quote.layer)
        if key in done or any(f.pattern == quote.pattern and f.strength >= STRENGTHS.confirm for f in own):
            continue
        mine = max((f.strength for f in own if f.touches(quote.layer, quote.start, quote.end)), default=0.0)
        support = max(mine, lens.support(reading, quote.layer, quote.start, quote.end))
        if support >= STRENGTHS.confirm:
            done.add(key)
            note = f"{MEANING[quote.pattern]} ({READ_AGAIN} {quote.label} quoted it)"
            strength = 1 - (1 - support) * (1 - STRENGTHS.confirmed_lift * quote.falsehood)
            yield Finding(quote.pattern, strength, quote.layer, quote.start, quote.end, note, True)


def _peer_quotes(peers: Iterable[Peer], prompt: MultiNeutrosophicPrompt) -> Iterator[PeerQuote]:
    for peer in peers:
        notes = [note for note in peer.evaluation.pattern_notes if note.quote]
        named = {note.quote.strip(): note.type for note in notes if note.quote}
        seen = {note.quote.strip() for note in notes if note.quote and READ_AGAIN not in note.description}
        for quote in peer.quotes:
            for layer in UNVOUCHED:
                start = str(getattr(prompt, layer)).find(quote)
                if start >= 0:
                    words = quote.strip()
                    kind = named.get(words)
                    yield PeerQuote(
                        peer.label,
                        peer.evaluation.falsehood,
                        kind if kind in MEANING else None,
                        layer,
                        start,
                        start + len(quote),
                        words in named and words not in seen,
                    )
                    break
