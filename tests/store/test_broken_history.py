"""A participation history that cannot be read is refused with the row and what deletes it, and left as it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.errors import StoreError
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import Draw, Participation, VoiceHistoryTracker
from firecircle.store.opening import Store, open_store
from firecircle.store.participation import StoredHistory

POOL = ("embedded:time", "embedded:layers", "embedded:hidden", "embedded:extraction", "embedded:ngrams")


def history_in(store: Store) -> StoredHistory[Participation, Draw]:
    return store.participation.read_as(Participation, Draw)


def row(voice: str, sitting: str, at: float = 10.0) -> Participation:
    return Participation(
        voice_id=voice, session_id=sitting, decision_domain="general", role_played="voice", at=at
    )


def draw_from(store: Store) -> Draw:
    return WeightedVoiceSelector(VoiceHistoryTracker(history_in(store)), rules=None).draw(POOL, 3)


def break_in(store: Store, *statements: str) -> None:
    with store.database.writing() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


GARBAGE = (
    "was_empty_chair = 'yes'",
    "at = 1e300",
    "voice_id = ''",
    "voice_id = x'6162'",
    "voice_id = CAST(x'ff61' AS TEXT)",
    "session_id = x'00'",
    "role_played = CAST(x'fe' AS TEXT)",
    "at = 'yesterday'",
    "at = 9e999",
    "contribution_quality = 'good'",
    "was_empty_chair = 'perhaps'",
    "was_empty_chair = 7",
)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_whatever_is_in_a_file_is_refused_until_its_row_is_deleted(tmp_path: Path, garbage: str) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        history = history_in(store)
        for number in range(3):
            history.append(row("embedded:time", f"s{number}"))
        break_in(store, f"UPDATE participations SET {garbage} WHERE pk = 2")
        with pytest.raises(StoreError, match=r"has a damaged row: participations 2: row\.\w+: ") as refused:
            list(history.participations())
        assert "\n" not in str(refused.value)
        break_in(store, str(refused.value).rpartition("save a copy and ")[2])
        assert [one.session_id for one in history.participations()] == ["s0", "s2"]


# A draw adds rows up where they are kept and never looks at the role.
@pytest.mark.parametrize("garbage", [one for one in GARBAGE if "CAST(x'fe' AS TEXT)" not in one])
def test_a_draw_does_not_overlook_a_row_that_lost_its_meaning(tmp_path: Path, garbage: str) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        history_in(store).append(row("somebody/else", "s1"))
        break_in(store, f"UPDATE participations SET {garbage}")
        with pytest.raises(StoreError, match="has a damaged row: participations 1: "):
            draw_from(store)


def test_a_damaged_draw_is_refused_and_circles_are_still_remembered(store: Store) -> None:
    kept, lost = draw_from(store), draw_from(store)
    break_in(store, f"UPDATE draws SET body = '{{\"draw_id\": ' WHERE draw_id = '{lost.draw_id}'")
    history = history_in(store)
    with pytest.raises(StoreError, match="has a damaged row: draws 2: ") as refused:
        list(history.draws())
    history.append(row("embedded:layers", "later"))
    break_in(store, str(refused.value).rpartition("save a copy and ")[2])
    assert list(history.draws()) == [kept]
    assert [one.session_id for one in history.participations()] == ["later"]


def test_a_refusal_changes_nothing_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "circles.sqlite"
    with open_store(path) as store:
        history_in(store).append(row("ash", "s1"))
        break_in(store, "UPDATE participations SET at = 'never'")
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = list(raw.iterdump())
    raw.close()
    with open_store(path) as store, pytest.raises(StoreError):
        list(history_in(store).participations())
    with sqlite3.connect(path) as raw:
        assert list(raw.iterdump()) == before
    raw.close()
