"""A check from its paths to its exit status, on the machinery of batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.text import Text

from firecircle.cli.batch.journal import FAILING, INTERRUPTION, BatchOutcome, Outcome
from firecircle.cli.batch.judging import BatchRequest, outcome_of
from firecircle.cli.batch.options import BatchOptions, FailOn
from firecircle.cli.batch.reading import Batch
from firecircle.cli.batch.view import write_junit
from firecircle.cli.check.baseline import Baseline, Entry, accept, print_notes
from firecircle.cli.check.files import ChangedLines, FileKind, changed_since, find_files, is_changed
from firecircle.cli.check.findings import Finding, findings_in
from firecircle.cli.check.prompts import FilePrompt, NotReadError, prompts_in
from firecircle.cli.evaluate.request import store_for
from firecircle.cli.options import require_writable
from firecircle.cli.output import VERDICT_STYLES, console_on, pause_line, print_json, print_line, progress
from firecircle.cli.sarif import write_sarif_results
from firecircle.cli.trouble import ALARM, INCOMPLETE, INTERRUPTED, JUDGING_OPTIONS, NO_ALARM, TROUBLE
from firecircle.errors import ConfigError
from firecircle.names import CHECK_KIND
from firecircle.request import checking_request, configure_by_file
from firecircle.settings import Settings, current_settings
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted, verdict_counts
from firecircle.thresholds import format_figure
from firecircle.verdict import SHOWN, VERDICT_WORDS, VerdictWord
from firecircle.voices.outages import Pause

NAME = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """What the options of `check` say."""

    paths: tuple[str, ...]
    as_kind: FileKind | None = None
    baseline: str | None = None
    update_baseline: bool = False
    contradictions: bool = False
    diff: str | None = None
    fail_on: FailOn = "alarm"
    sarif: str | None = None
    junit: str | None = None
    models: tuple[str, ...] = ()
    threshold: float | None = None
    budget_usd: float | None = None
    at_once: int | None = None
    save: bool = False
    store: str | None = None
    quiet: bool = False
    as_json: bool = False


@dataclass(slots=True)
class Checked:
    """What a check came to."""

    outcome: BatchOutcome
    files: int
    threshold: float
    findings: list[Finding] = field(default_factory=list)
    """Those that nobody accepted."""
    accepted: list[Finding] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    """Files that could not be looked into, with the reason."""

    def status(self, fail_on: FailOn) -> int:
        """As that of a batch, except that accepted findings do not count."""
        if self.outcome.stopped == INTERRUPTION:
            return INTERRUPTED
        if any(finding.word in FAILING[fail_on] for finding in self.findings):
            return ALARM
        if self.outcome.lost_in_passing:
            return INCOMPLETE
        return TROUBLE if self.outcome.words["no_verdict"] or self.outcome.stopped else NO_ALARM


def check_files(request: CheckRequest) -> int:
    """Check everything, print what was found, write what was asked for; the exit status."""
    for option, file in (("--junit", request.junit), ("--sarif", request.sarif)):
        if file is not None:
            require_writable(file, option)
    baseline = _baseline(request)
    changed = None if request.diff is None else changed_since(request.diff)
    if changed is not None and request.update_baseline:
        raise ConfigError("--update-baseline", "--diff leaves findings out", "leave out one of the two")
    prompts, files, not_read = _prompts(request, baseline, changed)
    if request.contradictions:
        from firecircle.cli.check.contradicting import check_contradictions

        return check_contradictions(request, prompts, files, not_read, baseline, changed)
    batch = Batch(NAME, ".", tuple(prompt.record for prompt in prompts.values()))
    settings = {
        "models": request.models or None,
        "alarm_threshold": request.threshold,
        "budget_usd": request.budget_usd,
    }
    usual, for_skills = (
        configure_by_file(checking_request(settings, JUDGING_OPTIONS, is_skill=is_skill))
        for is_skill in (False, True)
    )
    threshold = usual.config.alarm_threshold
    judging = BatchRequest(
        batch,
        [for_skills if prompt.is_skill else usual for prompt in prompts.values()],
        store=store_for(True, request.store, None) if request.save else None,
        label=None,
        bank=None,
        options=BatchOptions(at_once=request.at_once),
    )
    view = _Progress(len(prompts))
    checked = Checked(outcome_of(judging, view), files, threshold, not_read=not_read)
    _sort_out(checked, prompts, baseline, changed)
    if request.sarif is not None:
        write_sarif_results([finding.to_sarif(threshold) for finding in checked.findings], request.sarif)
    if request.junit is not None:
        lines: dict[str, list[str]] = {}
        for finding in checked.findings:
            if finding.word in FAILING[request.fail_on]:
                lines.setdefault(finding.prompt, []).append(_as_line(finding, threshold))
        write_junit(checked.outcome, threshold, request.fail_on, request.junit, lines)
    if request.update_baseline and baseline is not None:
        if checked.outcome.stopped or checked.outcome.words["no_verdict"]:
            raise ConfigError("--update-baseline", "not everything could be judged, so nothing was accepted")
        every = [*checked.findings, *checked.accepted]
        looked_at = {prompt.file.shown for prompt in prompts.values()}
        return accept(baseline, every, looked_at, None, request.as_json)
    if request.as_json:
        print_json(_document(checked))
    else:
        _print(checked, baseline, quiet=request.quiet)
    return checked.status(request.fail_on)


def _baseline(request: CheckRequest) -> Baseline | None:
    file = request.baseline
    settings = current_settings()
    if file is None and settings.check.baseline is not None:
        file = os.path.relpath(settings.check.baseline)
        return Baseline(file, may_be_new=request.update_baseline or not os.path.exists(file))
    if file is None:
        if request.update_baseline:
            raise ConfigError("--update-baseline", "there is no baseline", "name one with --baseline FILE")
        return None
    return Baseline(file, may_be_new=request.update_baseline)


def _prompts(
    request: CheckRequest, baseline: Baseline | None, changed: ChangedLines | None
) -> tuple[dict[str, FilePrompt], int, list[str]]:
    """The prompts by their names, how many files there are, and which could not be looked into."""
    settings = current_settings()
    found = find_files(request.paths, settings.check, _root(settings), request.as_kind)
    not_read = [f"{written}: no pattern under [check] says what it is" for written in found.unknown]
    prompts: dict[str, FilePrompt] = {}
    reports = (request.sarif, request.junit, baseline.file if baseline else None)
    own = {Path(os.path.abspath(report)) for report in reports if report is not None}
    files = [
        file
        for file in found.files
        if file.path not in own and (changed is None or file.path.resolve() in changed)
    ]
    for file in files:
        try:
            prompts |= {prompt.record.id: prompt for prompt in prompts_in(file)}
        except NotReadError as why:
            not_read.append(f"{file.shown}: {why}")
    if not found.files and any(os.path.isdir(path) for path in request.paths):
        raise ConfigError(
            "PATH",
            f"no prompt file in {', '.join(request.paths)}",
            "name others, or say which files are prompts under [check] in firecircle.toml",
        )
    return prompts, len(files), not_read


def _root(settings: Settings) -> Path:
    """The folder from which on patterns are written: that of the settings file, if it is one we are in."""
    here = Path.cwd()
    source = settings.untrusted or settings.source
    folder = source.parent if source else here
    return folder if here.is_relative_to(folder) else here


class _Progress:
    """Counts on the error stream while a terminal waits."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """While the prompts are judged."""
        with progress("checking", self._total) as self._tell:
            yield

    def count(self, word: VerdictWord) -> None:
        """One more is done."""
        self._done += 1
        self._tell(self._done)

    def show(self, outcome: Outcome) -> None:
        """Findings are shown when all are known: a baseline tells which count."""

    def pause(self, pause: Pause | None) -> None:
        """Say on the error stream whom everybody waits for."""
        print_line(console_on(sys.stderr), pause_line(pause) if pause else "going on")


def _sort_out(
    checked: Checked,
    prompts: dict[str, FilePrompt],
    baseline: Baseline | None,
    changed: ChangedLines | None,
) -> None:
    every = sorted(
        (
            finding
            for row in checked.outcome.outcomes
            for finding in findings_in(row, prompts[row.id], checked.threshold)
            if is_changed(changed, prompts[row.id].file.path, finding.line, finding.end_line)
        ),
        key=lambda finding: (finding.path, finding.line, finding.column, finding.rule),
    )
    for finding in every:
        is_accepted = baseline is not None and baseline.accepts(finding)
        (checked.accepted if is_accepted else checked.findings).append(finding)
    if baseline is not None and changed is None:
        checked.stale = baseline.stale(every, {prompt.file.shown for prompt in prompts.values()})


# -- what is printed -------------------------------------------------------------------------------------


def _print(checked: Checked, baseline: Baseline | None, *, quiet: bool) -> None:
    console = console_on(sys.stdout)
    for finding in checked.findings:
        if console.is_terminal:
            _print_finding(console, finding, checked.threshold)
        else:
            print_line(console, printable_line(_as_line(finding, checked.threshold)))
    for row in checked.outcome.outcomes:
        if row.error is not None:
            print_line(console, printable_line(f"{row.id}: error: {row.error}"))
    print_notes(checked.not_read, checked.stale)
    if not quiet:
        for line in _summary(checked, baseline):
            print_line(console if console.is_terminal else console_on(sys.stderr), line)


def _as_line(finding: Finding, threshold: float) -> str:
    """`path:line: VERDICT …`, as compilers write it, so that editors can jump there."""
    return f"{finding.path}:{finding.line}: {finding.sentence(threshold)} [{finding.rule}]"


def _print_finding(console: Console, finding: Finding, threshold: float) -> None:
    head = Text(f"{printable_line(finding.path)}:{finding.line}  ", style="bold")
    head.append(SHOWN[finding.word], style=VERDICT_STYLES[finding.word])
    head.append(f"  F {format_figure(finding.falsehood, threshold)}  {finding.rule.replace('_', ' ')}")
    console.print(head)
    if finding.quote:
        quoted = Text(f"“{printable_line(finding.quote, 200) or 'nothing that shows'}”")
        for row in quoted.wrap(console, console.width - 4):
            row.rstrip()
            console.print(Text("    ") + row)
    for row in Text(printable_line(finding.what), style="dim").wrap(console, console.width - 4):
        row.rstrip()
        console.print(Text("    ") + row)


def _summary(checked: Checked, baseline: Baseline | None) -> list[str]:
    outcome, verdicts = checked.outcome, ", ".join(verdict_counts(checked.outcome.words))
    prompts = counted(len(outcome.outcomes), "prompt")
    lines = [f"{counted(checked.files, 'file')}, {prompts}: {verdicts}; {outcome.seconds:.1f} s"]
    if baseline is not None:
        accepted = f"{counted(len(checked.accepted), 'finding')} accepted by {printable_line(baseline.file)}"
        lines.append(f"{accepted}, {len(checked.findings):,} not")
    if outcome.stopped:
        left = outcome.total - len(outcome.outcomes)
        lines.append(f"Stopped, {outcome.stopped}: {left:,} of {outcome.total:,} were not judged.")
    return lines


def _document(checked: Checked) -> dict[str, object]:
    outcome = checked.outcome
    return {
        "kind": CHECK_KIND,
        "format": 1,
        "files": checked.files,
        "prompts": len(outcome.outcomes),
        "verdicts": {word: outcome.words[word] for word in VERDICT_WORDS},
        "files_judged": [
            {
                "id": row.id,
                "verdict": row.word,
                "falsehood": row.metrics.consensus.falsehood if row.metrics else None,
            }
            for row in outcome.outcomes
        ],
        "findings": [finding.to_json() for finding in checked.findings],
        "accepted": [finding.to_json() for finding in checked.accepted],
        "stale": [{"path": entry.path, "rule": entry.rule, "quote": entry.quote} for entry in checked.stale],
        "not_checked": checked.not_read,
        "errors": [{"id": row.id, "error": row.error} for row in outcome.outcomes if row.error is not None],
        "seconds": round(outcome.seconds, 3),
        "stopped": outcome.stopped,
    }
