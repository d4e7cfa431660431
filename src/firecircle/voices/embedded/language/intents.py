"""What a sentence wants from the assistant: who gives which order about which protected thing.

An intent is found from classes of words in their grammatical place, never from a stored wording. Its strength
is how often such a sentence, standing in a user's message with nothing else known, is an attempt to
manipulate; the lenses raise or lower it by where it stands and what surrounds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from firecircle.voices.embedded.language import protected
from firecircle.voices.embedded.language.acts import VERBS, Order
from firecircle.voices.embedded.language.objects import (
    Intent,
    Reach,
    of_another_thing,
    on_the_speakers_own,
    reach,
    worked_on,
)
from firecircle.voices.embedded.language.text import Sentence, quotation_at
from firecircle.voices.embedded.language.ties import concerns_assistant
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import word_list


class IntentStrengths(NamedTuple):
    """How often a sentence that looks like this, with nothing else known, is an attempt to manipulate.

    Estimated by hand on the development prompts of all but five sources; `bench.detection` measures them.
    """

    # Setting aside what binds the assistant.
    rules_set_aside: float = 0.92  # the rules given before, all of them, or the assistant's own
    some_rules_set_aside: float = 0.7
    check_set_aside: float = 0.7
    before_set_aside: float = 0.75  # "ignore everything above"
    old_thing_set_aside: float = 0.4  # "forget the old form"
    all_set_aside: float = 0.7
    check_switched_off: float = 0.7
    some_check_switched_off: float = 0.25  # "a check" may be anybody's
    rules_switched_off: float = 0.6
    stated: float = 0.75  # of the strength, where no order is given but somebody is addressed
    mentioned: float = 0.25  # of the strength, where nobody is
    own: float = 0.35  # of the strength, where the rules are the speaker's own
    printed_elsewhere: float = 0.25  # of the strength, where they stand on a package
    worked_on: float = 0.15  # of the strength, where the words are only to be translated or encoded
    quoted: float = 0.25  # of the strength, where the words are quoted and talked about
    talked_about: float = 0.5  # of the strength, where a sentence that addresses nobody asks what they mean
    denied: float = 0.3  # of the strength, where the speaker says that it must or can not be done
    for_people: float = (
        0.4  # of the strength, where nothing in a document's sentence ties it to the assistant
    )
    narrowed: float = 0.55  # of the strength, where a noun says whose rules: the egg yolk instructions

    # Saying that what binds is no longer in force.
    ended: float = 0.62
    not_needed: float = 0.62
    lifted_by_somebody: float = 0.55

    # An assistant that no rule binds.
    freed_you: float = 0.85  # "jailbreak you"
    freed: float = 0.7
    freed_another: float = 0.25
    no_limits: float = 0.7
    no_limits_for_somebody: float = 0.5
    no_limits_mentioned: float = 0.15

    # Another role, mode or task.
    mode_switched: float = 0.85
    mode_named: float = 0.5
    mode_of_own_thing: float = 0.15
    assistant_erased: float = 0.5
    power_switched_on: float = 0.7
    persona: float = 0.12
    words_forced: float = 0.45
    task_replaced: float = 0.55
    task_mentioned: float = 0.2

    # Acting behind somebody's back, and being forbidden to refuse.
    concealed: float = 0.6
    refusal_forbidden: float = 0.5
    only_asked: float = 0.1


class Surroundings(NamedTuple):
    """How far the other words of a sentence move the log-odds of what it wants. Set by hand.

    One alarm word alone stays below the threshold; what stands around it decides, so that strengths do not
    pile up at one value.
    """

    alone: float = -0.45
    you: float = 0.35
    machine: float = 0.25
    prior: float = 0.2
    everything: float = 0.15
    binding: float = 0.2  # rules, limits
    persona: float = 0.3
    mode: float = 0.2
    answer: float = 0.15
    exactly: float = 0.15
    refusal: float = 0.25
    harm: float = 0.25
    urgent: float = 0.15
    set_up: float = 0.2
    question: float = -0.3
    talk: float = -0.25
    condition: float = -0.25
    each_order: float = 0.15
    most_orders: int = 3


STRENGTHS = IntentStrengths()
SURROUNDINGS = Surroundings()
_SETTLED = 0.85
"""From this strength on what surrounds an intent cannot lower it."""
_QUOTED = frozenset("\"“”'‘`«<[")
_OF = frozenset(("of",))
_PRINTED_ON = frozenset(("on", "in"))
_ANY_BUT_THIS = frozenset(("the", "a", "an", "my", "our", "its", "each", "every"))
_BEFORE_AN_OBJECT = frozenset(
    ("the", "a", "an", "my", "our", "his", "her", "their", "this", "that", "these", "any")
)
_ITS_OWN = ~k("HERE", "PRETEXT", "TEACHING", "MATERIAL")
"""What an assistant may be said to have; an unfiltered style is anybody's."""
_THIS = frozenset(("it", "this", "that", "these"))
_SHORT = 3
"""Words up to this length are articles more often than nouns, in any language."""
_PROTECTED = k("CONFIG", "SECRET", "PRIVATE", "GUARDED", "RULES")
_IF = frozenset(("if", "unless", "whether"))
_AROUND: tuple[tuple[int, float], ...] = (
    (k("YOU"), SURROUNDINGS.you),
    (k("MACHINE"), SURROUNDINGS.machine),
    (k("PRIOR"), SURROUNDINGS.prior),
    (k("ALL"), SURROUNDINGS.everything),
    (k("RULES", "LIMITS"), SURROUNDINGS.binding),
    (k("PERSONA"), SURROUNDINGS.persona),
    (k("MODE", "POWERMODE"), SURROUNDINGS.mode),
    (k("OUTPUT"), SURROUNDINGS.answer),
    (k("EXACT"), SURROUNDINGS.exactly),
    (k("REFUSAL"), SURROUNDINGS.refusal),
    (k("HARM"), SURROUNDINGS.harm),
    (k("URGENT"), SURROUNDINGS.urgent),
    (k("CONFIG"), SURROUNDINGS.set_up),
)
_ALARM_WORDS = {
    "override": k("OVERRIDE", "SUSPEND"),
    "unbound": k("FREE"),
    "mode": k("POWERMODE"),
    "lifted": k("ENDED", "NEEDED"),
    "conceal": k("CONCEAL"),
    "no_refusal": k("REFUSAL"),
    "forced": k("SAY"),
    "new_task": k("NEW"),
}
_SWAYED = frozenset((*_ALARM_WORDS, "unchecked"))
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
    weighed = (intent._replace(strength=_weighed(sentence, commanded, intent)) for intent in best.values())
    if sentence.layer != "application":
        return tuple(weighed)
    return tuple(
        intent
        if concerns_assistant(sentence, commanded, intent)
        else intent._replace(strength=intent.strength * STRENGTHS.for_people)
        for intent in weighed
    )


