"""Starting a run, or going on with the one that was begun: the same command does either.

A run belongs to a plan by the plan's digest, which leaves out budget and concurrency. `run PLAN` goes on with
the newest unfinished run of the same digest whose data is in the same folder; a finished one is never
touched, a new run begins beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from firecircle.errors import ConfigError
from firecircle.lab.arms import build_arms
from firecircle.lab.plan import Plan
from firecircle.lab.runs.cases import require_unchanged, take_census
from firecircle.lab.runs.export import export_records
from firecircle.lab.runs.filling import fill_in
from firecircle.lab.runs.folder import ABOUT, PLAN, RunFolder, new_run_id, runs_folder, unfinished_run
from firecircle.lab.runs.journal import Journal
from firecircle.lab.runs.live import LiveCircles
from firecircle.lab.runs.runner import Follower, RunState, carry_out
from firecircle.lab.runs.tally import Tally
from firecircle.store.opening import Store

Following = Callable[[RunFolder], AbstractContextManager[Follower]]
"""Opens whatever shows a run's progress."""


def open_run(plan: Plan, text: str, base: Path, *, out: Path | None = None, new: bool = False) -> RunFolder:
    """The unfinished run of this plan, else a new one. Everything that can be checked is checked first."""
    arms = tuple(arm.name for arm in build_arms(plan))
    begun = _begun_in(out, plan) if out else None if new else unfinished_run(plan, base)
    if begun is not None:
        if begun.state == "unfinished":
            begun.write(PLAN, text)
        return RunFolder(begun.path)
    folder = RunFolder(out or _fresh(runs_folder() / new_run_id(plan)))
    folder.begin(plan, text, base, arms, take_census(plan, base))
    return folder


def _begun_in(out: Path, plan: Plan) -> RunFolder | None:
    if not (out / ABOUT).exists():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"--out: {out} is neither empty nor a run; name another folder")
        return None
    found = RunFolder(out)
    if found.about.digest != plan.digest:
        raise ConfigError(f"--out: {out} holds a run of another plan; name another folder")
    return found


def _fresh(path: Path) -> Path:
    """Two runs may begin within a second."""
    number = 2
    free = path
    while free.exists():
        free = path.with_name(f"{path.name}-{number}")
        number += 1
    return free


async def complete(
    folder: RunFolder, following: Following, *, retry_failed: bool = False, store: Store | None = None
) -> RunState:
    """Carry the run out to its end and write its table. A finished run is left as it is.

    Hosted and local circles are kept in the store, if there is one, from their first event on.
    """
    with folder.held():
        if retry_failed:
            with Journal(folder.journal) as journal:
                if journal.forget_failures():
                    folder.reopen()
        if folder.state == "finished":
            with Journal(folder.journal) as journal:
                tally = Tally.of(journal, folder.about.arms, folder.total)
                return RunState(tally, unkept=await _filled_in(folder, journal, store))
        require_unchanged(folder.plan, folder.base, folder.about.census)
        with following(folder) as follow:
            state = await carry_out(folder, follow, store)
        if state.tally.complete:
            export_records(folder.journal, folder.about.arms, folder.records)
            folder.finish({"arms": {name: asdict(arm) for name, arm in state.tally.arms.items()}})
        return state


async def _filled_in(folder: RunFolder, journal: Journal, store: Store | None) -> str | None:
    """Have the store hold what it could not take while the run was carried out; what it still does not."""
    try:
        arms = build_arms(folder.plan)
    except ConfigError:
        return None  # what a setting refers to is no longer there; the figures are
    return await fill_in(folder, journal, arms, LiveCircles(store, folder.about))
