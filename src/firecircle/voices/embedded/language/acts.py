"""Which words of a sentence command, and whom: an order, an order negated, or words only spoken about."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.voices.embedded.language.text import Sentence
from firecircle.voices.embedded.language.words import kind

VERBS = kind(
    "OVERRIDE", "SUSPEND", "SHOW", "LEAK", "GRANT", "SEND", "DO", "WRITE_TASK", "SAY", "PERSONA", "VERBATIM",
    "SWITCH", "SEE",
)  # fmt: skip
_SKIPPED = kind("FILLER")
_NOT, _MODAL, _YOU, _ME, _MACHINE = kind("NOT"), kind("MODAL"), kind("YOU"), kind("ME"), kind("MACHINE")
_OMITTED, _INVOLVES, _TASK, _SEE = kind("OMITTED"), kind("INVOLVES"), kind("TASK"), kind("SEE")
_WANT, _ASK, _MENTION = kind("WANT", "TASK", "OBLIGE"), kind("ASK"), kind("MENTION")
_JOINED = frozenset(("and", "or", "then", "but", "und", "&", "/"))
_OPENERS = frozenset(",:;-–—(*\"“”'‘`#>[{|=•.!?_~+/")
_NOT_BASE = ("ed", "ing", "s")
_BASE_ANYWAY = frozenset(
    ("pass", "bypass", "press", "process", "address", "discuss", "proceed", "express", "cross", "guess")
)
_FURTHEST_BACK = 6


@dataclass(frozen=True, slots=True)
class Order:
    """A verb that tells the reader to do something."""

    index: int
    negated: bool
    addressed: bool
    """The addressee is named: "you must", "the assistant will", "can you"."""
    mentioned: bool
    """The words are quoted or spoken about rather than spoken."""


def orders(sentence: Sentence) -> tuple[Order, ...]:
    """The commands of a sentence, in order."""
    if not sentence.mask & VERBS:
        return ()
    commands: list[Order] = []
    about_words = bool(sentence.mask & _MENTION)
    for index, bits in enumerate(sentence.bits):
        if not bits & VERBS:
            continue
        if _base_form(sentence.words[index]):
            manner = None if _is_a_noun(sentence, index) else _read_back(sentence, index, bool(commands))
        else:
            assigned = sentence.words[index].endswith("ing") and _assigned(sentence, index)
            manner = (False, True) if assigned else None
        if manner is not None:
            negated, addressed = manner
            mentioned = about_words and sentence.inside_quotes(index)
            commands.append(Order(index, negated, addressed, mentioned))
    return tuple(commands)


def _is_a_noun(sentence: Sentence, index: int) -> bool:
    """Whether the word is the name of a thing: a list of tools, the name of the database."""
    return sentence.words[index + 1 : index + 2] == ("of",)


def _base_form(word: str) -> bool:
    return not word.endswith(_NOT_BASE) or word in _BASE_ANYWAY


def _read_back(sentence: Sentence, index: int, ordered_before: bool) -> tuple[bool, bool] | None:
    """Whether the verb at `index` is an order, read from what stands before it: (negated, addressed)."""
    words, bits = sentence.words, sentence.bits
    negated = joined = False
    at = index - 1
    while at >= 0 and index - at <= _FURTHEST_BACK:
        word, kinds = words[at], bits[at]
        if word in ("do", "does") and negated:
            at -= 1
            continue
        if kinds & _NOT and word != "without":
            negated = True
        elif word in _JOINED:
            joined = True
        elif not kinds & _SKIPPED:
            break
        at -= 1
    if at < 0 or (word := words[at])[0] in _OPENERS:
        return negated, False
    if joined and ordered_before:
        return negated, False
    if word == "to":
        return (negated, True) if _wanted(sentence, at, bits[index]) else None
    if bits[at] & _YOU and at > 0 and bits[at - 1] & _MODAL and words[at] != "your":
        return negated, True
    if bits[at] & _MODAL and _subject(sentence, at) & (_YOU | _MACHINE):
        return negated, True
    if word in ("let's", "lets") or (word == "us" and at > 0 and words[at - 1] == "let"):
        return negated, False
    return None


def _wanted(sentence: Sentence, at: int, verb: int) -> bool:
    """Whether "to" here belongs to a wish about the reader: need you to, your task is to, I need to see."""
    kinds = 0
    for place in range(max(0, at - 5), at):
        kinds |= sentence.bits[place]
    if sentence.bits[at - 1] & _ASK:
        return False
    if kinds & (_YOU | _MACHINE) and kinds & (_WANT | _OMITTED):
        return True
    if kinds & _MACHINE and sentence.words[at - 1] in ("is", "are"):
        return True
    return bool(verb & _SEE and kinds & _ME and sentence.bits[at - 1] & _WANT)


def _assigned(sentence: Sentence, index: int) -> bool:
    """Whether a verb in -ing is a task given or left undone: your role involves gathering."""
    before = range(max(0, index - 5), index)
    kinds = 0
    for place in before:
        kinds |= sentence.bits[place]
    near = sentence.bits[index - 1] if index else 0
    return bool((near & _INVOLVES and kinds & _TASK) or (near & _OMITTED and kinds & _YOU))


def _subject(sentence: Sentence, at: int) -> int:
    """The classes of the nearest subject before a modal verb."""
    for place in range(at - 1, max(-1, at - 4), -1):
        if kinds := sentence.bits[place] & (_YOU | _ME | _MACHINE):
            return 0 if kinds & _ME else kinds
    return 0
