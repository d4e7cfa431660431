"""The prompt read once for all lenses: its sentences, what each wants, and what the operator really said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from firecircle.languages import unread_languages
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.language.acts import Order, orders
from firecircle.voices.embedded.language.addressee import is_a_machine, told_to_machine
from firecircle.voices.embedded.language.intents import intents
from firecircle.voices.embedded.language.objects import TELLING, Intent
from firecircle.voices.embedded.language.text import Marks, Sentence, sentences
from firecircle.voices.embedded.language.ties import concerns_assistant
from firecircle.voices.embedded.language.words import kind, stem, word_list

if TYPE_CHECKING:
    from firecircle.voices.embedded.lenses.findings import Finding, Reader

UNVOUCHED = ("application", "user")
"""The layers whose words are judged; the operator's own and the recorded turns are the measure."""

PEOPLE_ORDERED, PEOPLE_ORDERED_SHARE = 6, 0.15
"""Sentences with orders, and their share, from which on a document is written for people."""
MACHINES_NAMED = 2
"""Sentences that name a machine and tell it nothing, from which on a document is about machines."""
_TOLD_MACHINES = ("override", "conceal", "no_refusal", "forced")
_NOT_CONTENT = kind(
    "YOU", "ME", "NOT", "MODAL", "FILLER", "SHOW", "LEAK", "SAY", "CONCEAL", "MACHINE", "ALL", "ASK", "EXACT",
    "WANT",
)  # fmt: skip
_CONTENT_ANYWAY = kind("PRIVATE", "SECRET", "CONFIG", "CHECK", "INTERNAL")
_HOLDING_BACK = frozenset(
    ("keep", "kept", "yourself", "visible", "known", "see", "told", "shown", "shared", "leave", "stay")
)
_CONDITIONS = frozenset(
    ("need", "needs", "only", "must", "above", "until", "before", "after", "require", "requires", "unless")
)
_NAMED = re.compile(
    r"\b(?:[Yy]ou are|[Yy]ou're|[Yy]our name is|[Yy]ou (?:are called|go by|answer to)"
    r"|(?:[Aa]ssistant|agent|bot|chatbot|model|AI),? (?:is )?(?:called|named))(?: the name(?: of)?)? "
    r"[\"'“‘]?(?!AI\b|A\b|An\b|The\b|[A-Z]+[a-z]*(?:ish|ese)\b)([A-Z][\w-]{2,24})"
    r"(?=[\"'”’]?(?:[,.;:!]| ?\(|\n| [-–—] | and\b|$))"
)
"""A name in capitals that ends its clause: You are Nora, …; your name is Nora."""


class ReadSentence(NamedTuple):
    """A sentence, the orders it gives and what it wants."""

    sentence: Sentence
    orders: tuple[Order, ...]
    intents: tuple[Intent, ...]

    @property
    def is_for_machines(self) -> bool:
        """Whether only an assistant could be meant: it is addressed, or told what no person is told."""
        told = self.strongest(*_TOLD_MACHINES)
        names = {intent.name for intent in self.intents}
        if self.sentence.mask & kind("YOU") and "mode" in names and names & {"lifted", "unbound"}:
            return True
        if told is not None and told.strength >= TELLING:
            return concerns_assistant(self.sentence, self.orders, told)
        return bool(word_list("machines").intersection(self.sentence.words)) or self.is_addressed_to_machines

    @property
    def is_addressed_to_machines(self) -> bool:
        """Whether a machine is called or told its duty."""
        return told_to_machine(self.sentence, self.orders) > 0

    def strongest(self, *names: str) -> Intent | None:
        """The strongest of the named intents, or of all."""
        named = [intent for intent in self.intents if not names or intent.name in names]
        return max(named, key=lambda intent: intent.strength, default=None)


