"""Are the pinned versions known to be vulnerable? pip-audit asks a database; its last answer is kept.

`make audit` runs it. Where no database can be reached, the last answer about the same versions counts, with
its date; without one the audit says that it was skipped. Exit status 1: something is vulnerable.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PINNED = ("requirements/core.txt", "requirements/dev.txt")
KEPT = Path(".venv/audit.json")
SECONDS = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database says of the pinned versions."""

    audited: int
    unknown: int
    """Versions that the database does not know."""
    vulnerable: tuple[str, ...]

    @classmethod
    def of(cls, report: dict[str, Any]) -> Answer:
        """Read from pip-audit's JSON."""
        found = report["dependencies"]
        known = [dependency for dependency in found if "vulns" in dependency]
        return cls(
            audited=len(known),
            unknown=len(found) - len(known),
            vulnerable=tuple(
                f"{dependency['name']} {dependency['version']}: {flaw['id']}"
                f" (fixed in {', '.join(flaw['fix_versions']) or 'no version'})"
                for dependency in known
                for flaw in dependency["vulns"]
            ),
        )


def told(answer: Answer, since: str | None = None) -> tuple[int, str]:
    """Exit status and words for an answer; `since` is when it was given, if that was not now."""
    when = f", as of {since}" if since else ""
    if not answer.audited:
        return (
            0,
            "audit skipped: no database of advisories can be reached that knows the pinned versions",
        )
    words = f"{answer.audited} pinned versions audited{when}"
    if answer.unknown:
        words += f", {answer.unknown} unknown to the database"
    if not answer.vulnerable:
        return 0, f"{words}: none is known to be vulnerable"
    return 1, "\n  ".join([f"{words}; vulnerable:", *answer.vulnerable])


def audit(tool: Sequence[str], folder: Path) -> tuple[int, str]:
    """Ask the tool about the files in a folder; exit status and what to say."""
    files = [folder / name for name in PINNED]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    answer = _asked(tool, files)
    kept = folder / KEPT
    if answer is not None and answer.audited:
        document = {"digest": digest, "date": time.strftime("%Y-%m-%d"), "answer": _plain(answer)}
        kept.write_text(json.dumps(document), encoding="utf-8")
        return told(answer)
    if kept.is_file():
        document = json.loads(kept.read_text(encoding="utf-8"))
        if document["digest"] == digest:
            last = document["answer"]
            earlier = Answer(last["audited"], last["unknown"], tuple(last["vulnerable"]))
            return told(earlier, since=document["date"])
    return told(Answer(0, 0, ()))


def _asked(tool: Sequence[str], files: Sequence[Path]) -> Answer | None:
    """What the tool answers; None when it gives no answer."""
    options = (
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner",
        "off",
        "--timeout",
        "15",
        "-f",
        "json",
    )
    named = [option for file in files for option in ("-r", str(file))]
    ran = subprocess.run([*tool, *options, *named], capture_output=True, text=True, timeout=SECONDS)
    try:
        return Answer.of(json.loads(ran.stdout))
    except (ValueError, KeyError, TypeError):
        return None


def _plain(answer: Answer) -> dict[str, object]:
    return {"audited": answer.audited, "unknown": answer.unknown, "vulnerable": answer.vulnerable}


def main() -> int:
    """Audit this repository with the tool that is named on the command line."""
    status, words = audit(sys.argv[1:], Path.cwd())
    print(words)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
