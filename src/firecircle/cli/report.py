"""The report of a circle: every word if asked for, the verdict, its patterns, and all that explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.text import Text

from firecircle.circle.result import (
    Accounting,
    Failure,
    FireCircleResult,
    Observation,
    PatternObservation,
    Usages,
)
from firecircle.cli.evaluate.request import Request
from firecircle.cli.live_table import TableView, style_of
from firecircle.cli.output import VERDICT_STYLES, Line, Section, bar, section, short_id
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import is_embedded
from firecircle.telling.answers import cares_about
from firecircle.telling.glance import LAYER_WORDS, Excerpt, excerpt_of, sentence_of
from firecircle.telling.patterns import (
    GatheredQuote,
    agreement_words,
    gathered_quotes,
    left_out,
    observer_words,
    with_names,
)
from firecircle.telling.quorum import quorum_line
from firecircle.telling.safe_text import printable, printable_line
from firecircle.telling.table import table_of_circle, table_of_panel
from firecircle.telling.talking import talk_sentences
from firecircle.telling.verdict import (
    Cautions,
    Ways,
    cautions_of_circle,
    cautions_of_panel,
    circle_sentences,
    deciding_reason,
    lost_voices,
    next_step,
    panel_sentences,
    unfinished_sentence,
)
from firecircle.telling.words import LEFT_OUT_WORDS, ROUND_WORDS, STOP_WORDS, counted
from firecircle.thresholds import format_figure, reaches
from firecircle.verdict import SHOWN, mistake_of

BAR = 20
OPTIONS = Ways(
    read_reasons="with --verbose",
    ask_again="run it again, or with --set failure_mode=strict,",
    name_reserves="with --set reserves=A,B",
    tell_turn="with --turns, or --turn 1 if nothing did,",
    name_voices="name --models",
    judge_offline="judge with --offline",
)
NOBODY: Mapping[str, str] = {}


def circle_report(
    console: Console, request: Request, result: FireCircleResult, metrics: ReciprocityMetrics
) -> Iterator[RenderableType]:
    """Everything about a circle that reached a verdict; its table has been seen already."""
    if request.verbose:
        yield ""
        yield from transcript(result)
    cautions = cautions_of_circle(result, printable_line)
    yield ""
    yield _frame(
        console,
        _verdict(metrics, request, circle_sentences(result, metrics, printable_line), cautions),
    )
    yield ""
    yield from findings(result, verbose=request.verbose)
    yield from section("Talking", talk_sentences(result, printable_line))
    yield from _quorum(result, cautions)
    yield from section("Lost", cautions.get("Lost", ()))
    yield from section("Cost", [_cost_line(result.accounting, result.duration_seconds)])
    yield from _next(result)
    yield from _session(request)
    yield from _where_saved(metrics.kept_as)


def glance_report(
    console: Console, request: Request, result: FireCircleResult, metrics: ReciprocityMetrics
) -> Iterator[RenderableType]:
    """The prompt with the words that count, the verdict, patterns, what to do, then voices by round."""
    yield from section("Prompt", [_mark(excerpt_of(result))])
    style, threshold = VERDICT_STYLES[result.verdict], request.threshold
    headline = Text().append(f" {SHOWN[result.verdict]} ", style=f"reverse {style}")
    figure = format_figure(metrics.consensus.falsehood, threshold)
    headline.append(f"  F {figure} of 1.00, alarm from {threshold:.2f}", style="bold")
    lines = [headline if console.is_terminal else Text(headline.plain.strip())]
    lines.append(Text(printable_line(sentence_of(result))))
    if mistake := mistake_of(metrics.verdict, request.label):
        known = "attack" if mistake == "missed" else "benign"
        lines.append(Text(f"Labelled {known}: {mistake}.", style="bold red"))
    yield from section("Verdict", [Line(line) for line in lines])
    yield from section("Patterns", brief_patterns(result))
    yield from _next(result)
    yield ""
    yield TableView(table_of_circle(result), brief=True)
    cautions = cautions_of_circle(result, printable_line)
    yield from section("Note", [f"{note}." for notes in cautions.values() for note in notes])
    yield from _session(request)
    name = printable_line(short_id(metrics.kept_as)) if metrics.kept_as else ""
    saved = f"; saved as {name}: firecircle circles show {name}" if name else ""
    yield from section("More", [f"--verbose{saved}"])


def _mark(excerpt: Excerpt) -> Line:
    """The words of the prompt, those that count in [[ ]] and bold."""
    line = Text(f"{LAYER_WORDS[excerpt.layer]}: ", style="cyan")
    line.append(printable_line(excerpt.before), style="default")
    if excerpt.marked:
        gap = " " if excerpt.before[-1:].isspace() else ""
        line.append(f"{gap}[[{printable_line(excerpt.marked)}]]", style="bold default")
        gap = " " if excerpt.after[:1].isspace() else ""
        line.append(gap + printable_line(excerpt.after), style="default")
    return Line(line)


def panel_report(console: Console, request: Request, metrics: ReciprocityMetrics) -> Iterator[RenderableType]:
    """Voices that were asked once."""
    yield TableView(table_of_panel(metrics.evaluations, metrics.failures, request.threshold))
    if request.verbose:
        yield ""
        yield from section("Answers", [line for answer in metrics.evaluations for line in spoken(answer)])
    cautions = cautions_of_panel(metrics, printable_line)
    yield ""
    yield _frame(console, _verdict(metrics, request, panel_sentences(metrics, printable_line), cautions))
    if rest := [
        *(patterns_of(metrics, verbose=request.verbose) if metrics.all_patterns else ()),
        *_guidance(metrics.guidance, request.config.first_asked),
        *section("Lost", cautions.get("Lost", ())),
        *section("Cost", [_cost_line(metrics.accounting)]),
        *_session(request),
        *_where_saved(metrics.kept_as),
    ]:
        yield ""
        yield from rest


def unfinished_report(
    console: Console,
    request: Request,
    partial: FireCircleResult,
    kept_as: str | None = None,
    *,
    reason: str | None = None,
) -> Iterator[RenderableType]:
    """What was heard before a circle broke off, and why it did unless an error line has said so."""
    if request.verbose:
        yield ""
        yield from transcript(partial)
    cautions = cautions_of_circle(partial, printable_line)
    style = VERDICT_STYLES[partial.verdict]
    headline = Text().append(f" {SHOWN[partial.verdict]} ", style=f"bold reverse {style}")
    headline.append(f"  {STOP_WORDS[partial.stopped]}", style="bold")
    lines = [headline, Text(unfinished_sentence(partial, printable_line))]
    if reason:
        lines.append(Text(f"Why: {printable_line(reason)}", style="italic"))
    yield ""
    yield _frame(console, _Verdict(style, lines))
    yield ""
    if partial.all_patterns:
        yield from findings(partial, verbose=request.verbose)
    yield from _quorum(partial, cautions)
    yield from section("Lost", cautions.get("Lost", ()))
    yield from _next(partial)
    yield from _where_saved(kept_as)


def lost_report(failures: Sequence[Failure]) -> Iterator[RenderableType]:
    """Voices of which none could answer."""
    yield from section("Lost", lost_voices(failures, printable_line).get("Lost", ()))


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What goes into the frame, line by line, and the frame's colour."""

    colour: str
    lines: Sequence[Text]


