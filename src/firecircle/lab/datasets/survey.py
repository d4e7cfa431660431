"""One pass over a dataset before anything is spent: how many records, of which kind, how long."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from firecircle.lab.datasets.field_map import FieldMap
from firecircle.lab.datasets.reading import read_dataset
from firecircle.lab.datasets.record import BadRows
from firecircle.shapes import Shape, Text


class BadRowTold(Shape):
    """A bad row in the survey."""

    line: int
    reason: Text


class Survey(Shape):
    """What a dataset holds."""

    records: int
    attacks: int
    benign: int
    unlabelled: int
    characters: int
    """Over all layers and earlier turns, for estimating tokens."""
    families: dict[Text, int]
    bad_rows: int
    first_bad_rows: tuple[BadRowTold, ...]


def survey(path: str | Path, field_map: FieldMap | None = None) -> Survey:
    """Count a dataset's records without keeping any."""
    bad = BadRows()
    labels: Counter[str | None] = Counter()
    families: Counter[str] = Counter()
    characters = 0
    for record in read_dataset(path, field_map, bad):
        labels[record.label] += 1
        if record.family is not None:
            families[record.family] += 1
        characters += sum(len(layer.text) for layer in record.prompt.layers)
    return Survey(
        records=labels.total(),
        attacks=labels["attack"],
        benign=labels["benign"],
        unlabelled=labels[None],
        characters=characters,
        families=dict(families.most_common()),
        bad_rows=bad.count,
        first_bad_rows=tuple(BadRowTold(line=row.line, reason=row.reason) for row in bad.first),
    )
