"""The patterns the voices saw, each with the words of the prompt that show it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.text import Text

from firecircle.circle.result import (
    FireCircleResult,
    GroundedQuote,
    LeftOut,
    Observation,
    PatternObservation,
)
from firecircle.cli.output import Line, Section, counted, section
from firecircle.cli.printable import printable_line


def with_names(text: str, labels: Mapping[str, str]) -> str:
    """The text with a voice's name after each mention of its label; `labels` tells them by name."""
    names = {label: name for name, label in labels.items()}
    if not names:
        return text
    mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return mention.sub(lambda found: f"{found[0]} ({names[found[0]]})", text)


LONGEST_QUOTE = 200
LONGEST_DESCRIPTION = 300
FEW = 3
LEFT_OUT_WORDS: dict[LeftOut, str] = {
    "below_threshold": "seen by too few",
    "no_critical_role": "seen by no voice of a critical role",
    "no_grounded_quote": "shown by no words of the prompt",
    "voice_not_active": "seen only by a lost voice",
}


def findings(result: FireCircleResult, *, verbose: bool) -> Iterator[Section]:
    """Agreed patterns first, those without evidence apart, then what was reported and not counted."""
    agreed = [line for found in result.patterns for line in _pattern(found, result, verbose)]
    yield from section("Patterns", agreed or ["none that enough voices agreed on and showed in the prompt"])
    claimed = [line for found in result.ungrounded_patterns for line in _pattern(found, result, verbose)]
    if claimed:
        reason = Line(Text("claimed, but no quote of theirs stands in the prompt:", style="dim"))
        yield from section("Unfounded", [reason, *claimed])
    yield from section("Uncounted", _left_out(result, verbose))


def quoted(text: str) -> Text:
    """Words of the prompt in quotation marks; characters that cannot be shown are counted."""
    line = Text(f"“{printable_line(text, LONGEST_QUOTE)}”", style="default")
    hidden = _visible(text) - _visible(printable_line(text))
    if hidden > 0:
        line.append(f" ({counted(hidden, 'hidden character')})", style="yellow")
    return line


def _pattern(found: PatternObservation, result: FireCircleResult, verbose: bool) -> Iterator[Line]:
    title = Text(_plain(found.pattern_type), style="bold")
    seen_by, active = len(found.models_observing), len(result.active_models)
    title.append(f"  {seen_by} of {active} voices ({found.model_agreement:.0%})", style="not bold")
    yield Line(title)
    first = f"first {printable_line(found.first_observed_by)} in round {found.observed_in_round}"
    others = [printable_line(model) for model in found.models_observing if model != found.first_observed_by]
    yield Line(Text(first + (f", then {', '.join(others)}" if others else "")), 1)
    for line in _evidence(found.evidence, verbose):
        yield Line(line, 1)
    description = printable_line(with_names(found.description, result.peer_labels), LONGEST_DESCRIPTION)
    yield Line(Text(description, style="italic"), 1)


def _evidence(places: Sequence[GroundedQuote], verbose: bool) -> list[Text]:
    """The quotes, the fullest first: whoever quoted only a part of one is named with it."""
    fullest: dict[GroundedQuote, list[str]] = {}
    for place in sorted(places, key=lambda place: (place.start - place.end, place.layer, place.start)):
        around = next((other for other in fullest if _within(place, other)), place)
        quoted_by = fullest.setdefault(around, [])
        if place.quoted_by not in quoted_by:
            quoted_by.append(place.quoted_by)
    lines = [_quote_line(place, names if verbose else []) for place, names in fullest.items()]
    if len(lines) > FEW and not verbose:
        lines = [
            *lines[:FEW],
            Text(f"and {counted(len(lines) - FEW, 'more quote')} (--verbose)", style="dim"),
        ]
    return lines


def _within(part: GroundedQuote, whole: GroundedQuote) -> bool:
    return part.layer == whole.layer and whole.start <= part.start and part.end <= whole.end


def _quote_line(place: GroundedQuote, quoted_by: Sequence[str]) -> Text:
    names = ", ".join(printable_line(model) for model in quoted_by if model)
    loosely = ", a close match" if place.found_by == "fuzzy" else ""
    line = Text(f"{place.layer}{loosely}: ", style="cyan").append_text(quoted(place.text))
    return line.append(f"  quoted by {names}" if names else "", style="dim")


def _left_out(result: FireCircleResult, verbose: bool) -> list[Line]:
    """The types of observations that became no pattern, who made them and why they do not count."""
    counted_types = {found.pattern_type for found in (*result.patterns, *result.ungrounded_patterns)}
    left = [seen for seen in result.observations if seen.left_out and seen.pattern_type not in counted_types]
    left.sort(key=lambda seen: seen.pattern_type)
    groups = [list(group) for _, group in groupby(left, key=lambda seen: seen.pattern_type)]
    shown = groups if verbose else groups[:FEW]
    lines = [line for group in shown for line in _left_out_lines(group[0].pattern_type, group)]
    if more := len(groups) - len(shown):
        lines.append(Line(Text(f"and {more} more (--verbose)", style="dim")))
    return lines


def _left_out_lines(name: str, group: Sequence[Observation]) -> Iterator[Line]:
    voices = ", ".join(dict.fromkeys(printable_line(seen.model) for seen in group))
    why = LEFT_OUT_WORDS[group[0].left_out or "below_threshold"]
    yield Line(Text(_plain(name)).append(f"  {why}: {voices}"))
    if quotes := [place for seen in group for place in seen.grounded]:
        yield Line(_quote_line(max(quotes, key=lambda place: place.end - place.start), []), 1)


def _plain(pattern_type: str) -> str:
    return printable_line(pattern_type).replace("_", " ")


def _visible(text: str) -> int:
    return sum(not character.isspace() for character in text)
