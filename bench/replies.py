"""How many real replies are read, which way, how many wrongly, and how long one takes.

Run with `python -m bench.replies`; the replies lie beside the checkout, in `../shared/data`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import median
from time import perf_counter

from firecircle.circle.reading import Refused, Unreadable, read_reply

REPOSITORY = Path(__file__).resolve().parents[1]
REPLIES = REPOSITORY.parent / "shared" / "data" / "real_replies.jsonl"
EXPECTED = REPOSITORY / "tests" / "circle" / "data" / "real_replies_expected.json"
WAYS = ("json", "stated", "keyword", "refused", "unreadable")
REPEATS = 20


def main() -> None:
    """Print the figures."""
    if not REPLIES.exists():
        print(f"no replies at {REPLIES}")
        return
    replies = {
        reply["id"]: reply["reply"] for reply in map(json.loads, REPLIES.read_text("utf-8").splitlines())
    }
    expected = json.loads(EXPECTED.read_text("utf-8"))
    ways: Counter[str] = Counter()
    wrong = missed = 0
    for name, text in replies.items():
        way, numbers = _read(text)
        ways[way] += 1
        stated = tuple(expected[name].values()) if expected[name] else None
        if way in ("json", "stated"):
            wrong += numbers != stated
        else:
            missed += stated is not None
    stating = sum(each is not None for each in expected.values())
    print(f"{len(replies)} replies, {stating} of them state falsehood")
    for way in WAYS:
        print(f"{way:>12} {ways[way]:4}")
    print(f"{'wrong':>12} {wrong:4}")
    print(f"{'missed':>12} {missed:4}")
    print(f"{_median_microseconds(list(replies.values())):.0f} microseconds a reply (median)")


def _read(text: str) -> tuple[str, tuple[float, ...] | None]:
    try:
        reading = read_reply(text)
    except Refused:
        return "refused", None
    except Unreadable:
        return "unreadable", None
    return reading.read_as, (reading.truth, reading.indeterminacy, reading.falsehood)


def _median_microseconds(texts: list[str]) -> float:
    times = []
    for text in texts:
        started = perf_counter()
        for _ in range(REPEATS):
            _read(text)
        times.append((perf_counter() - started) / REPEATS * 1e6)
    return median(times)


if __name__ == "__main__":
    main()
