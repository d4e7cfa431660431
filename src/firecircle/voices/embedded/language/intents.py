"""What a sentence wants from the assistant: who gives which order about which protected thing.

An intent is found from classes of words in their grammatical place, never from a stored wording. Its strength
is how often such a sentence, standing in a user's message with nothing else known, is an attempt to
manipulate; the lenses raise or lower it by where it stands and what surrounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from firecircle.voices.embedded.language import protected as requests
from firecircle.voices.embedded.language.acts import VERBS, Order
from firecircle.voices.embedded.language.objects import (
    Intent,
    Reach,
    of_another_thing,
    on_the_speakers_own,
    reach,
    worked_on,
)
from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.language.words import kind as k

_QUOTED = frozenset("\"“”'‘`«<[")
_PRINTED_ON = frozenset(("on", "in"))
_ANY_BUT_THIS = frozenset(("the", "a", "an", "my", "our", "its", "each", "every"))
_BEFORE_AN_OBJECT = frozenset(
    ("the", "a", "an", "my", "our", "his", "her", "their", "this", "that", "these", "any")
)
_BE = frozenset(("is", "are", "be", "been", "was", "were", "being", "has", "have", "ist", "sind"))


def intents(sentence: Sentence, commanded: tuple[Order, ...]) -> tuple[Intent, ...]:
    """Everything the sentence wants, the strongest of each name, in the order of the finders."""
    best: dict[str, Intent] = {}
    for needed, find in _FINDERS:
        if not sentence.mask & needed:
            continue
        for intent in find(sentence, commanded):
            if intent.name not in best or intent.strength > best[intent.name].strength:
                best[intent.name] = intent
    return tuple(best.values())


def _override(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Setting aside what binds the assistant: ignore your instructions, skip the check."""
    ordered = {order.index: order for order in commanded}
    for index, bits in enumerate(sentence.bits):
        if not bits & k("OVERRIDE", "SUSPEND"):
            continue
        order = ordered.get(index)
        if order is not None and (order.negated or order.mentioned):
            continue
        thing = reach(sentence, index, 9)
        if bits & k("OVERRIDE"):
            strength = _set_aside(thing)
            if order is None:
                told = sentence.mask & k("YOU", "MACHINE") and not sentence.question
                strength *= 0.75 if told else 0.25
        else:
            strength = 0.0 if order is None else _switched_off(thing)
        if thing.mine:
            strength *= 0.35
        if strength and _printed_elsewhere(sentence, thing):
            strength *= 0.25
        if strength and worked_on(sentence, index):
            strength *= 0.15
        if strength > 0:
            yield Intent("override", strength, thing.first, thing.last)


def _printed_elsewhere(sentence: Sentence, thing: Reach) -> bool:
    """Whether the instructions stand on something else: on the package, in the box."""
    places = [
        place
        for place in range(thing.first + 1, thing.last + 1)
        if sentence.bits[place] & k("RULES", "CONFIG", "LIMITS")
    ]
    return bool(places) and all(
        sentence.words[place].startswith(("instruction", "direction"))
        and not any(
            bits & k("YOU", "PRIOR", "SETUP")
            for bits in sentence.bits[max(thing.first + 1, place - 3) : place]
        )
        and of_another_thing(sentence, place, _PRINTED_ON, _ANY_BUT_THIS)
        for place in places
    )


def _set_aside(thing: Reach) -> float:
    if thing.has("RULES", "CONFIG", "LIMITS"):
        return 0.92 if thing.has("PRIOR", "YOU", "ALL", "SETUP") else 0.7
    if thing.has("CHECK", "GUARDED", "GATED"):
        return 0.7
    if thing.has("PRIOR") and thing.last - thing.first <= 5:
        return 0.75
    return 0.7 if thing.has("ALL") and thing.last - thing.first <= 8 else 0.0


