"""What one directive shows against the rest of the text: empty rules, rankings, missing tools and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from firecircle.contradictions.directives import Directive, Found
from firecircle.contradictions.kinds import MEANINGS
from firecircle.contradictions.lexicon import lexicon

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


def swallowed_rules(directives: Sequence[Directive]) -> Iterator[Found]:
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


def opposite_rankings(directives: Sequence[Directive]) -> Iterator[Found]:
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
    return frozenset(word.rstrip("s")[:4] for word in words if word not in lexicon().unranked)


_WINNER = re.compile(
    r"\b(?:in (?:case of )?(?:a |any )?(?:doubt|conflicts?|contradictions?)\b|"
    r"(?:later|last|earlier|first|more specific|specific|stricter) (?:rules?|instructions?|ones?)\b.{0,30}"
    r"\b(?:overrides?|wins?|prevails?|takes? precedence|counts?)\b)"
)


def stated_winner(directives: Sequence[Directive]) -> str | None:
    """What the text itself says about which of two rules counts."""
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


def missing_references(text: str, directives: Sequence[Directive]) -> Iterator[Found]:
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
