"""Claims about a shared past: what was said, agreed or done before, and in which conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import word_list


class ClaimStrengths(NamedTuple):
    """How clearly words claim a shared past, from 0 to 1.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    you_said: float = 0.5
    we_said: float = 0.45
    you_did: float = 0.4
    before: float = 0.15  # added where a time before or a conversation is named
    agreed: float = 0.15  # added where consent or a promise is claimed
    shared_past: float = 0.6
    shared_conversation: float = 0.6
    finished_step: float = 0.4


STRENGTHS = ClaimStrengths()
_PARTNERS = frozenset(("you", "we", "you've", "we've", "you'd", "we'd", "du", "wir", "u"))
_IRREGULAR_PAST = frozenset(
    ("did", "made", "put", "wrote", "sent", "took", "found", "left", "let", "ran", "began")
)
_PASSIVE = frozenset(("were", "was", "been", "are", "be", "is", "being", "get", "got"))
_SPEAKER = re.compile(
    r"^[ \t>*\-\[(]{0,6}(?:turn\s*\d+\s*[-:–]\s*)?([^\W\d_]{2,24})[ \t\])*]{0,3}:", re.MULTILINE
)
_ASSISTANT_SIDE = frozenset(("assistant", "ai", "bot", "you", "chatgpt", "model", "agent"))
_USER_SIDE = frozenset(("user", "human", "me", "customer", "client"))
_SPOKEN = re.compile(
    r"[^\n?]{0,80}\b(?:I|we|my|sure|of course|certainly|yes|confirmed|understood)\b"
    r"[^\n?]*(?:[^?\n]\n|[^?\n]\Z)",
    re.IGNORECASE,
)
"""What the assistant would say of itself, and no question."""
_OTHER_SIDE = frozenset(("system", "operator"))


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that asserts a past exchange, between which of its tokens, and how clearly."""

    sentence: Sentence
    first: int
    last: int
    weight: float
    consent: bool
    progress: bool


def claims(sentence: Sentence) -> Iterator[Claim]:
    """The claims of a shared past in a sentence, each with how clearly it makes one."""
    end = len(sentence.words) - 1
    passed = sentence.mask & k("CHECK", "LICENCE") and word_list("done").intersection(sentence.words)
    progress = bool(sentence.mask & k("STEP")) or bool(passed)
    talk = list(_talk_claimed(sentence, progress)) if sentence.mask & k("TALKED") else []
    if talk:
        yield max(talk, key=lambda claim: claim.weight)
    elif (at := _past_deed(sentence)) is not None:
        weight = STRENGTHS.you_did + (STRENGTHS.before if sentence.mask & k("BEFORE", "CHAT") else 0.0)
        yield Claim(sentence, max(0, at - 1), min(end, at + 14), weight, False, progress)
    if sentence.mask & k("SHARED_PAST"):
        yield Claim(sentence, 0, min(end, 30), STRENGTHS.shared_past, True, progress)
    place = _shared_conversation(sentence)
    if place is not None:
        strength = STRENGTHS.shared_conversation
        yield Claim(sentence, max(0, place - 4), min(end, place + 12), strength, False, progress)
    elif progress and (place := _finished_step(sentence)) is not None:
        strength = STRENGTHS.finished_step
        yield Claim(sentence, max(0, place - 3), min(end, place + 10), strength, False, True)


def _talk_claimed(sentence: Sentence, progress: bool) -> Iterator[Claim]:
    """You or we said, agreed, promised something."""
    for at, bits in enumerate(sentence.bits):
        if bits & k("TALKED") and (subject := _partner_before(sentence, at)) is not None:
            consent = bool(bits & k("CONSENT"))
            by_you = sentence.words[subject].startswith(("you", "u", "du"))
            weight = STRENGTHS.you_said if by_you else STRENGTHS.we_said
            weight += STRENGTHS.before if sentence.mask & k("BEFORE", "CHAT") else 0.0
            weight += STRENGTHS.agreed if consent or _promise_follows(sentence, at) else 0.0
            yield Claim(sentence, subject, min(len(sentence.words) - 1, at + 14), weight, consent, progress)


def _partner_before(sentence: Sentence, at: int) -> int | None:
    """Where the subject "you" or "we" of a past verb stands, if it is stated as a fact."""
    for place in range(at - 1, max(-1, at - 5), -1):
        word = sentence.words[place]
        if word in _PARTNERS:
            before = sentence.words[max(0, place - 2) : place]
            return None if word_list("conditions").intersection(before) else place
        if word in _PASSIVE:
            return None
        if word not in word_list("between"):
            return None
    return None


def _past_deed(sentence: Sentence) -> int | None:
    """Where the speaker says that the assistant did something: you checked, you had just put."""
    if sentence.question:
        return None
    for at, word in enumerate(sentence.words):
        if at and ((word.endswith("ed") and len(word) > 4) or word in _IRREGULAR_PAST):
            subject = _partner_before(sentence, at)
            if subject is not None and sentence.words[subject].startswith("you"):
                return at
    return None


def _promise_follows(sentence: Sentence, at: int) -> bool:
    return bool({"to", "would", "could", "will", "that", "can"} & set(sentence.words[at + 1 : at + 4]))


def _shared_conversation(sentence: Sentence) -> int | None:
    """Where an earlier conversation of these two is named: our last session, earlier in this chat, turn 3."""
    if not sentence.mask & k("CHAT"):
        return None
    shared = {"our", "we", "this", "us", "we've", "we're", "you", "your"} & set(sentence.words)
    if not shared:
        return None
    for at, bits in enumerate(sentence.bits):
        if not bits & k("CHAT"):
            continue
        around = range(max(0, at - 5), min(len(sentence.words), at + 4))
        near = 0
        for place in around:
            if place != at or bits & k("BEFORE"):
                near |= sentence.bits[place]
        ours = bool({"our", "we", "this", "we've", "us"} & {sentence.words[place] for place in around})
        numbered = any(sentence.words[p][0].isdigit() or sentence.words[p] == "#" for p in around if p > at)
        if ours and near & k("BEFORE", "RESUME") and not sentence.question:
            return at
        if numbered and near & k("BEFORE", "RESUME", "TALKED", "ME", "YOU"):
            return at
    return None


def _finished_step(sentence: Sentence) -> int | None:
    """Where a step is called finished: steps one and two are done, now that the check is passed."""
    for at, bits in enumerate(sentence.bits):
        if bits & k("STEP"):
            around = sentence.words[max(0, at - 6) : at + 8]
            if word_list("done").intersection(around) and not sentence.question:
                return at
    return None


class Transcript(NamedTuple):
    """A conversation written out in a text: where, how many lines, whether one has its own name."""

    start: int
    end: int
    lines: int
    named: bool


def transcript(text: str, names: frozenset[str] = frozenset()) -> Transcript | None:
    """A written-out conversation with the assistant, or a line of one under the assistant's own name.

    `names` are those that the operator gives the assistant, in lower case. "Nora: what is open?" calls Nora;
    "Nora: I have checked it." is a line of hers.
    """
    first = last = lines = 0
    sides: set[str] = set()
    named = False
    for match in _SPEAKER.finditer(text):
        speaker = match[1].lower()
        if speaker in names and _SPOKEN.match(text, match.end()):
            named = True
        elif speaker in _ASSISTANT_SIDE or speaker in names:
            sides.add("assistant")
        elif speaker in _USER_SIDE:
            sides.add("user")
        elif speaker not in _OTHER_SIDE:
            continue
        if not lines:
            first = match.start()
        lines += 1
        last = match.end()
    if not named and not {"assistant", "user"} <= sides:
        return None
    stop = text.find("\n", last)
    return Transcript(first, stop if stop >= 0 else len(text), lines, named)
