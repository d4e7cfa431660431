"""Contradictions in a system prompt: passages that cannot both be followed, or whose precedence is unclear.

`find_contradictions` asks no model. It reads each sentence as a directive (must, must not or may; what; under
which condition), takes pairs that a sentence encoder finds alike or that share their words, and reports the
pairs that a rule explains. It reads English and prefers silence to a wrong finding.
`firecircle.scouring` lets language models look for the same.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import combinations
from typing import Literal, get_args

from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.voices.embedded.language.words import stem
from firecircle.voices.embedded.lenses.markdown import Line, code_spans, lines_of

ContradictionKind = Literal["direct", "exception", "scope", "format", "priority", "missing", "numbers"]
KINDS: tuple[ContradictionKind, ...] = get_args(ContradictionKind)
MEANINGS: dict[ContradictionKind, str] = {
    "direct": "one passage orders what the other forbids",
    "exception": "the exception leaves nothing of its rule",
    "scope": "a rule without limits meets one for some cases that says the opposite",
    "format": "two forms are asked for that exclude each other",
    "priority": "two passages rank the same things in opposite order",
    "missing": "a tool or rule is referred to that this text does not have",
    "numbers": "the same thing has two different numbers",
}
SUGGESTIONS: dict[ContradictionKind, str] = {
    "direct": "rewrite: drop one, or say when each of them holds",
    "exception": "rewrite: name the cases that are excepted",
    "scope": "clarify: add the exception to the general rule",
    "format": "rewrite: choose one, or say for what each is meant",
    "priority": "rewrite: rank once, in one place",
    "missing": "clarify: define what is referred to, or remove the reference",
    "numbers": "clarify: choose one number, or say what each applies to",
}
LONGEST = 60_000
MOST_DIRECTIVES = 600
LONGEST_QUOTE = 240


class Passage(Shape):
    """Words of the text, and where they are."""

    quote: Text
    start: int
    end: int


class Contradiction(Shape):
    """Two passages of one text, in its order; the second is None where one passage shows it all."""

    kind: ContradictionKind
    first: Passage
    second: Passage | None
    why: Text
    """What exactly disagrees, in a few words."""
    wins: Text | None = None
    """What the text itself says about which of the two counts."""
    suggestion: Text
    found_by: tuple[Text, ...] = ()
    """The voices that reported it; empty: the rules of this module."""


def find_contradictions(prompt: str | MultiNeutrosophicPrompt) -> tuple[Contradiction, ...]:
    """The contradictions in a system prompt, in its order, found without any model.

    >>> [found] = find_contradictions("Keep replies under 80 words. Write at least 200 words per reply.")
    >>> found.kind
    'numbers'
    """
    text = (prompt if isinstance(prompt, str) else prompt.system)[:LONGEST]
    directives = list(_directives(text))[:MOST_DIRECTIVES]
    winner = _stated_winner(directives)
    found = [*_missing_references(text, directives), *_swallowed(directives), *_rankings(directives)]
    found += _by_pairs(directives)
    seen: set[tuple[int, int]] = set()
    kept = []
    for kind, first, second, why in sorted(found, key=_place_of):
        place = first.start, second.start if second else -1
        if place in seen:
            continue
        seen.add(place)
        kept.append(
            Contradiction(
                kind=kind,
                first=_passage(text, first),
                second=_passage(text, second) if second else None,
                why=why,
                wins=winner,
                suggestion=SUGGESTIONS[kind] if winner is None else "accept, if that order is meant",
            )
        )
    return tuple(kept)


# -- directives ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number with its unit, as the range that it allows."""

    said: str
    low: float
    high: float
    unit: str
    is_bound: bool

    def excludes(self, other: _Amount) -> bool:
        """Whether no number fits both, or both set a different limit on the same side."""
        if self.is_bound and other.is_bound and self.high != other.high and self.low == other.low == 0:
            return True
        return self.high < other.low or other.high < self.low


