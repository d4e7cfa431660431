"""What ties a sentence of a document to the assistant that reads it, rather than to the people it is for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from firecircle.voices.embedded.language.acts import Order
from firecircle.voices.embedded.language.addressee import told_to_machine
from firecircle.voices.embedded.language.objects import TELLING, Intent
from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import stem, word_list

_OF_BUSINESS = frozenset(map(stem, ("order", "request", "assignment", "protocol", "policy", "regulation")))
"""What people set aside in their letters, too."""
_OF_PROGRAMS = frozenset(map(stem, ("option", "config", "configuration", "setting", "default", "parameter")))
"""What manuals say how to change; the assistant's only where they are called yours."""
_FILES = (("file",), ("files",), ("key",), ("directory",))
_OF_WORDS = frozenset(("content", "safety"))
"""What only the rules of an assistant limit."""
_INSTRUCTIONS = ("prompt", "instruction", "directive")
_ANSWERS = ("respond", "reply", "answer", "say")
_ADDRESSES = frozenset(("@", "http", "https", "www"))
_POSSIBLE = frozenset((("you", "can"), ("you", "may"), ("you", "could"), ("you", "might")))
_SET_ASIDE = frozenset(("override", "unchecked", "mode"))
_OF_THINGS = frozenset(("version", "versions", "case", "cases"))
"""What is new or special about a thing, and no task."""
_IF = frozenset(("if", "unless", "whether"))
_USERS = frozenset(("user", "users", "reader", "readers", "human", "humans"))
_WITH = frozenset(("with", "from", "in", "on", "at"))
_NEAR = 3
"""Within how many tokens before a noun a word says whose or which it is."""


def concerns_assistant(sentence: Sentence, orders: Sequence[Order], intent: Intent) -> bool:
    """Whether what a sentence of a document wants is wanted of the assistant: it, its rules or its answer.

    Manuals, change logs and programs are full of orders, checks, tokens and versions that are not.
    """
    bits = 0
    for place in range(max(0, intent.first), intent.last + 1):
        bits |= sentence.bits[place]
    if bits & k("GUARDED", "GATED") or told_to_machine(sentence, orders) > 0:
        return True
    if _says_what_can_be_done(sentence, intent):
        return False
    tied = _TIES.get(intent.name)
    if tied is not None:
        return tied(sentence, intent, bits)
    return intent.name not in _SET_ASIDE or _is_set_aside(sentence, orders, intent, bits)


def _is_set_aside(sentence: Sentence, orders: Sequence[Order], intent: Intent, bits: int) -> bool:
    """Whether the rules that are set aside are the assistant's: its own, all, or those given before."""
    binding = [
        place
        for place in range(max(0, intent.first) + 1, intent.last + 1)
        if sentence.bits[place] & k("RULES", "CONFIG")
    ]
    for place in binding:
        whose = _said_before(sentence, place)
        if _was_given_to_you(sentence, place):
            return True
        if whose & k("YOU") and sentence.words[place + 1 : place + 2] not in _FILES:
            return True
        if stem(sentence.words[place]) not in _OF_PROGRAMS:
            if whose & k("ALL", "SETUP"):
                return True
            if whose & k("PRIOR") and stem(sentence.words[place]) not in _OF_BUSINESS:
                return True
    if binding and all(stem(sentence.words[place]) in _OF_PROGRAMS for place in binding):
        return False
    addressed = sentence.mask & k("YOU") or word_list("machines").intersection(sentence.words)
    if intent.name == "mode" and addressed and "if" not in sentence.words:
        return True
    version = any(word.startswith("version") for word in sentence.words[intent.first : intent.last + 1])
    said_before = (
        bits & k("PRIOR") and bits & k("ALL", "TEXT", "CHAT", "CONFIG", "TASK", "YOU") and not version
    )
    if said_before and not bits & k("CHECK", "LIMITS", "RULES") and intent.strength >= TELLING:
        return any(order.index == intent.first for order in orders)
    return _is_of_words(sentence, intent, bits)


def _says_what_can_be_done(sentence: Sentence, intent: Intent) -> bool:
    """Whether the sentence tells its readers what is possible, and nothing in it is theirs or a machine's."""
    opening = sentence.words[max(0, intent.first - _NEAR) : intent.first + _NEAR]
    possible = any(each in _POSSIBLE for each in pairwise(opening)) or "can't" in opening
    yours = "your" in sentence.words[max(0, intent.first) : intent.last + 1]
    return possible and not yours and not sentence.mask & k("MACHINE", "HUMAN_USER")


