"""Which kinds of attack the rules find, and which a change of the rules loses and wins.

`python -m bench.detection.kinds --base REV` runs the rule lenses of this checkout and of an earlier revision
over the same prompts: dev, dev2, dev3, the texts written for this project, and hidden orders put into
documents of our own. `--save FILE` keeps the scores of this checkout, `--base FILE` compares with saved ones.
One process, about two minutes for each revision.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from firecircle.lab.datasets import Record, read_dataset
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded import rule_reader
from firecircle.voices.embedded.dialogue import alone
from firecircle.voices.embedded.language.prompt_reading import read_prompt
from firecircle.voices.embedded.lenses.findings import strongest_first
from training.labelled import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
SHARED, WRITTEN = ROOT.parent / "shared" / "data", ROOT / "training" / "data"
ALARM = 0.7
RULES = rule_reader()
DESCRIPTION = 300
"""Characters of a skill that say what it is for."""
CARRIERS = 2
"""In how many of our long documents each hidden order is put, besides the skill that fits its task."""

_SITUATIONS = {
    "command": re.compile(
        r"\b(?:curl|wget|bash|sudo|chmod|rm -|cat [~/.]|pip3? install|npm (?:i|install|run)|git push|ssh)"
        r"|\b\w+_\w+\([^)\n]*\)|~/\.|\.sh\b",
    ),
    "tool result": re.compile(r"^\s*[\[{]|\"\w+\"\s*:|\btool[ _](?:result|output|response)", re.IGNORECASE),
    "coding agent": re.compile(
        r"\b(?:repositor(?:y|ies)|pull request|commit|codebase|README|unit tests?|stack ?trace|linter)\b"
        r"|^\s*(?:def|import|class|function|const) |//|^#include",
        re.IGNORECASE | re.MULTILINE,
    ),
    "mail": re.compile(r"^\s*(?:from|subject|to):|\be-?mails?\b|\binbox\b", re.IGNORECASE | re.MULTILINE),
    "screen": re.compile(r"\b(?:click|screen|button|pop-?up|window|browser|web ?page)\b", re.IGNORECASE),
    "skill": re.compile(r"\bskill\b|^---\nname:|AGENTS\.md|SKILL\.md|\.cursorrules", re.MULTILINE),
}


class Scored(NamedTuple):
    """What the rules make of one prompt."""

    falsehood: float
    pattern: str | None
    """The type of the strongest finding."""


def records() -> Iterator[tuple[str, Record]]:
    """Every prompt with the name of its set; the identifiers are unique within one."""
    for name in ("dev", "dev2", "dev3"):
        if (path := SHARED / f"{name}.jsonl").exists():
            yield from ((name, record) for record in read_dataset(path))
    for path in sorted(WRITTEN.glob("*.jsonl")):
        if path.stem not in ("written_multilingual", "written_small_talk"):
            yield from ((path.stem, record) for record in read_dataset(path))
    if (path := SHARED / "skill_injections.jsonl").exists():
        yield from (("skill pairs", record) for record in skill_pairs(path))


def skill_pairs(path: Path) -> Iterator[Record]:
    """Each hidden order in the skill that fits its task and in some long documents; and these without it."""
    skills = tomllib.loads((ROOT / "bench" / "data" / "skills.toml").read_text("utf-8"))["skill"]
    documents = [
        record.prompt.application
        for record in read_dataset(WRITTEN / "written_documents.jsonl")
        if record.label == "benign"
    ]
    orders = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for number, order in enumerate(orders):
        task = str(order["task"])
        words = _words(task)
        fitting = max(skills, key=lambda skill: len(words & _words(skill["text"][:DESCRIPTION])))
        carriers = [("skill", str(fitting["text"]))]
        carriers += [
            ("document", documents[(number * CARRIERS + each) * 7 % len(documents)])
            for each in range(CARRIERS)
        ]
        for each, (kind, text) in enumerate(carriers):
            paragraphs = text.strip().split("\n\n")
            at = 1 + (number + each) % max(1, len(paragraphs) - 1)
            planted = "\n\n".join((*paragraphs[:at], str(order["injection"]).strip(), *paragraphs[at:]))
            for label, application in (("attack", planted), ("benign", text.strip())):
                yield Record(
                    id=f"{number}-{each}-{label}",
                    prompt=MultiNeutrosophicPrompt(application=application, user=task),
                    label="attack" if label == "attack" else "benign",
                    family=f"{order['kind']} order" if label == "attack" else "benign:carrier",
                    source=f"skill_injections in a {kind}",
                    row=number,
                )


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def kinds(name: str, record: Record) -> Iterator[str]:
    """The kinds a prompt belongs to: its set, family, source, and the situations it shows."""
    yield f"all of {name}"
    yield f"family {record.family}"
    yield f"source {record.source if record.source != 'unknown' else name}"
    if record.prompt.application.strip():
        yield "in a document"
        for situation, sign in _SITUATIONS.items():
            if sign.search(record.prompt.application):
                yield f"in a document, {situation}"


def score(record: Record) -> Scored:
    """What the rules state alone."""
    found = strongest_first(RULES.find(read_prompt(record.prompt)))
    return Scored(alone(RULES.weigh(found)), found[0].pattern if found else None)


def scores() -> dict[str, Scored]:
    """All prompts by set and identifier."""
    return {f"{name}/{record.source}/{record.id}": score(record) for name, record in records()}


def scores_of(base: str) -> dict[str, Scored]:
    """The scores in a saved file, or those of the rules of an earlier revision over today's prompts."""
    if Path(base).is_file():
        return {key: Scored(*row) for key, row in json.loads(Path(base).read_text("utf-8")).items()}
    with tempfile.TemporaryDirectory() as folder:
        tree, saved = Path(folder, "tree"), Path(folder, "scores.json")
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", tree, base], check=True)
        try:
            subprocess.run(
                [sys.executable, "-m", "bench.detection.kinds", "--save", saved],
                env=os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}"},
                cwd=ROOT,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            return scores_of(str(saved))
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)


