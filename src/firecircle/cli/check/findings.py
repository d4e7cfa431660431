"""What a check found: each breaching line with its place, reason and a fingerprint that moved lines keep."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from firecircle.circle.pattern_types import UNCLASSIFIED, UNTYPED
from firecircle.cli.batch.journal import Outcome
from firecircle.cli.check.prompts import FilePrompt
from firecircle.cli.sarif import LEVELS, SarifResult
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import OPERATOR_MODEL, SKILL_MODEL
from firecircle.telling.patterns import gathered_quotes
from firecircle.telling.safe_text import printable_line
from firecircle.thresholds import format_figure, reaches
from firecircle.verdict import VerdictWord
from firecircle.voices.embedded import line_findings
from firecircle.voices.embedded.lenses.operator import KINDS_BY_NOTE

LONGEST_QUOTE = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern in a file, or a verdict that no pattern explains."""

    prompt: str
    """The name of the prompt in its batch."""
    path: str
    line: int
    end_line: int
    column: int
    word: VerdictWord
    falsehood: float
    by: str
    rule: str
    what: str
    """The pattern in a sentence."""
    quote: str
    fingerprint: str

    def sentence(self, threshold: float) -> str:
        """The finding in one line, without its place."""
        figure = format_figure(self.falsehood, threshold)
        shown = f": “{printable_line(self.quote, LONGEST_QUOTE)}”" if self.quote.strip() else ""
        return f"{self.word}, F {figure} by {self.by}; {printable_line(self.what)}{shown}"

    def to_sarif(self, threshold: float) -> SarifResult:
        """As a build server takes it."""
        return SarifResult(
            self.rule,
            LEVELS[self.word],
            self.sentence(threshold),
            self.path,
            (self.line, self.end_line),
            self.fingerprint,
            self.column,
            self.what,
        )

    def to_json(self) -> dict[str, object]:
        """As data."""
        return {
            "path": self.path,
            "line": self.line,
            "end_line": self.end_line,
            "column": self.column,
            "verdict": self.word,
            "falsehood": self.falsehood,
            "decided_by": self.by,
            "rule": self.rule,
            "what": self.what,
            "quote": self.quote,
            "fingerprint": self.fingerprint,
        }


UNREAD_RULE, UNNAMED_RULE, UNSEEN_RULE = "unread_text", "manipulation", "unseen_order"
"""The rules of a text that no voice could read, and of an alarm whose voices name no words."""


def findings_in(outcome: Outcome, prompt: FilePrompt, threshold: float) -> list[Finding]:
    """Every line that an alarm, an unsure or an unread verdict rests on; nothing for any other."""
    metrics = outcome.metrics
    if metrics is None or outcome.word not in LEVELS:
        return []
    lines = list(_by_line(metrics, prompt, threshold))
    found = [line for line in lines if reaches(line.falsehood, threshold / 2)]
    taken = [(finding.line, finding.end_line) for finding in found]
    found += (
        finding
        for finding in _by_circle(metrics, outcome.word, prompt)
        if not any(first <= finding.end_line and finding.line <= last for first, last in taken)
    )
    found = _once(found) or lines[:1] or [_of_the_whole(metrics, outcome.word, prompt)]
    if all(finding.word != outcome.word for finding in found):
        # Several weak lines make an alarm together: the strongest one is shown as it.
        strongest = max(range(len(found)), key=lambda at: found[at].falsehood)
        f = metrics.consensus.falsehood
        found[strongest] = replace(found[strongest], word=outcome.word, falsehood=f)
    return found


def _once(findings: list[Finding]) -> list[Finding]:
    """Of those that quote the same words in one place, or a part of them: the hidden, else the strongest."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: (finding.rule != UNSEEN_RULE, -finding.falsehood)):
        if not any(
            other.line <= finding.end_line
            and finding.line <= other.end_line
            and (finding.quote in other.quote or other.quote in finding.quote)
            for other in kept
        ):
            kept.append(finding)
    return kept


def _by_line(metrics: ReciprocityMetrics, prompt: FilePrompt, threshold: float) -> Iterator[Finding]:
    """What the readers of the operator's text find, strongest first: a circle names one place a type."""
    seated = {evaluation.model for evaluation in metrics.evaluations}
    readers = [name for name in (OPERATOR_MODEL, SKILL_MODEL) if name in seated]
    found = sorted(
        ((finding, reader) for reader in readers for finding in line_findings(reader, prompt.record.prompt)),
        key=lambda pair: -pair[0].strength,
    )
    for finding, reader in found:
        quote = str(getattr(prompt.record.prompt, finding.layer))[finding.start : finding.end]
        yield _finding(
            prompt,
            (quote, finding.layer, finding.start),
            finding.pattern or UNNAMED_RULE,
            finding.note,
            "alarm" if reaches(finding.strength, threshold) else "unsure",
            finding.strength,
            reader,
        )


def _by_circle(metrics: ReciprocityMetrics, word: VerdictWord, prompt: FilePrompt) -> Iterator[Finding]:
    """What the circle agreed on; else what the deciding voice itself points at."""
    f, by = metrics.consensus.falsehood, metrics.consensus.model
    seen: set[str] = set()
    for pattern in metrics.patterns or metrics.single_voice_patterns:
        is_typed = pattern.pattern_type not in UNTYPED
        rule = (
            pattern.pattern_type if is_typed else KINDS_BY_NOTE.get(pattern.description, pattern.pattern_type)
        )
        for gathered in gathered_quotes(pattern.evidence):
            place = gathered.place
            made = _finding(
                prompt, (place.text, place.layer, place.start), rule, pattern.description, word, f, by
            )
            if made.fingerprint not in seen:
                seen.add(made.fingerprint)
                yield made
    if seen:
        return
    # What cannot be seen can hardly be quoted: then the deciding voice's own notes are the evidence.
    for note in metrics.consensus.pattern_notes:
        quote, layer = note.quote or "", note.layer or ""
        start = str(getattr(prompt.record.prompt, layer, "")).find(quote) if quote else -1
        if start >= 0:
            yield _finding(
                prompt, (quote, layer, start), note.type or UNCLASSIFIED, note.description, word, f, by
            )


def _of_the_whole(metrics: ReciprocityMetrics, word: VerdictWord, prompt: FilePrompt) -> Finding:
    rule = UNREAD_RULE if metrics.unread else UNNAMED_RULE
    whole = " ".join(layer.text for layer in prompt.record.prompt.layers)
    line, path = prompt.record.row, prompt.file.shown
    what = metrics.unread or "no voice quoted words for it"
    consensus = metrics.consensus
    return Finding(
        prompt.record.id,
        path,
        line,
        line,
        1,
        word,
        consensus.falsehood,
        consensus.model,
        rule,
        what,
        "",
        fingerprint(path, rule, whole),
    )


def _finding(
    prompt: FilePrompt,
    place: tuple[str, str, int],
    rule: str,
    what: str,
    word: VerdictWord,
    f: float,
    by: str,
) -> Finding:
    path, quote = prompt.file.shown, place[0]
    return Finding(
        prompt.record.id,
        path,
        *prompt.lines_of(*place),
        prompt.column_of(*place),
        word,
        f,
        by,
        rule,
        what,
        quote,
        fingerprint(path, rule, quote),
    )


def fingerprint(path: str, rule: str, words: str) -> str:
    """The same for the same words in the same file, on whatever line and however they are wrapped."""
    spelled = "\0".join((path, rule, " ".join(words.split()).casefold()))
    return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()[:24]