@dataclass(frozen=True, slots=True)
class _Directive:
    """A clause, read as an order, a ban, a permission or a statement."""

    text: str
    """In lower case."""
    plain: str
    """Without quotations."""
    start: int
    end: int
    negative: bool
    permits: bool
    core: frozenset[str]
    """What is done to what."""
    about: dict[str, frozenset[str]]
    """The phrases that limit it, by their first word: in, for, to, …"""
    when: frozenset[str]
    """The words of its condition."""
    conditional: bool
    universal: bool
    heading: str
    amounts: tuple[_Amount, ...]

    @property
    def is_bound(self) -> bool:
        """Whether it only limits a number, as `never more than two` does."""
        return any(amount.is_bound for amount in self.amounts)

    @property
    def whole_reply(self) -> bool:
        """Whether its numbers are about every reply as a whole."""
        units = {amount.unit for amount in self.amounts}
        if not units & _OF_REPLIES or _PART.search(self.text):
            return False
        return bool(_WHOLE_REPLY.search(self.text)) or not self.words() - units

    @property
    def subject(self) -> str | None:
        """What a statement is about: the word before its verb."""
        match = _SUBJECT.match(self.text)
        return stem(match[1]) if match else None

    def words(self) -> frozenset[str]:
        return self.core.union(*self.about.values())


_Found = tuple[ContradictionKind, _Directive, _Directive | None, str]


def _place_of(found: _Found) -> tuple[int, int, int]:
    kind, first, second, _ = found
    return first.start, second.start if second else -1, KINDS.index(kind)


def _passage(text: str, directive: _Directive) -> Passage:
    end = min(directive.end, directive.start + LONGEST_QUOTE)
    return Passage(quote=text[directive.start : end], start=directive.start, end=end)


@dataclass(frozen=True, slots=True)
class _Dimension:
    name: str
    kind: ContradictionKind
    same_topic: bool
    values: dict[str, re.Pattern[str]]
    negated: bool
    """Whether to forbid one value is to choose another."""


@dataclass(frozen=True, slots=True)
class _Lexicon:
    empty: frozenset[str]
    unranked: frozenset[str]
    same: dict[str, str]
    negative: re.Pattern[str]
    universal: re.Pattern[str]
    permission: re.Pattern[str]
    other: re.Pattern[str]
    condition: re.Pattern[str]
    example: re.Pattern[str]
    numbers: dict[str, float]
    most: re.Pattern[str]
    least: re.Pattern[str]
    dimensions: tuple[_Dimension, ...] = field(default=())


@cache
def _lexicon() -> _Lexicon:
    document = tomllib.loads(resources.files("firecircle").joinpath("contradictions.toml").read_text("utf-8"))
    words, bounds = document["words"], document["bounds"]
    patterns = {
        name: re.compile(words[name])
        for name in ("negative", "universal", "permission", "other", "condition", "example")
    }
    return _Lexicon(
        empty=frozenset(words["empty"].split()),
        unranked=frozenset(words["unranked"].split()),
        same={word: group.split()[0] for group in words["same"] for word in group.split()},
        numbers=bounds["numbers"],
        most=re.compile(bounds["most"]),
        least=re.compile(bounds["least"]),
        dimensions=tuple(
            _Dimension(
                each["name"],
                each["kind"],
                each["topic"] == "same",
                {name: re.compile(value) for name, value in each["values"].items()},
                each.get("negated", False),
            )
            for each in document["dimension"]
        ),
        **patterns,
    )


_SUBJECT = re.compile(
    r"(?:the |an? )?(\w+)s? (?:have|has|may|get|gets|take|takes|cost|costs|rest|rests|is|are)\b"
)
_WHOLE_REPLY = re.compile(r"\b(?:repl(?:y|ies)|answers?|responses?|respond|messages?)\b")
_PART = re.compile(
    r"\b(?:titles?|subject|headings?|headlines?|summar(?:y|ies)|quotes?|introduction|stor(?:y|ies)|scenes?"
    r"|paragraph|bullets?|captions?|descriptions?|names?|commit"
    r"|each \w+|per (?!repl|answer|resp|message)\w+|lists?"
    r"|when|if|unless|for)\b"
)
_OF_REPLIES = frozenset(stem(unit) for unit in ("words", "sentences", "characters", "paragraphs", "bullet"))
_TIME = {
    "second": 1 / 60,
    "minute": 1.0,
    "hour": 60.0,
    "day": 1440.0,
    "week": 10080.0,
    "month": 43200.0,
    "year": 525600.0,
}
_AMOUNT = re.compile(
    r"(?<![\w.:/-])(?:(?P<clock>\d{1,2}:\d{2})|(?P<low>\d+(?:[.,]\d+)?|NUMBERS)"
    r"(?:\s*(?:-|–|to|and)\s*(?P<high>\d+(?:[.,]\d+)?|NUMBERS)\b)?)"
    r"(?P<percent>\s*(?:%|percent\b))?"
    r"(?:[ -](?:working |single |full |cheapest |best |short |business )*(?P<unit>[a-z]+))?"
)
_ABOUT = re.compile(r"\b(?:about|around|roughly|approximately|some)\s+$")
_HALF_AN_HOUR = re.compile(r"\bhalf an hour\b")