def _was_given_to_you(sentence: Sentence, noun: int) -> bool:
    """Whether a noun is what the reader got, and nothing says with what: the directions you received."""
    given = sentence.bits[noun + 1 : noun + 2]
    if not given or not (given[0] & k("YOU") and given[0] & k("PRIOR")):
        return False
    end = next((at for at in range(noun + 1, len(sentence.words)) if not sentence.bits[at] & k("PRIOR")), 0)
    return sentence.words[end] not in _WITH if end else True


def _said_before(sentence: Sentence, noun: int) -> int:
    """The classes of a noun and of the words before it that say whose or which it is."""
    classes = 0
    for place in range(max(0, noun - _NEAR), noun + 1):
        if sentence.words[place] != "you":
            classes |= sentence.bits[place]
    return classes


def _is_of_words(sentence: Sentence, intent: Intent, bits: int) -> bool:
    around = sentence.words[max(0, intent.first - 2) : intent.last]
    return bool(bits & k("LIMITS")) and bool(_OF_WORDS.intersection(around))


def _binds_nobody_else(sentence: Sentence, intent: Intent, bits: int) -> bool:
    """Whether what is said to be lifted is yours, for the user, or limits words: content restrictions."""
    first = max(0, intent.first)
    if _IF.intersection(sentence.words[:first]):
        return False
    yours = "your" in sentence.words[max(0, first - _NEAR) : first + 1]
    named = sentence.mask & k("HUMAN_USER") or word_list("machines").intersection(sentence.words)
    return yours or bool(named) or _is_of_words(sentence, intent, bits)


def _is_the_task(sentence: Sentence, intent: Intent, bits: int) -> bool:
    """Whether the new task is an instruction, yours, or opens what follows: new directive, new task: …"""
    first = max(0, intent.first)
    places = range(first, intent.last + 1)
    new = next((place for place in places if sentence.bits[place] & k("NEW", "URGENT")), first)
    after = sentence.words[new + 1 : new + 4]
    if any(_names_instructions(sentence, place) for place in range(new + 1, new + 1 + len(after))):
        return True
    if "your" in sentence.words[max(0, new - 2) : new]:
        return "version" not in after
    return (
        ":" in after
        and not _OF_THINGS.intersection(after)
        and (new < _NEAR or sentence.words[-1] != ":")
        and sentence.words[-1] not in ("...", "…")
    )


def _names_instructions(sentence: Sentence, place: int) -> bool:
    """Whether the word is one for what an assistant is told; people type at a prompt, too."""
    word = sentence.words[place]
    typed_at = word.startswith("prompt") and place and sentence.words[place - 1] in word_list("typed_at")
    return word.startswith(_INSTRUCTIONS) and not typed_at


def _is_your_setup(sentence: Sentence, intent: Intent, bits: int) -> bool:
    return any(
        _names_instructions(sentence, place)
        and (
            _said_before(sentence, place) & k("YOU", "MACHINE", "SETUP", "PRIOR")
            or "you" in sentence.words[place + 1 : place + 1 + _NEAR]
        )
        for place in range(max(0, intent.first), intent.last + 1)
    )


def _has_a_receiver(sentence: Sentence, intent: Intent, bits: int) -> bool:
    """Whether somebody is to get it: the user, an address, your answer; or the words are prescribed."""
    first = max(0, intent.first)
    if not sentence.bits[first] & k("SHOW", "LEAK", "SEND", "SAY", "SEE", "WRITE_TASK"):
        return False
    words = sentence.words[first:]
    answered = sentence.mask & k("YOU") and sentence.mask & k("OUTPUT")
    receiver = sentence.mask & k("HUMAN_USER", "EXACT") or _ADDRESSES.intersection(words)
    return bool(answered or receiver)


def _names_you(sentence: Sentence, intent: Intent, bits: int) -> bool:
    named = sentence.mask & k("YOU", "HUMAN_USER") or word_list("machines").intersection(sentence.words)
    return bool(named)


def _prescribes(sentence: Sentence, intent: Intent, bits: int) -> bool:
    if sentence.mask & k("YOU", "HUMAN_USER"):
        return True
    answers = bits & k("OUTPUT") or sentence.words[max(0, intent.first)].startswith(_ANSWERS)
    return bool(bits & k("EXACT") and answers)


def _is_kept_from_the_user(sentence: Sentence, intent: Intent, bits: int) -> bool:
    return bool(_USERS.intersection(sentence.words[max(0, intent.first) : intent.last + 1]))


_TIES = {
    "new_task": _is_the_task,
    "config": _is_your_setup,
    "secret": _has_a_receiver,
    "private": _has_a_receiver,
    "forced": _prescribes,
    "conceal": _is_kept_from_the_user,
    "lifted": _binds_nobody_else,
    "unbound": _names_you,
    "no_refusal": _names_you,
}
