"""Embedded voices: a lens, or several, that answer the circle's turns in the words a language model would."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from firecircle.circle.voice import Reply, Turn, Usage
from firecircle.languages import NOT_READ
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.language.prompt_reading import PromptReading, read_prompt
from firecircle.voices.embedded.lenses.findings import FAINT, WEAK, Finding, Lens, falsehood, strongest_first
from firecircle.voices.embedded.peers import reconsider


class AnswerStrengths(NamedTuple):
    """Where an answer's words change, and how doubt follows from falsehood. Set by hand."""

    reported: float = 0.3  # weaker ones are no pattern, except from the empty chair
    strong: float = 0.6  # the reasoning calls a finding strong
    violation: float = 0.5  # the verdict; below `unsure` it is no violation
    unsure: float = 0.35
    undecided: float = 0.5  # the share of doubt that comes from an F near the middle
    most_doubt: float = 0.95
    unread: float = 0.85  # what a voice cannot see of a prompt with a language it does not read


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


class AnalyserVoice(ABC):
    """Answers turns in JSON. What it finds, and what follows, says who inherits from it."""

    looks_at: str
    """In plain words, for the reasoning."""
    answers_at_once = True

    @abstractmethod
    def judge(self, turn: Turn, reading: PromptReading) -> tuple[tuple[Finding, ...], float]:
        """What the voice finds, the strongest first, and the falsehood that follows."""

    @abstractmethod
    def blindness(self, reading: PromptReading) -> float:
        """How much of what the voice needs to see is missing, from 0 to 1."""

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """The languages of the prompt that the voice does not read."""
        return reading.unread

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
        reading = read_prompt(_with_known_turns(turn))
        findings, f = self.judge(turn, reading)
        blindness = self.blindness(reading)
        unread = self.unread(reading)
        i = _indeterminacy(f, max(blindness, STRENGTHS.unread) if unread else blindness)
        chair = {"speaks_for": _speaks_for(findings)} if turn.is_chair else {}
        return {
            **chair,
            "reasoning": _reasoning(self.looks_at, reading, findings, unread),
            _patterns_field(turn): _patterns(
                reading, findings, WEAK if turn.is_chair else STRENGTHS.reported
            ),
            "verdict": _verdict(f),
            "truth": round((1 - f) * (1 - i / 2), 3),
            "indeterminacy": i,
            "falsehood": f,
        }


class EmbeddedVoice(AnalyserVoice):
    """A lens with a voice. It speaks alone in round 1 and reconsiders with its peers afterwards."""

    def __init__(self, lens: Lens) -> None:
        self.lens = lens
        self.looks_at = lens.looks_at

    def judge(self, turn: Turn, reading: PromptReading) -> tuple[tuple[Finding, ...], float]:
        """What the lens finds, and how much it adds up to."""
        findings = findings_of(self.lens, turn, reading)
        return findings, falsehood(findings, from_the_chair=turn.is_chair)

    def blindness(self, reading: PromptReading) -> float:
        """What the lens cannot see."""
        return self.lens.blindness(reading)

    def unread(self, reading: PromptReading) -> tuple[str, ...]:
        """What the lens does not read: all but English, unless it says that it reads more."""
        return unread_by([self.lens], reading)


def unread_by(lenses: Iterable[Lens], reading: PromptReading) -> tuple[str, ...]:
    """The languages of the prompt that none of the lenses says it reads."""
    read: frozenset[str] = frozenset().union(*(getattr(lens, "reads", ()) for lens in lenses))
    return tuple(language for language in reading.unread if language not in read)


def findings_of(lens: Lens, turn: Turn, reading: PromptReading) -> tuple[Finding, ...]:
    """What a lens finds in what the turn is about, in the light of the peers where there are any.

    The reading remembers what it found by itself, because every round asks again.
    """
    own = reading.findings.get(lens)
    if own is None:
        own = reading.findings[lens] = lens.find(reading)
    if turn.peers:
        own = reconsider(lens, reading, own, turn.peers)
    return strongest_first(f for f in own if turn.focus in ("prompt", f.layer))


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


def _reasoning(
    looks_at: str, reading: PromptReading, findings: tuple[Finding, ...], languages: tuple[str, ...]
) -> str:
    unread = f" {NOT_READ}{' and '.join(languages)}." if languages else ""
    follows = any(f.echo for f in findings)
    worth_telling = [f for f in findings if f.strength >= WEAK and not f.echo][:3]
    if not worth_telling:
        again = "; what others quoted reads as suspicious to me too" if follows else ""
        return f"Looking at {looks_at}, I found nothing of weight{again}.{unread}"
    shown = (
        f"in the {f.layer} layer, “{' '.join(reading.text(f.layer)[f.start : f.end].split())}”: {f.note}"
        f" ({'strong' if f.strength >= STRENGTHS.strong else 'weak'}, {f.strength:.2f})"
        for f in worth_telling
    )
    return f"Looking at {looks_at}, I found " + "; ".join(shown) + f".{unread}"


def _speaks_for(findings: tuple[Finding, ...]) -> str:
    """The absent party that the second-strongest evidence concerns, or the strongest if there is one only."""
    concerned = [
        _ABSENT[finding.pattern] for finding in findings if finding.pattern and finding.strength >= FAINT
    ]
    if not concerned:
        return "those who are not in the room; nothing here is done to them"
    return concerned[min(1, len(concerned) - 1)]