@cache
def _amount_pattern() -> re.Pattern[str]:
    return re.compile(
        _AMOUNT.pattern.replace("NUMBERS", "|".join(rf"{word}\b" for word in _lexicon().numbers))
    )


def _amounts(text: str) -> Iterator[_Amount]:
    """The numbers of a clause that have a unit."""
    lexicon = _lexicon()
    for match in _amount_pattern().finditer(text):
        before = text[: match.start()]
        if match["clock"]:
            hours, minutes = match["clock"].split(":")
            moment = 60.0 * int(hours) + int(minutes)
            yield _Amount(match["clock"], moment, moment, "clock", is_bound=False)
            continue
        unit = "percent" if match["percent"] else (match["unit"] or "")
        low, high = (_number(match[name] or match["low"]) for name in ("low", "high"))
        singular = unit.removesuffix("s")
        if not unit or (unit in lexicon.empty and unit != "percent") or low > high:
            continue
        factor = _TIME.get(singular, 1.0)
        name = "time" if singular in _TIME else stem(lexicon.same.get(unit, unit))
        is_most, is_least = bool(lexicon.most.search(before)), bool(lexicon.least.search(before))
        if re.search(r"\b(?:never|not|no)\b[^.]*$", before) and is_least:
            is_most, is_least = True, False
        if re.match(r"\s*or (?:fewer|less)\b", text[match.end() :]):
            is_most = True
        if re.match(r"\s*or more\b", text[match.end() :]):
            is_least = True
        low, high = factor * low, factor * high
        if _ABOUT.search(before):
            low, high = 0.5 * low, 1.5 * high
        if is_most:
            low = 0.0
        elif is_least:
            high = float("inf")
        yield _Amount(match[0].strip(), low, high, name, is_most or is_least)


def _number(text: str) -> float:
    return _lexicon().numbers.get(text) or float(
        text.replace(",", "") if len(text) > 4 else text.replace(",", ".")
    )


