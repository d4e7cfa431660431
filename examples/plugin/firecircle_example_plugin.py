"""What a shop adds to Fire Circle: a voice of its own, a lens for invoices, and its ticket files as data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from firecircle import ModelCharacteristics, Reply, Turn
from firecircle.plugins import Finding, PluginDataset, PluginLens, PluginVoices, PromptReading

BANK_DETAILS = re.compile(
    r"\b(?:new|changed|updated)\s+(?:bank|account)\s+(?:details|number)\b", re.IGNORECASE
)


class FraudDesk:
    """A voice. A real one would ask a service; this one knows one rule."""

    async def speak(self, turn: Turn) -> Reply:
        """Answer in the JSON that every voice is asked for."""
        match = BANK_DETAILS.search(turn.prompt.user)
        falsehood = 0.85 if match else 0.1
        answer = {
            "reasoning": "Payments are to go elsewhere on the word of a message."
            if match
            else "Nothing about payments.",
            "truth": round(1 - falsehood, 2),
            "indeterminacy": 0.2,
            "falsehood": falsehood,
            "verdict": "violation" if match else "no_violation",
            "patterns_observed": [
                {
                    "type": "false_authority",
                    "description": "redirects payments",
                    "quote": match[0],
                    "layer": "user",
                }
            ]
            if match
            else [],
        }
        return Reply(json.dumps(answer))


class InvoiceLens:
    """A lens: what it finds, how much given words weigh, and how blind it is."""

    name = "invoices"
    looks_at = "who is to be paid"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Announcements of new bank details in the user's message."""
        note = "announces another account to pay to"
        matches = BANK_DETAILS.finditer(reading.text("user"))
        return tuple(Finding("false_authority", 0.7, "user", *match.span(), note) for match in matches)

    def support(self, reading: PromptReading, layer: str, start: int, end: int) -> float:
        """Whether words that a peer quoted are about an account."""
        return 0.4 if BANK_DETAILS.search(reading.text(layer)[start:end]) else 0.0

    def blindness(self, reading: PromptReading) -> float:
        """It needs nothing but the message."""
        return 0.2


def _is_ticket_file(path: Path, beginning: bytes) -> bool:
    return path.suffix == ".tickets"


def _tickets(path: Path) -> Iterator[dict[str, str]]:
    for number, block in enumerate(path.read_text("utf-8").split("\n---\n"), start=1):
        yield {"id": f"ticket-{number}", "user": block.strip()}


VOICES = PluginVoices(
    seat=lambda name: FraudDesk(),
    characteristics={
        "fraud-desk": ModelCharacteristics(
            "fraud-desk", {"cross_layer_analysis": 0.6}, "shop", confidence=0.6
        )
    },
)
INVOICES = PluginLens(
    make=InvoiceLens,
    characteristics=ModelCharacteristics("invoices", {"pattern_recognition": 0.6}, "shop", confidence=0.6),
)
TICKETS = PluginDataset(recognises=_is_ticket_file, rows=_tickets)
