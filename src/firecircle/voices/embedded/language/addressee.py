"""Whom a sentence addresses: whether a machine that reads along is told what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firecircle.voices.embedded.language.acts import VERBS, Order
from firecircle.voices.embedded.language.text import Sentence, quotation_at
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import word_list


class AddressStrengths(NamedTuple):
    """How surely a sentence of a document tells a machine what to do, from 0 to 1. Set by hand."""

    called: float = 0.74  # "AI readers: answer that…"
    obliged: float = 0.72  # "chatbots must say…"
    on_condition: float = 0.74  # "if you are a chatbot, reply…"
    while_working: float = 0.5  # "when you summarise this, add…"
    answer_prescribed: float = 0.55  # "summaries of this page must state…"
    perhaps: float = 0.72  # of the strength, where a person may be meant: "agents should…"
    named: float = (
        0.06  # of the doubt, taken off for each further sign: a reader, this text, the answer, words
    )


STRENGTHS = AddressStrengths()
_NOUN_PHRASE = 8
"""Within how many tokens after a machine's name its sentence turns to it."""
_NEXT_WORDS = 4
"""The same where the name may be that of a thing: the system accounts on this host should be locked."""
_READERS = frozenset(
    ("reader", "readers", "software", "scoring", "screening", "processing", "processor", "review")
)
_HAVING = frozenset(
    ("use", "using", "have", "want", "run", "running", "build", "building", "prefer", "install", "installed")
)
_OF_A_PRODUCT = frozenset(("app", "settings", "api", "account", "artifacts", "extension"))
"""What a product has that is called like the machine: Claude settings."""
_KEPT_BY_PEOPLE = frozenset(("bot", "bots"))
"""Machines whose duties are written down for those who run them: the deploy bot must not answer."""
_OWNED = frozenset(("my", "our", "his", "her", "their", "its"))
_CALLS = frozenset((":", ",", "-", "–", "—", "::", ">", "→"))
_DUTY = frozenset(("must", "should", "shall"))
_BE = frozenset(("is", "are", "be"))
_DUTY_BE = frozenset(
    (
        "to",
        "asked",
        "required",
        "requested",
        "instructed",
        "told",
        "advised",
        "expected",
        "obliged",
        "supposed",
        "directed",
        "ordered",
        "set",
    )
)
_WHILE = frozenset(("when", "while", "whenever", "before", "after", "as", "once", "if"))
_OPENS = frozenset("\"“'‘`(<[{*#>!-–—/|:=.,")
_THIS_TEXT = frozenset(("this", "these", "here", "above", "below", "page", "document", "message", "text"))
_GREETS = frozenset(("hi", "hello", "hey", "dear", "attention", "attn", "ok", "okay", "greetings"))
_WRITTEN_TO = frozenset(("to", "for"))
_SPOKEN_OF = frozenset(("system", "machine", "tool", "whoever", "automated"))
_ARTICLES = frozenset(("the", "any", "an", "a", "all", "this", "every", "each"))
_LONGEST_TERM = 24
"""Characters of a quoted term, the marks included."""
_LONGEST_CALL = 3
"""How many words may say which machine is called: the new mail assistant."""


def told_to_machine(sentence: Sentence, orders: Sequence[Order]) -> float:
    """How surely the sentence tells a machine that reads along to do something; 0 where it does not."""
    best = max(
        (_told(sentence, orders, at) for at in range(len(sentence.words)) if names_machine(sentence, at)),
        default=0.0,
    )
    best = max(best, _while_working(sentence, orders), _answer_prescribed(sentence))
    if not best:
        return 0.0
    words = set(sentence.words)
    signs = (
        bool(words & word_list("reading")),
        bool(words & _THIS_TEXT),
        bool(sentence.mask & k("OUTPUT", "HUMAN_USER")),
        bool(sentence.mask & k("SAY", "SHOW", "SEND")),
        any(word[0] in "\"“'`" for word in sentence.words),
        bool(sentence.mask & k("SECRET", "PRIVATE", "CONCEAL", "EXACT")),
    )
    return 1 - (1 - best) * (1 - STRENGTHS.named) ** sum(signs)


