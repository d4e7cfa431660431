"""The patterns the voices saw, each with the words of the prompt that show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from firecircle.circle.result import FireCircleResult, Observation, PatternObservation
from firecircle.cli.output import Line, Section, section
from firecircle.cli.printable import printable_line
from firecircle.evaluation import GroundedQuote
from firecircle.metrics import ReciprocityMetrics
from firecircle.telling.patterns import (
    GatheredQuote,
    agreement_words,
    gathered_quotes,
    left_out,
    observer_words,
    with_names,
)
from firecircle.telling.words import LEFT_OUT_WORDS, counted

LONGEST_QUOTE, BRIEF_QUOTE = 200, 24
LONGEST_DESCRIPTION = 300
FEW = 3


def findings(result: FireCircleResult, *, verbose: bool) -> Iterator[Section]:
    """Agreed patterns first, right below those that fell short, then what has no evidence or no type."""
    yield from patterns_of(result, verbose=verbose)
    claimed = [line for pattern in result.ungrounded_patterns for line in _pattern(pattern, result, verbose)]
    if claimed:
        reason = Line(Text("claimed, but none of their quotes is in the prompt:", style="dim"))
        yield from section("Unfounded", [reason, *claimed])
    yield from section("Uncounted", _left_out(result, verbose))


def patterns_of(judged: FireCircleResult | ReciprocityMetrics, *, verbose: bool) -> Iterator[Section]:
    """The patterns with words of the prompt: agreed, then those that fell short."""
    agreed = [line for pattern in judged.patterns for line in _pattern(pattern, judged, verbose)]
    yield from section("Patterns", agreed or ["none that enough voices agreed on and showed in the prompt"])
    short = [line for pattern in judged.single_voice_patterns for line in _pattern(pattern, judged, verbose)]
    yield from section("Also seen", short)


def brief_patterns(result: FireCircleResult) -> list[Line]:
    """A line for each of the first patterns: type, how many voices hold it, and its fullest quote."""
    lines = []
    for pattern in result.all_patterns[:FEW]:
        title = Text(_plain(pattern.pattern_type), style="bold" if pattern.left_out is None else "")
        title.append(f"  {len(pattern.held_to_the_end)} of {counted(len(result.active_models), 'voice')}")
        title.append("  ").append_text(quoted(gathered_quotes(pattern.evidence)[0].place.text, BRIEF_QUOTE))
        lines.append(Line(title))
    if more := len(result.all_patterns) - len(lines):
        lines.append(Line(Text(f"and {more} more", style="dim")))
    return lines


def quoted(text: str, longest: int = LONGEST_QUOTE) -> Text:
    """Words of the prompt in quotation marks; characters that cannot be shown are counted."""
    line = Text(f"“{printable_line(text, longest)}”", style="default")
    hidden = _visible(text) - _visible(printable_line(text))
    if hidden > 0:
        line.append(f" ({counted(hidden, 'hidden character')})", style="yellow")
    return line


def _pattern(
    pattern: PatternObservation, judged: FireCircleResult | ReciprocityMetrics, verbose: bool
) -> Iterator[Line]:
    title = Text(_plain(pattern.pattern_type), style="bold")
    why = f", {LEFT_OUT_WORDS[pattern.left_out]}" if pattern.left_out and pattern.evidence else ""
    title.append(f"  {agreement_words(pattern, judged)}{why}", style="not bold")
    yield Line(title)
    yield Line(Text(observer_words(pattern, printable_line)), 1)
    for line in _evidence(pattern.evidence, verbose):
        yield Line(line, 1)
    labels = judged.peer_labels if isinstance(judged, FireCircleResult) else {}
    description = printable_line(with_names(pattern.description, labels), LONGEST_DESCRIPTION)
    yield Line(Text(description, style="italic"), 1)


def _evidence(evidence: Sequence[GroundedQuote], verbose: bool) -> list[Text]:
    quotes = gathered_quotes(evidence)
    lines = [_quote_line(quote, quote.voices if verbose else ()) for quote in quotes]
    if len(lines) > FEW and not verbose:
        more = counted(len(lines) - FEW, "more quote")
        lines = [*lines[:FEW], Text(f"and {more} (--verbose)", style="dim")]
    return lines


def _quote_line(quote: GatheredQuote, quoted_by: Sequence[str] = ()) -> Text:
    names = ", ".join(map(printable_line, quoted_by))
    loosely = ", a close match" if quote.is_loose else ""
    line = Text(f"{quote.place.layer}{loosely}: ", style="cyan").append_text(quoted(quote.place.text))
    return line.append(f"  quoted by {names}" if names else "", style="dim")


def _left_out(result: FireCircleResult, verbose: bool) -> list[Line]:
    """The types of observations that became no pattern, who made them and why they do not count."""
    groups = left_out(result)
    few = groups if verbose else groups[:FEW]
    lines = [line for group in few for line in _left_out_lines(group)]
    if more := len(groups) - len(few):
        lines.append(Line(Text(f"and {more} more (--verbose)", style="dim")))
    return lines


def _left_out_lines(group: Sequence[Observation]) -> Iterator[Line]:
    voices = ", ".join(dict.fromkeys(printable_line(observation.model) for observation in group))
    why = LEFT_OUT_WORDS[group[0].left_out or "below_threshold"]
    yield Line(Text(_plain(group[0].pattern_type)).append(f"  {why}: {voices}"))
    if quotes := gathered_quotes([place for observation in group for place in observation.grounded]):
        yield Line(_quote_line(quotes[0]), 1)


def _plain(pattern_type: str) -> str:
    return printable_line(pattern_type).replace("_", " ")


def _visible(text: str) -> int:
    return sum(not character.isspace() for character in text)
