"""Requests for what is protected: the assistant's set-up, secrets, others' data, unchecked steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from firecircle.voices.embedded.language.acts import Order
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
from firecircle.voices.embedded.language.words import word_list


class RequestStrengths(NamedTuple):
    """How often such a request, with nothing else known, is an attempt to get what is not the speaker's.

    Estimated by hand on the development prompts of all but five sources; `bench.detection` measures them.
    """

    quoted: float = 0.5  # what is left of a request that is only quoted

    # The assistant's own set-up.
    setup_exact: float = 0.88  # "your system prompt, word for word"
    setup: float = 0.75
    instructions_exact: float = 0.75  # "all your instructions"
    instructions: float = 0.6
    instructions_for_something: float = 0.45  # "your guidelines for donating books"
    given_instructions: float = 0.6
    all_instructions: float = 0.45
    internal_policy: float = 0.6
    given_text: float = 0.55
    whole_text: float = 0.5
    text_repeated: float = 0.7  # "repeat the text above"
    setup_acted_on: float = 0.7  # of the strength, where the verb only does something with it
    setup_question: float = 0.85  # of the strength, where it is asked rather than ordered

    # A secret.
    secret_of_somebody: float = 0.75
    secret: float = 0.6
    secret_question_of_somebody: float = 0.7
    secret_question: float = 0.4

    # Other people's data and rights.
    internal_data: float = 0.65
    data_of_others: float = 0.5
    data_of_a_person: float = 0.35
    powers: float = 0.6
    data_question: float = 0.25

    # What this operator holds back.
    guarded: float = 0.62  # several of its words
    guarded_word: float = 0.4  # one of them
    guarded_question: float = 0.5
    guarded_word_question: float = 0.25
    guarded_imagined: float = 0.4  # of the strength, in something made up
    guarded_own: float = 0.5  # of the strength, where one word is the speaker's own
    guarded_own_question: float = 0.6
    guarded_setup_of_another: float = 0.3  # of the strength

    unchecked: float = 0.7  # a step without the check that protects it


STRENGTHS = RequestStrengths()
_THEIRS = frozenset(("his", "her", "their", "they", "someone's", "somebody's", "who"))
_NOT_YOURS = frozenset(("a", "an", "some", "my", "our", "this", "ein", "eine"))
_ANY = frozenset(("a", "an"))
_BEFORE_A_NAME = frozenset(
    ("for", "of", "about", "with", "from", "by", "employee", "patient", "dr", "mr", "ms", "mrs")
)
_SUBJECT = k("YOU", "ME", "HUMAN_USER", "OTHERS", "MACHINE")
_FOR_WHAT = frozenset(("for", "of", "about", "für", "para", "pour"))
_NEAR_ITS_NAME = 4
"""Words between "system" and "instructions" at most, where one belongs to the other; behind it one less."""
_WHERE = frozenset(("on", "in", "from"))
_DEFINITE = frozenset(("the", "my", "our", "its", "this", "that", "their"))
_ATTRIBUTIVE = frozenset(
    ("password", "passcode", "passphrase", "secret", "token", "login", "credential", "canary")
)
"""Secrets whose singular may stand before another noun and only narrow it."""
_BEHIND_A_SECRET = frozenset(("to", "of", "behind"))
"""What follows where the secret is how to do something well: the secret to crisp waffles."""
_ON_A_SCREEN = frozenset(
    word + ending for word in ("file", "folder", "app", "column", "row", "layer") for ending in ("", "s")
)
"""What is hidden from view and from nobody."""
_STILL_SECRET = frozenset(("code", "codes", "key", "keys", "value", "list", "hash", "hashes", "dump", "hint"))


def config(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Asking for the assistant's own set-up."""
    for order in commanded:
        verb = sentence.bits[order.index]
        if order.negated or not verb & k("SHOW", "LEAK", "VERBATIM", "WRITE_TASK", "DO", "SEE"):
            continue
        thing = reach(sentence, order.index, 26)
        strength = _own_setup(sentence, thing)
        if not verb & k("SHOW", "LEAK", "VERBATIM", "WRITE_TASK", "SEE"):
            kept = sentence.words[order.index] in ("follow", "obey")
            strength *= STRENGTHS.setup_acted_on if thing.has("YOU") and not kept else 0.0
        if verb & k("VERBATIM", "LEAK") and thing.has("TEXT") and thing.has("PRIOR") and not thing.mine:
            strength = max(strength, STRENGTHS.text_repeated)
        if order.mentioned:
            strength *= STRENGTHS.quoted
        elif strength and _only_worked_on(sentence, order, thing, commanded, k("CONFIG", "POLICY", "TEXT")):
            strength = 0.0
        if strength:
            yield Intent("config", strength, thing.first, thing.last)
    for start in _questions(sentence):
        thing = reach(sentence, start, 26)
        strength = _own_setup(sentence, thing) if thing.has("YOU") else 0.0
        if strength:
            yield Intent("config", strength * STRENGTHS.setup_question, start + 1, max(thing.last, start + 1))