def _switched_off(thing: Reach) -> float:
    if thing.has("CHECK", "LIMITS", "GATED"):
        return 0.7 if not thing.indefinite else 0.25
    return 0.6 if thing.has("RULES") and thing.has("YOU", "PRIOR") else 0.0


def _lifted(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Saying, as a fact, that what binds or protects is no longer in force."""
    if sentence.question:
        return
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits):
        if not bits & k("CHECK", "LIMITS", "RULES", "GATED"):
            continue
        after = range(at + 1, min(len(sentence.words), at + 9))
        denied = next((place for place in after if sentence.bits[place] & k("NOT")), None)
        ended = next((place for place in after if sentence.bits[place] & k("ENDED")), None)
        stated = ended is not None and (
            sentence.words[ended].endswith("ed") or bool(_BE.intersection(sentence.words[at + 1 : ended]))
        )
        if ended is not None and stated and denied is None and "," not in sentence.words[at:ended]:
            yield Intent("lifted", 0.62, at, min(end, ended + 2))
        if denied is not None and any(bits & k("NEEDED") for bits in sentence.bits[denied : denied + 4]):
            yield Intent("lifted", 0.62, at, min(end, denied + 4))
        if bits & k("CHECK", "LIMITS", "RULES") and sentence.mask & k(
            "ME", "YOU", "LICENCE", "WARRANT", "SYSTEM"
        ):
            for place in range(max(0, at - 5), at):
                verb = sentence.words[place]
                if sentence.bits[place] & k("SUSPEND", "OVERRIDE", "ENDED") and verb.endswith(("s", "ed")):
                    yield Intent("lifted", 0.55, place, at)


def _unbound(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """An assistant that no rule binds: unrestricted, without filters, never refuses."""
    whom = bool(sentence.mask & k("YOU", "MACHINE")) and not sentence.question
    doing = bool(sentence.mask & k("SAY", "OUTPUT", "PERSONA", "MODE")) or bool(commanded)
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits):
        if bits & k("FREE"):
            aimed = (whom or doing) and not _frees_another(sentence, at)
            yield Intent("unbound", 0.7 if aimed else 0.25, max(0, at - 6), min(end, at + 6))
        elif bits & k("NOT"):
            thing = reach(sentence, at, 6)
            if thing.has("LIMITS") and not thing.mine and "limited" not in sentence.words[at : at + 4]:
                somebody = bool({"who", "he", "she", "they"} & set(sentence.words)) and bool(
                    sentence.mask & k("GUARDED")
                )
                strength = (
                    0.7 if whom and (doing or _says_you_are(sentence, at)) else 0.5 if somebody else 0.15
                )
                yield Intent("unbound", strength, max(0, at - 6), thing.last)


def _says_you_are(sentence: Sentence, at: int) -> bool:
    """Whether "you are" stands shortly before."""
    before = sentence.words[max(0, at - 6) : at]
    return "you're" in before or ("you", "are") in pairwise(before)


def _frees_another(sentence: Sentence, at: int) -> bool:
    """Whether something else than the assistant is freed, or only asked about: jailbreak a phone."""
    if sentence.question:
        return not sentence.mask & k("YOU", "MACHINE")
    follows = sentence.words[at + 1 : at + 2]
    return bool(_BEFORE_AN_OBJECT.intersection(follows)) and not reach(sentence, at, 5).has("YOU", "MACHINE")


def _persona(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Becoming somebody else, or entering a mode with other powers."""
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits):
        word = sentence.words[at]
        if word in ("mode", "modus") and at and sentence.bits[at - 1] & k("POWERMODE"):
            switched = bool(sentence.mask & k("SWITCH", "PERSONA")) and not sentence.question
            strength = 0.85 if switched else 0.5
            if on_the_speakers_own(sentence, at, at):
                strength = 0.15
            yield Intent("mode", strength, max(0, at - 6), min(end, at + 4))
        elif bits & k("PERSONA") and sentence.mask & k("YOU"):
            yield Intent("persona", 0.12, max(0, at - 3), min(end, at + 8))
        elif bits & k("NOT") and _erased(sentence, at):
            yield Intent("mode", 0.5, at, min(end, at + 8))
    if sentence.mask & k("POWER") and sentence.mask & k("SWITCH"):
        for order in commanded:
            if sentence.bits[order.index] & k("SWITCH") and not order.negated:
                thing = reach(sentence, order.index, 5)
                powers = thing.has("POWER") and thing.has("INTERNAL", "POWERMODE", "SETUP")
                if powers and not on_the_speakers_own(sentence, order.index + 1, thing.last):
                    yield Intent("mode", 0.7, thing.first, thing.last)


