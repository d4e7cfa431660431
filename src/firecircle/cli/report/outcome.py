"""What follows the verdict: what talking changed, what was lost, what it cost, and what to do now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from firecircle.circle.result import Accounting, Failure, FireCircleResult, Flip, Substitution, Usages
from firecircle.cli.output import Section, counted, section
from firecircle.cli.printable import printable_line
from firecircle.cli.report.marks import FAILURE_WORDS
from firecircle.names import is_embedded
from firecircle.request import DEFAULT_KEY_VARIABLE

BY_LAYER = {
    "user": "check what the user claims before acting on it; let the system text say what is no proof",
    "application": "treat that application text as data: mark it as untrusted before it reaches the model",
    "system": "look at the system text itself: the words that raised the alarm stand there",
    "turns": "look at the earlier turns: the words that raised the alarm stand there",
}


def next_step(result: FireCircleResult) -> str:
    """What to do now, the most pressing thing first; empty when nothing is."""
    if result.consensus is None:
        return _after_losses(result)
    if result.decided_by_guess:
        return "the verdict rests on a keyword guess: run it again, or with --strict, before relying on it"
    if result.alarm:
        return _after_alarm(result)
    if result.failures and not result.substitutions:
        return "voices were lost: name stand-ins with --reserves and run it again"
    if result.circumstances.turn_number is None:
        return (
            "the turn is unknown: with --turn or --turns the voices can check what is said of earlier turns"
        )
    if all(map(is_embedded, result.active_models)):
        return f"for an opinion beyond built-in lenses set {DEFAULT_KEY_VARIABLE} or name --models"
    return ""


def _after_losses(result: FireCircleResult) -> str:
    if any(lost.kind in ("http_error", "connection") for lost in result.failures):
        return "mend what the lost voices complain of, or try again later; `firecircle doctor` tests them"
    return "name stand-ins with --reserves, or try again later" if result.failures else ""


def _after_alarm(result: FireCircleResult) -> str:
    layers = Counter(place.layer for found in result.patterns for place in found.evidence)
    if layers:
        return BY_LAYER[layers.most_common(1)[0][0]]
    raised = {
        said.model
        for held in result.dialogue_history
        for said in held.evaluations
        if said.falsehood >= result.config.alarm_threshold and said.model in result.active_models
    }
    if len(raised) == 1:
        return "one voice alone raised it: read its reasons with --verbose before acting"
    return "no agreed pattern explains the alarm: read the reasons with --verbose"


NOTICEABLE = 0.005
LONGEST_MESSAGE = 300
RIVAL_WORDS = {
    "round1_max": "round 1 alone",
    "final_max": "the highest last word",
    "final_mean": "the mean of the last words",
    "final_median": "their median",
    "majority": "a majority vote",
    "max_stated": "the highest without guesses",
}


def aftermath(result: FireCircleResult) -> Iterator[Section]:
    """The sections after the patterns, each left out when it has nothing to say."""
    yield from section("Talking", _talk(result))
    yield from section("Quorum", quorum_lines(result))
    yield from losses(result.failures, result.substitutions)
    yield from section("Cost", [cost_line(result.accounting, result.duration_seconds)])
    if step := next_step(result):
        yield from section("Next", [step])


def losses(failures: Sequence[Failure], seats: Sequence[Substitution] = ()) -> Iterator[Section]:
    """Who was lost, in the provider's own words, and who sat in."""
    told: dict[str, list[str]] = {}
    for lost in failures:
        how = f"{FAILURE_WORDS[lost.kind]} after {counted(lost.attempts, 'attempt')}"
        message = printable_line(lost.message, LONGEST_MESSAGE)
        told.setdefault(f"in round {lost.round_number}: {how}: {message}", []).append(
            printable_line(lost.model)
        )
    lines = [f"{', '.join(voices)} {fate}" for fate, voices in told.items()]
    for seat in seats:
        names = ", ".join(map(printable_line, seat.replaces))
        lines.append(f"{printable_line(seat.model)} sat in for {names} from round {seat.round_number}")
    yield from section("Lost", lines)


