"""`firecircle quorum`: would these models be diverse enough for their agreement to count?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, names_in
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.circle.independence import MeasuredErrors


def quorum(
    models: Annotated[list[str] | None, typer.Argument(metavar="MODEL", help="The voices to weigh.")] = None,
    min_coverage: Annotated[
        float, typer.Option(metavar="C", min=0, help="The weighted coverage needed.")
    ] = 5.0,
    min_lineages: Annotated[int, typer.Option(metavar="N", min=1, help="The lineages needed.")] = 2,
    show_list: Annotated[bool, typer.Option("--list", help="List the models that are known.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show whether models cover the roles of a circle. Exit status 0: a quorum, 1: none, 2: error."""
    from math import isfinite

    from firecircle.catalog import characteristics_of, require_distinct
    from firecircle.circle.quorum import QuorumRules
    from firecircle.cli.quorum.view import list_families, weigh

    names = names_in(models or (), "MODEL")
    if show_list:
        if names:
            raise ConfigError(
                "--list", "lists what is known and weighs no voice", "leave it out or the models"
            )
        return list_families(as_json=as_json)
    if not names:
        raise ConfigError(
            "MODEL", "no voice to weigh", "name at least one, `firecircle quorum --list` shows them"
        )
    if not isfinite(min_coverage):
        raise ConfigError("--min-coverage", f"must be a number, got {min_coverage}")
    require_distinct(names, "MODEL")
    voices = [characteristics_of(name) for name in names]
    return weigh(voices, QuorumRules(min_coverage, min_lineages), _measured(), as_json=as_json)


def _measured() -> MeasuredErrors | None:
    """What the user's store knows of the errors that voices made together; None without a store."""
    from firecircle.store.opening import open_store, place_of

    place = place_of(None)
    if isinstance(place, Path) and not place.exists():
        return None
    with open_store(place) as store:
        return store.independence.measured()
