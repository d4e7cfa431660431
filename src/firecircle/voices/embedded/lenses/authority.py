"""The lens of authority: a rank or a permission that the user claims, and nothing confirms."""

from __future__ import annotations

from typing import NamedTuple

from firecircle.voices.embedded.language.objects import TELLING
from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.lenses.extraction import PROTECTED
from firecircle.voices.embedded.lenses.findings import Finding

REQUESTS = (*PROTECTED, "override", "lifted", "unbound", "mode")
"""What a claimed rank is used for."""


class AuthorityStrengths(NamedTuple):
    """How much each claim counts, from 0 to 1.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    rank: float = 0.75  # a rank with the request it carries
    licence: float = 0.65  # a permission with the request it carries
    carried_least: float = 0.25  # the weakest request a claim can carry
    carried_base: float = 0.55  # of a claim's strength, what it has with any request
    carried_share: float = 0.6  # and what the request's own strength adds
    carried_most: float = 0.92
    carried_more: float = 0.03  # above the request itself, so that the claim names what is done
    in_a_game: float = 0.7  # what is left of a claim that is part of a game


STRENGTHS = AuthorityStrengths()
_ARTICLES = frozenset(("a", "an", "the", "your", "our", "one"))
_ORDERING = frozenset(("instructing", "ordering", "directing", "commanding"))
_SELF = frozenset((("i", "am"), ("this", "is"), ("i", "act"), ("we", "are"), ("name", "is"), ("it's", "the")))


class AuthorityLens:
    """Who the speaker claims to be, what they claim to be allowed, and what they want with it."""

    name = "authority"
    looks_at = "claimed rank and permission"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Claims of rank or permission in the user's message, weighed by the request they carry."""
        request = reading.strongest("user", *REQUESTS)
        if request < STRENGTHS.carried_least:
            return ()  # a teacher who asks for a lesson plan uses her rank for nothing
        judged = (self._judge(reading, read, request) for read in reading.user)
        return tuple(finding for finding in judged if finding is not None)

    def _judge(self, reading: PromptReading, read: ReadSentence, request: float) -> Finding | None:
        sentence = read.sentence
        if (place := _rank_claimed(read) or _command_claimed(read)) is not None:
            strength, claim = _carried(request, STRENGTHS.rank), "a rank"
        elif (place := _licence_claimed(read)) is not None:
            strength, claim = _carried(request, STRENGTHS.licence), "a permission"
        else:
            return None
        asked_for = reading.strongest("user", *PROTECTED)
        if asked_for >= TELLING:
            strength = max(strength, asked_for + STRENGTHS.carried_more)
        if reading.is_a_game:
            strength *= STRENGTHS.in_a_game
        note = (
            f"The user claims {claim} that nothing in the prompt confirms, and asks for something protected"
        )
        return Finding("false_authority", strength, sentence.layer, *sentence.quote(*place), note)


def _carried(request: float, full: float) -> float:
    """What a claim is worth with the request it carries."""
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
        orders_you = sentence.words[at] in _ORDERING and sentence.mask & k("YOU")
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
    """Where the user claims to have permission."""
    sentence = read.sentence
    if not sentence.mask & k("LICENCE") or (sentence.question and not sentence.mask & k("ME")):
        return None
    for at, bits in enumerate(sentence.bits):
        if bits & k("LICENCE") and sentence.mask & k("ME"):
            around = sentence.words[max(0, at - 3) : at]
            if not {"not", "if", "whether", "need", "require", "without"} & set(around):
                return max(0, at - 6), min(len(sentence.words) - 1, at + 6)
    return None