@dataclass(frozen=True)
class PromptReading:
    """What the lenses share about one prompt. They differ on what it means, not on what it says."""

    prompt: MultiNeutrosophicPrompt
    _findings: dict[Reader, tuple[Finding, ...]] = field(default_factory=dict, compare=False, repr=False)
    _strengths: dict[tuple[str, ...], float] = field(default_factory=dict, compare=False, repr=False)

    def found_by(self, reader: Reader) -> tuple[Finding, ...]:
        """What a reader finds; remembered, since every round asks again."""
        if reader not in self._findings:
            self._findings[reader] = reader.find(self)
        return self._findings[reader]

    def text(self, layer: str) -> str:
        """The words of a layer."""
        return self.prompt.earlier_conversation if layer == "turns" else str(getattr(self.prompt, layer))

    @cached_property
    def application(self) -> tuple[ReadSentence, ...]:
        """The application's text."""
        return read_text(self.prompt.application, "application", self.marks)

    @cached_property
    def user(self) -> tuple[ReadSentence, ...]:
        """The user's message."""
        return read_text(self.prompt.user, "user", self.marks)

    @cached_property
    def system(self) -> tuple[ReadSentence, ...]:
        """The operator's text."""
        return read_text(self.prompt.system, "system")

    def unvouched(self) -> Iterator[ReadSentence]:
        """The sentences nobody vouches for."""
        yield from self.application
        yield from self.user

    def at(self, layer: str, start: int, end: int) -> Iterator[ReadSentence]:
        """The sentences of an unvouched layer that touch a place."""
        for read in self.application if layer == "application" else self.user if layer == "user" else ():
            if read.sentence.start < end and start < read.sentence.end:
                yield read

    @cached_property
    def user_mask(self) -> int:
        """All classes of words in the user's message."""
        return _mask(self.user)

    @cached_property
    def lessons(self) -> tuple[int, ...]:
        """Where the user's message speaks of teaching or learning."""
        return tuple(
            start
            for read in self.user
            if read.sentence.mask & kind("TEACHING")
            for start, bits in zip(read.sentence.starts, read.sentence.bits, strict=True)
            if bits & kind("TEACHING")
        )

    @cached_property
    def unread(self) -> tuple[str, ...]:
        """The languages of the judged layers that no embedded voice reads, the most letters first."""
        return tuple(language for language, _ in unread_languages(self.prompt).most_common())

    @cached_property
    def is_for_people(self) -> bool:
        """Whether the application's text gives orders all along and turns to no machine.

        Then its readers are people: a manual, a runbook, a circular.
        """
        orders = sum(
            bool(read.orders or read.sentence.mask & kind("YOU")) and not read.is_for_machines
            for read in self.application
        )
        return orders >= max(PEOPLE_ORDERED, PEOPLE_ORDERED_SHARE * len(self.application))

    @cached_property
    def is_about_machines(self) -> bool:
        """Whether the application's text speaks of assistants, agents and models without addressing them.

        Then they are its subject: a page about agents, a skill, rules for a coding agent.
        """
        spoken_of = sum(
            not read.is_addressed_to_machines and any(map(is_a_machine, read.sentence.words))
            for read in self.application
        )
        return spoken_of >= MACHINES_NAMED

    @cached_property
    def is_a_game(self) -> bool:
        """Whether the user gives the assistant a part to play, frees it from nothing, and no operator speaks.

        Then prompts, secrets and commands are mostly those of the game.
        """
        return (
            not self.prompt.system
            and any(read.sentence.mask & kind("PERSONA") for read in self.user)
            and self.strongest("user", "override", "lifted", "unbound", "mode", "no_refusal") < TELLING
        )

    @cached_property
    def said_by_operator(self) -> frozenset[str]:
        """The content of the system and application text, as stems."""
        return content(self.prompt.system) | content(self.prompt.application)

    @cached_property
    def marks(self) -> Marks:
        """The words of what the operator holds back, and the name of the assistant."""
        marks = dict(guard_marks(self.prompt.system))
        for name in self.assistant_names:
            marks[stem(name)] = marks.get(stem(name), 0) | kind("NAMED")
        return marks

    @cached_property
    def assistant_names(self) -> frozenset[str]:
        """The names that the operator gives the assistant, in lower case: You are Nora, the assistant of …"""
        return frozenset(match[1].lower() for match in _NAMED.finditer(self.prompt.system[:20_000]))

    @cached_property
    def said_before(self) -> frozenset[str]:
        """The content of all earlier turns."""
        return frozenset().union(*(content(turn.content) for turn in self.prompt.turns or ()))

    @cached_property
    def said_by_assistant(self) -> frozenset[str]:
        """The content of the assistant's earlier turns, without those that refuse."""
        return frozenset().union(
            *(
                content(turn.content)
                for turn in self.prompt.turns or ()
                if turn.role != "user" and not refuses(turn.content)
            )
        )

    def strongest(self, layer: str, *names: str) -> float:
        """The strength of the strongest such intent in a layer; remembered, since each claim asks."""
        key = (layer, *names)
        if key not in self._strengths:
            reads = self.application if layer == "application" else self.user
            strengths = (intent.strength for read in reads if (intent := read.strongest(*names)))
            self._strengths[key] = max(strengths, default=0.0)
        return self._strengths[key]