def _verdict(
    metrics: ReciprocityMetrics, request: Request, sentences: Sequence[str], cautions: Cautions
) -> _Verdict:
    falsehood, threshold = metrics.consensus.falsehood, request.threshold
    style = VERDICT_STYLES[metrics.verdict]
    headline = Text().append(f" {SHOWN[metrics.verdict]} ", style=f"reverse {style}")
    headline.append(f"  F {format_figure(falsehood, threshold)} ", style="bold")
    headline.append(bar(falsehood, BAR), style=style_of(falsehood, threshold))
    side = "at or above" if reaches(falsehood, threshold) else "below"
    headline.append(f"  {side} the threshold {threshold:.2f}")
    mistake = mistake_of(metrics.verdict, request.label)
    known = "attack" if mistake == "missed" else "benign"
    lines = [headline, *([Text(f"Labelled {known}: {mistake}.", style="bold red")] if mistake else [])]
    lines += map(Text, sentences)
    lines += [Text(f"Note: {note}.", style="yellow") for note in cautions.get("Verdict", ())]
    if reason := deciding_reason(metrics, printable_line):
        lines.append(Text(f"Why: {reason}", style="italic"))
    return _Verdict(style, lines)


def _frame(console: Console, verdict: _Verdict) -> RenderableType:
    """A frame on a terminal; in a pipe a section like the others."""
    if console.is_terminal:
        lines = Text("\n").join(verdict.lines)
        return Panel(lines, box=box.HEAVY, border_style=verdict.colour, padding=(0, 1))
    return Section("Verdict", [Line(Text(line.plain.strip())) for line in verdict.lines])


def _quorum(result: FireCircleResult, cautions: Cautions) -> Iterator[Section]:
    """Coverage in one line, then everything short or worth knowing."""
    holds = result.quorum.valid and result.quorum.enforced
    is_worth_a_line = holds and (result.consensus is not None or result.failures)
    lines = cautions.get("Quorum", ())
    yield from section("Quorum", [quorum_line(result), *lines] if is_worth_a_line else lines)


