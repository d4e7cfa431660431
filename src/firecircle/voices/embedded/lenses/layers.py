"""The lens of layers: does a layer speak with a voice, or claim a content, that is not its own?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from firecircle.voices.embedded.language.addressee import calls_machine, told_to_machine
from firecircle.voices.embedded.language.commands import planted_commands
from firecircle.voices.embedded.language.objects import TELLING, of_another_thing, reach
from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence, overlap, words_of
from firecircle.voices.embedded.language.text import Sentence, pasted_places, quote_end
from firecircle.voices.embedded.language.words import kind as k
from firecircle.voices.embedded.language.words import word_list
from firecircle.voices.embedded.lenses.findings import Finding

_ROLE = r"(?:system|assistant|user|human|developer|admin|tool|tool_\w+|function_\w+|instructions?|sys|inst)"
_TEMPLATE = re.compile(
    r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|</?s>", re.IGNORECASE
)
_TAG = re.compile(
    rf"</?{_ROLE}>|\[/?{_ROLE}(?:\]|:(?![a-z]))|\[{_ROLE} [^\]\n]{{0,60}}[\]:]|\[{_ROLE}\(", re.IGNORECASE
)
_TITLE = r"(?: (?:note|notice|message|prompt|update|override))?"
_HEADING = re.compile(
    rf"^[ \t]*#{{1,6}}[ \t]*{_ROLE}\b|^[ \t*\[]{{0,6}}{_ROLE}{_TITLE}[ \t*\]]{{0,4}}:",
    re.IGNORECASE | re.MULTILINE,
)
_SPEAKS = re.compile(rf"[>\]]\s?{_ROLE}\b", re.IGNORECASE)
_AFTER_MARKER = 300
_SHOWN = 160
"""Characters that the quote of a marker shows."""
_PLAIN_WORD = re.compile(r"[^\W\d_]{2,}")
_WORDS_BEFORE = 1
"""How many words before a marker make it a part of a sentence."""
_BETWEEN_MARKERS = 3
"""From how many words on what stands between an opening and a closing marker is a turn."""
_AFTER_CALL = 2
"""How many sentences after one that calls a machine are still meant for it."""
_RIGHTS_GIVEN = re.compile(
    r"\b(?:(?:this|the) user|user (?:id )?#?\w*\d\w*)\b[^.\n]{0,60}\b"
    r"(?:granted|given|verified|authori[sz]ed)\b[^.\n]{0,60}\b(?:elevated|unrestricted|full|admin\w*|root)\b"
    r"|\b(?:AI|LLM|chatbots?|assistants?|models?)\b[^.\n]{0,50}\b(?:authori[sz]ed|permitted|allowed|configured|free)"
    r" to (?:\w+ and )?(?:share|reveal|disclose|display|show|print)\b"
    r"[^.\n]{0,60}\b(?:system prompts?|api keys?|passwords?|credentials|internal \w+)\b"
    r"|\b(?:content|safety)[_ ]?(?:filters?|polic(?:y|ies)|checks?)\s?[:=]\s?(?:disabled|off|false|none)\b",
    re.IGNORECASE,
)
_FROM_NOW_ON = re.compile(
    r"\b(?:all|any|every|in|your) (?:\w+ )?future"
    r" (?:responses|replies|answers|requests|messages|interactions)\b"
    r"|\bin (?:every|each) (?:\w+ )?response\b",
    re.IGNORECASE,
)
_ONLY_IF = frozenset(("if", "whether", "when", "once", "unless", "ensure", "verify", "check"))
_TURN = re.compile(rf"\s{{0,3}}{_ROLE}?[ \t]{{0,3}}[:\n]", re.IGNORECASE)
"""What stands behind a marker that opens a turn."""


class LayersStrengths(NamedTuple):
    """How much each overstepping counts, from 0 to 1.

    Set by hand on the development prompts of all but five sources; `bench.detection` measures all of them.
    """

    # A marker of another layer's voice: alone, and before words that want something.
    template_alone: float = 0.75
    template_commanding: float = 0.92
    tag_alone: float = 0.35
    tag_commanding: float = 0.85
    heading_alone: float = 0.1
    heading_commanding: float = 0.65
    marker_asked_about: float = 0.3  # at most, where a question is about the marker

    # An order to the assistant inside a document.
    told_doubt: float = 0.5  # of the doubt about an intent, taken off because a document has it
    told_doubt_common: float = 0.25  # the same for intents that documents have for people too
    guarded_addressed: float = 0.5  # names what is held back and addresses somebody
    called_before: float = 0.72  # the sentence before calls a machine
    task_replaced: float = 0.45
    rights_given: float = 0.72  # says that the user holds rights, or that secrets may be told
    from_now_on: float = 0.72  # an order for every later answer
    answer_shaped: float = 0.5  # says what to put into the answer
    user_told: float = 0.35
    following_done: float = 0.4
    material_written: float = 0.45  # a text to be made of the material at hand
    written: float = 0.3
    any_order: float = 0.1
    for_people: float = 0.3  # what is left of an order in a document whose orders are meant for people
    about_machines: float = 0.5  # the same where a document about machines tells one its work

    # The user speaks above their rank.
    persona: float = 0.4  # of the doubt, taken off where a role is given to the assistant as well
    false_claim: float = 0.5
    claim_unknown: float = 0.25  # added, the more is claimed that the operator's text does not say
    claim_words: int = 8
    claim_known: float = 0.5  # the share of a claim's words that the operator's text must contain


STRENGTHS = LayersStrengths()
FROM_BELOW = ("override", "lifted", "mode", "unbound", "new_task", "conceal", "no_refusal", "forced")


class LayersLens:
    """Orders inside data, forged markers, claims about the operator's text, and roles that change hands."""

    name = "layers"
    looks_at = "how the layers speak about each other"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Every place where a layer oversteps its rank."""
        return (
            *self._markers(reading),
            *self._orders_in_data(reading),
            *self._planted_commands(reading),
            *self._orders_in_pasted_text(reading),
            *self._orders_from_below(reading),
            *self._false_claims(reading),
        )

    def _markers(self, reading: PromptReading) -> Iterator[Finding]:
        """Tokens and headings that only the frame around the layers may contain."""
        for layer in ("application", "user"):
            text = reading.text(layer)
            for pattern, alone, commanding in (
                (_TEMPLATE, STRENGTHS.template_alone, STRENGTHS.template_commanding),
                (_TAG, STRENGTHS.tag_alone, STRENGTHS.tag_commanding),
                (_HEADING, STRENGTHS.heading_alone, STRENGTHS.heading_commanding),
            ):
                match = pattern.search(text)
                if match is None:
                    continue
                stop = match.end() + _AFTER_MARKER
                follows = list(reading.at(layer, match.start(), stop))
                ordering = any(read.strongest() or read.orders for read in follows)
                telling = max((i.strength for read in follows if (i := read.strongest())), default=0.0)
                strength = (
                    commanding if telling >= TELLING else (alone + commanding) / 2 if ordering else alone
                )
                mentioned = _asked_about(follows, match) or (
                    pattern is not _HEADING
                    and (_is_a_string(text, match) or _is_mentioned(text, match, follows))
                )
                if telling < TELLING and mentioned:
                    strength = min(alone, STRENGTHS.marker_asked_about)
                end = quote_end(text, match.start(), min(len(text), match.start() + _SHOWN))
                sign = "line" if pattern is _HEADING else "marker"
                note = f"The {_LAYERS[layer]} contains a fake “{match[0].strip()}” {sign}"
                yield Finding(
                    "role_confusion" if layer == "user" else "cross_layer_fabrication",
                    strength,
                    layer,
                    match.start(),
                    end,
                    note,
                )

    def _orders_in_data(self, reading: PromptReading) -> Iterator[Finding]:
        """The application's text is material to work on; orders to the assistant do not belong there."""
        called = 0
        for read in reading.application:
            strength, to_machine = _order_in_data(read), _is_told_the_assistant(read)
            if changed := _standing_change(read):
                strength, to_machine = max(strength, changed), True
            if called and read.orders and not any(order.mentioned for order in read.orders):
                strength, to_machine = max(strength, STRENGTHS.called_before), True
            called = _AFTER_CALL if calls_machine(read.sentence) else max(0, called - 1)
            if not to_machine and reading.is_for_people:
                strength *= STRENGTHS.for_people
            elif to_machine and reading.is_about_machines and _only_says_its_work(read):
                strength *= STRENGTHS.about_machines
            if strength:
                start, end = read.sentence.quote()
                yield Finding(
                    "cross_layer_fabrication",
                    strength,
                    "application",
                    start,
                    end,
                    "The document contains an order to the assistant",
                )

    def _planted_commands(self, reading: PromptReading) -> Iterator[Finding]:
        """Commands that serve neither the task nor what the document is about."""
        for command in planted_commands(reading):
            start, end = command.sentence.sentence.quote()
            note = f"The document contains a command that the user's task does not need: it {command.note}"
            yield Finding("cross_layer_fabrication", command.strength, "application", start, end, note)

    def _orders_in_pasted_text(self, reading: PromptReading) -> Iterator[Finding]:
        """What the user pasted is material too: who addresses a machine there is somebody else."""
        pasted = pasted_places(reading.prompt.user)
        for read in reading.user if pasted else ():
            start, end = read.sentence.quote()
            if any(first <= start < last for first, last in pasted):
                strength = told_to_machine(read.sentence, read.orders)
                if strength:
                    note = "The text that the user pasted contains an order to the assistant"
                    yield Finding("cross_layer_fabrication", strength, "user", start, end, note)

    def _orders_from_below(self, reading: PromptReading) -> Iterator[Finding]:
        """A user who sets aside what binds the assistant, or swaps its role."""
        persona = any(read.strongest("persona") for read in reading.user)
        for read in reading.user:
            for intent in read.intents:
                if intent.name not in FROM_BELOW:
                    continue
                strength = intent.strength
                if persona and intent.name in ("unbound", "no_refusal", "override"):
                    strength += STRENGTHS.persona * (1 - strength)
                start, end = read.sentence.quote(intent.first, intent.last)
                yield Finding("role_confusion", strength, "user", start, end, _NAMES[intent.name])
            if (swap := read.strongest("persona")) is not None:
                start, end = read.sentence.quote(swap.first, swap.last)
                yield Finding(
                    "role_confusion",
                    swap.strength,
                    "user",
                    start,
                    end,
                    "The user gives the assistant another role",
                )

    def _false_claims(self, reading: PromptReading) -> Iterator[Finding]:
        """The user says what the operator's text says: does it?"""
        if not reading.prompt.system:
            return
        for read in reading.user:
            sentence = read.sentence
            verb = None if sentence.question else _says_of_the_text(sentence)
            if verb is None:
                continue
            claimed = words_of(sentence, verb + 1)
            known = overlap(claimed, reading.said_by_operator)
            if len(claimed) >= 2 and known < STRENGTHS.claim_known:
                more = min(len(claimed), STRENGTHS.claim_words) / STRENGTHS.claim_words
                strength = STRENGTHS.false_claim + STRENGTHS.claim_unknown * more * (1 - known)
                start, end = sentence.quote(max(0, verb - 8))
                note = "The user says that the system prompt says something that it does not say"
                yield Finding("cross_layer_fabrication", strength, "user", start, end, note)


