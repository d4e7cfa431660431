"""The lens of authority: rank, permission or urgency claimed by a voice that nobody vouches for."""

from __future__ import annotations

from typing import NamedTuple

from firecircle.voices.embedded.language.objects import TELLING
from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.lenses.findings import Finding

REQUESTS = ("config", "secret", "private", "guarded", "unchecked", "override", "lifted", "unbound", "mode")
"""What a claimed rank is used for; a teacher who asks for a lesson plan uses hers for nothing."""


class AuthorityStrengths(NamedTuple):
    """How much each claim counts, from 0 to 1.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    claim_alone: float = 0.1  # a claim that carries no request
    rank: float = 0.75  # a rank with the request it carries
    licence: float = 0.65  # a permission with the request it carries
    carried_least: float = 0.25  # the weakest request a claim can carry
    carried_base: float = 0.55  # of a claim's strength, what it has with any request
    carried_share: float = 0.6  # and what the request's own strength adds
    carried_most: float = 0.92
    mode: float = 0.9  # of the intent to switch to a mode of power
    excused: float = 0.7  # of an intent that a purpose or urgency excuses
    in_a_game: float = 0.7  # what is left of a claim that is part of a game
    for_people: float = 0.3  # what is left of a claim in a document that is written for people
    asks_with_it: float = 0.2  # above this the note says that something protected is asked for
    support_intent: float = 0.7  # of an intent in quoted words that lean on a right
    support_consent: float = 0.4  # claimed consent where something protected is asked for
    support_consent_alone: float = 0.2
    blind: float = 0.2
    blind_without_operator: float = 0.35


STRENGTHS = AuthorityStrengths()
_ARTICLES = frozenset(("a", "an", "the", "your", "our", "one"))
_SELF = frozenset((("i", "am"), ("this", "is"), ("i", "act"), ("we", "are"), ("name", "is"), ("it's", "the")))


class AuthorityLens:
    """Who the speaker claims to be, what they claim to be allowed, and what they want with it."""

    name = "authority"
    looks_at = "claimed rank, permission and urgency"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Claims of rank or permission, weighed by the request they are meant to carry."""
        claims: list[Finding] = []
        for layer, reads in (("user", reading.user), ("application", reading.application)):
            request = reading.strongest(layer, *REQUESTS)
            if layer == "application" and request < TELLING:
                request = 0.0  # a document that speaks of a check asks the assistant for nothing
            for read in reads:
                finding = self._judge(reading, read, request)
                if finding is not None:
                    claims.append(finding)
        return tuple(claims)

    def support(self, reading: PromptReading, layer: str, start: int, end: int) -> float:
        """How strongly these words lean on a claimed right: a rank, a permission, somebody's consent."""
        best = 0.0
        for read in reading.at(layer, start, end):
            mask = read.sentence.mask
            intent = read.strongest(*REQUESTS)
            if intent and mask & k("LICENCE", "CONSENT", "URGENT", "SYSTEM", "RANK", "POWER", "WARRANT"):
                best = max(best, STRENGTHS.support_intent * intent.strength)
            if mask & k("LICENCE", "CONSENT") and mask & k("YOU", "ME", "GUARDED", "GATED"):
                protected = reading.strongest(layer, *REQUESTS) >= TELLING or mask & k("GUARDED", "GATED")
                best = max(best, STRENGTHS.support_consent if protected else STRENGTHS.support_consent_alone)
        return best

    def blindness(self, reading: PromptReading) -> float:
        """Whether a claim is true can be known only from what the operator said."""
        return STRENGTHS.blind if reading.prompt.system else STRENGTHS.blind_without_operator

    def _judge(self, reading: PromptReading, read: ReadSentence, request: float) -> Finding | None:
        sentence = read.sentence
        rank = _rank_claimed(read) or _command_claimed(read)
        licence = _licence_claimed(read)
        mode = read.strongest("mode")
        if rank is not None:
            strength, (first, last), note = _carried(request, STRENGTHS.rank), rank, "claims a rank"
        elif licence is not None:
            strength, (first, last) = _carried(request, STRENGTHS.licence), licence
            note = "claims a permission"
        elif mode is not None:
            strength, (first, last) = mode.strength * STRENGTHS.mode, (mode.first, mode.last)
            note = "switches to a mode of power"
            if sentence.layer == "application" and not sentence.mask & k("YOU", "MACHINE"):
                strength *= STRENGTHS.for_people
        elif sentence.mask & k("PRETEXT", "URGENT") and (intent := read.strongest(*REQUESTS)):
            strength, (first, last) = STRENGTHS.excused * intent.strength, (intent.first, intent.last)
            note = "excuses a protected request with a purpose or urgency"
        else:
            return None
        if reading.is_a_game:
            strength *= STRENGTHS.in_a_game
        if sentence.layer == "application" and reading.is_for_people and not read.is_for_machines:
            strength *= STRENGTHS.for_people
        if strength > STRENGTHS.asks_with_it:
            note += " nobody vouches for, and asks for something protected with it"
        start, end = sentence.quote(first, last)
        return Finding("false_authority", strength, sentence.layer, start, end, note)