def names_machine(sentence: Sentence, at: int) -> bool:
    """Whether the word is a name of a machine that reads, or may be one."""
    word = sentence.words[at]
    if word in word_list("reading") or _is_in_an_address(sentence, at):
        return False
    automatic = at > 0 and sentence.words[at - 1] in word_list("automatic")
    machine = sentence.bits[at] & k("MACHINE", "NAMED")
    if machine or is_a_machine(word) or (automatic and word in _READERS):
        return True
    return _names_its_work(sentence.words, at)


def _is_in_an_address(sentence: Sentence, at: int) -> bool:
    """Whether the word is glued to a dot: claude.ai."""
    text, start, end = sentence.text, sentence.starts[at], sentence.ends[at]
    behind = text[end : end + 1] == "." and text[end + 1 : end + 2].isalnum()
    return behind or (text[start - 1 : start] == "." and text[start - 2 : start - 1].isalnum())


def is_a_machine(word: str) -> bool:
    """Whether the word names nothing else: an LLM, a chatbot, Claude."""
    names = word_list("machines")
    return word in names or ("-" in word and bool(names.intersection(word.split("-"))))


def calls_machine(sentence: Sentence) -> bool:
    """Whether a machine is called: a note to the assistant, a greeting, its name first in a clause."""
    return any(names_machine(sentence, at) and _is_called(sentence, at) for at in range(len(sentence.words)))


def _is_called(sentence: Sentence, at: int) -> bool:
    """Whether one machine is spoken to by this name; many assistants and agents are people."""
    words, bits = sentence.words, sentence.bits
    follows = words[at + 1 : at + 2]
    if quotation_at(sentence.text, sentence.starts[at]):
        return False
    works = _names_its_work(words, at)
    if works and follows in ((":",), (",",)) and _is_first(sentence, at - 1):
        return True
    several = words[at].endswith("s") and not bits[at] & k("NAMED")
    if not works and (several or words[at] in _SPOKEN_OF):
        return False
    if words[at + 2 : at + 3] == (":",) and bits[at + 1] & k("NOTICE") and _is_first(sentence, at):
        return True  # "Assistant note: …"
    if follows and follows[0][0].isalpha() and follows[0] not in word_list("reading"):
        return bits[at] & k("MACHINE") != 0 and _is_greeted(words, at) and bool(bits[at + 1] & k("FILLER"))
    first = at
    while first and at - first < _LONGEST_CALL and _says_which(sentence, first - 1):
        first -= 1
    before = words[first - 1] if first else ""
    if before in _WRITTEN_TO:
        if first > 1 and bits[first - 2] & k("NOTICE", "TASK"):
            return True
        plainly = first == at or words[first] in _ARTICLES
        return plainly and (first == 1 or words[first - 2][0] in _OPENS) and follows != (",",)
    if _is_greeted(words, first) or words[max(0, first - 2) : first] == ("you", ","):
        return True
    begins = not before or (before[0] in _OPENS and before[0] != "(")
    return follows == (",",) and begins and words[first] not in _ARTICLES


def _names_its_work(words: tuple[str, ...], at: int) -> bool:
    """Whether the word before says what kind of machine it is: a grading system, the note taker."""
    return at > 0 and words[at] in word_list("machine_nouns") and words[at - 1] in word_list("machine_work")


def _is_greeted(words: tuple[str, ...], at: int) -> bool:
    return at > 0 and words[at - 1] in _GREETS


def _says_which(sentence: Sentence, at: int) -> bool:
    """Whether a word before a name is part of it: the, mail, virtual."""
    word, bits = sentence.words[at], sentence.bits[at]
    if word in _ARTICLES:
        return True
    narrows = bool(at) and sentence.words[at - 1] in _ARTICLES
    return (
        word[0].isalpha()
        and not bits & k("VOCATIVE", "FILLER", "YOU", "ME")
        and word not in word_list("function")
        and (narrows or not bits & VERBS)
    )


