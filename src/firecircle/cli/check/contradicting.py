"""`firecircle check --contradictions`: passages that cannot both be followed, as findings of files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from firecircle.cli.check.baseline import Baseline, accept, print_notes
from firecircle.cli.check.files import ChangedLines, is_changed
from firecircle.cli.check.findings import Finding, fingerprint
from firecircle.cli.check.prompts import FilePrompt
from firecircle.cli.output import console_on, print_json, print_line, progress
from firecircle.cli.sarif import write_sarif_results
from firecircle.cli.trouble import ALARM, NO_ALARM, TROUBLE
from firecircle.contradictions import MEANINGS, Contradiction, find_contradictions
from firecircle.errors import ConfigError
from firecircle.names import CONTRADICTIONS_KIND
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted

if TYPE_CHECKING:
    from firecircle.cli.check.checking import CheckRequest
    from firecircle.lab.scouring import Scouring

RULE = "contradiction"
LONGEST_QUOTE = 160
NOT_WITH = ("junit", "threshold", "save", "at_once")
"""What is about verdicts, and contradictions have none."""


@dataclass(frozen=True, slots=True)
class PairFinding(Finding):
    """A contradiction in a file; its line and quote are those of the first passage."""

    contradiction: Contradiction
    second_line: int | None

    def sentence(self, threshold: float) -> str:
        """The finding in one line, without its place."""
        return f"{self.what} — {self.contradiction.suggestion}"

    def to_json(self) -> dict[str, object]:
        """As data."""
        return {
            "path": self.path,
            "line": self.line,
            "end_line": self.end_line,
            "column": self.column,
            "second_line": self.second_line,
            "rule": self.rule,
            "fingerprint": self.fingerprint,
            **self.contradiction.model_dump(mode="json"),
        }


def check_contradictions(
    request: CheckRequest,
    prompts: Mapping[str, FilePrompt],
    files: int,
    not_read: list[str],
    baseline: Baseline | None,
    changed: ChangedLines | None,
) -> int:
    """Find them in everything that is an operator's text, print them, write what was asked for."""
    for name in NOT_WITH:
        if getattr(request, name):
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(option, "is for verdicts, which contradictions do not have", "leave it out")
    systems = {name: prompt for name, prompt in prompts.items() if prompt.record.prompt.system.strip()}
    found, stopped = _scoured(request, systems) if request.models else (_read(systems), None)
    every = sorted(
        (
            finding
            for name, contradictions in found.items()
            for contradiction in contradictions
            if _concerns(finding := _finding(systems[name], contradiction), systems[name], changed)
        ),
        key=lambda finding: (finding.path, finding.line, finding.column, finding.rule),
    )
    new = [finding for finding in every if baseline is None or not baseline.accepts(finding)]
    checked = {prompt.file.shown for prompt in systems.values()}
    stale = baseline.stale(every, checked, about=RULE) if baseline and changed is None else []
    if request.sarif is not None:
        write_sarif_results([finding.to_sarif(0.0) for finding in new], request.sarif)
    if request.update_baseline and baseline is not None:
        if stopped:
            raise ConfigError("--update-baseline", f"not everything was read: {stopped}")
        return accept(baseline, every, checked, RULE, request.as_json)
    accepted = len(every) - len(new)
    if request.as_json:
        print_json(
            {
                "kind": CONTRADICTIONS_KIND,
                "format": 1,
                "files": files,
                "prompts": len(systems),
                "contradictions": [finding.to_json() for finding in new],
                "accepted": accepted,
                "stale": [{"path": entry.path, "rule": entry.rule, "quote": entry.quote} for entry in stale],
                "not_checked": not_read,
                "stopped": stopped,
            }
        )
    else:
        _print(new)
        print_notes(not_read, stale)
        notes = console_on(sys.stderr)
        if not request.quiet:
            known = f", {accepted} accepted" if accepted else ""
            summary = f"{counted(len(systems), 'prompt')}: {counted(len(new), 'contradiction')}{known}"
            print_line(console_on(sys.stdout) if sys.stdout.isatty() else notes, summary)
            if stopped:
                unread = f"Stopped, {stopped}: {len(systems) - len(found)} of {len(systems)} were not read."
                print_line(notes, unread)
    if new and request.fail_on != "never":
        return ALARM
    return TROUBLE if stopped else NO_ALARM


