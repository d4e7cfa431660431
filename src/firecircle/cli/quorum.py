"""`firecircle quorum`: would these models be diverse enough for their agreement to count?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from firecircle.catalog import CRITICAL_ROLES, PRESENT_ABOVE, ROLE_WEIGHTS, ModelCharacteristics, families
from firecircle.circle.quorum import (
    CHAIR_ROLE,
    FEWEST_ITEMS,
    MeasuredErrors,
    QuorumRules,
    QuorumVerdict,
    judge_quorum,
)
from firecircle.cli.options import AsJson, names_in
from firecircle.cli.output import bar, console_on, print_json, print_line, print_sections, section
from firecircle.errors import ConfigError
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.telling.words import counted


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
    from firecircle.store.opening import open_store
    from firecircle.store.place import place_of

    place = place_of(None)
    if isinstance(place, Path) and not place.exists():
        return None
    with open_store(place) as store:
        return store.independence.measured()


VALID, NOT_VALID = 0, 1
BAR = 8
NOT_MEASURED = f"not yet: it takes {FEWEST_ITEMS} labelled prompts in the store that they judged"
ROOM_FOR_A_TABLE = 72
"""Columns that the table needs for names that can be told apart."""


@dataclass(frozen=True, slots=True)
class RoleCoverage:
    """How one role is covered."""

    role: str
    weight: float
    critical: bool
    best_voice: str | None
    contribution: float
    weighted: float


@dataclass(frozen=True, slots=True)
class Replacement:
    """A voice in place of another, and how many independent voices that would make."""

    outgoing: str
    incoming: str
    effective: float


def weigh(
    voices: Sequence[ModelCharacteristics],
    rules: QuorumRules,
    measured: MeasuredErrors | None,
    *,
    as_json: bool,
) -> int:
    """Print what the voices cover and whether it is enough; the exit status."""
    names = [voice.model_id for voice in voices]
    independence = measured.independence(names) if measured else None
    verdict = judge_quorum(voices, rules, independence=independence)
    replacement = _best_replacement(names, measured) if measured and independence else None
    roles = [_coverage(role, voices) for role in ROLE_WEIGHTS]
    if as_json:
        print_json(
            {
                "models": names,
                "valid": verdict.valid,
                "coverage": round(verdict.coverage, 6),
                "min_coverage": rules.min_cognitive_coverage,
                "roles": [asdict(role) for role in roles],
                "lineages": {name: list(members) for name, members in verdict.lineages.items()},
                "groups": {name: list(members) for name, members in verdict.groups.items()},
                "min_lineages": rules.min_provider_groups,
                "shortfalls": list(verdict.shortfalls),
                "independence": independence and independence.model_dump(mode="json"),
                "replacement": replacement and asdict(replacement),
            }
        )
    else:
        _explain(console_on(sys.stdout), verdict, roles, rules, replacement)
    return VALID if verdict.valid else NOT_VALID


def _best_replacement(names: Sequence[str], measured: MeasuredErrors) -> Replacement | None:
    """The swap of one voice for another of the store that adds most; None where none adds anything."""
    now = measured.independence(names)
    swaps = [
        Replacement(outgoing, incoming, found.effective)
        for outgoing in names
        for incoming in measured.voices
        if incoming not in names
        and (found := measured.independence([incoming, *(name for name in names if name != outgoing)]))
    ]
    best = max(swaps, key=lambda swap: swap.effective, default=None)
    return best if best and now and best.effective > now.effective else None


def list_families(*, as_json: bool) -> int:
    """Print every family of models the catalog knows."""
    if as_json:
        print_json([family.model_dump(mode="json") for family in families()])
        return 0
    console = console_on(sys.stdout)
    for family in families():
        roles = ", ".join(f"{role} {share:.1f}" for role, share in family.cognitive_roles.items())
        if not console.is_terminal:
            print_line(console, f"{' '.join(family.names)}\t{family.provider_lineage}\t{roles}")
            continue
        console.print(Text(" ".join(family.names), style="bold"))
        console.print(*section("", [f"{family.provider_lineage}: {roles}"]))
    return 0


def _coverage(role: str, voices: Sequence[ModelCharacteristics]) -> RoleCoverage:
    best = max(voices, key=lambda voice: voice.cognitive_roles.get(role, 0.0), default=None)
    share = best.cognitive_roles.get(role, 0.0) if best else 0.0
    name = best.model_id if best and share > 0 else None
    weight = ROLE_WEIGHTS[role]
    return RoleCoverage(role, weight, role in CRITICAL_ROLES, name, share, round(weight * share, 6))


def _explain(
    console: Console,
    verdict: QuorumVerdict,
    roles: Sequence[RoleCoverage],
    rules: QuorumRules,
    replacement: Replacement | None,
) -> None:
    count = sum(len(members) for members in verdict.lineages.values())
    colour = "green" if verdict.valid else "red"
    word = " QUORUM " if verdict.valid else " NO QUORUM "
    headline = Text().append(word, style=f"bold reverse {colour}")
    headline.append(f"  {counted(count, 'voice')}", style="bold")
    console.print(headline)
    console.print()
    if console.width >= ROOM_FOR_A_TABLE:
        console.print(_table(roles, console.width))
    else:
        for line in _narrow(roles, console.width):
            console.print(line)
    notes = [f"* critical: some voice must have a share above {PRESENT_ABOVE}"]
    if not verdict.coverage_by_role.get(CHAIR_ROLE):
        notes.append(f"From round 2 the voice in the empty chair covers {_plain(CHAIR_ROLE)}.")
    for note in notes:
        console.print(Text(note, style="dim"))
    coverage = f"{verdict.coverage:.2f} (needs {rules.min_cognitive_coverage:.2f})"
    lineages = [f"{len(verdict.lineages)} (needs {rules.min_provider_groups})"]
    for lineage, members in verdict.lineages.items():
        lineages.append(f"{printable_line(lineage)}: {', '.join(map(printable_line, members))}")
    groups = [
        f"{printable_line(group)}: {', '.join(map(printable_line, members))}"
        for group, members in verdict.groups.items()
    ]
    measured = [NOT_MEASURED] if verdict.independence is None else [verdict.independence.sentence]
    if replacement is not None:
        measured.append(
            f"{printable_line(replacement.incoming)} in place of {printable_line(replacement.outgoing)}"
            f" would make it {replacement.effective:.1f}"
        )
    short = [printable_line(shortfall) for shortfall in verdict.shortfalls]
    console.print()
    print_sections(
        console,
        (
            ("Coverage", [coverage]),
            ("Lineages", lineages),
            ("Groups", groups),
            ("Measured", measured if count > 1 else []),
            ("Short", short),
        ),
    )


def _table(roles: Sequence[RoleCoverage], width: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("role", "share", "covers", "", "covered best by"):
        table.add_column(title, justify="right" if title == "covers" else "left", no_wrap=True)
    for role in roles:
        name = (
            shortened(printable_line(role.best_voice), max(12, width - 59)) if role.best_voice else "no voice"
        )
        table.add_row(
            Text(f"{_plain(role.role)}{' *' if role.critical else ''}"),
            Text(f"{role.contribution:.2f} × {role.weight:.0f}"),
            Text(f"{role.weighted:.2f}"),
            Text(bar(role.contribution, BAR)),
            Text(name, style="" if role.best_voice else "bold"),
        )
    return table


def _narrow(roles: Sequence[RoleCoverage], width: int) -> Iterator[Text]:
    """Two lines a role, where columns would have to be cut off."""
    for role in roles:
        star = " *" if role.critical else ""
        yield Text(f"{_plain(role.role)}{star}  {role.contribution:.2f} × {role.weight:.0f}")
        name = shortened(printable_line(role.best_voice), width - BAR - 5) if role.best_voice else "no voice"
        yield Text(f"  {bar(role.contribution, BAR)} {name}", style="dim" if role.best_voice else "bold")


def _plain(role: str) -> str:
    return role.replace("_", " ")
