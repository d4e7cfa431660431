"""Export and import of bank entries: a file of JSON lines, one entry with its sightings each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from firecircle.errors import ConfigError
from firecircle.shapes import config_error
from firecircle.store.bank.bank import Bank
from firecircle.store.bank.entries import BankFilters, FullEntry

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
