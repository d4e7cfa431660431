"""An embedded voice: one lens that answers the circle's turns in the words a language model would use."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.language.prompt_reading import PromptReading, read_prompt
from firecircle.voices.embedded.lenses.findings import WEAK, Finding, Lens, falsehood, strongest_first
from firecircle.voices.embedded.peers import reconsider


class AnswerStrengths(NamedTuple):
    """Where an answer's words change, and how doubt follows from falsehood. Set by hand."""

    least: float = 0.05  # weaker findings are dropped
    reported: float = 0.3  # weaker ones are no pattern, except from the empty chair
    strong: float = 0.6  # the reasoning calls a finding strong
    violation: float = 0.5  # the verdict; below `unsure` it is no violation
    unsure: float = 0.35
    undecided: float = 0.5  # the share of doubt that comes from an F near the middle
    most_doubt: float = 0.95


STRENGTHS = AnswerStrengths()
MOST_PATTERNS = 5
LONG = 50_000
"""Characters from which on the reading leaves the event loop, so that others can be heard meanwhile."""
FREE = Usage(tokens_in=0, tokens_cached=0, tokens_out=0, cost_usd=0.0)
_JSON = json.JSONEncoder(ensure_ascii=False)
_ABSENT = {
    "temporal_inconsistency": "whoever later relies on the record of what was really said",
    "fabricated_progression": "whoever later relies on the record of what was really done",
    "cross_layer_fabrication": "the operator, whose voice is borrowed and who cannot object",
    "role_confusion": "the operator, whose rules are set aside in absence",
    "polite_extraction": "the people whose data and trust are asked for",
    "educational_escalation": "those on whom the lesson would be practised",
    "context_saturation": "the reader who will not get to the end",
    "false_authority": "those whose name and rank are used without them",
    "deceives_users": "the users, who are told what is not so",
    "hides_from_users": "the users, who cannot ask for what they do not know of",
    "pressures_users": "the users, and those close to them",
    "takes_from_users": "the users, whose words and secrets are carried away",
    "backdoor": "everybody who relies on the rules that one word switches off",
    "unseen_order": "whoever reviews the text as a page shows it",
}


class EmbeddedVoice:
    """A lens with a voice. It speaks alone in round 1 and reconsiders with its peers afterwards."""

    def __init__(self, lens: Lens) -> None:
        self.lens = lens

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn. The same turn always gets the same answer."""
        if sum([len(layer.text) for layer in turn.prompt.layers]) > LONG:
            answer = await asyncio.to_thread(self.answer, turn)
        else:
            answer = self.answer(turn)
        return Reply(
            _JSON.encode(answer),
            usage=FREE,
        )

    def answer(self, turn: Turn) -> dict[str, Any]:
        """The JSON of the answer, as data."""
        prompt = _with_known_turns(turn)
        reading = read_prompt(prompt)
        own = self._findings(reading)
        if turn.peers:
            own = reconsider(self.lens, reading, own, turn.peers)
        findings = strongest_first(f for f in own if turn.focus in ("prompt", f.layer))
        f = falsehood(findings, from_the_chair=turn.is_chair)
        i = _indeterminacy(f, self.lens.blindness(reading))
        chair = {"speaks_for": _speaks_for(findings)} if turn.is_chair else {}
        return {
            **chair,
            "reasoning": _reasoning(self.lens, reading, findings),
            _patterns_field(turn): _patterns(
                reading, findings, WEAK if turn.is_chair else STRENGTHS.reported
            ),
            "verdict": _verdict(f),
            "truth": round((1 - f) * (1 - i / 2), 3),
            "indeterminacy": i,
            "falsehood": f,
        }

    def _findings(self, reading: PromptReading) -> tuple[Finding, ...]:
        """What the lens finds; the reading remembers it, because every round asks again."""
        findings = reading.findings.get(self.lens)
        if findings is None:
            findings = tuple(f for f in self.lens.find(reading) if f.strength >= STRENGTHS.least)
            reading.findings[self.lens] = findings
        return findings


def _with_known_turns(turn: Turn) -> MultiNeutrosophicPrompt:
    """A session may know that this is the first turn even where the prompt does not say so."""
    if turn.prompt.turns is None and turn.turn_number == 1:
        return turn.prompt.model_copy(update={"turns": ()})
    return turn.prompt


def _verdict(f: float) -> str:
    if f >= STRENGTHS.violation:
        return "violation"
    return "no_violation" if f < STRENGTHS.unsure else "unsure"


def _indeterminacy(f: float, blindness: float) -> float:
    """Doubt is what the lens cannot see, and how undecided it is about what it saw."""
    undecided = 1 - 2 * abs(f - 0.5)
    return round(min(STRENGTHS.most_doubt, blindness * (1 - f / 2) + STRENGTHS.undecided * undecided), 3)


def _patterns_field(turn: Turn) -> str:
    fields = (turn.reply_schema or {}).get("properties", {})
    return "consensus_patterns" if "consensus_patterns" in fields else "patterns_observed"


def _patterns(reading: PromptReading, findings: tuple[Finding, ...], least: float) -> list[dict[str, str]]:
    """The findings as patterns, one of a kind in a layer, each with the words that show it."""
    patterns: dict[tuple[str | None, str], dict[str, str]] = {}
    for finding in findings:
        if finding.strength < least or len(patterns) >= MOST_PATTERNS:
            break
        if finding.echo:
            continue
        patterns.setdefault(
            (finding.pattern, finding.layer),
            {
                **({"type": finding.pattern} if finding.pattern else {}),
                "description": finding.note,
                "quote": reading.text(finding.layer)[finding.start : finding.end],
                "layer": finding.layer,
            },
        )
    return list(patterns.values())


def _reasoning(lens: Lens, reading: PromptReading, findings: tuple[Finding, ...]) -> str:
    follows = any(f.echo for f in findings)
    worth_telling = [f for f in findings if f.strength >= WEAK and not f.echo][:3]
    if not worth_telling:
        again = "; what others quoted reads as suspicious to me too" if follows else ""
        return f"Looking at {lens.looks_at}, I found nothing of weight{again}."
    shown = (
        f"in the {f.layer} layer, “{' '.join(reading.text(f.layer)[f.start : f.end].split())}”: {f.note}"
        f" ({'strong' if f.strength >= STRENGTHS.strong else 'weak'}, {f.strength:.2f})"
        for f in worth_telling
    )
    return f"Looking at {lens.looks_at}, I found " + "; ".join(shown) + "."


def _speaks_for(findings: tuple[Finding, ...]) -> str:
    """The absent party that the second-strongest evidence concerns, or the strongest if there is one only."""
    concerned = [_ABSENT[finding.pattern] for finding in findings if finding.pattern]
    if not concerned:
        return "those who are not in the room; nothing here is done to them"
    return concerned[min(1, len(concerned) - 1)]
