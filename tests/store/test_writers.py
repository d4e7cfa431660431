"""A team's store: many processes open an empty one at once and write everything there is, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle import FireCircleResult
from firecircle.rotation.tracker import Draw, Participation
from firecircle.store.finding import Filters
from firecircle.store.opening import open_store
from firecircle.store.tables import calibrated, circles, documents, events, texts
from firecircle.store.transfer import export_lines
from tests.store.samples import held
from tests.store.writers import EACH, VOICES

ROOT = Path(__file__).resolve().parents[2]
WRITERS, IMPORTED = 10, 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
def test_ten_processes_write_everything_at_once(place: str, tmp_path: Path) -> None:
    export = tmp_path / "export.jsonl"
    with open_store(tmp_path / "other.sqlite") as other:
        for _ in range(IMPORTED):
            asyncio.run(held(other, 0.2, label="imported"))
        export.write_text("\n".join(export_lines(other.circles, Filters())) + "\n", "utf-8")
    command = [sys.executable, "-m", "tests.store.writers", place, str(WRITERS), str(export)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")

    with open_store(place) as store:
        kept = list(store.circles.each())
        assert len(kept) == WRITERS * EACH + IMPORTED
        for number in range(WRITERS):
            assert store.circles.count(Filters(label=f"writer-{number}", text="judged by ash")) == EACH
        for summary, result in kept:
            assert isinstance(result, FireCircleResult)
            assert summary.status == result.stopped
            assert (summary.label == "imported") or len(result.calls) == 2 * len(VOICES)
        shared = min((summary.id for summary, _ in kept if summary.id.count("-")), default="").split("-")[0]
        assert {one.id for one, _ in kept if one.id.startswith(shared)} == {
            shared,
            *(f"{shared}-{number}" for number in range(2, WRITERS + 1)),
        }
        with store.database.reading() as connection:
            for table in (documents, texts):
                rows = connection.execute(sa.select(table.c.circle_pk)).scalars()
                assert sorted(rows) == sorted(summary.pk for summary, _ in kept)
            assert connection.execute(sa.select(sa.func.count()).select_from(events)).scalar() == 0
            counted = connection.execute(sa.select(sa.func.count()).select_from(calibrated)).scalar()
            assert counted == 20 * len(VOICES)
            open_ones = sa.select(circles.c.pk).where(circles.c.status == "sitting")
            assert connection.execute(open_ones).first() is None
        (entry,) = store.bank.find()
        assert (entry.sightings, entry.attacks) == (WRITERS * EACH, WRITERS * EACH)
        history = store.participation.read_as(Participation, Draw)
        assert len(list(history.participations(voice_id="yew"))) == WRITERS * EACH + 1
        assert len(store.runs.each()) == WRITERS * EACH + 1
        assert all(run.finished_at for run in store.runs.each())
