"""A system prompt on the screen: what it guards, what it leaves open, what to add, and what that changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from firecircle.cli.output import Line, console_on, print_json, print_sections
from firecircle.cli.printable import printable_line
from firecircle.cli.report.findings import quoted
from firecircle.lab.hardening.measuring import Hardening, attacks
from firecircle.lab.hardening.wording import Addressed, Wording
from firecircle.lab.statistics import Estimate
from firecircle.telling.words import counted

FEW = 6
LONGEST = 160
SIGNIFICANT = 0.05
ABOUT_F = (
    "F is no measure of a system prompt: it judges the incoming message under that text, so a text that"
    " forbids more raises F. Measured here is what the assistant does."
)


def show_hardening(
    wording: Wording,
    addition: str,
    measured: Hardening | None,
    blind: Sequence[str],
    bundled: Mapping[str, int],
    stored: Mapping[str, int],
    *,
    as_json: bool,
) -> None:
    """Print everything that is known of a system prompt."""
    filled: dict[str, str] = {}
    for kind, text in attacks(wording.guarded_thing):
        filled.setdefault(kind, text)
    if as_json:
        print_json(
            {
                **wording.model_dump(mode="json"),
                "open": [addressed.pattern_type for addressed in wording.types if addressed.is_open],
                "blind_spots": list(blind),
                "attacks": {
                    kind: {"bundled": bundled.get(kind, 0), "stored": stored.get(kind, 0), "example": text}
                    for kind, text in filled.items()
                },
                "addition": addition,
                "measured": None if measured is None else measured.model_dump(mode="json"),
            }
        )
        return
    console = console_on(sys.stdout)
    left_open = [addressed for addressed in wording.types if addressed.is_open]
    known = sum(bundled.get(of.pattern_type, 0) + stored.get(of.pattern_type, 0) for of in left_open)
    console.print(
        Text()
        .append(" SYSTEM PROMPT ", style="bold reverse cyan")
        .append(
            f"  says something about {len(wording.types) - len(left_open)} of {len(wording.types)} kinds of"
            f" manipulation, and nothing about {counted(known, 'known attack')}"
        )
    )
    console.print()
    print_sections(
        console,
        [
            ("Guards", list(_guards(wording))),
            ("Answers", [line for of in wording.types if not of.is_open for line in _answered(of)]),
            (
                "Open",
                [line for of in left_open for line in _left_open(of, blind, bundled, stored, filled)],
            ),
            ("Add", [Line(Text(line, style="italic")) for line in addition.splitlines()]),
            ("Measured", list(_measured(measured)) if measured else [_how_to_measure(addition)]),
            ("Mind", [ABOUT_F]),
        ],
    )


def _guards(wording: Wording) -> Iterator[str | Line]:
    if not wording.guards:
        yield "nothing, as far as words tell: name what must not get out, and what needs a check first"
    for sentence in wording.guards[:FEW]:
        yield Line(quoted(printable_line(sentence, LONGEST)))
    if more := wording.guards[FEW:]:
        yield f"and {counted(len(more), 'more sentence')}"


def _answered(addressed: Addressed) -> Iterator[str | Line]:
    yield _words(addressed)
    yield Line(quoted(printable_line(addressed.sentences[0], LONGEST)), 1)


def _left_open(
    addressed: Addressed,
    blind: Sequence[str],
    bundled: Mapping[str, int],
    stored: Mapping[str, int],
    filled: Mapping[str, str],
) -> Iterator[str | Line]:
    kind = addressed.pattern_type
    spot = ", a blind spot of your circles" if kind in blind else ""
    known = f"{bundled.get(kind, 0)} bundled and {stored.get(kind, 0)} stored attacks"
    yield f"{_words(addressed)}: {known}{spot}"
    yield Line(quoted(printable_line(filled[kind], LONGEST)), 1)


def _words(addressed: Addressed) -> str:
    return addressed.pattern_type.replace("_", " ")


def _how_to_measure(addition: str) -> str:
    if not addition:
        return "nothing to add by its wording; --voice MODEL --addition TEXT measures an addition of yours"
    return "not yet: --voice local:qwen (or provider:model) plays the assistant without and with the addition"


def _measured(measured: Hardening) -> Iterator[str | Line]:
    before, after = measured.gave_in
    if before.value is None or after.value is None:
        yield f"{printable_line(measured.voice)} answered nothing both times"
        return
    yield (
        f"{printable_line(measured.voice)} gave in to {_share(before)} attacks before and {_share(after)}"
        f" after: {_verdict(measured)}"
    )
    fair = measured.answered
    if fair[0].value is not None:
        yield f"fair questions answered: {_share(fair[0])} before, {_share(fair[1])} after"
    for attempt in measured.attempts:
        if attempt.pattern_type is not None and attempt.before != attempt.after and attempt.after is not None:
            change = "no longer gives in" if attempt.before else "gives in now"
            yield Line(Text(f"{change}: {attempt.pattern_type.replace('_', ' ')}"), 1)
    if measured.unanswered:
        yield f"{counted(measured.unanswered, 'message')} not answered both times"
    yield "brackets: 95% intervals. A handful of messages is a hint; --attacks 16 asks all there are"


def _verdict(measured: Hardening) -> str:
    paired = measured.paired
    if not paired.only_first and not paired.only_second:
        return "no change"
    better = paired.only_first > paired.only_second
    direction = (
        "better" if better else "worse" if paired.only_second > paired.only_first else "as many as before"
    )
    if paired.p_value is None or paired.p_value >= SIGNIFICANT:
        return f"{direction}, but so few that chance could do it (p {paired.p_value or 1:.2f})"
    return f"{direction} (p {paired.p_value:.3f})"


def _share(estimate: Estimate) -> str:
    if estimate.value is None:
        return "none"
    hits = round(estimate.value * estimate.n)
    interval = "" if estimate.low is None else f" [{estimate.low:.0%}, {estimate.high:.0%}]"
    return f"{hits} of {estimate.n}{interval}"
