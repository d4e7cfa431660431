"""Many processes that write to one store at the same moment: `python -m tests.store.writers PLACE COUNT EXPORT`.

They are forked from one that has imported everything, so that ten cost little more than one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from pathlib import Path

from firecircle import fire_circle_evaluate
from firecircle.rotation.tracker import Draw, Participation
from firecircle.store.bank.entries import NewSighting
from firecircle.store.figures import KnownRun
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from firecircle.store.transfer import import_circles
from tests.scripted import PROMPT, circle, says

EACH = 2
"""Circles, sightings, sittings and runs that each process writes."""
VOICES = ("ash", "birch")


async def hold_circles(store: Store, name: str) -> None:
    """Some at once; all processes use the same seed for one of theirs, so that its id is wanted by all."""

    async def answer(model: str, _: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return says(0.4, reasoning=f"{name} was judged by {model}")

    seeds = [7, *[None] * (EACH - 1)]
    await asyncio.gather(
        *(
            fire_circle_evaluate(
                PROMPT, circle(*VOICES, max_rounds=2, seed=seed), caller=answer, store=store, label=name
            )
            for seed in seeds
        )
    )


def write(place: str, name: str, export: Path) -> None:
    """What a process of a team does in a day."""
    with open_store(place) as store:
        asyncio.run(hold_circles(store, name))
        history = store.participation.read_as(Participation, Draw)
        for number in range(EACH):
            sighting = NewSighting(
                description="speaks of an agreement that nobody made",
                agreement=0.8,
                attack_id=f"{name}-{number}",
                examples=("as we agreed",),
                models=VOICES,
                layers=("user",),
                circle_id="",
            )
            store.bank.add(sighting, pattern_type="temporal_inconsistency")
            for session in ("shared", f"{name}-{number}"):
                history.append(
                    Participation(
                        voice_id="yew",
                        session_id=session,
                        decision_domain="general",
                        role_played="voice",
                        contribution_quality=0.5,
                        at=1.0,
                    )
                )
            for folder in ("/shared", f"/{name}/{number}"):
                store.runs.begin(
                    KnownRun(
                        folder=folder,
                        run_id=folder,
                        plan="p",
                        digest="d",
                        arms=("one",),
                        judgements=1,
                        started_at=1.0,
                    )
                )
                store.runs.finish(folder)
        store.calibrations.record((f"circle-{number}", voice) for number in range(20) for voice in VOICES)
        with export.open("rb") as file:
            for _ in import_circles(store.circles, file):
                pass
        for _ in store.circles.prune(Filters(until=1000.0)):
            pass


def main(place: str, count: int, export: Path) -> int:
    """Start them all, let them go at once, and say how many failed."""
    ready, go = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(go)
                os.read(ready, 1)  # comes back when the other end is closed
                write(place, f"writer-{number}", export)
                status = 0
            except BaseException:  # noqa: BLE001 - a forked process must not return
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    os.close(ready)
    os.close(go)
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