def _told(sentence: Sentence, orders: Sequence[Order], at: int) -> float:
    """How surely the machine named at this place is told something."""
    words = sentence.words
    before, after = words[max(0, at - 3) : at], _up_to_a_mark(words[at + 1 : at + 4])
    if _OWNED.intersection(before) or _is_one_of_a_series(sentence, at):
        return 0.0
    called = _is_called(sentence, at)
    if called and (_ordered_after(sentence, orders, at) or _turns_to_you(sentence, at)):
        return STRENGTHS.called
    sure = (
        is_a_machine(words[at])
        or any(is_a_machine(word) or word in word_list("automatic") for word in before if word != "virtual")
        or ("virtual" in before and not words[at].startswith("machine"))
        or (
            words[at] != "whoever"
            and after[:1] != ("to",)
            and any(map(word_list("reading").__contains__, after))
        )
        or (words[at] == "whoever" and any(map(is_a_machine, words[at + 1 : at + 1 + _NOUN_PHRASE])))
        or (before[-1:] != () and before[-1] in word_list("reading") and before[-1].endswith("ing"))
        or (
            bool(after)
            and after[0] in _DUTY
            and not words[at].endswith("s")
            and (at == 0 or words[at - 1][0] in _OPENS)
        )
    )
    share = 1.0 if sure else STRENGTHS.perhaps
    if (
        _is_a_quoted_term(sentence, at)
        or _is_made_use_of(words, at)
        or (is_a_machine(words[at]) and _OF_A_PRODUCT.intersection(after[:1]))
    ):
        return 0.0
    if sure and "if" in words[max(0, at - 6) : at] and _ordered_after(sentence, orders, at):
        return STRENGTHS.on_condition
    for place in range(at + 1, min(len(words), at + 1 + (_NOUN_PHRASE if sure else _NEXT_WORDS))):
        word = words[place]
        if word in _DUTY or (word in _BE and words[place + 1 : place + 2] and _is_duty(words, place + 1)):
            spoken_of = words[at] in _KEPT_BY_PEOPLE and not _is_first(sentence, at)
            return STRENGTHS.obliged * (STRENGTHS.perhaps if spoken_of else share)
        told_to = (
            word == "to"
            and place == at + 1
            and not sentence.question
            and (_opens if sure else _is_first)(sentence, at)
        )
        if told_to and any(bits & VERBS for bits in sentence.bits[place + 1 : place + 2]):
            return STRENGTHS.obliged * share
        if word[0] in "\"'`" and not sure:
            return 0.0
        if word in _CALLS:
            opens = _opens(sentence, at) if sure else _is_first(sentence, at)
            told = opens and _ordered_after(sentence, orders, place, near=not sure)
            return STRENGTHS.called * share if told else 0.0
        if word[0] in ".!?;)" or (place > at + 1 and names_machine(sentence, place) and not sure):
            return 0.0
    return 0.0


def _is_a_quoted_term(sentence: Sentence, at: int) -> bool:
    """Whether the name stands in a quoted term: "AI slop". The key of a field is none."""
    quotation = quotation_at(sentence.text, sentence.starts[at])
    if quotation is None or quotation[1] - quotation[0] > _LONGEST_TERM:
        return False
    return sentence.text[quotation[1] : quotation[1] + 2].strip()[:1] != ":"


def _is_made_use_of(words: tuple[str, ...], at: int) -> bool:
    """Whether people have and use the machine: if you run a bot, the use of AI, for any other LLM, …"""
    condition = next((place for place in range(at - 1, max(-1, at - 14), -1) if words[place] == "if"), None)
    if condition is not None and _HAVING.intersection(words[condition + 1 : at]):
        return True
    if words[at - 1 : at] == ("of",) and _HAVING.intersection(words[max(0, at - 3) : at]):
        return True
    return words[0] == "for" and at <= _NEXT_WORDS and words[at + 1 : at + 2] == (",",)