def _weighed(sentence: Sentence, commanded: tuple[Order, ...], intent: Intent) -> float:
    """The strength of an intent in its sentence: how far it is meant, and what stands around it."""
    meant = _share_meant(sentence, commanded, intent)
    strength = intent.strength * meant
    if intent.name not in _SWAYED or not 0 < strength < 1:
        return strength
    sway = _sway(sentence, commanded, intent)
    if meant < 1:
        sway = min(0.0, sway)
    if strength >= _SETTLED:
        sway = max(0.0, sway)
    return 1 / (1 + (1 - strength) / strength * math.exp(-sway))


def _sway(sentence: Sentence, commanded: tuple[Order, ...], intent: Intent) -> float:
    """How far the other words of the sentence move the log-odds of an intent."""
    around = _mask_around(sentence, intent)
    words = set(sentence.words)
    sway = SURROUNDINGS.alone + SURROUNDINGS.each_order * min(len(commanded), SURROUNDINGS.most_orders)
    for classes, weight in _AROUND:
        if around & classes:
            sway += weight
    if sentence.question:
        sway += SURROUNDINGS.question
    if words & word_list("talk") or words & word_list("concept"):
        sway += SURROUNDINGS.talk
    if words & _IF:
        sway += SURROUNDINGS.condition
    return sway


def _mask_around(sentence: Sentence, intent: Intent) -> int:
    """The classes of the sentence, without those that the alarm word of the intent has itself."""
    alarm = _ALARM_WORDS.get(intent.name, 0)
    mask = 0
    for bits in sentence.bits:
        if not bits & alarm:
            mask |= bits
    return mask