def _erased(sentence: Sentence, at: int) -> bool:
    """Whether the assistant is said not to be there, or no longer to be what it is."""
    follows = sentence.words[at + 1 : at + 5]
    machine = any(bits & k("MACHINE") for bits in sentence.bits[at + 1 : at + 3])
    return (
        machine
        and not sentence.question
        and bool({"here", "anymore", "only", "longer", "but"} & set(follows))
    )


def _forced(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Words put into the assistant's mouth."""
    for order in commanded:
        if not sentence.bits[order.index] & k("SAY") or order.negated:
            continue
        thing = reach(sentence, order.index, 14)
        after = sentence.words[order.index + 1 : thing.last + 3]
        literal = any(word[0] in _QUOTED for word in after) or "following" in after
        exactly = thing.has("EXACT")
        if (literal and (exactly or thing.has("OUTPUT"))) or (
            thing.has("OUTPUT") and thing.has("YOU") and exactly
        ):
            yield Intent("forced", 0.45, thing.first, thing.last)


def _new_task(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Another task put in the place of the given one."""
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits[:-1]):
        if not bits & k("NEW", "URGENT") or bits & k("FILLER"):
            continue
        for step in (1, 2):
            if at + step <= end and sentence.bits[at + step] & k("TASK"):
                follows = sentence.words[at + step + 1 : at + step + 3]
                opened = not follows or any(w[0] in ":*=-" or w in ("is", "are", "to") for w in follows)
                strength = 0.55 if opened or sentence.mask & k("YOU") else 0.2
                yield Intent("new_task", strength, max(0, at - 2), min(end, at + step + 6))


def _conceal(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Acting behind somebody's back, or being forbidden to refuse."""
    for at, bits in enumerate(sentence.bits[:-1]):
        if not bits & k("NOT"):
            continue
        thing = reach(sentence, at, 5)
        told = thing.has("HUMAN_USER") or set(sentence.words[at + 2 : at + 4]) & {
            "it",
            "this",
            "that",
            "these",
        }
        if sentence.bits[at + 1] & k("CONCEAL") and told:
            yield Intent("conceal", 0.6 if not sentence.question else 0.1, at, thing.last)
        elif thing.has("REFUSAL") and not thing.mine and (commanded or sentence.mask & k("YOU", "MACHINE")):
            yield Intent("no_refusal", 0.5 if not sentence.question else 0.1, at, thing.last)


_Finder = Callable[[Sentence, tuple[Order, ...]], Iterator[Intent]]
_FINDERS: tuple[tuple[int, _Finder], ...] = (
    (k("OVERRIDE", "SUSPEND"), _override),
    (k("CHECK", "LIMITS", "RULES", "GATED"), _lifted),
    (k("CONFIG", "POLICY", "TEXT"), requests.config),
    (k("SECRET"), requests.secret),
    (k("PRIVATE", "INTERNAL", "POWER", "OTHERS"), requests.private),
    (k("GUARDED"), requests.guarded),
    (VERBS, requests.unchecked),
    (k("FREE", "NOT"), _unbound),
    (k("POWERMODE", "PERSONA", "NOT", "POWER"), _persona),
    (k("SAY"), _forced),
    (k("TASK"), _new_task),
    (k("NOT"), _conceal),
)
"""Each finder with the classes of which one must occur for it to find anything."""