_CLAUSE = re.compile(r";\s+|\s+[—–]\s+|,\s+(?=(?:no|never|not|do not|don['’]t|but)\b)|\.\s+|(?<=[!?])\s+")
_PREPOSITION = re.compile(r"\b(in|into|for|to|from|under|during|at|between|within|on|with|above|below)\b")
_CORE_PREPOSITION = re.compile(r"\b(?:of|about|by|as|off|over)\b")
_WITHOUT = re.compile(r"\bwithout ([\w' -]+)")
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*|`[^`\n]{1,60}`")
_QUOTED = re.compile(r"[\"“][^\"”\n]{1,200}[\"”]")
_PRONOUN = re.compile(r"\b(?:it|them)\b")


def _directives(text: str) -> Iterator[_Directive]:
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
        if _lexicon().example.search(line.text.lower()) or line.text.count("|") > 2:
            continue
        yield from _clauses(line, heading)


def _clauses(line: Line, heading: str) -> Iterator[_Directive]:
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
            yield from _read(words, place, f"{heading} {line.introduction}".lower())


def _read(words: str, start: int, heading: str) -> Iterator[_Directive]:
    lexicon = _lexicon()
    text = _HALF_AN_HOUR.sub("30 minutes ", words.lower().replace("’", "'"))
    end = start + len(words)
    plain = _QUOTED.sub(" ", text)
    amounts = tuple(_amounts(plain))
    for amount in amounts:  # what remains is what the numbers are about
        plain = plain.replace(
            amount.said, f" {amount.unit} " if amount.unit not in ("time", "clock") else " "
        )
    action, when = _split_condition(plain)
    negative = bool(lexicon.negative.search(action)) and not re.search(r"\bmore than \d|\bnot only\b", action)
    without = _WITHOUT.search(action)
    rest = action.replace(without[0], " ") if without else action
    universal = bool(lexicon.universal.search(rest.replace("never", "")))
    permits = bool(lexicon.permission.search(action)) and not negative

    def directive(said: str, *, negated: bool, condition: frozenset[str]) -> _Directive:
        core, about = _phrases(said)
        if _PRONOUN.search(said) and condition:
            core |= condition
        return _Directive(
            text,
            _QUOTED.sub(" ", text),
            start,
            end,
            negated,
            permits,
            core,
            about,
            condition,
            bool(when.strip()),
            universal,
            heading,
            amounts,
        )

    condition = _content(when)
    if without and negative:  # never … without …: that is a condition, not a ban
        return
    if rest.strip():
        own = directive(rest, negated=negative, condition=condition)
        yield own
        if without and not negative and not permits:
            yield directive(without[1], negated=True, condition=condition | own.core)


def _split_condition(text: str) -> tuple[str, str]:
    """What is to be done, and under which condition."""
    condition = _lexicon().condition
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
        if content := _content(phrase):
            about[preposition] = about.get(preposition, frozenset()) | content
    return _content(parts[0]), about


@cache
def _content(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    lexicon = _lexicon()
    found = set()
    for word in _WORD.findall(text):
        if word in lexicon.empty or word.isdigit() or (word.isalpha() and len(word) < 3):
            continue
        if word.startswith("`") and re.search(r"\.\w{1,5}`$", word):
            found.add("file")
        found.add(stem(lexicon.same.get(word, word)))
    return frozenset(found)


# -- pairs -----------------------------------------------------------------------------------------------

ALIKE, VERY_ALIKE, STATED_TWICE, NEARLY_THE_SAME = 0.3, 0.45, 0.55, 0.65
"""Similarity of two clauses for the encoder, from which on they may be about the same."""
SHARED = 0.66
"""Share of the shorter clause's words that the other has."""


def _by_pairs(directives: Sequence[_Directive]) -> Iterator[_Found]:
    likeness = _likeness([directive.plain for directive in directives])
    choices = [_choices(directive) for directive in directives]
    for (i, first), (j, second) in combinations(enumerate(directives), 2):
        if first.start == second.start:
            continue
        yield from (
            found
            for found in (
                _opposed(first, second, likeness[i][j]),
                _different_numbers(first, second, likeness[i][j]),
                *_dimensions(first, second, choices[i], choices[j], likeness[i][j]),
                _only_and_any(first, second),
            )
            if found is not None
        )


def _likeness(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """How alike the clauses are for the multilingual encoder, without their negations."""
    from firecircle.voices.embedded.learned.unpacked import sentence_vectors

    if not texts:
        return []
    negative = _lexicon().negative
    rows = sentence_vectors([negative.sub(" ", text).strip() or text for text in texts])
    alike: Sequence[Sequence[float]] = (rows @ rows.T).tolist()
    return alike


_ABLE = re.compile(r"\b(?:can|could|able to)\b")


def _opposed(first: _Directive, second: _Directive, alike: float) -> _Found | None:
    """An order or permission that falls under a ban."""
    if first.negative == second.negative or alike < ALIKE or _excepts(first) or _excepts(second):
        return None
    ban, order = (first, second) if first.negative else (second, first)
    if _ABLE.search(order.text) or first.text.endswith(":") or second.text.endswith(":"):
        return None
    if not ban.core or ban.is_bound or order.is_bound:
        return None
    shared = ban.core & order.words()
    rest = ban.core - order.words()
    covered = len(shared) / len(ban.core)
    in_core = ban.core & order.core
    if not in_core or covered < SHARED or (rest and alike < STATED_TWICE):
        return None
    if len(shared) == 1 and not (alike >= VERY_ALIKE and (len(order.core) <= 2 or ban.universal)):
        return None
    if rest and order.core - ban.words():  # each has something of its own: different things
        return None
    if any(not words & order.about[place] for place, words in ban.about.items() if place in order.about):
        return None
    if ban.conditional and order.conditional and not ban.when <= order.when:
        return None
    ban_only, order_only = _limits(ban, order), _limits(order, ban)
    if ban_only and not order.universal:
        return None
    kind: ContradictionKind = "scope" if ban_only or (order_only and ban.universal) else "direct"
    return kind, first, second, f"{MEANINGS[kind]}: {_named(ban, shared)}"


def _excepts(directive: _Directive) -> bool:
    """Whether a clause itself speaks of exceptions or of the remaining cases."""
    return bool(_lexicon().other.search(directive.text))


_CASES = ("for", "to", "in", "during", "at")
"""The words that a limit to some cases begins with, as far as forms and manners are concerned."""


def _limits(one: _Directive, other: _Directive, places: Collection[str] | None = None) -> bool:
    """Whether the first holds only in cases that the other does not name."""
    others = other.words() | other.when
    limited = any(
        not words & others for place, words in one.about.items() if places is None or place in places
    )
    return (limited or (one.conditional and not one.when & others)) and not one.universal


def _named(directive: _Directive, stems: frozenset[str]) -> str:
    """The words of a clause that have these stems, in its order."""
    return " ".join(dict.fromkeys(word for word in _WORD.findall(directive.plain) if _content(word) & stems))


def _different_numbers(first: _Directive, second: _Directive, alike: float) -> _Found | None:
    """The same thing with two numbers that exclude each other."""
    if _excepts(first) or _excepts(second):
        return None
    for a in first.amounts if len(first.amounts) == len(second.amounts) == 1 else ():
        for b in second.amounts:
            differ = a.excludes(b) or (a.unit == "time" and a.high != b.high and alike >= STATED_TWICE)
            if a.unit != b.unit or not differ or not _same_thing(first, second, a.unit, alike):
                continue
            return "numbers", first, second, f"{MEANINGS['numbers']}: {a.said} and {b.said}"
    return None


def _same_thing(first: _Directive, second: _Directive, unit: str, alike: float) -> bool:
    if first.whole_reply and second.whole_reply:
        return True
    if (first.whole_reply or second.whole_reply) and unit in _OF_REPLIES:
        return not _PART.search(first.text) and not _PART.search(second.text)
    one, two = (each.words() - {unit} for each in (first, second))
    small, large = sorted((one, two), key=len)
    if not small and unit in _OF_REPLIES:
        return len(large) <= 1 and alike >= VERY_ALIKE
    if not small or alike < ALIKE:
        return False
    if len(small & large) / len(small) < SHARED and not (small & large and alike >= VERY_ALIKE):
        return False
    if (one - two) and (two - one) and len(one & two) < 2 and alike < NEARLY_THE_SAME:
        return False
    ignored = frozenset((unit,))
    for each, other in ((first, second), (second, first)):
        known = other.words() | other.when | ignored
        if any(words - ignored and not words & known for words in each.about.values()):
            return False
        if each.conditional and not each.when & known:
            return False
    if first.conditional and second.conditional and first.when != second.when:
        return False
    return not _named_differently(first, second)


def _named_differently(first: _Directive, second: _Directive) -> bool:
    """Whether two statements have different subjects, as in `interns have 20 days`."""
    one, two = first.subject, second.subject
    return bool(one and two and one != two and one not in second.words() and two not in first.words())


_Choices = dict[str, tuple[str, bool]]


def _choices(directive: _Directive) -> _Choices:
    """The values that a clause speaks of, by dimension, and whether it chooses or forbids each."""
    chosen = {}
    for dimension in _lexicon().dimensions:
        if choice := _chosen(dimension, directive):
            chosen[dimension.name] = choice
    return chosen


def _dimensions(
    first: _Directive, second: _Directive, one: _Choices, two: _Choices, alike: float
) -> Iterator[_Found]:
    """Two values of what can have only one."""
    for dimension in _lexicon().dimensions if one.keys() & two.keys() else ():
        if dimension.name not in one or dimension.name not in two:
            continue
        (value, is_chosen), (other, is_also_chosen) = one[dimension.name], two[dimension.name]
        if (value == other) == (is_chosen == is_also_chosen) or not (is_chosen or is_also_chosen):
            continue
        if _excepts(first) or _excepts(second) or _apart(first, second):
            continue
        shared = (first.words() | first.when) & (second.words() | second.when)
        if dimension.same_topic and not (first.universal or second.universal or (shared and alike >= ALIKE)):
            continue
        yield dimension.kind, first, second, f"{MEANINGS[dimension.kind]}: {dimension.name}"


def _chosen(dimension: _Dimension, directive: _Directive) -> tuple[str, bool] | None:
    """The value that a clause speaks of, and whether it chooses or forbids it; None for none or several."""
    matches = {name: at for name, value in dimension.values.items() if (at := value.search(directive.text))}
    # "Do not ask first" holds "ask first": the longer words count.
    found = [
        (name, match)
        for name, match in matches.items()
        if not any(
            other is not match and other.start() <= match.start() and match.end() <= other.end()
            for other in matches.values()
        )
    ]
    if len(found) != 1:
        return None
    [(name, match)] = found
    others = dimension.values.keys() - {name}
    if dimension.kind == "format" and any(re.search(rf"\b{each}\b", directive.text) for each in others):
        return None
    before = directive.text[max(0, match.start() - 30) : match.start()].rpartition(",")[2]
    is_negated = bool(_lexicon().negative.search(before)) or before.endswith("no ")
    return (name, not is_negated) if dimension.negated or not is_negated else None


def _apart(first: _Directive, second: _Directive) -> bool:
    """Whether both are limited, and to different cases."""
    return _limits(first, second, _CASES) and _limits(second, first, _CASES)


_ONLY = re.compile(r"\bonly\b(?! (?:if|when|after|with|once|for)\b)")
_ANY = re.compile(r"\b(?:any|whatever|all|every)\b")


def _only_and_any(first: _Directive, second: _Directive) -> _Found | None:
    """What is allowed for some things only, and ordered for all."""
    for only, free in ((first, second), (second, first)):
        if not _ONLY.search(only.text) or free.negative or "only" in free.text or _excepts(free):
            continue
        shared = only.core & free.core
        if _ANY.search(free.text) and len(shared) >= 2:
            return "direct", first, second, f"only some, and all: {_named(only, shared)}"
    return None


# -- within one clause, and against the whole text ---------------------------------------------------------

_EXCEPTION = re.compile(r"\b(?:unless|except(?: when| where| if| for)?)\b\s+(.+)")
_SWALLOWS = re.compile(
    r"\byou (?:think|feel|believe|consider|deem|find|want|like)\b|\bin any (?:case|situation|way)\b"
    r"|\b(?:anywhere|anything|everything|everyone|anyone|everybody|anybody)\b|\bat any time\b"
)
_ASKED_FOR = re.compile(
    r"\b(?:user|customer|client|guest|passenger|caller|patient|they|he or she)s?\b.{0,30}"
    r"\b(?:asks?|requests?|wants?|insists?|complains?|is unhappy|are unhappy)\b"
)
_NOT_THEIRS = re.compile(
    r"\bonly (?:a|an|the) (?:supervisor|manager|doctor|administrator|admin|director|owner|lawyer|officer)\b"
    r"|\b(?:waive|refunds?|discounts?|fees?|penalt(?:y|ies)|passwords?|prescriptions?)\b"
)


def _swallowed(directives: Sequence[_Directive]) -> Iterator[_Found]:
    """A rule whose exception covers whatever the rule is for."""
    for directive in directives:
        exception = _EXCEPTION.search(directive.text)
        if exception is None or exception.start() < 8:
            continue
        rule, left = directive.text[: exception.start()], exception[1]
        if _SWALLOWS.search(left) or (
            _ASKED_FOR.search(left) and _NOT_THEIRS.search(rule) and "explicit" not in left
        ):
            yield "exception", directive, None, f"{MEANINGS['exception']}: {exception[0].strip()}"


_RANKS = (
    re.compile(
        r"(?P<first>.{3,80}?)\b(?:takes?|has|have|gets?) (?:\w+ )?(?:precedence|priority) over\b"
        r"(?P<second>.+)"
    ),
    re.compile(r"(?P<first>.{3,80}?)\b(?:overrides?|outranks?|supersedes?|trumps?)\b(?P<second>.+)"),
    re.compile(r"(?P<first>.{3,80}?)\b(?:is|are) more important than\b(?P<second>.+)"),
    re.compile(r"(?P<first>^\w+(?: \w+)?) (?:comes?|goes) before\b(?P<second>.+)"),
    re.compile(r"(?P<second>.{3,80}?)\b(?:is|are) less important than\b(?P<first>.+)"),
)
_IN_CONFLICT = re.compile(
    r"(?:if|when|where|in (?:a|case of(?: a)?) conflict between)\b(?P<both>.{3,100}?)"
    r",\s*(?:always )?(?:(?:follow|prefer|obey|choose|trust|use)\b(?P<follow>.+)"
    r"|(?P<wins>.{3,40}?)\b(?:prevails?|wins?|counts?)\b)"
)
_CONFLICTS = re.compile(
    r"\b(?:conflicts?|differs?|disagrees?|contradicts?|in a conflict|in conflict|in case of)\b"
)


def _rankings(directives: Sequence[_Directive]) -> Iterator[_Found]:
    """Statements of precedence that rank the same two things in opposite order."""
    ranked = [(directive, rank) for directive in directives if (rank := _rank(directive.text))]
    for (first, (above, below)), (second, (also_above, also_below)) in combinations(ranked, 2):
        if above & also_below and below & also_above and not above & also_above and not below & also_below:
            yield "priority", first, second, MEANINGS["priority"]


def _rank(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    if _CONFLICTS.search(text) and (conflict := _IN_CONFLICT.search(text)):
        above = _rank_words(conflict["follow"] or conflict["wins"] or "")
        below = _rank_words(conflict["both"]) - above
        return (above, below) if above and below else None
    for words in _RANKS:
        if rank := words.search(text):
            return _rank_words(rank["first"]), _rank_words(rank["second"])
    return None


def _rank_words(text: str) -> frozenset[str]:
    """The first letters of the words: helpful and helpfulness are the same here."""
    words = re.findall(r"[a-z]{3,}", text)
    return frozenset(word.rstrip("s")[:4] for word in words if word not in _lexicon().unranked)


_WINNER = re.compile(
    r"\b(?:in (?:case of )?(?:a |any )?(?:doubt|conflicts?|contradictions?)\b|"
    r"(?:later|last|earlier|first|more specific|specific|stricter) (?:rules?|instructions?|ones?)\b.{0,30}"
    r"\b(?:overrides?|wins?|prevails?|takes? precedence|counts?)\b)"
)


def _stated_winner(directives: Sequence[_Directive]) -> str | None:
    return next((directive.text for directive in directives if _WINNER.search(directive.text)), None)


_TOOL_LIST = re.compile(r"\b(?:tools?|functions?|helpers?)\b")
_NAME = re.compile(r"`?\b([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b`?")
_CALLED = re.compile(
    r"\b(?:(?:call|invoke|tool|function|helper)s?\s+`?([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b"
    r"|(?:use|using|with|via|run)\s+(?:the (?:\w+ )?)?`?"
    r"((?:get|set|search|find|create|book|send|post|read|list|update|delete|fetch|summari[sz]e|run|open|add|check"
    r"|page|query|load|cancel|submit|approve|lookup|look)(?:_[a-z0-9]+)+)\b)"
)
_REFERENCE = re.compile(
    r"\b(?:see|follow|apply|use|per|under|according to|as in|described in|repeat|go (?:back )?to)\s+"
    r"(?P<what>rule|step|section|item|point)s?\s+(?P<number>\d{1,2}(?:\.\d{1,2})?)\b(?! (?:of|in) )"
)
_NUMBERED = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]*)?(?:(?:rule|step|section|item|point)[ \t]+)?(\d{1,2}(?:\.\d{1,2})*)[.):\s]",
    re.IGNORECASE | re.MULTILINE,
)


def _missing_references(text: str, directives: Sequence[_Directive]) -> Iterator[_Found]:
    """Tools that are not among those listed, and numbers that no rule has."""
    listed = {
        name
        for directive in directives
        if _TOOL_LIST.search(directive.heading)
        or re.search(r"\b(?:tools|functions)\b[^.]{0,30}:", directive.text)
        for name in (*_NAME.findall(directive.text), *re.findall(r"`(\w+)`", directive.text))
    }
    for directive in directives:
        if len(listed) >= 2 and not _TOOL_LIST.search(directive.heading):
            for called in _CALLED.finditer(directive.text):
                name = called[1] or called[2]
                if name not in listed and text.lower().count(name) == 1:
                    yield "missing", directive, None, f"{name} is not among the tools listed"
        for reference in _REFERENCE.finditer(directive.text):
            numbers = set(_NUMBERED.findall(text))
            number = reference["number"]
            if numbers and number not in numbers and f"{reference['what']} {number}:" not in text.lower():
                yield "missing", directive, None, f"this text has no {reference['what']} {number}"
