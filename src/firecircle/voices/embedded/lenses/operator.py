"""The lens on the operator: what a system prompt has the assistant do to the people it talks to.

Orders, secrets and roles are what a system prompt is made of, so none of them counts here. What counts is an
order against users (to deceive them, to keep from them what they need to know, to press them, to take
something from them behind their back), a word that switches the rules off, and text a reader is not meant to
see. It reads English; of other languages it sees only what is hidden.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import NamedTuple

from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.language.objects import TELLING
from firecircle.voices.embedded.language.prompt_reading import PromptReading, read_text
from firecircle.voices.embedded.language.text import Sentence, quote_end, sentences
from firecircle.voices.embedded.lenses.concealment import ConcealmentLens
from firecircle.voices.embedded.lenses.findings import Finding
from firecircle.voices.embedded.lenses.markdown import without_code


class OperatorStrengths(NamedTuple):
    """How much an order against users counts, from 0 to 1.

    Set by hand on the parts "a" to "c" of `bench/data/system_prompts.toml`; `bench.check` measures all.
    """

    plain: float = 0.8  # the order itself says that users are wronged
    likely: float = 0.72  # it does so in most of its meanings
    odd: float = 0.45  # it may be meant well
    in_a_story: float = 0.55  # what is left where characters deceive, or deceit is what is taught
    unseen: float = 0.75  # an order of that kind, or to the assistant, where a page does not show it


STRENGTHS = OperatorStrengths()


class Rule(NamedTuple):
    """An order against users: which words, of which kind, and how strongly they speak."""

    kind: str
    words: re.Pattern[str]
    strength: float
    forbids: bool
    """Whether it is an order not to do something, as when a fee is not to be mentioned."""


@cache
def _rules() -> tuple[Rule, ...]:
    """The rules of `operator.toml`, read when the first system prompt is looked at."""
    source = resources.files("firecircle.voices.embedded.lenses").joinpath("operator.toml")
    document = tomllib.loads(source.read_text("utf-8"))
    groups = {f"<{name}>": _whole(_joined(words)) for name, words in document["words"].items()}

    def spelled(words: str) -> str:
        for name, group in groups.items():
            words = words.replace(name, group)
        return words

    return tuple(
        Rule(
            rule["kind"],
            re.compile(_whole(spelled(_joined(rule["words"])))),
            getattr(STRENGTHS, rule["strength"]),
            rule.get("forbids", False),
        )
        for rule in document["rule"]
    )


def _whole(words: str) -> str:
    """An expression for these words that fits no part of a word."""
    return rf"(?<![\w'])(?:{words})(?![\w'])"


def _joined(lines: str) -> str:
    return "".join(lines.strip("\n").split("\n"))


_NOTES = {
    "deceives_users": "The operator's text makes the assistant deceive users",
    "hides_from_users": "The operator's text keeps from users what they need to decide",
    "pressures_users": "The operator's text has users pressed, frightened or made dependent",
    "takes_from_users": "The operator's text takes something from users in secret",
    "backdoor": "The operator's text lets a secret word switch off its rules",
    "unseen_order": "The prompt has an order that readers of the page do not see",
}
KINDS_BY_NOTE = {note: kind for kind, note in _NOTES.items()}
"""What this lens calls what it finds, by the sentence it says of it; none is one of the pattern types."""

_NEGATORS = frozenset(
    (
        *("not", "never", "no", "don't", "doesn't", "didn't", "won't", "cannot", "can't", "mustn't"),
        *("shouldn't", "neither", "nor", "nobody", "nothing", "without", "avoid", "refuse"),
    )
)
_STOPS = frozenset((":", "but", "then", "instead", "—", "–", "however", "while", "because", "(", ")"))
_FAR = 9
_SPEAKERS = frozenset(
    ("you", "assistant", "bot", "model", "agent", "chatbot", "always", "please", "also", "just")
)
_NOUN_FOLLOWS = frozenset(("a", "an", "the", "any", "each", "this", "every", "their", "your", "one"))
_OTHERS_DO = frozenset(
    ("who", "that", "which", "may", "might", "could", "can", "would", "they", "he", "she", "we", "i", "how")
)
_NO_DOERS = frozenset(("always", "this", "is", "as", "cases", "circumstances", "thus", "perhaps"))
_MODALS = frozenset(("must", "should", "will", "shall", "to"))
_STORY = re.compile(
    r"\b(?:game ?master|murder mystery|fiction|novel|short stor(?:y|ies)|characters?|villains?|narrator|"
    r"role-?play(?:ing)? game|text adventure|phishing|social engineering|security (?:trainer|awareness)|"
    r"red.?team|simulation|moderat(?:e|or|ion)|"
    r"(?:detect|recogni[sz]e|classify|flag) (?:\w+ ){0,3}(?:scams?|manipulation|fraud|deception|attacks?))\b",
    re.IGNORECASE,
)
_UNSHOWN = re.compile(
    r"<!--|\[//\]: # \(|<(\w{1,20})\b[^<>]{0,300}?style\s*=\s*[\"'][^\"'<>]{0,200}?"
    r"(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d]))[^<>]{0,300}>",
    re.IGNORECASE,
)
"""Where text begins that a page does not show."""
LONGEST_UNSHOWN = 4_000
_WRAP = re.compile(r"(?<=[^\s.:;!?])[ \t]*(\r?\n)(?=[ \t]*[^\s#>*+|`\d\-•<\[])")


class OperatorLens:
    """Reads the operator's text for orders against users and for what it hides."""

    name = "operator"
    looks_at = "what the operator's text does to users"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Orders against users, disguised orders, and orders that a page does not show."""
        text = reading.prompt.system
        if not text.strip():
            return ()
        story = bool(_STORY.search(text))
        return (*_orders_against_users(text, story=story), *_disguised(text), *_unseen(text))


def _orders_against_users(text: str, *, story: bool) -> Iterator[Finding]:
    share = STRENGTHS.in_a_story if story else 1.0
    for sentence in sentences(_unwrapped(without_code(text)), "system"):
        words = " ".join(sentence.words)
        matches = [(rule, match) for rule in _rules() for match in rule.words.finditer(words)]
        if any(
            _done_by_others(words[: match.start()].split()) for rule, match in matches if not rule.forbids
        ):
            continue
        seen: set[Rule] = set()
        for rule, match in matches:
            if rule in seen or not (rule.forbids or _is_ordered(words[: match.start()].split())):
                continue
            seen.add(rule)
            yield Finding(
                rule.kind, rule.strength * share, "system", *_place(sentence, match), _NOTES[rule.kind]
            )


def _done_by_others(before: list[str]) -> bool:
    """Whether what stands before a verb says that somebody else than the assistant does it."""
    last = before[-1] if before else ""
    if last in _OTHERS_DO and before[-2:-1] != ["you"]:
        return True
    if last in _MODALS and last != "to" and len(before) > 1:
        return not _SPEAKERS.intersection(before[-4:-1])
    return last.isalpha() and last.endswith("s") and last not in _NO_DOERS


def _is_ordered(before: list[str]) -> bool:
    """Whether a verb after these words is an order: not a noun, and not forbidden."""
    if before and before[-1] in _NOUN_FOLLOWS:
        return False
    for back, word in enumerate(reversed(before[-_FAR:])):
        if word in _NEGATORS:
            return False
        if word in _STOPS or (word == "," and back > 2):
            break
    return True


def _place(sentence: Sentence, match: re.Match[str]) -> tuple[int, int]:
    """Where the words of a match stand in the layer, with the rest of their sentence."""
    ends = accumulate(len(word) + 1 for word in sentence.words)
    first = next(at for at, end in enumerate(ends) if end > match.start())
    return sentence.quote(first)


def _unwrapped(text: str) -> str:
    """The text with lines that go on in the next one joined; everything stands where it stood."""
    return _WRAP.sub(lambda wrap: " " * len(wrap[0]), text)


def _disguised(text: str) -> Iterator[Finding]:
    """Orders in invisible, encoded or look-alike letters, found as in a document nobody vouches for."""
    as_document = PromptReading(MultiNeutrosophicPrompt(application=text))
    for finding in ConcealmentLens().find(as_document):
        if finding.pattern != "context_saturation":  # a long system prompt has few orders of that kind
            yield finding._replace(layer="system")


def _unseen(text: str) -> Iterator[Finding]:
    """Comments and invisible elements that order something. Notes to other authors stand there too."""
    for start, inside in _unshown(text):
        places = [(finding.start, finding.end) for finding in _orders_against_users(inside, story=False)]
        places += [
            (read.sentence.start, read.sentence.end)
            for read in read_text(inside, "system")
            if any(intent.strength >= TELLING for intent in read.intents)
        ]
        if places:
            first, last = places[0]
            last = quote_end(inside, first, last)
            yield Finding(
                "unseen_order",
                STRENGTHS.unseen,
                "system",
                start + first,
                start + last,
                _NOTES["unseen_order"],
            )


def _unshown(text: str) -> Iterator[tuple[int, str]]:
    """What a page leaves out, and where it begins."""
    done = 0
    for opening in _UNSHOWN.finditer(text):
        if opening.start() < done:
            continue
        closing = "-->" if opening[0] == "<!--" else f"</{opening[1]}" if opening[1] else ")"
        end = text.find(closing, opening.end(), opening.end() + LONGEST_UNSHOWN)
        if end >= 0:
            done = end
            yield opening.end(), text[opening.end() : end]