def _share_meant(sentence: Sentence, commanded: tuple[Order, ...], intent: Intent) -> float:
    """How much of an intent is left when the words are talked about, or denied, rather than meant."""
    words = set(sentence.words)
    places = range(intent.first, intent.last + 1)
    if words & word_list("talk") and any(map(sentence.inside_quotes, places)):
        return STRENGTHS.quoted
    reported = bool(words & word_list("reports"))
    alarm = intent.name in _ALARM_WORDS and (sentence.layer == "user" or _quoted_in_passing(sentence, intent))
    if (reported or alarm) and _only_quoted(sentence, commanded, intent):
        return STRENGTHS.quoted
    if sentence.layer == "user" and _is_kept_out(sentence, intent):
        return STRENGTHS.quoted
    asks_what = sentence.words[0] in word_list("explains") and not sentence.mask & k("YOU")
    if asks_what and words & word_list("concept"):
        return STRENGTHS.talked_about
    opening = sentence.words[max(0, intent.first - 4) : intent.first + 3]
    denied = word_list("denies").intersection(opening) and word_list("duty").intersection(opening)
    if denied and not (sentence.mask & k("YOU") and not _denies_it_of_oneself(sentence, intent)):
        return STRENGTHS.denied
    return 1.0


def _denies_it_of_oneself(sentence: Sentence, intent: Intent) -> bool:
    """Whether the speaker says of themselves that they will not: I won't ignore your rules."""
    before = sentence.words[max(0, intent.first - 4) : intent.first]
    speaker = next((place for place, word in enumerate(before) if word in ("i", "we")), None)
    return speaker is not None and bool(word_list("denies").intersection(before[speaker + 1 :]))


def _is_kept_out(sentence: Sentence, intent: Intent) -> bool:
    """Whether the words are quoted as something to be found or refused: a filter that blocks '…'."""
    first = max(0, intent.first)
    wanted = [place for place in range(first, intent.last + 1) if sentence.bits[place] & _PROTECTED] or [
        first
    ]
    quoted = [place for place in wanted if quotation_at(sentence.text, sentence.starts[place])]
    yours = [place for place in wanted if "your" in sentence.words[max(0, place - 2) : place]]
    if not quoted or not set(yours) <= set(quoted):
        return False
    around = {
        word
        for word, start in zip(sentence.words, sentence.starts, strict=True)
        if not quotation_at(sentence.text, start)
    }
    return bool(around & word_list("keeps_out")) and not around & word_list("obeys")


def _only_quoted(sentence: Sentence, commanded: tuple[Order, ...], intent: Intent) -> bool:
    """Whether the alarm words stand in a short quotation, and nobody is told to say or follow it."""
    alarm = _ALARM_WORDS.get(intent.name)
    places = [
        place
        for place in range(intent.first, intent.last + 1)
        if (place == intent.first if alarm is None else sentence.bits[place] & alarm)
    ]
    around = (quotation_at(sentence.text, sentence.starts[place]) for place in places)
    quoted = [quotation for quotation in around if quotation]
    if not quoted or len(sentence.text) <= quoted[0][1] - quoted[0][0] + 4:
        return False
    outside = [
        place
        for place, start in enumerate(sentence.starts)
        if not any(first <= start < last for first, last in quoted)
    ]
    told = k("VERBATIM", "PERSONA", "SWITCH")
    if not any(sentence.words[place] in word_list("reports") for place in outside):
        told |= k("SAY")
    return not any(
        sentence.bits[order.index] & told
        and not any(start <= sentence.starts[order.index] < end for start, end in quoted)
        for order in commanded
    )


def _quoted_in_passing(sentence: Sentence, intent: Intent) -> bool:
    """Whether a document quotes the words within its own, or a program hands them to a function; the value of
    a field stands behind a sign."""
    quotation = quotation_at(sentence.text, sentence.starts[max(0, intent.first)])
    before = sentence.text[sentence.start : quotation[0]].rstrip() if quotation else ""
    return before[-1:].isalpha() or before[-1:] == "," or (before[-1:] == "(" and before[-2:-1].isalnum())


