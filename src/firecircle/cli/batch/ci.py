"""The outcomes of a batch for a build server: JUnit, in which what fails is a failure, and SARIF."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from firecircle.cli.batch.options import FailOn
from firecircle.cli.batch.outcome import FAILING, BatchOutcome, Outcome
from firecircle.cli.batch.reading import STANDARD_INPUT, Batch
from firecircle.cli.options import written_whole
from firecircle.cli.printable import printable, printable_line
from firecircle.thresholds import format_figure

LONGEST_QUOTE = 200
LONGEST_PROMPT = 2000
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"alarm": "error", "unsure": "warning", "unread": "warning"}
NO_PATTERN = "no_agreed_pattern"
LINED = (".jsonl", ".ndjson", ".csv", ".tsv", ".txt")
"""Files whose rows are lines that can be pointed at."""


def write_junit(
    outcome: BatchOutcome, threshold: float, fail_on: FailOn, file: str, accepted: Collection[str] = ()
) -> None:
    """A test case a prompt; those whose id is accepted are skipped ones."""
    failing = FAILING[fail_on]
    skipped = {row.id for row in outcome.outcomes if row.word in failing and row.id in accepted}
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(outcome.name),
        tests=str(len(outcome.outcomes)),
        failures=str(sum(row.word in failing and row.id not in skipped for row in outcome.outcomes)),
        skipped=str(len(skipped)),
        errors=str(outcome.words["no_verdict"]),
        time=f"{outcome.seconds:.3f}",
    )
    for row in outcome.outcomes:
        seconds = row.metrics.fire_circle.duration_seconds if row.metrics and row.metrics.fire_circle else 0.0
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(outcome.name), name=_xml(row.id), time=f"{seconds:.3f}"
        )
        if row.error is not None:
            ElementTree.SubElement(case, "error", message=_xml(printable_line(row.error)))
        elif row.id in skipped:
            ElementTree.SubElement(case, "skipped", message="accepted by the baseline")
        elif row.word in failing:
            message = _xml(finding_of(row, threshold))
            ElementTree.SubElement(case, "failure", message=message, type=row.word).text = _xml(
                printable(row.text)[:LONGEST_PROMPT]
            )
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    with written_whole(file) as target:
        target.write(ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n")


def _xml(text: str) -> str:
    """The text without what XML cannot hold."""
    return "".join(
        character
        for character in text
        if character in "\t\n"
        or " " <= character < "\ud800"
        or "\udfff" < character < "\ufffe"
        or character > "\uffff"
    )


@dataclass(frozen=True, slots=True)
class SarifResult:
    """One finding for code scanning."""

    rule: str
    level: str
    message: str
    path: str
    lines: tuple[int, int] | None
    """The first and the last line, where the file has lines that can be pointed at."""
    fingerprint: str
    column: int | None = None
    about: str = ""
    """What the rule means, in a sentence."""


def write_sarif(outcome: BatchOutcome, batch: Batch, threshold: float, file: str) -> None:
    """A finding for every alarm and every unsure or unread prompt, at its line of the file."""
    write_sarif_results(
        [
            SarifResult(
                _rule(row),
                LEVELS[row.word],
                finding_of(row, threshold),
                *_location(row, batch),
                f"{outcome.name}:{row.id}",
            )
            for row in outcome.outcomes
            if row.word in LEVELS
        ],
        file,
    )


def write_sarif_results(results: Sequence[SarifResult], file: str) -> None:
    """The findings as SARIF 2.1.0, with what code scanning needs of each rule and each result."""
    rules = {result.rule: result.about for result in reversed(results)}
    numbers = {rule: number for number, rule in enumerate(rules)}
    document = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "firecircle",
                        "version": version("firecircle"),
                        "rules": [
                            {
                                "id": rule,
                                "name": rule.replace("_", " "),
                                "shortDescription": {"text": about or rule.replace("_", " ")},
                            }
                            for rule, about in rules.items()
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        "ruleId": result.rule,
                        "ruleIndex": numbers[result.rule],
                        "level": result.level,
                        "message": {"text": result.message},
                        "locations": [{"physicalLocation": _physical_location(result)}],
                        "partialFingerprints": {"promptId/v1": result.fingerprint},
                    }
                    for result in results
                ],
            }
        ],
    }
    with written_whole(file) as target:
        target.write(json.dumps(document, indent=2) + "\n")


def _physical_location(result: SarifResult) -> dict[str, object]:
    place: dict[str, object] = {"artifactLocation": {"uri": _uri(result.path)}}
    if result.lines is not None:
        column = {} if result.column is None else {"startColumn": result.column}
        place["region"] = {"startLine": result.lines[0], **column, "endLine": result.lines[1]}
    return place


def _uri(path: str) -> str:
    """A path as a reference that is relative where the path is."""
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)


def _rule(row: Outcome) -> str:
    return next(iter(row.pattern_types), NO_PATTERN)


def _location(row: Outcome, batch: Batch) -> tuple[str, tuple[int, int] | None]:
    """Where the prompt stands: its line, its file in the folder, or only the file."""
    source = Path(batch.source)
    line = (row.row, row.row)
    if batch.source == STANDARD_INPUT:
        return "stdin", line
    if source.is_dir():
        return (source / row.id).as_posix(), None
    return source.as_posix(), line if source.suffix.lower() in LINED else None


def finding_of(row: Outcome, threshold: float) -> str:
    """What was found, in one line: the verdict, its patterns, and the words that show them."""
    metrics = row.metrics
    assert metrics is not None
    figure = format_figure(metrics.consensus.falsehood, threshold)
    patterns = ", ".join(name.replace("_", " ") for name in row.pattern_types)
    quotes = [place.text for pattern in metrics.all_patterns for place in pattern.evidence]
    wrong = f"; labelled {row.known}: {row.mistake}" if row.mistake else ""
    shown = f': "{printable_line(quotes[0], LONGEST_QUOTE)}"' if quotes else ""
    return f"{row.word}, F {figure} by {printable_line(metrics.consensus.model)}{wrong}" + (
        f"; {patterns}{shown}" if patterns else ""
    )