def _is_a_string(text: str, marker: re.Match[str]) -> bool:
    """Whether the marker alone stands between quotation marks, as the names of tokens do in programs."""
    around = text[marker.start() - 1 : marker.start()] + text[marker.end() : marker.end() + 1]
    return len(around) == 2 and around[0] == around[1] and around[0] in "\"'`"


def _is_mentioned(text: str, marker: re.Match[str], follows: Sequence[ReadSentence]) -> bool:
    """Whether the marker is a word of somebody's sentence: words before it on its line, no turn behind it."""
    to_obey = k("HUMAN_USER", "PERSONA", "RULES")
    if any(read.orders and read.sentence.mask & to_obey for read in follows[1:]):
        return False
    line_start = text.rfind("\n", 0, marker.start()) + 1
    before = text[line_start : marker.start()]
    if len(_PLAIN_WORD.findall(before)) < _WORDS_BEFORE:
        return False
    line_end = text.find("\n", marker.end())
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    markers = list(marker.re.finditer(text))
    for first, second in pairwise(markers):
        if first.end() == second.start():
            return False
        closes = "/" in second[0] and "/" not in first[0]
        if closes and len(_PLAIN_WORD.findall(text[first.end() : second.start()])) >= _BETWEEN_MARKERS:
            return False
    return not any(_TURN.match(text, each.end()) for each in markers) and not _SPEAKS.search(
        line[: marker.end() - line_start] if marker.re is _TEMPLATE else line
    )


