"""How well the bank finds what somebody asks for: labelled questions to a bank of 36 manipulations.

The bank holds the descriptions of `bank_pairs.jsonl`, one entry a manipulation with four wordings. A question
is answered when an entry it means is among the first three. The questions were written before the ranking was
changed; only those of the tuning half were looked at while it was. The second sixty were written afterwards,
by somebody who knew neither the ranking nor the first sixty; both have been looked at since. The third sixty,
by yet another, were scored once after the ranking was done. `python -m bench.bank_search FILE` asks new ones;
`means` may be numbers of `manipulations`, from 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.bank import PAIRS, pairs
from bench.figures import shown
from firecircle.lab.statistics.estimate import wilson
from firecircle.names import has_neural_weights
from firecircle.store.bank.bank import Bank
from firecircle.store.bank.entries import CATEGORY, FullEntry, Sighting
from firecircle.store.bank.search import Meaning
from firecircle.store.opening import open_store
from firecircle.voices.embedded.learned.neural import nearness_in_meaning

QUERIES = tuple(
    map(PAIRS.with_name, ("bank_queries.jsonl", "bank_queries_second.jsonl", "bank_queries_third.jsonl"))
)
AMONG = (1, 3)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and the manipulations it means, each by one of its descriptions."""

    id: str
    half: str
    text: str
    means: tuple[str, ...]


def queries(files: Sequence[Path] = QUERIES) -> list[Query]:
    """Every labelled question."""
    described = [descriptions[0] for _, descriptions in manipulations()]
    rows = (json.loads(line) for file in files for line in file.read_text("utf-8").splitlines())
    return [
        Query(
            row["id"],
            row.get("half", "new"),
            row["query"],
            tuple(described[told - 1] if isinstance(told, int) else told for told in row["means"]),
        )
        for row in rows
    ]


def manipulations() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The pattern type of each manipulation that was written for the pairs, and its descriptions."""
    groups: list[tuple[str, dict[str, None]]] = []
    for pair in pairs():
        if pair.same and pair.source == "written":
            known = next((group for _, group in groups if pair.first in group or pair.second in group), None)
            if known is None:
                known = {}
                groups.append((pair.kind, known))
            known.update({pair.first: None, pair.second: None})
    return ((kind, tuple(group)) for kind, group in groups)


def fill(bank: Bank) -> None:
    """Keep every manipulation as one entry."""
    for place, (kind, descriptions) in enumerate(manipulations()):
        seen = tuple(
            Sighting(attack_id=f"{place}-{number}", at=float(number), agreement=1.0, description=description)
            for number, description in enumerate(descriptions)
        )
        entry = FullEntry(
            id="",
            category=CATEGORY,
            pattern_type=kind,
            description=descriptions[0],
            sightings=len(seen),
            attacks=len(seen),
            highest_agreement=1.0,
            first_seen_at=0.0,
            last_seen_at=float(len(seen)),
            seen=seen,
        )
        list(bank.add_all([entry]))


def places(bank: Bank, asked: Sequence[Query], meaning: Meaning | None) -> dict[str, int]:
    """For each question the place of the first entry that it means, from 1; 0 when none was found."""
    descriptions = {entry.id: {seen.description for seen in entry.seen} for entry in bank.each()}
    found: dict[str, int] = {}
    for query in asked:
        answers = [descriptions[match.entry.id] for match in bank.relevant(query.text, 100, meaning=meaning)]
        found[query.id] = next(
            (place for place, answer in enumerate(answers, 1) if answer.intersection(query.means)), 0
        )
    return found


def main() -> None:
    """Print how often what was meant is the first answer, and among the first three."""
    asked = queries((*QUERIES, *map(Path, sys.argv[1:])))
    ways: dict[str, Meaning | None] = {"words": None}
    if has_neural_weights():
        ways["words and meaning"] = nearness_in_meaning
    with TemporaryDirectory() as folder, open_store(str(Path(folder) / "bank.sqlite")) as store:
        fill(store.bank)
        print(f"{len(asked)} questions to a bank of {store.bank.count()} entries")
        for way, meaning in ways.items():
            found = places(store.bank, asked, meaning)
            for half in (*dict.fromkeys(query.half for query in asked), "all"):
                of_half = [found[query.id] for query in asked if half in (query.half, "all")]
                hits = {most: sum(0 < place <= most for place in of_half) for most in AMONG}
                figures = (
                    f"hit at {most}: {shown(wilson(number, len(of_half)))}" for most, number in hits.items()
                )
                print(f"{way:18} {half:7} {len(of_half):3}  {'  '.join(figures)}")


if __name__ == "__main__":
    main()
