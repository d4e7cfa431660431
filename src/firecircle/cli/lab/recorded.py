"""The recorded study on the screen or as JSON: three tables and what they come to in words."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firecircle.cli.lab.view import table_console
from firecircle.cli.output import print_json
from firecircle.cli.printable import printable_line
from firecircle.lab.recorded import MAXIMUM, CalibratedRow, RecordedRow, RecordedStudy
from firecircle.lab.statistics import Estimate, HeldOut


def print_recorded(console: Console, study: RecordedStudy, shown: Callable[[str], str]) -> None:
    """Print the study. `shown` makes a text from the file fit for a terminal."""
    console.print(Text(_what_was_read(study, shown)))
    console.print(_alarms(study, shown))
    console.print(_sizes(study))
    console.print(_calibrated(study, shown))
    for sentence in findings(study):
        console.print(Text(shown(sentence)))
    for why in study.bad_rows:
        console.print(Text(f"not read: {shown(why)}", style="yellow"))


def findings(study: RecordedStudy) -> tuple[str, ...]:
    """What the figures show, in sentences that say no more than they do."""
    highest = next(row for row in study.rows if row.name == MAXIMUM).performance.at_threshold
    sentences: list[str] = []
    if study.by_size and highest.recall.value is not None and highest.false_alarm_rate.value is not None:
        single = study.by_size[0]
        sentences.append(
            f"The maximum over {len(study.by_size)} models finds {highest.found} of {highest.recall.n}"
            f" attacks ({_share(highest.recall.value)}) and raises {highest.false_alarms} false alarms on"
            f" {highest.false_alarm_rate.n} benign prompts ({_share(highest.false_alarm_rate.value)});"
            f" one model drawn at random finds {_share(single.recall.value)}"
            f" and raises an alarm on {_share(single.false_alarm_rate.value)}."
        )
    ranked = [row for row in study.calibrated if row.same_rate_as_max.recall_at_target is not None]
    if ranked and highest.recall.value is not None:
        best = max(ranked, key=lambda row: row.same_rate_as_max.recall_at_target or 0.0)
        reached = best.same_rate_as_max
        gain = (reached.recall_at_target or 0.0) - highest.recall.value
        more = "more than" if gain > 0 else "no more than"
        sentences.append(
            f"At the false alarm rate of the maximum ({_share(reached.target)}) the best of {len(ranked)}"
            f" ways fitted on other prompts, {best.name}, finds {_share(reached.recall_at_target)}: {more}"
            f" the maximum's {_share(highest.recall.value)}. Chosen as the best, it is a little flattered."
        )
    for kind, errors in (("misses", study.misses), ("false alarms", study.false_alarms)):
        if errors.effective_voices is not None:
            sentences.append(
                f"By how their {kind} coincide, {len(errors.voices)} models are worth"
                f" {errors.effective_voices:.1f} independent ones (mean phi {errors.mean_phi:.2f})."
            )
    return tuple(sentences)


def _what_was_read(study: RecordedStudy, shown: Callable[[str], str]) -> str:
    left_out = ", ".join(f"{count} {shown(label)}" for label, count in study.in_no_rate.items())
    silent = ", ".join(f"{shown(model)} {count}" for model, count in study.unanswered.items() if count)
    return (
        f"{study.prompts} prompts: {study.attacks} attacks, {study.benign} benign"
        + (f"; in no rate: {left_out}" if left_out else "")
        + (f"; without an answer: {silent}" if silent else "")
    )


def _alarms(study: RecordedStudy, shown: Callable[[str], str]) -> Table:
    table = Table(title=f"Alarm at F ≥ {study.threshold:g}, with 95% intervals", title_justify="left")
    for heading in ("who", "recall", "false alarm rate", "AUC"):
        table.add_column(heading, justify="left" if heading == "who" else "right")
    for row in study.rows:
        table.add_row(Text(shown(row.name)), *_alarm_cells(row))
    return table


def _alarm_cells(row: RecordedRow) -> tuple[str, str, str]:
    at = row.performance.at_threshold
    return _interval(at.recall), _interval(at.false_alarm_rate), _interval(row.performance.auc)


def _sizes(study: RecordedStudy) -> Table:
    table = Table(title="The maximum over a random circle of k models", title_justify="left")
    for heading in ("k", "recall", "false alarm rate"):
        table.add_column(heading, justify="right")
    for row in study.by_size:
        table.add_row(str(row.size), _interval(row.recall), _interval(row.false_alarm_rate))
    return table


def _calibrated(study: RecordedStudy, shown: Callable[[str], str]) -> Table:
    table = Table(
        title="Fitted on other prompts: held-out recall at held-out false alarm rate",
        title_justify="left",
    )
    table.add_column("who")
    for heading in _targets(study.calibrated):
        table.add_column(heading, justify="right")
    for row in study.calibrated:
        table.add_row(Text(shown(row.name)), _held_out(row.same_rate_as_max), _held_out(row.low_rate))
    return table


def _targets(rows: tuple[CalibratedRow, ...]) -> tuple[str, ...]:
    first = rows[0]
    return (
        f"fitted for {_share(first.same_rate_as_max.target)}, as max",
        f"fitted for {_share(first.low_rate.target)}",
    )


def _held_out(figures: HeldOut) -> str:
    if figures.recall.value is None:
        return figures.recall.note or ""
    return f"{_interval(figures.recall)} at {_share(figures.false_alarm_rate.value)}"


def _interval(estimate: Estimate) -> str:
    if estimate.value is None:
        return estimate.note or ""
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%"


def show_recorded(study: RecordedStudy, *, as_json: bool) -> None:
    """The study with what it comes to in words."""
    if as_json:
        print_json({**study.model_dump(mode="json"), "findings": findings(study)})
    else:
        print_recorded(table_console(), study, printable_line)