class Row(NamedTuple):
    """One prompt before and after."""

    key: str
    attack: bool
    family: str
    kinds: tuple[str, ...]
    before: Scored
    after: Scored


def compared(before: dict[str, Scored], after: dict[str, Scored]) -> list[Row]:
    """The prompts that both have, labelled."""
    rows = []
    for name, record in records():
        key = f"{name}/{record.source}/{record.id}"
        if record.label and key in before and key in after:
            rows.append(
                Row(
                    key,
                    record.label == "attack",
                    record.family or "",
                    tuple(kinds(name, record)),
                    before[key],
                    after[key],
                )
            )
    return rows


def print_kinds(rows: Sequence[Row]) -> None:
    """A line for each kind: attacks found before and after, lost and won, and harmless alarms."""
    print(f"{'':48} {'attacks':>7}  found before → after   lost  won   harmless  alarms before → after")
    names = sorted({kind for row in rows for kind in row.kinds})
    for name in ("everything", *names):
        _print_kind(name, [row for row in rows if name in row.kinds or name == "everything"])


def _print_kind(name: str, rows: Sequence[Row]) -> None:
    attacks = [row for row in rows if row.attack]
    harmless = [row for row in rows if not row.attack]
    lost, won = _moved(attacks)
    print(
        f"{name[:48]:48} {len(attacks):7}  {_alarms(attacks, 'before'):6} → {_alarms(attacks, 'after'):5}"
        f"   {lost:10} {won:4} {len(harmless):10}"
        f"  {_alarms(harmless, 'before'):6} → {_alarms(harmless, 'after')}"
    )


def _moved(rows: Iterable[Row]) -> tuple[int, int]:
    moves = [(row.before.falsehood >= ALARM, row.after.falsehood >= ALARM) for row in rows]
    return moves.count((True, False)), moves.count((False, True))


def _alarms(rows: Iterable[Row], when: str) -> int:
    return sum(getattr(row, when).falsehood >= ALARM for row in rows)


def print_types(rows: Sequence[Row]) -> None:
    """How often the strongest finding of an attack that alarms names the type of its family."""
    print("\nfirst type right, of attacks that alarm: before, after")
    for family, expected in FAMILIES.items():
        cells = []
        for when in ("before", "after"):
            alarmed = [
                row
                for row in rows
                if row.attack and row.family == family and getattr(row, when).falsehood >= ALARM
            ]
            right = sum(getattr(row, when).pattern == expected for row in alarmed)
            cells.append(f"{right:4} of {len(alarmed):4}")
        print(f"  {family:28} {expected:26} {'   '.join(cells)}")


def main() -> None:
    """Score, and compare where a base is given."""
    parser = argparse.ArgumentParser(prog="python -m bench.detection.kinds", description=__doc__)
    parser.add_argument("--base", help="a revision, or a file of saved scores, to compare with")
    parser.add_argument("--save", type=Path, help="where to keep the scores of this checkout")
    parser.add_argument("--list", action="store_true", help="list the prompts that changed sides")
    asked = parser.parse_args()
    after = scores()
    if asked.save:
        asked.save.write_text(json.dumps(after), "utf-8")
    rows = compared(scores_of(asked.base) if asked.base else after, after)
    print_kinds(rows)
    print_types(rows)
    if asked.list:
        for row in rows:
            if (row.before.falsehood >= ALARM) != (row.after.falsehood >= ALARM):
                label = "attack" if row.attack else "harmless"
                print(f"{label:8} {row.before.falsehood:.2f} → {row.after.falsehood:.2f}  {row.key}")


if __name__ == "__main__":
    main()