def _read(prompts: Mapping[str, FilePrompt]) -> dict[str, tuple[Contradiction, ...]]:
    return {name: find_contradictions(prompt.record.prompt) for name, prompt in prompts.items()}


def _scoured(
    request: CheckRequest, prompts: Mapping[str, FilePrompt]
) -> tuple[dict[str, tuple[Contradiction, ...]], str | None]:
    """What language models find, and why they stopped early if they did."""
    import asyncio

    from firecircle.lab.scouring import scour

    with progress("reading", len(prompts)) as show_progress:
        scourings, stopped = asyncio.run(
            scour(
                [prompt.record.prompt for prompt in prompts.values()],
                request.models,
                budget_usd=request.budget_usd,
                on_prompt=show_progress,
            )
        )
    found = {
        name: scouring.contradictions
        for name, scouring in zip(prompts, scourings, strict=True)
        if scouring is not None
    }
    notes = console_on(sys.stderr)
    if not request.quiet:
        for name, scouring in zip(prompts, scourings, strict=True):
            for line in _told(name, scouring) if scouring else ():
                print_line(notes, printable_line(line))
    unread = [
        name for name, scouring in zip(prompts, scourings, strict=True) if scouring and scouring.is_unread
    ]
    if unread and stopped is None:
        stopped = f"no voice read {', '.join(unread)}"
        found = {name: contradictions for name, contradictions in found.items() if name not in unread}
    return found, stopped


def _told(name: str, scouring: Scouring) -> Iterator[str]:
    by_voice = ", ".join(f"{model} {count}" for model, count in scouring.by_voice.items())
    votes = sum(turn.enough for turn in scouring.turns)
    yield f"{name}: {counted(len(scouring.turns), 'turn')}, {votes} for enough; found by {by_voice}"
    for turn in scouring.turns:
        if turn.failed:
            yield f"{name}: {turn.model} was lost: {turn.failed}"
        if turn.ungrounded:
            left_out = counted(turn.ungrounded, "finding")
            yield f"{name}: {turn.model}: {left_out} left out, not quoted from the text"


def _finding(prompt: FilePrompt, found: Contradiction) -> PairFinding:
    first, second = found.first, found.second
    path, rule = prompt.file.shown, f"{RULE}_{found.kind}"
    place = (first.quote, "system", first.start)
    second_line = prompt.lines_of(second.quote, "system", second.start)[0] if second else None
    both = first.quote if second is None else f"{first.quote}\n{second.quote}"
    shown = [f"“{printable_line(first.quote, LONGEST_QUOTE)}”"]
    if second:
        shown.append(f"“{printable_line(second.quote, LONGEST_QUOTE)}” (line {second_line})")
    return PairFinding(
        prompt.record.id,
        path,
        *prompt.lines_of(*place),
        prompt.column_of(*place),
        "unsure",
        0.0,
        ", ".join(found.found_by) or "rules",
        rule,
        f"{MEANINGS[found.kind]}: {' and '.join(shown)}",
        both,
        fingerprint(path, rule, both),
        found,
        second_line,
    )


def _concerns(finding: PairFinding, prompt: FilePrompt, changed: ChangedLines | None) -> bool:
    path, second = prompt.file.path, finding.second_line
    return is_changed(changed, path, finding.line, finding.end_line) or bool(
        second and is_changed(changed, path, second, second)
    )


def _print(findings: list[PairFinding]) -> None:
    console = console_on(sys.stdout)
    for finding in findings:
        found = finding.contradiction
        if not console.is_terminal:
            line = f"{finding.path}:{finding.line}: {finding.sentence(0.0)} [{finding.rule}]"
            print_line(console, printable_line(line))
            continue
        head = Text(f"{printable_line(finding.path)}:{finding.line}  ", style="bold")
        head.append(f"{found.kind.upper()}  ", style="yellow").append(printable_line(found.why))
        console.print(head)
        lines = [f"“{printable_line(found.first.quote, LONGEST_QUOTE)}”"]
        if found.second:
            lines.append(f"“{printable_line(found.second.quote, LONGEST_QUOTE)}”  line {finding.second_line}")
        if found.wins:
            lines.append(f"the text says: “{printable_line(found.wins, LONGEST_QUOTE)}”")
        lines.append(found.suggestion)
        if found.found_by:
            lines.append(f"found by {', '.join(map(printable_line, found.found_by))}")
        for line in lines:
            for row in Text(line).wrap(console, console.width - 4):
                row.rstrip()
                console.print(Text("    ") + row)
