"""Which column of a file holds what, and what its labels mean: the options, and the field map they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.lab.datasets import FieldMap

LABELS = ("attack", "benign", "unlabelled")
FieldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="FIELD=COLUMN",
        help="Column of the file for each field, such as user=Frage; turns= if it has none. Repeatable.",
    ),
]
LabelMapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label-map",
        metavar="VALUE=LABEL",
        help="What a label of the file means, such as phishing=attack or ok=benign; repeat for more.",
    ),
]


def field_map_of(written: Sequence[str], labels: Sequence[str]) -> FieldMap:
    """The field map that `--field` and `--label-map` say."""
    from firecircle.lab.datasets import FieldMap
    from firecircle.lab.datasets.record import MAP_FIELDS

    names = dict(_pair(pair, "--field", "user=COLUMN", may_be_empty=True) for pair in written)
    for field in names:
        if field not in MAP_FIELDS:
            raise ConfigError(
                "--field", f"there is no field {field!r}", f"it is one of {', '.join(MAP_FIELDS)}"
            )
    listed: dict[str, Any] = {}
    usual = FieldMap()
    for value, label in (_pair(pair, "--label-map", "VALUE=attack") for pair in labels):
        if label not in LABELS:
            raise ConfigError(
                "--label-map",
                f"{label!r} is not a label",
                f"it is one of {', '.join(LABELS)}; repeat the option for more",
            )
        listed[label] = (*listed.get(label, getattr(usual, label)), value)
    try:
        return FieldMap(**names, **listed)
    except ConfigError as wrong:
        raise wrong.renamed("--label-map") from None


def _pair(written: str, option: str, example: str, *, may_be_empty: bool = False) -> tuple[str, str]:
    """Both sides of a pair. A field may be said to have no column: `turns=`."""
    left, equals, right = written.partition("=")
    if not (equals and left.strip() and (may_be_empty or right.strip())):
        raise ConfigError(option, f"{written!r} is not a pair", f"write {option} {example}")
    return left.strip(), right.strip()
