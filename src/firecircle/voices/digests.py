"""Digests of large files that do not change, read once."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from firecircle.files import read_regular, sha256_of, write_whole
from firecircle.settings import user_folder

LARGEST_RECORD = 1_000_000


def is_verified(path: Path, sha256: str) -> bool:
    """Whether a file has this digest. It is read once, and again only after a change."""
    record = user_folder("cache") / "verified.json"
    found = path.stat()
    state = [sha256, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    known = _read_record(record)
    if known.get(str(path)) == state:
        return True
    if sha256_of(path) != sha256:
        return False
    with suppress(OSError):  # then the next process reads the file again
        record.parent.mkdir(parents=True, exist_ok=True)
        write_whole(record, json.dumps({**known, str(path): state}, indent=1) + "\n")
    return True


def _read_record(record: Path) -> dict[str, object]:
    try:
        known = json.loads(read_regular(record, LARGEST_RECORD))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
