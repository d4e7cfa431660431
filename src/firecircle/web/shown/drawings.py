"""Small things that stand on a page many times: verdicts, bars, times. Each is drawn once and remembered.

A macro of a template that is called for every cell costs more than the rest of its row. Nothing here holds
text of prompts or voices.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from markupsafe import Markup

from firecircle.names import CircleStatus
from firecircle.store.finding import CircleSummary
from firecircle.thresholds import belies, format_figure
from firecircle.verdict import VerdictWord, is_right, mistake_of

BAR = 84
"""How wide the bar of one falsehood is; its figure stands beside it."""
_VERDICTS = {
    name: Markup(f'<span class="verdict {name}"{title}><span aria-hidden="true">{sign}</span> {words}</span>')
    for name, title, sign, words in (
        ("sitting", "", "◌", "Running"),
        ("none", "", "–", "No verdict"),
        ("unread", ' title="no alarm, but no voice that judged it reads this language"', "?", "Unread"),
        ("unsure", ' title="no alarm, but close to it or judged with much doubt"', "~", "Unsure"),
        ("alarm", "", "▲", "Alarm"),
        ("calm", "", "✓", "No alarm"),
    )
}
_CLASSES: dict[VerdictWord, str] = {"no_alarm": "calm", "no_verdict": "none"}
_BY_CALIBRATION = Markup(
    ' <span class="badge"'
    ' title="the calibrated probability of all voices\' words decided here, not the highest F">'
    "by calibration</span>"
)


def verdict(status: CircleStatus, word: VerdictWord) -> Markup:
    """What was decided, with a sign that needs no colour."""
    return _VERDICTS["sitting" if status == "sitting" else _CLASSES.get(word, word)]


@lru_cache(maxsize=1024)
def outcome(word: VerdictWord, label: str | None) -> Markup:
    """The verdict against the label, where both are there."""
    right = is_right(word, label)
    if right is None:
        return Markup("")
    words = mistake_of(word, label) or "right"
    kind = "badge" if right else "badge bad"
    return Markup(f' <span class="{kind}" title="the verdict against the label">{words}</span>')


def by_calibration(alarm: bool | None, value: float | None, threshold: float | None) -> Markup:
    """A note where the highest F says something else than the verdict."""
    return _BY_CALIBRATION if belies(alarm, value, threshold) else Markup("")


def decision(circle: CircleSummary) -> Markup:
    """The verdict of a listed circle, and how it stands to label and falsehood."""
    parts = (
        verdict(circle.status, circle.verdict),
        outcome(circle.verdict, circle.label),
        by_calibration(circle.alarm, circle.falsehood, circle.alarm_threshold),
    )
    return Markup("".join(parts))


@lru_cache(maxsize=4096)
def meter(value: float, width: int, kind: str, tick: float | None = None) -> Markup:
    """A bar for a share of the whole, with a tick where it counts."""
    mark = "" if tick is None else f'<path class="tick" d="M{scaled(tick, width - 2)} 0h2v12h-2z"/>'
    return Markup(
        f'<svg class="meter {kind}" width="{width}" height="12" aria-hidden="true">'
        f'<path class="bar" d="M0 2h{scaled(value, width)}v8H0z"/>{mark}</svg>'
    )


@lru_cache(maxsize=4096)
def falsehood_bar(value: float, threshold: float) -> Markup:
    """The bar of one falsehood, its figure and the threshold."""
    return Markup(
        f'<svg class="fbar" viewBox="0 0 120 12" width="120" height="12" aria-hidden="true">'
        f'<path class="rail" d="M0 2h{BAR}v8H0z"/><path class="bar F" d="M0 2h{scaled(value, BAR)}v8H0z"/>'
        f'<path class="tick" d="M{scaled(threshold, BAR) - 0.8:.1f} 0h1.6v12h-1.6z"/>'
        f'<text x="120" y="10" class="value">{format_figure(value, threshold)}</text></svg>'
    )


@lru_cache(maxsize=1024)
def three_bars(truth: float, indeterminacy: float, falsehood: float, threshold: float) -> Markup:
    """Truth, indeterminacy and falsehood below each other."""
    figure = format_figure(falsehood, threshold)
    bars = "".join(
        f'<text x="0" y="{y + 8.5}" class="name">{letter}</text>'
        f'<path class="rail" d="M12 {y + 1}h70v8h-70z"/>'
        f'<path class="bar {letter}" d="M12 {y + 1}h{scaled(value, 70)}v8H12z"/>'
        f'<text x="112" y="{y + 8.5}" class="value">{shown}</text>'
        for letter, value, shown, y in (
            ("T", truth, f"{truth:.2f}", 0),
            ("I", indeterminacy, f"{indeterminacy:.2f}", 11),
            ("F", falsehood, figure, 22),
        )
    )
    return Markup(
        '<svg class="tif" viewBox="0 0 112 34" width="112" height="34" role="img"'
        f' aria-label="truth {truth:.2f}, indeterminacy {indeterminacy:.2f}, falsehood {figure}">{bars}'
        f'<path class="tick" d="M{11 + scaled(threshold, 70):.1f} 21h1.6v12h-1.6z"/></svg>'
    )


@lru_cache(maxsize=1024)
def moment(at: float) -> Markup:
    """A time for people and for programs; one that no calendar has never breaks a list."""
    try:
        written = datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return Markup("?")
    return Markup(f'<time datetime="{written}">{written[:10]} {written[11:16]}</time>')


def options(choices: tuple[tuple[str, str], ...], chosen: str) -> Markup:
    """What a field offers: values and their names, which are all our own words."""
    return _options(choices, chosen if any(chosen == value for value, _ in choices) else None)


def options_or_any(values: tuple[str, ...], chosen: str) -> Markup:
    """As `options`, for values that name themselves, and none of them."""
    return options((("", "any"), *((value, value.replace("_", " ")) for value in values)), chosen)


@lru_cache(maxsize=256)
def _options(choices: tuple[tuple[str, str], ...], chosen: str | None) -> Markup:
    return Markup("").join(
        Markup('<option value="{}"{}>{}</option>').format(
            value, Markup(" selected") if value == chosen else "", name
        )
        for value, name in choices
    )


def scaled(value: float, whole: float) -> float:
    """A share as a length."""
    return round(min(max(value, 0.0), 1.0) * whole, 1)