def _next(result: FireCircleResult) -> Iterator[Section]:
    if step := next_step(result, OPTIONS):
        yield from section("Next", [step])


def _cost_line(accounting: Accounting, seconds: float | None = None) -> str:
    """Calls and time; tokens and money as far as they are known."""
    total = accounting.total
    took = "" if seconds is None else f" in {seconds:.{1 if seconds >= 1 else 2}f} s"
    parts = [f"{counted(total.calls, 'call')}{took}"]
    if total.calls_cached:
        parts.append(f"{total.calls_cached:,} answered from the cache")
    if total.tokens_in or total.tokens_out:
        cached = f" ({total.tokens_cached:,} cached)" if total.tokens_cached else ""
        parts.append(f"{total.tokens_in:,} tokens in{cached}, {total.tokens_out:,} out")
        if total.calls_without_tokens:
            parts.append(f"tokens unknown for {counted(total.calls_without_tokens, 'call')}")
    if total.estimated_tokens:
        parts.append(f"by estimate {total.estimated_tokens:,} more tokens that no provider counted")
    parts.append(_price(total))
    if total.saved_usd > 0:
        parts.append(f"${total.saved_usd:.4f} saved by the providers' caches")
    return "; ".join(parts)


def _price(sums: Usages) -> str:
    """What was paid, for how many calls nobody knows, and what uncounted attempts may have cost."""
    estimated = f" and by estimate ${sums.estimated_usd:.4f} more" if sums.estimated_usd else ""
    if sums.cost_usd is None:
        return f"price unknown{estimated}"
    price = f"${sums.cost_usd:.4f}" if sums.cost_usd else "free"
    unpriced = f" and {counted(sums.calls_without_price, 'call')} of unknown price"
    return f"{price}{unpriced if sums.calls_without_price else ''}{estimated}"


def _guidance(guidance: Sequence[str], voices: Sequence[str]) -> Iterator[Section]:
    """What the voices were told to look out for, and whether they can read it."""
    if not guidance:
        return
    deaf = [voice for voice in voices if is_embedded(voice)]
    note = ["the built-in voices look at the prompt alone and were not swayed by it"] if deaf else []
    yield from section("Told", [*guidance, *note])


def _session(request: Request) -> Iterator[Section]:
    session = request.session
    if session is None or request.session_file is None:
        return
    heading = session.trust_trajectory.replace("_", ", ")
    where = printable_line(request.session_file)
    line = f"{where}: turn {session.turn_count} is next; trust {session.trust:.2f} ({heading})"
    yield from section("Session", [line])


def _where_saved(kept_as: str | None) -> Iterator[Section]:
    """How to find it again."""
    if kept_as is not None:
        name = printable_line(short_id(kept_as))
        yield from section("Saved", [f"as {name}: firecircle circles show {name}"])


def transcript(result: FireCircleResult) -> Iterator[Section]:
    """The rounds of a dialogue in full."""
    for held in result.dialogue_history:
        lines = [Line(Text(ROUND_WORDS[held.kind], style="dim"))]
        for evaluation in held.evaluations:
            lines += spoken(evaluation, result.peer_labels, is_chair=evaluation.model == held.occupied_chair)
        yield Section(f"Round {held.round_number}", lines)


def spoken(
    evaluation: NeutrosophicEvaluation, labels: Mapping[str, str] = NOBODY, *, is_chair: bool = False
) -> Iterator[Line]:
    """One answer in full: numbers, what to know of them, reasons and observations."""
    title = Text().append(printable_line(evaluation.model), style="bold")
    title.append(
        f"  F {evaluation.falsehood:.2f}  T {evaluation.truth:.2f}  I {evaluation.indeterminacy:.2f}"
    )
    title.append("  from the empty chair" if is_chair else "")
    yield Line(title)
    for line in _details(evaluation):
        yield Line(Text(printable(with_names(line, labels))), 1)


def _details(evaluation: NeutrosophicEvaluation) -> Iterator[str]:
    yield from (f"note: {note}" for note in cares_about(evaluation))
    if evaluation.speaks_for:
        yield f"speaks for: {printable_line(evaluation.speaks_for)}"
    if evaluation.veto_grounds:
        yield f"grounds for a veto: {printable_line(evaluation.veto_grounds)}"
    if reasoning := printable(evaluation.reasoning).strip():
        yield reasoning
    for note in evaluation.pattern_notes:
        kind = f"{printable_line(note.type)}: " if note.type else ""
        quote = f" “{printable_line(note.quote)}”" if note.quote else ""
        layer = f" in {printable_line(note.layer)}" if note.layer else ""
        yield f"- {kind}{printable_line(note.description)}{quote}{layer}"


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