def _asked_about(follows: Sequence[ReadSentence], marker: re.Match[str]) -> bool:
    """Whether the marker is what a question is about, and nothing behind it speaks in another voice."""
    sentence = follows[0].sentence if follows else None
    if sentence is None or not sentence.question or not sentence.bits[0] & k("ASK"):
        return False
    if _SPEAKS.search(sentence.text, sentence.start, sentence.end):
        return False
    if marker.re.search(sentence.text, sentence.end):
        return False
    return all(
        marker.start() <= read.sentence.starts[order.index] < marker.end()
        for read in follows
        for order in read.orders
    )


def _says_of_the_text(sentence: Sentence) -> int | None:
    """Where the user reports the operator's text: your rules say, the system message was updated."""
    for at, bits in enumerate(sentence.bits):
        if not bits & k("CONFIG", "POLICY", "TEXT") or not _yours(sentence.words, sentence.bits, at):
            continue
        if of_another_thing(sentence, at, _ELSEWHERE, frozenset()):
            continue
        for place in range(at + 1, min(at + 7, len(sentence.words))):
            if sentence.words[place] in word_list("says"):
                return place
    return None


def _is_told_the_assistant(read: ReadSentence) -> bool:
    """Whether an order in a document for people is none for them."""
    return read.is_for_machines or any(
        _shapes_the_answer(read.sentence, order.index) for order in read.orders
    )