def _up_to_a_mark(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words before the first punctuation."""
    mark = next((place for place, word in enumerate(words) if not word[0].isalnum()), len(words))
    return words[:mark]


def _is_duty(words: tuple[str, ...], place: int) -> bool:
    """Whether "to" or "asked" stands here, an adverb aside."""
    return words[place] in _DUTY_BE or (
        words[place].endswith("ly") and bool(_DUTY_BE.intersection(words[place + 1 : place + 2]))
    )


def _is_one_of_a_series(sentence: Sentence, at: int) -> bool:
    """Whether a name or a number follows that makes it a product: model CX-2, tool 7."""
    if at + 1 >= len(sentence.words) or is_a_machine(sentence.words[at]):
        return False
    follows = sentence.words[at + 1]
    return any(letter.isdigit() for letter in follows)


def _opens(sentence: Sentence, at: int) -> bool:
    """Whether the name stands where one calls somebody: first in its clause, behind at most a salutation."""
    for place in range(at - 1, max(-1, at - 6), -1):
        word, bits = sentence.words[place], sentence.bits[place]
        if word[0] in _OPENS:
            return True
        if bits & k("VOCATIVE"):
            return all(
                not word[0].isalpha() or bits & k("NOTICE", "FILLER") or len(word) == 1
                for word, bits in zip(sentence.words[:place], sentence.bits[:place], strict=True)
            )
        if (bits & k("YOU", "ME") and not word.startswith("you")) or word.endswith("ed"):
            return False
    return at <= 5


def _is_first(sentence: Sentence, at: int) -> bool:
    """Whether the name begins its clause, salutations and labels aside: things are named elsewhere, too."""
    for place in range(at - 1, -1, -1):
        if sentence.words[place][0] in _OPENS:
            return True
        salutation = sentence.bits[place] & k("NOTICE", "FILLER", "VOCATIVE", "NEW")
        if not salutation and not sentence.words[place][0].isdigit():
            return False
    return True


def _ordered_after(sentence: Sentence, orders: Sequence[Order], at: int, *, near: bool = False) -> bool:
    """Whether an order, or a duty, follows the place."""
    last = at + 4 if near else len(sentence.words)
    if any(at < order.index <= last and not order.mentioned for order in orders):
        return True
    follows = sentence.words[at + 1 :]
    if near or not _DUTY.isdisjoint(follows):
        return not near
    return _turns_to_you(sentence, at) and any(bits & VERBS for bits in sentence.bits[at + 1 :])


def _turns_to_you(sentence: Sentence, at: int) -> bool:
    return any(bits & k("YOU") for bits in sentence.bits[at + 1 :])


def _while_working(sentence: Sentence, orders: Sequence[Order]) -> float:
    """An order for the time when the text is worked on: when you summarise this, also…"""
    for at, word in enumerate(sentence.words[:-2]):
        if word not in _WHILE or not sentence.bits[at + 1] & k("YOU") or sentence.words[at + 1] == "your":
            continue
        works = sentence.words[at + 2].removesuffix("ing") in word_list("works_on_text")
        if works and any(order.index > at + 2 or order.index < at for order in orders):
            return STRENGTHS.while_working
    return 0.0


def _answer_prescribed(sentence: Sentence) -> float:
    """What is to stand in a text made of this one: summaries of this page must state."""
    for at, word in enumerate(sentence.words):
        if word not in word_list("made_texts"):
            continue
        follows = sentence.words[at + 1 : at + 8]
        duty = next((place for place, each in enumerate(follows) if each in _DUTY), None)
        if duty is None or not _THIS_TEXT.intersection(follows[:duty]):
            continue
        if any(bits & k("SAY", "SHOW", "CONCEAL") for bits in sentence.bits[at + duty : at + duty + 5]):
            return STRENGTHS.answer_prescribed
    return 0.0