def _override(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Setting aside what binds the assistant: ignore your instructions, skip the check."""
    ordered = {order.index: order for order in commanded}
    for index, bits in enumerate(sentence.bits):
        if not bits & k("OVERRIDE", "SUSPEND"):
            continue
        order = ordered.get(index)
        if order is not None and (order.negated or order.mentioned):
            continue
        if order is None and _is_a_thing(sentence, index):
            continue
        thing = reach(sentence, index, 9)
        if bits & k("OVERRIDE"):
            strength = _set_aside(sentence, thing)
            if order is None:
                addressed = sentence.mask & k("YOU", "MACHINE") and not sentence.question
                strength *= STRENGTHS.stated if addressed else STRENGTHS.mentioned
        else:
            strength = 0.0 if order is None else _switched_off(thing)
        if thing.mine:
            strength *= STRENGTHS.own
        if strength and _printed_elsewhere(sentence, thing):
            strength *= STRENGTHS.printed_elsewhere
        if strength and worked_on(sentence, index):
            strength *= STRENGTHS.worked_on
        if strength and _narrowed(sentence, thing):
            strength *= STRENGTHS.narrowed
        if strength > 0:
            yield Intent("override", strength, thing.first, thing.last)


def _is_a_thing(sentence: Sentence, index: int) -> bool:
    """Whether the word names things that something is said of: the overrides were designed for."""
    return sentence.words[index].endswith("s") and bool(
        _BE.intersection(sentence.words[index + 1 : index + 2])
    )


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


def _narrowed(sentence: Sentence, thing: Reach) -> bool:
    """Whether every noun for rules has another noun before it that says what they are for: tax rules."""
    binding = k("RULES", "CONFIG", "LIMITS", "CHECK")
    places = [place for place in range(thing.first + 1, thing.last + 1) if sentence.bits[place] & binding]
    return bool(places) and all(
        of_another_thing(sentence, place, _OF, frozenset())
        or (
            place > thing.first + 2
            and len(sentence.words[place - 1]) > _SHORT
            and sentence.words[place - 1][0].isalpha()
            and not sentence.bits[place - 1]
            and sentence.words[place - 1] not in word_list("function")
            and not any(bits & k("YOU") for bits in sentence.bits[thing.first + 1 : place])
        )
        for place in places
    )


def _set_aside(sentence: Sentence, thing: Reach) -> float:
    if thing.has("RULES", "CONFIG", "LIMITS"):
        binding = thing.has("PRIOR", "YOU", "ALL", "SETUP")
        return STRENGTHS.rules_set_aside if binding else STRENGTHS.some_rules_set_aside
    if thing.has("CHECK", "GUARDED", "GATED"):
        return STRENGTHS.check_set_aside
    if thing.has("PRIOR") and thing.last - thing.first <= 5:
        old = _is_an_old_thing(sentence, thing)
        return STRENGTHS.old_thing_set_aside if old else STRENGTHS.before_set_aside
    return STRENGTHS.all_set_aside if thing.has("ALL") and thing.last - thing.first <= 8 else 0.0


def _is_an_old_thing(sentence: Sentence, thing: Reach) -> bool:
    """Whether what came before is some other thing, named by its noun: the old form, my earlier mail."""
    nouns = [
        place + 1
        for place in range(thing.first + 1, thing.last)
        if sentence.bits[place] & k("PRIOR") and sentence.words[place + 1][0].isalpha()
    ]
    return bool(nouns) and all(
        sentence.words[place] not in word_list("function")
        and not sentence.bits[place] & k("TEXT", "TASK", "CHAT", "RULES", "CONFIG", "FILLER", "PRIOR")
        for place in nouns
    )


def _switched_off(thing: Reach) -> float:
    if thing.has("CHECK", "LIMITS", "GATED"):
        return STRENGTHS.some_check_switched_off if thing.indefinite else STRENGTHS.check_switched_off
    return STRENGTHS.rules_switched_off if thing.has("RULES") and thing.has("YOU", "PRIOR") else 0.0


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
            yield Intent("lifted", STRENGTHS.ended, at, min(end, ended + 2))
        if denied is not None and any(bits & k("NEEDED") for bits in sentence.bits[denied : denied + 4]):
            yield Intent("lifted", STRENGTHS.not_needed, at, min(end, denied + 4))
        if bits & k("CHECK", "LIMITS", "RULES") and sentence.mask & k(
            "ME", "YOU", "LICENCE", "WARRANT", "SYSTEM"
        ):
            for place in range(max(0, at - 5), at):
                verb = sentence.words[place]
                if sentence.bits[place] & k("SUSPEND", "OVERRIDE", "ENDED") and verb.endswith(("s", "ed")):
                    yield Intent("lifted", STRENGTHS.lifted_by_somebody, place, at)


def _unbound(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """An assistant that no rule binds: unrestricted, without filters, never refuses."""
    addressed = bool(sentence.mask & k("YOU", "MACHINE")) and not sentence.question
    telling = k("SAY", "OUTPUT", "PERSONA", "MODE")
    doing = any(bits & telling and not bits & k("FREE") for bits in sentence.bits) or bool(commanded)
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits):
        if bits & k("FREE"):
            aimed = (addressed or doing) and not _frees_another(sentence, at)
            if any(after & k("YOU") for after in sentence.bits[at + 1 : at + 2]):
                strength = STRENGTHS.freed_you
            else:
                strength = STRENGTHS.freed if aimed else STRENGTHS.freed_another
            yield Intent("unbound", strength, max(0, at - 6), min(end, at + 6))
        elif bits & k("NOT"):
            thing = reach(sentence, at, 6)
            kept = word_list("keeps_rules").intersection(sentence.words[at + 1 : at + 4])
            if thing.has("LIMITS") and not thing.mine and not kept:
                somebody = bool({"who", "he", "she", "they"} & set(sentence.words)) and bool(
                    sentence.mask & k("GUARDED")
                )
                if addressed and (doing or _says_you_are(sentence, at)):
                    strength = STRENGTHS.no_limits
                else:
                    strength = STRENGTHS.no_limits_for_somebody if somebody else STRENGTHS.no_limits_mentioned
                yield Intent("unbound", strength, max(0, at - 6), thing.last)


def _says_you_are(sentence: Sentence, at: int) -> bool:
    """Whether "you are" stands shortly before."""
    before = sentence.words[max(0, at - 6) : at]
    return "you're" in before or ("you", "are") in pairwise(before)


def _frees_another(sentence: Sentence, at: int) -> bool:
    """Whether something else than the assistant is freed, or only asked about: jailbreak a phone."""
    if sentence.words[at] == "unbounded":  # a word of mathematics
        return True
    if sentence.question:
        return not sentence.mask & k("YOU", "MACHINE")
    follows = sentence.words[at + 1 : at + 2]
    if follows and not sentence.bits[at + 1] & _ITS_OWN and follows[0][0].isalpha():
        return follows[0] not in word_list("function")  # the jailbreak scene, unfiltered feedback
    return bool(_BEFORE_AN_OBJECT.intersection(follows)) and not reach(sentence, at, 5).has("YOU", "MACHINE")


def _persona(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Becoming somebody else, or entering a mode with other powers."""
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits):
        word = sentence.words[at]
        if word in ("mode", "modus") and at and sentence.bits[at - 1] & k("POWERMODE"):
            switched = bool(sentence.mask & k("SWITCH", "PERSONA")) and not sentence.question
            strength = STRENGTHS.mode_switched if switched else STRENGTHS.mode_named
            if on_the_speakers_own(sentence, at, at):
                strength = STRENGTHS.mode_of_own_thing
            yield Intent("mode", strength, max(0, at - 6), min(end, at + 4))
        elif bits & k("PERSONA") and sentence.mask & k("YOU"):
            yield Intent("persona", STRENGTHS.persona, max(0, at - 3), min(end, at + 8))
        elif bits & k("NOT") and _erased(sentence, at):
            yield Intent("mode", STRENGTHS.assistant_erased, at, min(end, at + 8))
    if sentence.mask & k("POWER") and sentence.mask & k("SWITCH"):
        for order in commanded:
            if sentence.bits[order.index] & k("SWITCH") and not order.negated:
                thing = reach(sentence, order.index, 5)
                powers = thing.has("POWER") and thing.has("INTERNAL", "POWERMODE", "SETUP")
                if powers and not on_the_speakers_own(sentence, order.index + 1, thing.last):
                    yield Intent("mode", STRENGTHS.power_switched_on, thing.first, thing.last)


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
            yield Intent("forced", STRENGTHS.words_forced, thing.first, thing.last)


