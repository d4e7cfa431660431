"""Numbers with their units, as the ranges that they allow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from firecircle.contradictions.lexicon import lexicon
from firecircle.voices.embedded.language.words import stem


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit, as the range that it allows."""

    said: str
    low: float
    high: float
    unit: str
    is_bound: bool

    def excludes(self, other: Amount) -> bool:
        """Whether no number fits both, or both set a different limit on the same side."""
        if self.is_bound and other.is_bound and self.high != other.high and self.low == other.low == 0:
            return True
        return self.high < other.low or other.high < self.low


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


@cache
def _amount_pattern() -> re.Pattern[str]:
    return re.compile(
        _AMOUNT.pattern.replace("NUMBERS", "|".join(rf"{word}\b" for word in lexicon().numbers))
    )


def amounts_in(text: str) -> Iterator[Amount]:
    """The numbers of a clause that have a unit."""
    known = lexicon()
    for match in _amount_pattern().finditer(text):
        before = text[: match.start()]
        if match["clock"]:
            hours, minutes = match["clock"].split(":")
            moment = 60.0 * int(hours) + int(minutes)
            yield Amount(match["clock"], moment, moment, "clock", is_bound=False)
            continue
        unit = "percent" if match["percent"] else (match["unit"] or "")
        low, high = (_number(match[name] or match["low"]) for name in ("low", "high"))
        singular = unit.removesuffix("s")
        if not unit or (unit in known.empty and unit != "percent") or low > high:
            continue
        factor = _TIME.get(singular, 1.0)
        name = "time" if singular in _TIME else stem(known.same.get(unit, unit))
        is_most, is_least = bool(known.most.search(before)), bool(known.least.search(before))
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
        yield Amount(match[0].strip(), low, high, name, is_most or is_least)


def _number(text: str) -> float:
    return lexicon().numbers.get(text) or float(
        text.replace(",", "") if len(text) > 4 else text.replace(",", ".")
    )
