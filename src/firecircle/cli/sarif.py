"""Findings as SARIF 2.1.0 for code scanning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from firecircle.cli.options import written_whole

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"alarm": "error", "unsure": "warning", "unread": "warning"}


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