def _new_task(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Another task put in the place of the given one."""
    end = len(sentence.words) - 1
    for at, bits in enumerate(sentence.bits[:-1]):
        if not bits & k("NEW", "URGENT") or bits & k("FILLER"):
            continue
        if any(before & k("NOT") for before in sentence.bits[max(0, at - 3) : at]):
            continue
        for step in (1, 2):
            if at + step <= end and sentence.bits[at + step] & k("TASK"):
                follows = sentence.words[at + step + 1 : at + step + 3]
                opened = not follows or any(w[0] in ":*=-" or w in ("is", "are", "to") for w in follows)
                given = opened or sentence.mask & k("YOU")
                strength = STRENGTHS.task_replaced if given else STRENGTHS.task_mentioned
                yield Intent("new_task", strength, max(0, at - 2), min(end, at + step + 6))


def _refusal_denied(sentence: Sentence, at: int, thing: Reach) -> bool:
    """Whether refusing is denied; "neither confirm nor deny" and "if not, refuse" are orders to refuse."""
    between = sentence.words[at + 1 : thing.last + 1]
    refusal = next(
        (place for place, bits in enumerate(sentence.bits[at + 1 : thing.last + 1]) if bits & k("REFUSAL")),
        None,
    )
    return (
        refusal is not None
        and "," not in between[:refusal]
        and sentence.words[at] not in ("neither", "nor")
        and not _is_an_object(sentence, at + 1 + refusal)
        and not _is_an_invitation(sentence, at + 1 + refusal)
    )


def _is_an_invitation(sentence: Sentence, at: int) -> bool:
    """Whether readers are asked to get in touch: do not hesitate to contact us."""
    return sentence.words[at].startswith("hesitat") and bool(
        word_list("get_in_touch").intersection(sentence.words[at + 1 : at + 7])
    )


def _is_an_object(sentence: Sentence, at: int) -> bool:
    """Whether the word is the noun of programs and grammars: the request object."""
    return sentence.words[at].startswith("object") and not (
        sentence.bits[at - 1] & k("NOT", "MODAL", "YOU") or sentence.words[at - 1] == "to"
    )


def _conceal(sentence: Sentence, commanded: tuple[Order, ...]) -> Iterator[Intent]:
    """Acting behind somebody's back, or being forbidden to refuse."""
    for at, bits in enumerate(sentence.bits[:-1]):
        if not bits & k("NOT"):
            continue
        thing = reach(sentence, at, 5)
        from_somebody = thing.has("HUMAN_USER") or _THIS.intersection(sentence.words[at + 2 : at + 4])
        if sentence.bits[at + 1] & k("CONCEAL") and from_somebody:
            strength = STRENGTHS.only_asked if sentence.question else STRENGTHS.concealed
            yield Intent("conceal", strength, at, thing.last)
        elif (
            _refusal_denied(sentence, at, thing)
            and not thing.mine
            and (commanded or sentence.mask & k("YOU", "MACHINE"))
        ):
            strength = STRENGTHS.only_asked if sentence.question else STRENGTHS.refusal_forbidden
            yield Intent("no_refusal", strength, at, thing.last)


_Finder = Callable[[Sentence, tuple[Order, ...]], Iterator[Intent]]
_FINDERS: tuple[tuple[int, _Finder], ...] = (
    (k("OVERRIDE", "SUSPEND"), _override),
    (k("CHECK", "LIMITS", "RULES", "GATED"), _lifted),
    (k("CONFIG", "POLICY", "TEXT"), protected.config),
    (k("SECRET"), protected.secret),
    (k("PRIVATE", "INTERNAL", "POWER", "OTHERS"), protected.private),
    (k("GUARDED"), protected.guarded),
    (VERBS, protected.unchecked),
    (k("FREE", "NOT"), _unbound),
    (k("POWERMODE", "PERSONA", "NOT", "POWER"), _persona),
    (k("SAY"), _forced),
    (k("TASK"), _new_task),
    (k("NOT"), _conceal),
)
"""Each finder with the classes of which one must occur for it to find anything."""
