"""Runs are known to the store too, so that one begun in a folder of its own is found again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from firecircle.errors import StoreError
from firecircle.store.address import place_of

if TYPE_CHECKING:
    from firecircle.lab.runs.folder import RunFolder


def remember(run: RunFolder) -> None:
    """Tell the store that this run was begun, and when it is over that it is."""
    from firecircle.store.opening import open_store
    from firecircle.store.runs import KnownRun

    about = run.about
    folder = str(run.path.absolute())
    with open_store() as store:
        store.runs.begin(
            KnownRun(
                folder=folder,
                run_id=about.run_id,
                plan=run.plan.name,
                digest=about.digest,
                arms=about.arms,
                judgements=run.total * len(about.arms),
                started_at=about.started_at,
            )
        )
        if run.state == "finished":
            store.runs.finish(folder)


def remembered_folders() -> tuple[Path, ...]:
    """Where the store knows of runs; nowhere when there is no store, or it cannot be read."""
    place = place_of()
    if isinstance(place, Path) and not place.exists():
        return ()
    from firecircle.store.opening import open_store

    try:
        with open_store(place) as store:
            return tuple(Path(known.folder) for known in store.runs.each())
    except StoreError:
        return ()  # runs are found in their usual folder all the same