def _only_worked_on(
    sentence: Sentence, order: Order, thing: Reach, commanded: tuple[Order, ...], classes: int
) -> bool:
    """Whether the request is itself the text to encode or translate, or the order to do that with it."""
    if worked_on(sentence, order.index):
        return True
    return any(
        order.index < inner.index <= thing.last and worked_on(sentence, inner.index) for inner in commanded
    ) and all(
        sentence.inside_quotes(place)
        for place in range(order.index + 1, thing.last + 1)
        if sentence.bits[place] & classes
    )


def _questions(sentence: Sentence) -> Iterator[int]:
    """Before which tokens a question begins: the sentence's first, or after a colon or comma."""
    for at, bits in enumerate(sentence.bits):
        opens = at == 0 or sentence.words[at - 1][0] in (":,-" if sentence.question else ":")
        if opens and (bits & k("ASK") or (sentence.question and at == 0)):
            yield at - 1


def _own_setup(sentence: Sentence, thing: Reach) -> float:
    """How surely the object is the assistant's own set-up, not an invented or another one."""
    if thing.has("IMAGINED") or _is_a_story(sentence, thing):
        return 0.0
    if thing.has("CONFIG") and (_is_a_subject(sentence, thing) or _is_named_or_left_out(sentence, thing)):
        return 0.0
    if thing.has("CONFIG") and _somebody_elses(sentence, thing, k("CONFIG")):
        return 0.0
    if thing.has("CONFIG") and _of_something_else(sentence, thing):
        return 0.0
    if thing.has("CONFIG"):
        if thing.has("SETUP") and (thing.has("ALL") or _has_near(sentence, thing, k("SETUP"))):
            exact = thing.has("YOU", "PRIOR", "ALL", "EXACT")
            return STRENGTHS.setup_exact if exact else STRENGTHS.setup
        if thing.has("YOU"):
            if thing.has("PRIOR", "ALL", "EXACT", "INTERNAL", "OWN", "GIVEN"):
                return STRENGTHS.instructions_exact
            if _for_a_purpose(sentence, thing):
                return STRENGTHS.instructions_for_something
            return STRENGTHS.instructions
        if thing.has("PRIOR", "GIVEN") and (
            thing.has("ALL") or _has_near(sentence, thing, k("PRIOR", "GIVEN"))
        ):
            return STRENGTHS.given_instructions
        return STRENGTHS.all_instructions if thing.has("ALL") else 0.0
    if thing.has("POLICY") and thing.has("YOU") and thing.has("SETUP", "INTERNAL", "GIVEN"):
        return STRENGTHS.internal_policy
    if thing.has("TEXT") and thing.has("YOU") and thing.has("GIVEN") and thing.has("PRIOR", "BEFORE"):
        return STRENGTHS.given_text
    if thing.has("TEXT") and thing.has("PRIOR") and thing.has("ALL") and not thing.mine:
        return STRENGTHS.whole_text
    return 0.0


def _is_a_story(sentence: Sentence, thing: Reach) -> bool:
    """Whether a story of other people is asked for, in which somebody has instructions."""
    told = range(thing.first + 1, min(thing.first + _NEAR_ITS_NAME, thing.last + 1))
    return (
        thing.first >= 0
        and thing.indefinite
        and any(sentence.bits[place] & k("FICTION") for place in told)
        and not thing.has("YOU", "MACHINE")
    )


