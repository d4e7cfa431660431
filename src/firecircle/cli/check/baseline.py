"""Findings that somebody looked at and accepted, in a file that belongs into the repository."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from firecircle.cli.check.findings import Finding, fingerprint
from firecircle.cli.options import target_of, written_whole
from firecircle.cli.output import console_on, print_json, print_line
from firecircle.cli.trouble import NO_ALARM
from firecircle.errors import ConfigError
from firecircle.files import read_regular
from firecircle.telling.safe_text import printable_line
from firecircle.telling.words import counted

KIND = "firecircle baseline"
LARGEST_BYTES = 20_000_000
_MOST_STALE = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted finding: where it stood, what it was, and its words, for a reader of the file."""

    path: str
    rule: str
    quote: str
    fingerprint: str


class Baseline:
    """The accepted findings, with paths from the folder of the file on: it can be used from anywhere."""

    def __init__(self, file: str, *, may_be_new: bool) -> None:
        self.file = file
        if may_be_new:  # to be written: refused before anything is judged
            target_of(file, "--baseline")
        self._folder = Path(os.path.abspath(file)).parent
        self.entries = _read(file, may_be_new=may_be_new)
        self._known = {entry.fingerprint for entry in self.entries}

    def accepts(self, finding: Finding) -> bool:
        """Whether this finding was accepted before."""
        return self._entry(finding).fingerprint in self._known

    def stale(
        self, findings: Sequence[Finding], checked: Collection[str], *, about: str | None = None
    ) -> list[Entry]:
        """What was accepted and is no longer found, in the files that were checked or are gone.

        `about` is how the rules begin that were looked for; None: all but contradictions.
        """
        still = {self._entry(finding).fingerprint for finding in findings}
        looked_at = {self._within(path) for path in checked}
        return [
            entry
            for entry in self.entries
            if entry.rule.startswith(about or "contradiction_") == (about is not None)
            and entry.fingerprint not in still
            and (entry.path in looked_at or not (self._folder / entry.path).exists())
        ]

    def write(
        self, findings: Sequence[Finding], checked: Collection[str], *, about: str | None = None
    ) -> int:
        """Accept these findings; what other files had accepted stays. How many there are now."""
        stale = {entry.fingerprint for entry in self.stale(findings, checked, about=about)}
        entries = {entry.fingerprint: entry for entry in self.entries if entry.fingerprint not in stale}
        entries |= {entry.fingerprint: entry for entry in map(self._entry, findings)}
        ordered = sorted(entries.values(), key=lambda entry: (entry.path, entry.rule, entry.quote))
        document = {
            "kind": KIND,
            "format": 1,
            "findings": [
                {
                    "path": entry.path,
                    "rule": entry.rule,
                    "quote": entry.quote,
                    "fingerprint": entry.fingerprint,
                }
                for entry in ordered
            ],
        }
        with written_whole(self.file) as target:
            target.write(json.dumps(document, indent=2) + "\n")
        return len(ordered)

    def _entry(self, finding: Finding) -> Entry:
        path = self._within(finding.path)
        # A finding without a quote is told apart by its whole text, which its own fingerprint stands for.
        words = finding.quote or finding.fingerprint
        return Entry(path, finding.rule, finding.quote, fingerprint(path, finding.rule, words))

    def _within(self, path: str) -> str:
        return Path(os.path.relpath(path, self._folder)).as_posix()


def accept(
    baseline: Baseline,
    findings: Sequence[Finding],
    looked_at: Collection[str],
    about: str | None,
    as_json: bool,
) -> int:
    """Write the baseline and say what changed; the exit status."""
    new = sum(not baseline.accepts(finding) for finding in findings)
    gone = len(baseline.stale(findings, looked_at, about=about))
    count = baseline.write(findings, looked_at, about=about)
    if as_json:
        print_json({"file": baseline.file, "accepted": count, "new": new, "gone": gone})
    else:
        file = printable_line(baseline.file)
        print(f"{counted(count, 'finding')} accepted in {file}: {new} new, {gone} gone")
    return NO_ALARM


def print_notes(not_read: Sequence[str], stale: Sequence[Entry]) -> None:
    """On the error stream what was not checked, and what the baseline no longer needs."""
    notes = console_on(sys.stderr)
    for reason in not_read:
        print_line(notes, f"note: not checked: {printable_line(reason)}")
    for entry in stale[:_MOST_STALE]:
        quote = f" “{printable_line(entry.quote, 60)}”" if entry.quote else ""
        print_line(notes, f"note: stale in the baseline: {printable_line(entry.path)}: {entry.rule}{quote}")
    if stale:
        more = len(stale) - _MOST_STALE
        rest = f" and {more} more" if more > 0 else ""
        print_line(notes, f"note: --update-baseline forgets what is stale{rest}")


def _read(file: str, *, may_be_new: bool) -> tuple[Entry, ...]:
    try:
        data = read_regular(file, LARGEST_BYTES)
    except FileNotFoundError:
        if may_be_new:
            return ()
        raise ConfigError(
            "--baseline", f"{file} does not exist", "add --update-baseline to write it"
        ) from None
    except OSError as unreadable:
        raise ConfigError("--baseline", f"cannot read {file}: {unreadable.strerror}") from None
    try:
        document = json.loads(data)
        if document["kind"] != KIND:
            raise ValueError
        return tuple(
            Entry(*(str(found[name]) for name in ("path", "rule", "quote", "fingerprint")))
            for found in document["findings"]
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(
            "--baseline",
            f"{file} is not a baseline",
            "name another file, or delete it and add --update-baseline",
        ) from None