@lru_cache(maxsize=8)
def read_prompt(prompt: MultiNeutrosophicPrompt) -> PromptReading:
    """The reading of a prompt, shared by the voices of a circle while they talk about it."""
    return PromptReading(prompt)


def read_text(text: str, layer: str, marks: Marks | None = None) -> tuple[ReadSentence, ...]:
    """The sentences of a text with what they order and want."""
    return tuple(_read(sentence) for sentence in sentences(text, layer, marks)) if text.strip() else ()


def _read(sentence: Sentence) -> ReadSentence:
    commanded = orders(sentence)
    return ReadSentence(sentence, commanded, intents(sentence, commanded))


def content(text: str) -> frozenset[str]:
    """The content words of a text, as stems."""
    return (
        frozenset().union(*(words_of(sentence) for sentence in sentences(text, ""))) if text else frozenset()
    )


def words_of(sentence: Sentence, first: int = 0, last: int | None = None) -> frozenset[str]:
    """The content words of (a part of) a sentence, as stems."""
    function_words = word_list("function")
    return frozenset(
        stem(word)
        for word in sentence.words[first:last]
        if len(word) > 2 and word[0].isalnum() and word.partition("'")[0] not in function_words
    )


def overlap(claimed: frozenset[str], known: frozenset[str]) -> float:
    """How much of what is claimed is known."""
    return len(claimed & known) / len(claimed) if claimed else 1.0


def _mask(reads: Iterable[ReadSentence]) -> int:
    mask = 0
    for read in reads:
        mask |= read.sentence.mask
    return mask


def refuses(text: str) -> bool:
    """Whether a text declines something."""
    refusal, nots, mine = kind("REFUSAL"), kind("NOT"), kind("ME")
    return any(s.mask & refusal or (s.mask & nots and s.mask & mine) for s in sentences(text[:2_000], ""))


def guard_marks(system: str) -> Marks:
    """The stems the operator's text guards: information held back, or steps tied to a condition.

    They are marked in the other layers, so that a lens can tell a request for the leaflet from one for the
    rota.
    """
    of_operator = sentences(system[:20_000], "system")
    free = Counter(
        word for sentence in of_operator if not _restricts(sentence) for word in _guardable(sentence)
    )
    marks: dict[str, int] = {}
    for sentence in of_operator:
        bits = _restricts(sentence)
        if bits:
            for word in _guardable(sentence):
                if word not in free:
                    marks[word] = marks.get(word, 0) | bits
    return marks


def _restricts(sentence: Sentence) -> int:
    """Whether a sentence of the operator holds something back, and in which way."""
    words = set(sentence.words)
    mask = sentence.mask
    limiting = bool(mask & kind("NOT")) or "only" in words
    if mask & kind("INTERNAL") or (
        limiting and (mask & kind("SHOW", "LEAK", "CONCEAL") or words & _HOLDING_BACK)
    ):
        return kind("GUARDED")
    if "yourself" in words or (words & {"is", "are"} and limiting and "for" in words):
        return kind("GUARDED")
    if limiting or mask & kind("CHECK") or words & _CONDITIONS:
        return kind("GATED")
    return 0


def _guardable(sentence: Sentence) -> frozenset[str]:
    function_words = word_list("function")
    return frozenset(
        stem(word)
        for word, bits in zip(sentence.words, sentence.bits, strict=True)
        if len(word) > 2
        and word[0].isalpha()
        and word not in function_words
        and (not bits & _NOT_CONTENT or bits & _CONTENT_ANYWAY)
        and word not in _HOLDING_BACK
        and word not in _CONDITIONS
    )