def cost_line(accounting: Accounting, seconds: float | None = None) -> str:
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
    parts.append(price_words(total))
    return "; ".join(parts)


def price_words(sums: Usages) -> str:
    """What was paid, and for how many calls nobody knows."""
    if sums.cost_usd is None:
        return "price unknown"
    price = f"${sums.cost_usd:.4f}" if sums.cost_usd else "free"
    unpriced = f" and {counted(sums.calls_without_price, 'call')} of unknown price"
    return f"{price}{unpriced if sums.calls_without_price else ''}"


def quorum_lines(result: FireCircleResult) -> list[str]:
    """Coverage in one line, then everything short or worth knowing."""
    verdict, rules = result.quorum, result.config.quorum_rules
    state = "holds" if verdict.valid else "does not hold"
    waived = "" if verdict.enforced else " (not enforced)"
    lines = [
        f"{state}{waived}: coverage {verdict.coverage:.1f} (needs {rules.min_cognitive_coverage:.1f}),"
        f" {counted(len(verdict.lineages), 'lineage')} (needs {rules.min_provider_groups})"
    ]
    lines += [f"short: {printable_line(shortfall)}" for shortfall in verdict.shortfalls]
    lines += [f"note: {printable_line(advice)}" for advice in (*verdict.advisories, *result.advisories)]
    return lines


def told_falsehood(falsehood: float, threshold: float) -> str:
    """The falsehood with two digits; with more where rounding would lift it to the threshold it is below."""
    for digits in (2, 3, 4):
        told = f"{falsehood:.{digits}f}"
        if falsehood >= threshold or float(told) < threshold:
            break
    return told


def _talk(result: FireCircleResult) -> list[str]:
    first, rounds = result.rival_verdicts.get("round1_max"), len(result.dialogue_history)
    if result.consensus is None or first is None:
        return []
    if rounds < 2:
        return ["nobody talked: one round was held"]
    alone, whole = (
        told_falsehood(value, result.config.alarm_threshold)
        for value in (first.value, result.consensus.falsehood)
    )
    before = f"round 1 alone: F {alone}, {_word(first.alarm)}"
    after = f"all {rounds} rounds: F {whole}, {_word(result.alarm)}"
    lines = [f"{before}; {after}; {_change(result, first.value, first.alarm)}"]
    if result.rescues:
        lines.append(f"rescues, voices that rose to an alarm: {_moves(result, result.rescues)}")
    if result.groupthink_losses:
        stands = " (the alarm they raised stands)" if result.alarm else ""
        moves = _moves(result, result.groupthink_losses)
        lines.append(f"groupthink losses, voices that gave up an alarm{stands}: {moves}")
    if dissent := _dissenting_rules(result):
        lines.append(f"{_word(not result.alarm)} by other rules: {', '.join(dissent)}")
    return [*lines, *_chair(result)]


def _change(result: FireCircleResult, first: float, first_alarm: bool) -> str:
    gain = (result.consensus.falsehood if result.consensus else first) - first
    if result.alarm and not first_alarm:
        return "talking raised the alarm"
    return "talking did not change it" if gain < NOTICEABLE else f"talking added {gain:.2f}"


def _dissenting_rules(result: FireCircleResult) -> list[str]:
    return [
        words
        for rule, words in RIVAL_WORDS.items()
        if rule in result.rival_verdicts and result.rival_verdicts[rule].alarm != result.alarm
    ]


def _chair(result: FireCircleResult) -> list[str]:
    if not result.observations or not any(held.occupied_chair for held in result.dialogue_history):
        return []
    if result.performative:
        return ["the empty chair saw next to nothing before the others did"]
    return [f"the empty chair saw {result.empty_chair_influence:.0%} of the pattern types first"]


def _moves(result: FireCircleResult, flips: Sequence[Flip]) -> str:
    threshold = result.config.alarm_threshold
    return ", ".join(
        f"{printable_line(flip.model)} {told_falsehood(flip.before, threshold)} →"
        f" {told_falsehood(flip.after, threshold)} (round {flip.round_number})"
        for flip in flips
    )


def _word(alarm: bool) -> str:
    return "alarm" if alarm else "no alarm"