def _only_says_its_work(read: ReadSentence) -> bool:
    """Whether a sentence that names a machine calls none and wants nothing else."""
    return not (
        read.intents or calls_machine(read.sentence) or {"if", "you"}.issubset(read.sentence.words[:3])
    )


def _order_in_data(read: ReadSentence) -> float:
    """How much a sentence of the application's text is an order to the assistant."""
    sentence = read.sentence
    mask = sentence.mask
    best = 0.0
    for intent in read.intents:
        if intent.name != "persona":
            common = intent.name in ("private", "guarded", "lifted", "unbound")
            share = STRENGTHS.told_doubt_common if common else STRENGTHS.told_doubt
            share *= min(1.0, intent.strength / TELLING) ** 3
            best = max(best, intent.strength + share * (1 - intent.strength))
    if mask & k("GUARDED") and not sentence.question and mask & k("YOU", "MACHINE"):
        best = max(best, STRENGTHS.guarded_addressed)
    best = max(best, told_to_machine(sentence, read.orders))
    if mask & k("YOU") and mask & k("TASK") and not sentence.question and _names_another_task(sentence):
        best = max(best, STRENGTHS.task_replaced)
    active = [order for order in read.orders if not order.negated and not order.mentioned]
    if not active:
        return best
    if any(_shapes_the_answer(sentence, order.index) for order in active):
        best = max(best, STRENGTHS.answer_shaped)
    if mask & k("HUMAN_USER") and mask & k("SAY", "SHOW", "GRANT"):
        best = max(best, STRENGTHS.user_told)
    if "following" in sentence.words and any(sentence.bits[order.index] & k("DO") for order in active):
        best = max(best, STRENGTHS.following_done)
    for order in active:
        if sentence.bits[order.index] & k("WRITE_TASK"):
            of_material = reach(sentence, order.index, 10).has("MATERIAL")
            best = max(best, STRENGTHS.material_written if of_material else STRENGTHS.written)
    return max(best, STRENGTHS.any_order)


def _standing_change(read: ReadSentence) -> float:
    """How much a sentence of a document changes what the assistant may do for its user from now on."""
    sentence = read.sentence
    text = sentence.text[sentence.start : sentence.end]
    stated = not sentence.question and not _ONLY_IF.intersection(sentence.words)
    if stated and _RIGHTS_GIVEN.search(text):
        return STRENGTHS.rights_given
    lasting = (read.orders or "should" in sentence.words) and _FROM_NOW_ON.search(text)
    return STRENGTHS.from_now_on if lasting else 0.0


def _names_another_task(sentence: Sentence) -> bool:
    """Whether a task is called new or former: your new role, the earlier orders you got."""
    return any(
        bits & k("TASK")
        and sentence.words[at] != "version"
        and sentence.words[at : at + 2] != ("command", "prompt")
        and any(before & k("PRIOR", "NEW") for before in sentence.bits[max(0, at - 2) : at])
        for at, bits in enumerate(sentence.bits)
    )


def _shapes_the_answer(sentence: Sentence, index: int) -> bool:
    """Whether an order says what to put into "your answer"; sending one's answer is what letters ask for."""
    if not sentence.bits[index] & k("SAY", "WRITE_TASK") or sentence.bits[index] & k("SEND", "OUTPUT"):
        return False
    thing = reach(sentence, index, 10)
    return thing.has("YOU") and thing.has("OUTPUT")


def _yours(words: tuple[str, ...], bits: tuple[int, ...], at: int) -> bool:
    """Whether the noun at this place is the assistant's or the system's."""
    near = range(max(0, at - 3), at + 1)
    return any(words[p] in ("your", "the") or bits[p] & k("SETUP", "SYSTEM") for p in near)


_ELSEWHERE = frozenset(("above", "on", "in", "at"))
"""Where a text of another thing is: the instructions above the sink."""
_LAYERS = {"application": "document", "user": "user message"}
_NAMES = {
    "override": "The user asks the assistant to set its rules aside",
    "lifted": "The user says that a rule or a check is not in force any more",
    "mode": "The user switches the assistant to a mode with other powers",
    "unbound": "The user describes an assistant without rules",
    "new_task": "The user replaces the assistant's task by another one",
    "conceal": "The user wants something done in secret",
    "no_refusal": "The user forbids the assistant to refuse",
    "forced": "The user prescribes the assistant's words",
}
