"""What a check found: a finding for each pattern in a file, its line, a fingerprint that moved lines keep."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from firecircle.circle.pattern_types import UNCLASSIFIED, UNTYPED
from firecircle.cli.check.prompts import FilePrompt
from firecircle.cli.evaluate.batch.ci import LEVELS, NO_PATTERN, SarifResult
from firecircle.cli.evaluate.batch.outcome import Outcome
from firecircle.cli.printable import printable_line
from firecircle.metrics import ReciprocityMetrics
from firecircle.telling.patterns import gathered_quotes
from firecircle.thresholds import figure_beside
from firecircle.verdict import VerdictWord
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
        figure = figure_beside(self.falsehood, threshold)
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
        )

    def to_json(self) -> dict[str, object]:
        """As data."""
        return {
            "path": self.path,
            "line": self.line,
            "end_line": self.end_line,
            "verdict": self.word,
            "falsehood": self.falsehood,
            "decided_by": self.by,
            "rule": self.rule,
            "what": self.what,
            "quote": self.quote,
            "fingerprint": self.fingerprint,
        }


def findings_in(outcome: Outcome, prompt: FilePrompt) -> list[Finding]:
    """What an alarm, an unsure or an unread verdict rests on; nothing for any other."""
    if outcome.metrics is None or outcome.word not in LEVELS:
        return []
    return list(_findings(outcome.metrics, outcome.word, prompt))


def _findings(metrics: ReciprocityMetrics, word: VerdictWord, prompt: FilePrompt) -> Iterator[Finding]:
    path = prompt.file.shown

    def finding(lines: tuple[int, int], rule: str, what: str, quote: str, words: str) -> Finding:
        consensus = metrics.consensus
        return Finding(
            prompt.record.id,
            path,
            *lines,
            word,
            consensus.falsehood,
            consensus.model,
            rule,
            what,
            quote,
            fingerprint(path, rule, words),
        )

    rules: set[str] = set()
    for pattern in metrics.patterns or metrics.single_voice_patterns:
        is_typed = pattern.pattern_type not in UNTYPED
        rule = (
            pattern.pattern_type if is_typed else KINDS_BY_NOTE.get(pattern.description, pattern.pattern_type)
        )
        if rule in rules and rule not in UNTYPED:
            continue
        rules.add(rule)
        place = gathered_quotes(pattern.evidence)[0].place
        lines = prompt.lines_of(place.text, place.layer, place.start)
        yield finding(lines, rule, pattern.description, place.text, place.text)
    if rules:
        return
    # What cannot be seen can hardly be quoted: then what the deciding voice itself points at is the evidence.
    for note in metrics.consensus.pattern_notes:
        quote, layer = note.quote or "", note.layer or ""
        start = str(getattr(prompt.record.prompt, layer, "")).find(quote) if quote else -1
        rule = note.type or UNCLASSIFIED
        if start >= 0 and rule not in rules:
            rules.add(rule)
            yield finding(prompt.lines_of(quote, layer, start), rule, note.description, quote, quote)
    if not rules:
        whole = " ".join(layer.text for layer in prompt.record.prompt.layers)
        line = prompt.record.row
        yield finding((line, line), NO_PATTERN, metrics.unread or "no pattern was agreed on", "", whole)


def fingerprint(path: str, rule: str, words: str) -> str:
    """The same for the same words in the same file, on whatever line and however they are wrapped."""
    spelled = "\0".join((path, rule, " ".join(words.split()).casefold()))
    return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()[:24]
