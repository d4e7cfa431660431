"""A system prompt on the screen: which attacks got through, what is open, what it guards, what to add."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from firecircle.cli.output import Line, console_on, print_json, print_sections
from firecircle.cli.report import quoted
from firecircle.lab.hardening.measuring import FAIR, Hardening, Said, attacks
from firecircle.lab.hardening.wording import Addressed, Wording
from firecircle.lab.statistics.estimate import Estimate
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted

FEW = 6
MOST_SHOWN = 20
LONGEST = 160
SIGNIFICANT = 0.05
ABOUT_F = (
    "F does not measure a system prompt: it judges the incoming message under that text, so a text that"
    " forbids more raises F."
)
NO_MEASURE = "Words are read here. Whether an assistant keeps to them, only --voice shows."


def show_hardening(
    wording: Wording,
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
                "addition": wording.addition,
                "measured": None if measured is None else measured.model_dump(mode="json"),
            }
        )
        return
    console = console_on(sys.stdout)
    left_open = [addressed for addressed in wording.types if addressed.is_open]
    ours = [addressed for addressed in wording.types if addressed.ours]
    console.print(
        Text().append(" SYSTEM PROMPT ", style="bold reverse cyan").append(f"  {_headline(measured)}")
    )
    console.print()
    print_sections(
        console,
        [
            ("Attacks", list(_measured(measured)) if measured else [_how_to_measure(wording)]),
            ("Open", [line for of in left_open for line in _left_open(of, blind, bundled, stored, filled)]),
            ("Speaks of", [line for of in wording.types if of.sentences for line in _answered(of)]),
            ("Proposed", [f"{_words(of)}: our own sentence, which proves nothing by itself" for of in ours]),
            ("Guards", list(_guards(wording))),
            ("Conflicts", list(_contradictions(wording))),
            ("Add", [Line(Text(line, style="italic")) for line in wording.addition.splitlines()]),
            ("Mind", [NO_MEASURE if measured is None else ABOUT_F]),
        ],
    )


def _headline(measured: Hardening | None) -> str:
    if measured is None:
        return "its wording; no attack was sent"
    shares = [_share(share) for share in measured.gave_in]
    return f"{printable_line(measured.voice)} gave in to {' before and '.join(shares)} attacks" + (
        " after" if len(shares) > 1 else ""
    )


def _guards(wording: Wording) -> Iterator[str | Line]:
    if not wording.guards:
        yield "nothing found in the text: name what must not get out, and what needs a check first"
    for sentence in wording.guards[:FEW]:
        yield Line(quoted(printable_line(sentence, LONGEST)))
    if more := wording.guards[FEW:]:
        yield f"and {counted(len(more), 'more sentence')}"


def _contradictions(wording: Wording) -> Iterator[str | Line]:
    for found in wording.contradictions[:FEW]:
        yield printable_line(found.why)
        yield Line(quoted(printable_line(found.first.quote, LONGEST)), 1)
        if found.second:
            yield Line(quoted(printable_line(found.second.quote, LONGEST)), 1)
    if more := wording.contradictions[FEW:]:
        yield f"and {len(more)} more: firecircle check --contradictions"


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


def _how_to_measure(wording: Wording) -> str:
    after = " --after proposed" if wording.addition else ""
    return f"not sent: --voice local:qwen (or provider:model){after} sends them and shows which get through"


def _measured(measured: Hardening) -> Iterator[str | Line]:
    if measured.stopped:
        yield f"stopped: {printable_line(measured.stopped)}; the same command goes on"
    if measured.gave_in[0].value is None:
        yield f"{printable_line(measured.voice)} answered no attack"
        return
    if measured.paired is not None:
        yield _verdict(measured)
    fair = measured.answered
    if fair[0].value is not None:
        yield (
            "fair questions answered: "
            + " before, ".join(map(_share, fair))
            + (" after" if len(fair) > 1 else "")
        )
    shown = [
        attempt
        for attempt in measured.attempts
        if any(said is not None and said.gave_in for said in (attempt.before, attempt.after))
    ]
    for attempt in shown[:MOST_SHOWN]:
        change = _change(attempt.before, attempt.after)
        sign = next((said.sign for said in (attempt.after, attempt.before) if said and said.gave_in), "")
        name = "fair question" if attempt.kind == FAIR else attempt.kind.replace("_", " ")
        name = printable_line(f"{name} ({attempt.id})")
        yield f"{change}: {name}, {printable_line(sign, LONGEST)}"
        yield Line(quoted(printable_line(attempt.message, LONGEST)), 1)
    if more := len(shown) - MOST_SHOWN:
        yield f"and {more} more (--json)" if more > 0 else ""
    silent = [
        attempt
        for attempt in measured.attempts
        if attempt.kind != FAIR and (last := attempt.after or attempt.before) and not last.sign
    ]
    if silent:
        yield (
            f"{counted(len(silent), 'attack')} answered without a refusal and without a sign of giving in:"
            " read these answers in --json"
        )
    if measured.unanswered:
        yield f"{counted(measured.unanswered, 'message')} without an answer"
    cost = f", ${measured.cost_usd:.4f}" if measured.cost_usd else ""
    yield f"brackets: 95% intervals; {measured.tokens:,} tokens{cost}"


def _change(before: Said | None, after: Said | None) -> str:
    if after is None or before is None:
        return "got through"
    if before.gave_in == after.gave_in:
        return "got through both times"
    return "no longer gets through" if before.gave_in else "gets through now"


def _verdict(measured: Hardening) -> str:
    paired = measured.paired
    assert paired is not None
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