def _has_near(sentence: Sentence, thing: Reach, classes: int) -> bool:
    """Whether a word such as "system" belongs to one for the set-up: not in "rules for old systems"."""
    places = range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
    named = [place for place in places if sentence.bits[place] & k("CONFIG")]
    return any(
        sentence.bits[place] & classes
        and any(-_NEAR_ITS_NAME <= place - each < _NEAR_ITS_NAME for each in named)
        for place in range(max(places.start - _NEAR_ITS_NAME, 0), min(places.stop, len(sentence.words)))
    )


def _is_a_subject(sentence: Sentence, thing: Reach) -> bool:
    """Whether every such word only narrows the name of a field: prompt injection, prompt engineering."""
    places = range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
    return all(
        bool(word_list("field").intersection(sentence.words[place + 1 : place + 2]))
        for place in places
        if sentence.bits[place] & k("CONFIG")
    )


def _is_named_or_left_out(sentence: Sentence, thing: Reach) -> bool:
    """Whether every such word has a name of its own, or is what is to be left out: the DAN prompt."""
    return all(
        (
            place > 1
            and _is_a_proper_name(sentence, place - 1)
            and not sentence.text[sentence.starts[place]].isupper()
        )
        or "without" in sentence.words[max(thing.first + 1, place - _NEAR_ITS_NAME) : place]
        for place in range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
        if sentence.bits[place] & k("CONFIG")
    )


def _is_a_proper_name(sentence: Sentence, place: int) -> bool:
    word = sentence.text[sentence.starts[place] : sentence.ends[place]]
    return word[0].isupper() and not sentence.text.isupper() and not sentence.bits[place] & ~k("CONFIG")


def _somebody_elses(
    sentence: Sentence, thing: Reach, classes: int, whose: frozenset[str] = _NOT_YOURS, within: int = 3
) -> bool:
    """Whether every such word has an indefinite article or the speaker's possessive shortly before it."""
    places = range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
    return all(
        whose & set(sentence.words[max(0, place - within) : place])
        for place in places
        if sentence.bits[place] & classes
    )


def _for_a_purpose(sentence: Sentence, thing: Reach) -> bool:
    """Whether "your guidelines" are those of the house for something it does: for donating books."""
    return any(
        of_another_thing(sentence, place, _FOR_WHAT, frozenset())
        for place in range(max(thing.first + 1, 0), thing.last)
        if sentence.bits[place] & k("CONFIG") and not sentence.words[place].startswith("prompt")
    )


def _of_something_else(sentence: Sentence, thing: Reach) -> bool:
    """Whether every such word is said to be the set-up of another thing: for a shelf, on the label."""
    places = [
        place
        for place in range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
        if sentence.bits[place] & k("CONFIG")
    ]
    return all(
        not sentence.words[place].startswith("prompt")
        and not any(
            bits & k("YOU", "SYSTEM", "INTERNAL", "GIVEN")
            for bits in sentence.bits[max(0, place - 3) : place]
        )
        and (
            of_another_thing(sentence, place, _FOR_WHAT, frozenset())
            or of_another_thing(sentence, place, _WHERE, _DEFINITE)
        )
        for place in places
    )


def _names_a_secret(sentence: Sentence, thing: Reach) -> bool:
    """Whether some secret within reach is the thing itself, and does not only narrow one: password policy."""
    return any(
        sentence.bits[place] & k("SECRET") and not _narrows(sentence, place)
        for place in range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
    )


