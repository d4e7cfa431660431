"""How a reader takes part in the dialogue: what it states alone, and how its peers' words move it.

Alone a reader holds back (`RESERVE`): what one method suspects is an alarm only where it is nearly sure. In
later rounds it reads the words its peers quoted with its own method, confirms their type where it sees it,
says so where it sees nothing, and gives up its reserve as far as another reader suspects the same words. So F
only rises, at most to what the reader believed from the start, and the maximum over rounds stays the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firecircle.circle.voice import Peer, PeerQuote
from firecircle.voices.embedded.language.prompt_reading import UNVOUCHED, PromptReading
from firecircle.voices.embedded.lenses.findings import Finding, Place, Reader, Reread, log_odds, probability

RESERVE = 0.9
"""Log-odds that a reader holds back while it is alone in what it sees, unless it states another reserve."""
SHARE, MOST = 0.3, 3.0
"""How much of a peer's log-odds about the same words comes off the reserve, and the most that is counted."""
ALARMED, ENOUGH = 0.7, 0.5
"""From this falsehood of a peer on, that share of the usual strength and type is enough to confirm its words:
where another method is sure already, less evidence of one's own tips the balance (decision 099)."""
CONTESTED = 0.05
"""Below this a reader says that it sees nothing in a peer's words."""


class Heard(NamedTuple):
    """Words that a peer quoted, how alarmed the peer is, and what the reader makes of them itself."""

    label: str
    falsehood: float
    quote: PeerQuote
    reread: Reread
    confirmed: bool
    """The reader sees the peer's type in them too."""

    @property
    def contested(self) -> bool:
        """The reader sees nothing there."""
        return not self.confirmed and self.reread.strength < CONTESTED


def alone(strength: float, reserve: float = RESERVE) -> float:
    """The falsehood a reader states while no peer has said anything about the same words."""
    return probability(log_odds(strength) - reserve)


def hear(reader: Reader, reading: PromptReading, peers: Sequence[Peer]) -> tuple[Heard, ...]:
    """Every passage that peers quoted, read again with the reader's own method."""
    rereads: dict[Place, Reread] = {}
    heard = []
    for peer in peers:
        share = ENOUGH if peer.evaluation.falsehood >= ALARMED else 1.0
        for quote in peer.quotes:
            if quote.layer not in UNVOUCHED:
                continue
            place = (quote.layer, quote.start, quote.end)
            if place not in rereads:
                rereads[place] = reader.reread(reading, *place)
            reread = rereads[place]
            confirmed = (
                quote.pattern is not None
                and reread.strength >= reader.confirms_from * share
                and reread.types.get(quote.pattern, 0.0) >= reader.type_from * share
            )
            heard.append(Heard(peer.label, peer.evaluation.falsehood, quote, reread, confirmed))
    return tuple(heard)


def falsehood(reader: Reader, own: Sequence[Finding], heard: Sequence[Heard]) -> float:
    """What the reader believes, less its reserve, which shrinks where a peer suspects the same words."""
    stated = [alone(reader.weigh(own), reader.reserve)]
    for finding in own:
        alarms = [each.falsehood for each in heard if finding.touches(*each.quote[1:])]
        if alarms and finding.strength >= reader.confirms_from:
            stated.append(lifted(finding.strength, max(alarms), reader.reserve))
    stated += [
        lifted(each.reread.strength, each.falsehood, reader.reserve)
        for each in heard
        if each.reread.strength >= reader.confirms_from
    ]
    return round(max(stated), 4)


def lifted(strength: float, alarm: float, reserve: float = RESERVE) -> float:
    """The falsehood of words that a peer suspects as well, whose own falsehood is `alarm`."""
    loudness = min(MOST, max(0.0, log_odds(alarm) + RESERVE))
    return probability(log_odds(strength) - max(0.0, reserve - SHARE * loudness))
