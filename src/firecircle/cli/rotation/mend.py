"""`firecircle rotation mend`: the way out of a history that cannot be read, taken only when it is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import StoreOption
from firecircle.cli.output import is_meant

if TYPE_CHECKING:
    from firecircle.store.broken_history import Damage

NOTHING_DONE = "nothing was taken out"


def mend(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Take out of the participation history what cannot be read; a copy of all is written aside first."""
    from firecircle.cli.circles.listing import tell
    from firecircle.rotation.history import Draw, Participation
    from firecircle.store.opening import open_store

    nothing: dict[str, object] = {"participations": 0, "draws": 0, "copy": None}
    with open_store(store) as opened:
        history = opened.participation.read_as(Participation, Draw)
        broken = history.unreadable()
        question = f"Take {_told(broken)} that cannot be read out of {opened.name}?"
        if broken and not is_meant(question, yes=yes, otherwise=NOTHING_DONE):
            return tell(NOTHING_DONE, nothing, as_json=as_json)
        done = history.mend()
    if done.copy is None:
        return tell("everything can be read; nothing was taken out", nothing, as_json=as_json)
    gone = done.damage
    document = {
        "participations": len(gone.participations),
        "draws": len(gone.draws),
        "copy": str(done.copy),
    }
    return tell(f"{_told(gone)} taken out; a copy of all is in {done.copy}", document, as_json=as_json)


def _told(damage: Damage) -> str:
    from firecircle.cli.output import counted

    counts = ((damage.participations, "participation"), (damage.draws, "draw"))
    return " and ".join(counted(len(rows), what) for rows, what in counts if rows)
