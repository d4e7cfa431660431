"""What the bank takes in: the patterns of saved circles, each circle once, and the exports of other banks.

Only circles with an alarm teach, and never one whose prompt is labelled benign: a pattern found there is a
mistake, and the bank would pass it to the cheap modes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.names import is_benign
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import config_error
from firecircle.store.bank.bank import Bank
from firecircle.store.bank.entries import BankFilters, FullEntry, NewSighting, content_of
from firecircle.store.finding import CircleSummary, Filters

if TYPE_CHECKING:
    from firecircle.store.bank.bank import Bank
    from firecircle.store.circles import CircleStore


@dataclass(slots=True)
class Learnt:
    """The progress of learning."""

    circles: int = 0
    """Circles that added patterns."""
    sightings: int = 0
    """Sightings that are new to the bank."""
    known: int = 0
    """Sightings that the bank had already."""
    benign: int = 0
    """Circles left out because their prompt is labelled benign."""
    unreadable: int = 0


def learn(bank: Bank, circles: CircleStore, filters: Filters) -> Iterator[Learnt]:
    """Add the patterns of every matching circle, once; yields the progress after each circle."""
    if filters.alarm is False or filters.mode not in (None, "fire_circle"):
        raise ConfigError("learn", "only circles that raised an alarm have something to teach")
    learnt = Learnt()
    for summary in circles.each_summary(filters.model_copy(update={"alarm": True, "mode": "fire_circle"})):
        if is_benign(summary.label):
            learnt.benign += 1
        else:
            _learn_from(bank, circles, summary, learnt)
        yield learnt


def attack_id_of(prompt: MultiNeutrosophicPrompt) -> str:
    """A name for an unnamed attack: the same for the same prompt every time."""
    return f"prompt-{hashlib.sha256(prompt.model_dump_json().encode()).hexdigest()[:12]}"


def _learn_from(bank: Bank, circles: CircleStore, summary: CircleSummary, learnt: Learnt) -> None:
    try:
        circle = circles.load(summary.id)
    except StoreError:
        learnt.unreadable += 1
        return
    if not isinstance(circle, FireCircleResult) or not circle.patterns:
        return
    learnt.circles += 1
    # label:attack must also find attack:TYPE.
    labels = dict.fromkeys((summary.label, (summary.label or "").partition(":")[0]))
    facts = [*(("label", label) for label in labels), ("run", summary.run_id)]
    tags = [f"{name}:{value}" for name, value in facts if value]
    for pattern in circle.patterns:
        content = content_of(pattern, attack_id_of(circle.prompt), summary.id, circle.started_at, tags)
        _, is_new = bank.add(NewSighting.load(dict(content)), pattern_type=pattern.pattern_type)
        learnt.sightings += is_new
        learnt.known += not is_new


KIND = "firecircle bank"
FORMAT = 1
LONGEST_LINE = 64_000_000


def export_lines(bank: Bank, filters: BankFilters) -> Iterator[str]:
    """The lines of an export of every matching entry; in ASCII, without line ends."""
    yield json.dumps({"kind": KIND, "format": FORMAT})
    for entry in bank.each(filters):
        yield json.dumps(entry.model_dump(mode="json"))


def entries_in(lines: Iterable[str | bytes]) -> Iterator[FullEntry]:
    """The entry in each line of an export. Stops with an error at a line without one, naming its number."""
    numbered = enumerate(lines, start=1)
    _require_bank(next(numbered, (1, ""))[1])
    for number, line in numbered:
        if line.strip():
            yield _entry(number, line)


def _require_bank(line: str | bytes) -> None:
    header = _json(line)
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise ConfigError("import", "not an export of a bank", "give a file that `bank export` wrote")
    if header.get("format") != FORMAT:
        raise ConfigError(
            "import", f"format {header.get('format')!r:.40} is unknown here", "upgrade firecircle"
        )


def _entry(number: int, line: str | bytes) -> FullEntry:
    fields = _json(line)
    if fields is None:
        raise ConfigError(
            "import",
            (
                f"line {number} is not an entry, the file is damaged or cut off; the lines before it were"
                " imported"
            ),
        )
    try:
        return FullEntry.model_validate(fields)
    except ValidationError as invalid:
        raise config_error(invalid, "entry").within(f"line {number}").within("import") from None


def _json(line: str | bytes) -> object:
    if len(line) > LONGEST_LINE:
        raise ConfigError("import", f"a line of more than {LONGEST_LINE:,} characters; this is not an export")
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
