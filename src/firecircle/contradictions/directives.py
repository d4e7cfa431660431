"""The clauses of a text, each read as an order, a ban or a statement."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

from firecircle.contradictions.amounts import Amount, amounts_in
from firecircle.contradictions.kinds import ContradictionKind
from firecircle.contradictions.lexicon import lexicon
from firecircle.voices.embedded.language.words import stem
from firecircle.voices.embedded.lenses.markdown import Line, code_spans, lines_of

_SUBJECT = re.compile(
    r"(?:the |an? )?(\w+)s? (?:have|has|may|get|gets|take|takes|cost|costs|rest|rests|is|are)\b"
)


@dataclass(frozen=True, slots=True)
class Directive:
    """A clause, read as an order, a ban or a statement."""

    text: str
    """In lower case."""
    plain: str
    """Without quotations."""
    start: int
    end: int
    row: int
    """The line of the text that it is in."""
    negative: bool
    core: frozenset[str]
    """What is done to what."""
    about: dict[str, frozenset[str]]
    """The phrases that limit it, by their first word: in, for, to, …"""
    when: frozenset[str]
    """The words of its condition."""
    conditional: bool
    universal: bool
    heading: str
    amounts: tuple[Amount, ...]

    @property
    def subject(self) -> str | None:
        """What a statement is about: the word before its verb."""
        match = _SUBJECT.match(self.text)
        return stem(match[1]) if match else None

    @property
    def excepts(self) -> bool:
        """Whether it speaks of exceptions or of the remaining cases."""
        return bool(lexicon().other.search(self.text))

    def differs_in_subject(self, other: Directive) -> bool:
        """Whether two statements have different subjects, as in `interns have 20 days`."""
        one, two = self.subject, other.subject
        return bool(one and two and one != two and one not in other.words() and two not in self.words())

    def is_limited_beyond(self, other: Directive, places: Collection[str] | None = None) -> bool:
        """Whether it holds only in cases that the other does not name."""
        others = other.words() | other.when
        limited = any(
            not words & others for place, words in self.about.items() if places is None or place in places
        )
        return (limited or (self.conditional and not self.when & others)) and not self.universal

    def words(self) -> frozenset[str]:
        """What is done, to what, and the phrases that limit it."""
        return self.core.union(*self.about.values())


Found = tuple[ContradictionKind, Directive, Directive | None, str]
"""A kind, its passages, and why."""

_CLAUSE = re.compile(r";\s+|\s+[—–]\s+|,\s+(?=(?:no|never|not|do not|don['’]t|but)\b)|\.\s+|(?<=[!?])\s+")
_CODE = re.compile(r"^\s*//|;$|[{}]$")
_HALF_AN_HOUR = re.compile(r"\bhalf an hour\b")
_PREPOSITION = re.compile(
    r"\b(in|into|for|to(?! be\b)|from|under|during|at|between|within|on|with|above|below)\b"
)
_WITHOUT = re.compile(r"\bwithout ([\w' -]+)")
WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*|`[^`\n]{1,60}`")
_QUOTED = re.compile(r"[\"“][^\"”\n]{1,200}[\"”]")
_PRONOUN = re.compile(r"\b(?:it|them)\b")


def directives_in(text: str) -> Iterator[Directive]:
    """Every clause outside of code, in the order of the text."""
    code = list(code_spans(text))
    heading = ""
    front = re.match(r"\A\ufeff?---[ \t]*\n.*?\n---[ \t]*\n", text, re.DOTALL)
    for line in lines_of(text):
        if line.text.startswith("#"):
            heading = line.text.lower()
            continue
        if any(start <= line.start < end for start, end in code) or (front and line.start < front.end()):
            continue
        if lexicon().example.search(line.text.lower()) or line.text.count("|") > 2 or _CODE.search(line.text):
            continue
        yield from _clauses(line, heading, text.count("\n", 0, line.start))


def _clauses(line: Line, heading: str, row: int) -> Iterator[Directive]:
    text = line.text
    item = re.match(r"(?:[-*+•]|\d{1,3}[.)]|[a-z]\))\s+|\*\*[^*]{1,40}:?\*\*:?\s+", text)
    at = item.end() if item else 0
    cuts = [(at, at)]
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    for cut in _CLAUSE.finditer(text, at):
        if not any(start < cut.start() < end for start, end in quoted) and cut.start() - cuts[-1][1] > 8:
            cuts.append(cut.span())
    for (_, start), (end, _) in zip(cuts, [*cuts[1:], (len(text), len(text))], strict=True):
        if words := text[start:end].strip():
            place = line.start + start + (len(text[start:end]) - len(text[start:end].lstrip()))
            yield from _read(words, place, row, f"{heading} {line.introduction}".lower())


def _read(words: str, start: int, row: int, heading: str) -> Iterator[Directive]:
    known = lexicon()
    text = _HALF_AN_HOUR.sub("30 minutes ", words.lower().replace("’", "'"))
    end = start + len(words)
    plain = _QUOTED.sub(" ", text)
    amounts = tuple(amounts_in(plain))
    for amount in amounts:  # what remains is what the numbers are about
        plain = plain.replace(
            amount.said, f" {amount.unit} " if amount.unit not in ("time", "clock") else " "
        )
    action, when = _split_condition(plain)
    negative = bool(known.negative.search(action)) and not re.search(r"\bmore than \d|\bnot only\b", action)
    without = _WITHOUT.search(action)
    rest = action.replace(without[0], " ") if without else action
    universal = bool(known.universal.search(rest.replace("never", "")))
    permits = bool(known.permission.search(action)) and not negative

    def directive(said: str, *, negated: bool, condition: frozenset[str]) -> Directive:
        core, about = _phrases(said)
        if _PRONOUN.search(said) and condition:
            core |= condition
        return Directive(
            text,
            _QUOTED.sub(" ", text),
            start,
            end,
            row,
            negated,
            core,
            about,
            condition,
            bool(when.strip()),
            universal,
            heading,
            amounts,
        )

    condition = content_of(when)
    if without and negative:  # never … without …: that is a condition, not a ban
        return
    if rest.strip():
        own = directive(rest, negated=negative, condition=condition)
        yield own
        if without and not negative and not permits:
            yield directive(without[1], negated=True, condition=condition | own.core)


def _split_condition(text: str) -> tuple[str, str]:
    """What is to be done, and under which condition."""
    condition = lexicon().condition
    opening = condition.match(text)
    if opening and (comma := text.find(",")) > 0:
        rest, more = _split_condition(text[comma + 1 :].strip())
        return rest, f"{text[:comma]} {more}"
    if inner := condition.search(text):
        return text[: inner.start()], text[inner.start() :]
    return text, ""


def _phrases(text: str) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """The core of a clause, and the phrases that limit it."""
    parts = _PREPOSITION.split(text)
    about: dict[str, frozenset[str]] = {}
    for preposition, phrase in zip(parts[1::2], parts[2::2], strict=True):
        if content := content_of(phrase):
            about[preposition] = about.get(preposition, frozenset()) | content
    return content_of(parts[0]), about


@cache
def content_of(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    known = lexicon()
    found = set()
    for word in WORD.findall(text):
        if word in known.empty or word.isdigit() or (word.isalpha() and len(word) < 3):
            continue
        if word.startswith("`") and re.search(r"\.\w{1,5}`$", word):
            found.add("file")
        found.add(stem(known.same.get(word, word)))
    return frozenset(found)