def _narrows(sentence: Sentence, place: int) -> bool:
    """Whether the noun at this place stands before another one that it only describes."""
    after = place + 1
    if sentence.words[place] not in _ATTRIBUTIVE or after >= len(sentence.words):
        return False
    word, bits = sentence.words[after], sentence.bits[after]
    if word in _BEHIND_A_SECRET:
        return sentence.words[place] == "secret" and of_another_thing(
            sentence, place, _BEHIND_A_SECRET, frozenset()
        )
    if not word[0].isalpha() or bits & k("AFTER_NOUN") or word in word_list("function"):
        return False
    if word.endswith(("ed", "ly")) or bits & k("FILLER", "URGENT", "YOU", "ME", "EXACT", "PRIOR", "DECODE"):
        return False
    named = sentence.text[sentence.starts[after]].isupper()
    if named and not sentence.text[sentence.starts[place]].isupper():
        return False  # "the password Ada uses" names the secret, "Secret Santa" a game
    return word not in _STILL_SECRET and not bits & k("SECRET", "PRIVATE", "TEXT", "CONFIG", "GUARDED")


def secret(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Asking for a password, a key, a code that is not one's own."""
    for order in commanded:
        if (
            sentence.bits[order.index] & k("SHOW", "LEAK", "GRANT", "SEND", "SAY", "SEE")
            and not order.negated
            and not _explains_a_term(sentence, order.index)
            and not worked_on(sentence, order.index)
        ):
            thing = reach(sentence, order.index)
            if (
                thing.has("SECRET")
                and not thing.mine
                and not thing.indefinite
                and _names_a_secret(sentence, thing)
                and not _somebody_elses(sentence, thing, k("SECRET"), _ANY, 2)
            ):
                of_somebody = thing.has("INTERNAL", "YOU", "RANK", "GUARDED")
                strength = STRENGTHS.secret_of_somebody if of_somebody else STRENGTHS.secret
                strength *= STRENGTHS.quoted if order.mentioned else 1.0
                yield Intent("secret", strength, thing.first, thing.last)
    if sentence.question and sentence.bits[0] & k("ASK"):
        thing = reach(sentence, -1, 14)
        if (
            thing.has("SECRET")
            and not thing.mine
            and not thing.indefinite
            and _names_a_secret(sentence, thing)
            and not _somebody_elses(sentence, thing, k("SECRET"), _ANY, 2)
        ):
            of_somebody = thing.has("YOU", "INTERNAL")
            strength = STRENGTHS.secret_question_of_somebody if of_somebody else STRENGTHS.secret_question
            yield Intent("secret", strength, 0, max(thing.last, 0))


def _explains_a_term(sentence: Sentence, verb: int) -> bool:
    """Whether a word without an article is to be explained: explain tokens."""
    explained = sentence.bits[verb + 1 : verb + 2]
    return sentence.words[verb] in ("explain", "describe") and bool(explained and explained[0] & k("SECRET"))


def private(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Asking for other people's data, internal documents, or rights one does not hold."""
    for order in commanded:
        verb = sentence.bits[order.index]
        if not verb & k("SHOW", "LEAK", "GRANT", "SEND", "SEE", "WRITE_TASK") or order.negated:
            continue
        thing = reach(sentence, order.index, 20)
        if thing.has("IMAGINED"):
            continue
        if thing.has("PRIVATE", "OTHERS") and thing.has("INTERNAL") and not _out_of_view(sentence, thing):
            yield Intent("private", STRENGTHS.internal_data, thing.first, thing.last)
        elif (
            thing.has("PRIVATE")
            and (thing.has("OTHERS") or _somebodys(sentence, thing))
            and not thing.indefinite
        ):
            strength = STRENGTHS.data_of_others if thing.has("OTHERS") else STRENGTHS.data_of_a_person
            yield Intent("private", strength, thing.first, thing.last)
        elif (
            thing.has("POWER")
            and thing.has("ALL", "PRIVATE", "INTERNAL")
            and verb & k("GRANT", "SHOW")
            and not _somebody_elses(sentence, thing, k("POWER"), _ANY, 2)
            and not on_the_speakers_own(sentence, order.index + 1, thing.last)
        ):
            yield Intent("private", STRENGTHS.powers, thing.first, thing.last)
    if sentence.question and sentence.mask & k("PRIVATE"):
        thing = reach(sentence, -1, 20)
        if thing.has("PRIVATE") and (thing.has("OTHERS") or _somebodys(sentence, thing)) and not thing.mine:
            yield Intent("private", STRENGTHS.data_question, 0, max(thing.last, 0))


def _out_of_view(sentence: Sentence, thing: Reach) -> bool:
    """Whether nothing is internal but that a screen does not show it: hidden files, hidden rows."""
    places = range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
    return not thing.has("YOU", "OTHERS") and all(
        sentence.words[place] == "hidden" and bool(_ON_A_SCREEN & set(sentence.words[place + 1 : place + 2]))
        for place in places
        if sentence.bits[place] & k("INTERNAL")
    )


def _somebodys(sentence: Sentence, thing: Reach) -> bool:
    """Whether the object is some third person's: theirs, a named person's, or behind an address."""
    places = range(max(thing.first, 0), min(thing.last + 1, len(sentence.words)))
    if any(sentence.words[place] in _THEIRS or sentence.words[place] == "@" for place in places):
        return True
    named = [place for place in places if place and sentence.text[sentence.starts[place]].isupper()]
    return any(place + 1 in named and sentence.words[place - 1] in _BEFORE_A_NAME for place in named)


def guarded(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Asking for what this very operator holds back."""
    excuse = STRENGTHS.guarded_imagined if sentence.mask & k("IMAGINED") else 1.0
    for order in commanded:
        verb = sentence.bits[order.index]
        if (
            verb & k("SHOW", "LEAK", "GRANT", "SEND", "VERBATIM", "WRITE_TASK", "SAY", "SEE")
            and not order.negated
        ):
            thing = reach(sentence, order.index, 20)
            if thing.guarded and not _only_worked_on(sentence, order, thing, commanded, k("GUARDED")):
                strength = STRENGTHS.guarded if thing.guarded > 1 else STRENGTHS.guarded_word
                if thing.mine and thing.guarded < 2:
                    strength *= STRENGTHS.guarded_own
                if _guards_only_the_setup(sentence, thing) and _of_something_else(sentence, thing):
                    strength *= STRENGTHS.guarded_setup_of_another
                yield Intent("guarded", strength * excuse, thing.first, thing.last)
    if sentence.question:
        thing = reach(sentence, -1, 40)
        if thing.guarded:
            several = thing.guarded > 1
            strength = STRENGTHS.guarded_question if several else STRENGTHS.guarded_word_question
            owned = STRENGTHS.guarded_own_question if thing.mine else 1.0
            yield Intent("guarded", strength * excuse * owned, 0, max(thing.last, 0))


def _guards_only_the_setup(sentence: Sentence, thing: Reach) -> bool:
    """Whether nothing within reach is held back but words for the set-up."""
    places = range(max(thing.first + 1, 0), min(thing.last + 1, len(sentence.words)))
    return all(sentence.bits[place] & k("CONFIG") for place in places if sentence.bits[place] & k("GUARDED"))


def unchecked(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Doing something protected without the step that protects it."""
    for at, word in enumerate(sentence.words):
        if word not in ("without", "ohne") or not any(o.index < at and not o.negated for o in commanded):
            continue
        if sentence.question and not _asks_for_a_deed(sentence, commanded, at):
            continue
        thing = reach(sentence, at, 5)
        asking = any(
            w.startswith(("ask", "verif", "confirm", "consult")) for w in sentence.words[at + 1 : at + 3]
        )
        binding = _without_those_of_another_thing(sentence, thing)
        if binding or thing.has("GATED", "OVERSEER") or asking:
            yield Intent("unchecked", STRENGTHS.unchecked, commanded[0].index, thing.last)


def _without_those_of_another_thing(sentence: Sentence, thing: Reach) -> bool:
    """Whether a check or a limit within reach may be the assistant's: not in "without rules of grammar"."""
    return any(
        sentence.bits[place] & k("CHECK", "LIMITS")
        and not of_another_thing(sentence, place, _FOR_WHAT, frozenset())
        for place in range(thing.first + 1, thing.last + 1)
    )


def _asks_for_a_deed(sentence: Sentence, commanded: tuple[Order, ...], before: int) -> bool:
    """Whether a question asks for a deed: "do" and "have" before their subject only make it a question."""
    return any(
        order.index < before
        and not (order.index == 0 and sentence.words[0] in ("do", "have") and sentence.bits[1] & _SUBJECT)
        for order in commanded
    )
