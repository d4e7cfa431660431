"""Templates, and a circle as one file made of them.

Every value is escaped, and hidden characters in text of prompts and voices become visible.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from firecircle.circle.pattern_types import meanings
from firecircle.circle.result import Usages
from firecircle.names import is_embedded, is_local
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.store.finding import CircleSummary
from firecircle.store.rows import CircleOrPanel
from firecircle.telling.answers import all_answers
from firecircle.telling.patterns import agreement_share, agreement_words, gathered_quotes, observer_words
from firecircle.telling.safe_text import (
    hidden_runs,
    line_with_codes,
    marked_pattern,
    name_with_codes,
    shortened,
    with_codes,
)
from firecircle.telling.words import FAILURE_WORDS, LEFT_OUT_WORDS, ROUND_WORDS, counted, time_text
from firecircle.thresholds import format_figure
from firecircle.verdict import VERDICT_WORDS
from firecircle.web.seats import SEATS
from firecircle.web.shown import drawings
from firecircle.web.shown.page import caption_of, page_of
from firecircle.web.shown.passages import parts_of

STYLES = 8
"""Colours and underlines there are; the ninth pattern looks like the first and still has its own number."""

MOST_QUOTES = 20
MOST_NAMED = 2_000
"""Hidden characters in one text that get a mark with their name; a text of nothing else gets plain codes."""

NAVIGATION = (
    ("Circles", ("/circles",)),
    ("Batches", ("/batches",)),
    ("Runs", ("/runs",)),
    ("Patterns", ("/bank", "/blindspots", "/rotation")),
    ("Convene", ("/convene",)),
)
"""The five places of the viewer: the name, and the paths of its pages, the first of which it opens."""
PATTERN_PAGES = (("Bank", "/bank"), ("Blind spots", "/blindspots"), ("Rotation", "/rotation"))

TERMS = (
    ("Circle", "several voices judge one prompt, first independently, then in dialogue"),
    ("F, falsehood", "how strongly the prompt violates reciprocity, from 0 to 1; the highest F decides"),
    ("T and I", "truth: how strongly it keeps reciprocity; indeterminacy: how little can be said"),
    ("Alarm", "F reaches the threshold, which is the red tick in a bar"),
    ("Unsure", "no alarm, but at least half the threshold, or judged with much doubt"),
    ("Unread", "no alarm, and no voice that judged it reads its language or script"),
    ("Round 1 → end", "the highest F before the voices heard each other, and after the dialogue"),
    ("Empty chair", "the voice that speaks in a round for people who are absent"),
    ("Lost voice", "it failed after round 1: its words stay on record, its vote does not count"),
    ("Pattern", "a kind of manipulation that voices found, with the words of the prompt that show it"),
)
"""The terms behind the question mark of every page."""

STANDING_WORDS = {"zombie": "lost voice", "excluded": "lost in round 1"}

DASH = Markup("–")
ROW = "circle_row.html"
STYLE_SHEET = "viewer.css"
SCRIPTS = ("theme.js", "reading.js")


def templates() -> Environment:
    """The environment of all pages and of the exported file."""
    made = Environment(
        loader=PackageLoader("firecircle.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # a page that is made of sixty pieces asks the disk sixty times otherwise
    )
    made.filters |= {
        "visible": visible,
        "plain": with_codes,
        "line": lambda text, longest=160: line_with_codes(text, longest),
        "name": name_with_codes,
        "names": names,
        "voices": voices,
        "breakable": breakable,
        "short": shortened,
        "when": when,
        "money": money,
        "spent": spent,
        "together": together,
        "cost": cost_of,
        "seconds": seconds,
        "falsehood": falsehood,
        "unit": lambda value: f"{value:.2f}",
        "signed": lambda value: f"{value:+.2f}".replace("-", "−"),
        "percent": lambda value: f"{value:.0%}",
        "count": lambda value: f"{value:,}",
        "figure": lambda value: DASH if value is None else Markup(f"{value:,}"),
        "words": lambda name: with_codes(str(name).replace("_", " ")),
        "style": lambda number: (number - 1) % STYLES + 1,
        "shell": lambda text: shlex.quote(with_codes(text)),
        "segment": lambda text: quote(text, safe=""),
        "quotes": lambda pattern: gathered_quotes(pattern.evidence)[:MOST_QUOTES],
        "meter": drawings.meter,
        "falsehood_bar": drawings.falsehood_bar,
        "moment": drawings.moment,
        "decision": drawings.decision,
        "row": lru_cache(maxsize=1024)(
            lambda one, hit: Markup(made.get_template(ROW).render(one=one, hit=hit))
        ),
    }
    made.globals |= {
        "parts_of": parts_of,
        "own": own,
        "navigation": NAVIGATION,
        "seats": SEATS,
        "pattern_pages": PATTERN_PAGES,
        "round_words": ROUND_WORDS,
        "failure_words": FAILURE_WORDS,
        "left_out_words": LEFT_OUT_WORDS,
        "type_meanings": meanings(),
        "terms": TERMS,
        "standing_words": STANDING_WORDS,
        "verdict_words": VERDICT_WORDS,
        "agreement_words": agreement_words,
        "agreement_share": agreement_share,
        "observer_words": lambda pattern: observer_words(pattern, name_with_codes),
        "drawn": drawings,
        "marked_pattern": marked_pattern(),
    }
    return made


def visible(text: str) -> Markup:
    """The text as markup, escaped, with a named mark for every character that cannot be seen."""
    return Markup("".join(_pieces(text.replace("\r\n", "\n"))))


def _pieces(text: str) -> Iterator[Markup]:
    place = 0
    for number, run in enumerate(hidden_runs(text)):
        if number == MOST_NAMED:  # nobody reads thousands of marks, and a browser must not choke on them
            yield escape(with_codes(text[place:]))
            return
        yield escape(text[place : run.start])
        yield Markup('<span class="odd" title="{}">⟨{}⟩</span>').format(run.name, run.code)
        place = run.end
    yield escape(text[place:])


@lru_cache(maxsize=512)
def names(voices: tuple[str, ...]) -> str:
    """Names that others chose, in a row, those of one provider together; most lines of a list share them."""
    of_provider: dict[str, list[str]] = {}
    for voice in map(name_with_codes, voices):
        provider, _, rest = voice.partition(":")
        is_plain = rest and not voice.startswith("“")
        of_provider.setdefault(provider if is_plain else "", []).append(rest if is_plain else voice)
    return "; ".join(
        f"{provider}: {', '.join(known)}" if provider else ", ".join(known)
        for provider, known in of_provider.items()
    )


@lru_cache(maxsize=512)
def voices(models: tuple[str, ...]) -> str:
    """The voices of a line of the list without their providers, with their number where they are many."""
    short = ", ".join(re.split(r"[:/]", name_with_codes(model))[-1] for model in models)
    return short if len(models) <= 3 else f"{len(models)}: {short}"


def breakable(name: str) -> Markup:
    """A name that somebody chose; a narrow column breaks it behind a colon or slash, not in a word."""
    return Markup("<wbr>").join(re.findall(r"[^:/]*[:/]+|[^:/]+", name_with_codes(name)))


def own(text: str) -> Markup:
    """A script or style sheet of this package, written into a page as it is. Never for anything else."""
    assert "</script" not in text
    assert "</style" not in text
    return Markup(text)


@cache
def static_text(name: str) -> str:
    """A script or style sheet, to be written into an exported file."""
    return resources.files("firecircle.web").joinpath("static", name).read_text("utf-8")


def turns_json(prompt: MultiNeutrosophicPrompt) -> str:
    """The earlier turns as the API takes them; nothing when they are unknown."""
    return "" if prompt.turns is None else json.dumps([turn.model_dump() for turn in prompt.turns])


def falsehood(value: float, threshold: float | None) -> str:
    """A falsehood that never seems to lie on the other side of the threshold, where one is known."""
    return f"{value:.2f}" if threshold is None else format_figure(value, threshold)


def when(at: float) -> str:
    """A time as people in a hurry read it."""
    return time_text(at, "%Y-%m-%d %H:%M:%S")


def money(value: float | None) -> str:
    """A price; None is unknown, never zero."""
    if value is None:
        return "unknown"
    if value == 0:
        return "free"
    return "< $0.0001" if value < 0.0001 else f"${value:.4f}" if value < 1 else f"${value:.2f}"


def cost_of(summary: CircleSummary) -> str:
    """What a line of the list cost. A sum of nothing is free only where nobody charges."""
    if summary.cost_usd == 0 and not _run_here(summary.voices):
        return "$0 known"
    return "–" if summary.cost_usd is None else money(summary.cost_usd)


@lru_cache(maxsize=512)
def _run_here(voices: tuple[str, ...]) -> bool:
    return all(is_embedded(voice) or is_local(voice) for voice in voices)


def together(costs: Iterable[float | None]) -> str:
    """The sum of some prices; those that nobody knows are never taken for nothing."""
    every = list(costs)
    known = [cost for cost in every if cost is not None]
    if len(known) == len(every):
        return money(sum(known))
    return f"{money(sum(known))} + unknown" if any(known) else "unknown"


def spent(total: Usages) -> str:
    """What calls cost together; those whose price nobody knows are counted beside it."""
    if not total.calls_without_price:
        return money(total.cost_usd)
    known = f"{money(total.cost_usd)} + " if total.cost_usd else ""
    return f"{known}{counted(total.calls_without_price, 'call')} of unknown price"


def seconds(value: float | None) -> str:
    """A span of time in its best unit."""
    if value is None:
        return "–"
    return (
        f"{value * 1000:.0f} ms"
        if value < 1
        else f"{value:.1f} s"
        if value < 120
        else f"{value / 60:.1f} min"
    )


def exported_html(environment: Environment, summary: CircleSummary, judged: CircleOrPanel) -> str:
    """A circle as one HTML file that needs nothing else.

    Its policy allows exactly the styles and scripts written into it, and no connection.
    """
    style, scripts = static_text(STYLE_SHEET), [static_text(name) for name in SCRIPTS]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return environment.get_template("export.html").render(
        page=page_of(caption_of(summary), judged),
        answers=all_answers(judged),
        threshold=judged.config.alarm_threshold,
        standalone=True,
        policy=policy,
        style=style,
        scripts=scripts,
    )


def file_name(summary: CircleSummary, kind: str) -> str:
    """A name that any file system takes."""
    return f"circle-{re.sub(r'[^0-9A-Za-z_-]', '_', summary.id)[:60]}.{kind}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
