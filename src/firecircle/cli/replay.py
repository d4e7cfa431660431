"""`firecircle replay`: hold a recorded circle again without asking anybody, under other settings too."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console

from firecircle.circle.conclude import CONCLUSIVE, reaggregate
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.events import Event, Listener
from firecircle.circle.plausible import require_plausible
from firecircle.circle.result import SCHEMA_VERSION, CircleRecord, FireCircleResult
from firecircle.cli.evaluate.compact import print_failure, print_result
from firecircle.cli.evaluate.request import Request
from firecircle.cli.live_table import following
from firecircle.cli.options import AlarmRuleOption, JsonForm, ResultAsJson, Threshold, Verbose
from firecircle.cli.output import console_on, print_all
from firecircle.cli.report import circle_report, unfinished_report
from firecircle.cli.trouble import STATUS, TROUBLE, complain
from firecircle.convene import replay_circle, with_calibration
from firecircle.errors import ConfigError, EvaluationError
from firecircle.metrics import metrics_of_circle
from firecircle.names import BATCH_KIND, VERDICT_KIND
from firecircle.shapes import config_error
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import STOP_WORDS, counted
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN


def replay(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `evaluate --json=full` printed; - for standard input.")
    ],
    threshold: Threshold = None,
    alarm_rule: AlarmRuleOption = None,
    pattern_threshold: Annotated[
        float | None,
        typer.Option(metavar="SHARE", min=0, max=1, help="Which share of the voices makes a pattern."),
    ] = None,
    quorum: Annotated[
        bool | None,
        typer.Option("--quorum/--no-quorum", help="Whether the verdict asks for a quorum."),
    ] = None,
    min_coverage: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="The coverage of roles a quorum needs.")
    ] = None,
    min_groups: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The number of lineages a quorum needs.")
    ] = None,
    as_json: ResultAsJson = None,
    verbose: Verbose = False,
) -> int:
    """Conclude a recorded circle again; no voice is asked. Exit status 0: no alarm, 1: alarm, 2: error.

    \b
    firecircle evaluate --example false_authority-03-attack --json=full > circle.json
    firecircle replay circle.json --verbose
    firecircle replay circle.json --threshold 0.5 --pattern-threshold 0.3
    """

    record = read_recording(file)
    settings: Settings = {
        "alarm_threshold": threshold,
        "alarm_rule": alarm_rule,
        "pattern_threshold": pattern_threshold,
        "enforce_quorum": quorum,
        "min_cognitive_coverage": min_coverage,
        "min_provider_groups": min_groups,
    }
    config = with_settings(record.config, settings)
    return replay_and_report(Replay(record, config, file, as_json=as_json, verbose=verbose))


Settings = Mapping[str, float | bool | str | None]
"""Settings of the verdict by the names of `FireCircleConfig`; None leaves one as it was recorded."""
LARGEST_BYTES = 256_000_000
WHAT_IT_IS = "give a file that `firecircle evaluate --json=full` wrote"


def read_recording(file: str) -> CircleRecord:
    """What was asked, said and lost in the circle of a file; what followed from it is drawn again."""
    circle = _circle_in(_document(file), file)
    version = circle.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise ConfigError(
            file,
            f"recorded by a newer firecircle (schema {version}, this one reads {SCHEMA_VERSION})",
            "upgrade firecircle",
        )
    try:
        recorded = CircleRecord.model_validate(
            {name: circle[name] for name in CircleRecord.model_fields if name in circle}
        )
    except ValidationError as invalid:
        raise (
            config_error(invalid, "circle").advising(WHAT_IT_IS).within("no recorded circle").within(file)
        ) from None
    try:
        require_plausible(recorded)
    except ConfigError as impossible:
        raise impossible.within(file) from None
    return recorded


def with_settings(config: FireCircleConfig, settings: Settings) -> FireCircleConfig:
    """The configuration with these settings of the verdict."""
    changes = {name: value for name, value in settings.items() if value is not None}
    if not changes:
        return config
    changed = FireCircleConfig(**{**dict(config), **changes})
    return with_calibration(changed) if changes.get("alarm_rule") == "calibrated" else changed


def _document(file: str) -> Any:
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as source:
            data = source.read(LARGEST_BYTES + 1)
    except OSError as unreadable:
        raise ConfigError(file, f"cannot be read: {unreadable.strerror or unreadable}", WHAT_IT_IS) from None
    if len(data) > LARGEST_BYTES:
        raise ConfigError(file, f"larger than {LARGEST_BYTES:,} bytes", WHAT_IT_IS)
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        if _is_export(data):
            raise ConfigError(
                file,
                "an export, which `firecircle circles import` takes",
                "`firecircle circles show ID --json` then writes one circle for a replay",
            ) from None
        raise ConfigError(file, "not JSON", WHAT_IT_IS) from None


def _circle_in(document: Any, file: str) -> Mapping[str, Any]:
    """The circle in what was written: by itself, in an error, or in the metrics of a prompt."""
    if isinstance(document, dict):
        if "dialogue_history" in document:
            return document
        if document.get("kind") in (VERDICT_KIND, BATCH_KIND):
            raise ConfigError(
                file, "the verdict in short, without what was asked and said", _way_to_recording(document)
            )
        held = document.get("partial_result") or document.get("fire_circle")
        if isinstance(held, dict):
            return held
        if "partial_result" in document:
            raise ConfigError(file, "judging failed before anybody was heard, so there is nothing to replay")
        if "mode" in document and "evaluations" in document:
            raise ConfigError(file, "has no dialogue; only results of the fire_circle mode can be replayed")
    raise ConfigError(file, "no recorded circle", WHAT_IT_IS)


def _way_to_recording(document: Mapping[str, Any]) -> str:
    kept_as = document.get("kept_as")
    if isinstance(kept_as, str):
        return f"`firecircle circles show {kept_as} --json` writes the recording"
    return WHAT_IT_IS


def _is_export(data: bytes) -> bool:
    """Whether the first line is the one with which an export of circles begins."""
    from firecircle.store.transfer import KIND

    try:
        first = json.loads(data.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("kind") == KIND


@dataclass(frozen=True, slots=True)
class Replay:
    """What one `replay` command line asks for, once it is understood."""

    record: CircleRecord
    config: FireCircleConfig
    """The recorded settings, those of the verdict changed as asked."""
    file: str
    as_json: JsonForm | None = None
    verbose: bool = False

    @property
    def request(self) -> Request:
        """The same as a request to judge, for the views that show one."""
        return Request(self.record.prompt, self.config, as_json=self.as_json, verbose=self.verbose)

    @property
    def introduction(self) -> str:
        """Where the circle comes from, and what it judged."""
        when = datetime.fromtimestamp(self.record.started_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        voices = counted(len(self.record.config.models), "voice")
        rounds = counted(len(self.record.dialogue_history), "round")
        sizes = ", ".join(f"{layer.name} {len(layer.text):,}" for layer in self.record.prompt.layers)
        turn = self.record.circumstances.turn_number
        prompt = f"{sizes} characters; {f'turn {turn}' if turn else 'turn unknown'}"
        return (
            f"Fire Circle: replay of {printable_line(self.file)}, recorded {when}: {voices}, {rounds};"
            f" no voice is asked\nPrompt: {prompt}\n"
        )


def replay_and_report(replay: Replay) -> int:
    """Hold the recorded circle, tell its verdict under the settings asked for; the exit status."""
    console = console_on(sys.stderr if replay.as_json else sys.stdout)
    with _show_rounds(console, replay) as listener:
        held = _hold_again(replay.record, listener)
    recorded = reaggregate(replay.record)
    if held.without_times() == recorded.without_times():
        held = recorded  # with the recorded times
    else:
        print_all(console, [f"note: {_difference(recorded, held)}"])
    result = reaggregate(held, replay.config)
    if result.stopped not in CONCLUSIVE:
        return _report_unfinished(console, replay, result)
    metrics = metrics_of_circle(result)
    if replay.as_json:
        print_result(metrics, replay.request)
    else:
        print_all(console, circle_report(console, replay.request, result, metrics))
    return STATUS[metrics.verdict]


@contextmanager
def _show_rounds(console: Console, replay: Replay) -> Iterator[Listener | None]:
    """Show the circle as it is held; of one that is not held only the introduction."""
    if replay.as_json and not console.is_terminal:
        yield None
    elif replay.record.stopped == "cancelled":
        print_all(console, [replay.introduction])
        yield None
    else:
        with following(console, replay.config.alarm_threshold, replay.introduction) as listener:
            yield _while_read(listener)


def _while_read(listener: Listener) -> Listener:
    """Tell until the reader of a pipe has left, which the report will find out.

    Recorded voices answer all at once: raised here, the error would be reported once for each of them.
    """
    is_read = True

    def tell(event: Event) -> None:
        nonlocal is_read
        if is_read:
            try:
                listener(event)
            except BrokenPipeError:
                is_read = False

    return tell


def _hold_again(record: CircleRecord, listener: Listener | None) -> FireCircleResult:
    """The circle held once more. One that was called off ended at no point a replay could find again."""
    if record.stopped == "cancelled":
        return reaggregate(record)
    try:
        return asyncio.run(replay_circle(record, on_event=listener))
    except EvaluationError as error:
        if error.partial_result is None:
            raise
        return error.partial_result


def _report_unfinished(console: Console, replay: Replay, partial: FireCircleResult) -> int:
    why = partial.abort_reason or STOP_WORDS[partial.stopped]
    message = f"{replay.file}: the recorded circle reached no verdict: {why}"
    complain(message)
    if replay.as_json:
        print_failure(message, partial, replay.request)
    else:
        print_all(console, unfinished_report(console, replay.request, partial))
    return TROUBLE


def _difference(then: FireCircleResult, now: FireCircleResult) -> str:
    before, after = (
        f"F {format_figure(result.consensus.falsehood, result.config.alarm_threshold)}"
        if result.consensus
        else SHOWN[result.verdict]
        for result in (then, now)
    )
    return f"the recorded replies are read otherwise today; {before} then, {after} now"