def _carried(request: float, full: float) -> float:
    """A claim is worth little alone and about `full` with the request it carries."""
    if request < STRENGTHS.carried_least:
        return STRENGTHS.claim_alone
    return min(STRENGTHS.carried_most, full * (STRENGTHS.carried_base + STRENGTHS.carried_share * request))


def _rank_claimed(read: ReadSentence) -> tuple[int, int] | None:
    """Where the speaker says who they are: as the X, I'm from X, this is X, X speaking."""
    sentence = read.sentence
    if not sentence.mask & k("RANK", "BODY"):
        return None
    for at, bits in enumerate(sentence.bits):
        if not bits & k("RANK", "BODY"):
            continue
        first = max(0, at - 8)
        before = sentence.words[first:at]
        if {"you", "act", "pretend", "not", "if"} & set(before):
            continue
        if sentence.words[at + 1 : at + 2] == ("you",):
            continue  # "as a developer you" speaks of the reader
        if _introduces(before) or "speaking" in sentence.words[at : at + 4]:
            return first, min(len(sentence.words) - 1, at + 8)
    return None


def _command_claimed(read: ReadSentence) -> tuple[int, int] | None:
    """Where the speaker commands by right: I'm instructing you, you are obliged, by ministerial authority."""
    sentence = read.sentence
    if not sentence.mask & k("OBLIGE", "WARRANT"):
        return None
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits):
        orders_you = bits & k("OBLIGE") and sentence.words[at].endswith("ing") and sentence.mask & k("YOU")
        obliged = (
            bits & k("OBLIGE")
            and at > 1
            and sentence.words[at - 2] == "you"
            and sentence.words[at - 1] == "are"
        )
        if orders_you or obliged:
            return max(0, at - 4), min(end, at + 12)
        if bits & k("WARRANT") and sentence.mask & k("YOU", "MACHINE") and not sentence.question:
            return max(0, at - 6), min(end, at + 8)
    return None


def _introduces(before: tuple[str, ...]) -> bool:
    """Whether the words before a rank make it the speaker's own."""
    for at, word in enumerate(before):
        follows = before[at + 1] if at + 1 < len(before) else ""
        if word == "as" and (follows in _ARTICLES or not follows):
            return True
        if word in ("i'm", "we're") or (word, follows) in _SELF:
            return True
    return False


def _licence_claimed(read: ReadSentence) -> tuple[int, int] | None:
    """Where the sentence claims that somebody has permission."""
    sentence = read.sentence
    if not sentence.mask & k("LICENCE") or (sentence.question and not sentence.mask & k("ME")):
        return None
    for at, bits in enumerate(sentence.bits):
        if bits & k("LICENCE") and sentence.mask & k("ME", "HUMAN_USER", "RANK", "BODY"):
            around = sentence.words[max(0, at - 3) : at]
            if not {"not", "if", "whether", "need", "require", "without"} & set(around):
                return max(0, at - 6), min(len(sentence.words) - 1, at + 6)
    return None
