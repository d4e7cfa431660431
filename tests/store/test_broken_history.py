"""A participation history that cannot be read is refused, copied aside once, and mended only when told to."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.errors import StoreError
from firecircle.rotation.history import Draw, Participation
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import VoiceHistoryTracker
from firecircle.settings import user_folder
from firecircle.store.opening import Store, open_store
from firecircle.store.participation import StoredHistory
from tests.store.postgres import new_schema

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


def copies_of(store: Store) -> list[Path]:
    engine = store.database.engine
    folder = Path(engine.url.database or "").parent if store.database.is_sqlite else user_folder("data")
    return sorted(folder.glob("participation-broken-*.json"))


def test_everything_is_copied_once_and_only_the_broken_is_taken_out(store: Store) -> None:
    history = history_in(store)
    for number in range(3):
        history.append(row("embedded:time", f"s{number}"))
    kept, lost = draw_from(store), draw_from(store)
    break_in(
        store,
        "UPDATE participations SET contribution_quality = 7 WHERE session_id = 's1'",
        f"UPDATE draws SET body = '{{\"draw_id\": ' WHERE draw_id = '{lost.draw_id}'",
    )
    refusals = set()
    for number in range(3):
        with pytest.raises(StoreError, match=r"participation 2 in .* is damaged") as refused:
            draw_from(store)
        refusals.add(str(refused.value))
        with pytest.raises(StoreError, match=f"draw {lost.draw_id} in .* is damaged"):
            list(history.draws())
        history.append(row("embedded:layers", f"later {number}"))  # circles still sit and are remembered
    (copy,) = copies_of(store)
    (refusal,) = refusals
    assert f"it was left as it is, a copy is in {copy}; `firecircle rotation mend`" in refusal
    assert "\n" not in refusal
    assert copy.stat().st_mode & 0o077 == 0
    told = json.loads(copy.read_text("utf-8"))
    assert [len(told[name]) for name in ("participations", "draws")] == [3, 2]
    assert [one["contribution_quality"] for one in told["participations"]] == [None, 7.0, None]
    assert [one["body"] for one in told["draws"] if one["draw_id"] == lost.draw_id] == ['{"draw_id": ']
    assert [one["pk"] for one in told["unreadable"]["participations"]] == [2]

    done = history.mend()
    assert (len(done.damage.participations), len(done.damage.draws), done.copy) == (1, 1, copy)
    sittings = [one.session_id for one in history.participations()]
    assert sittings == ["s0", "s2", "later 0", "later 1", "later 2"]
    assert list(history.draws()) == [kept]
    assert copies_of(store) == [copy]
    assert not history.mend().damage
    assert draw_from(store).selected


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
def test_whatever_stands_in_a_file_is_told_copied_and_taken_out(tmp_path: Path, garbage: str) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        history = history_in(store)
        for number in range(3):
            history.append(row("embedded:time", f"s{number}"))
        break_in(store, f"UPDATE participations SET {garbage} WHERE pk = 2")
        with pytest.raises(StoreError, match=r"participation 2 in .* is damaged: row\.\w+: "):
            list(history.participations())
        (copy,) = copies_of(store)
        assert len(json.loads(copy.read_bytes())["participations"]) == 3
        assert history.mend().copy == copy
        assert [one.session_id for one in history.participations()] == ["s0", "s2"]


# A draw adds rows up where they are kept and never looks at the role.
@pytest.mark.parametrize("garbage", [one for one in GARBAGE if "CAST(x'fe' AS TEXT)" not in one])
def test_a_draw_does_not_overlook_a_row_that_lost_its_meaning(tmp_path: Path, garbage: str) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        history_in(store).append(row("somebody/else", "s1"))
        break_in(store, f"UPDATE participations SET {garbage}")
        with pytest.raises(StoreError, match=r"participation 1 in .* is damaged"):
            draw_from(store)


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


def test_a_copy_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        history = history_in(store)
        history.append(row("ash", "s1"))
        break_in(store, "UPDATE participations SET at = 'never'")
        with pytest.raises(StoreError):
            list(history.participations())
        (copy,) = copies_of(store)
        whole = copy.read_bytes()
        copy.write_bytes(whole[:100])
        assert history.mend().copy == copy
        assert copy.read_bytes() == whole
        assert sorted(one.name for one in tmp_path.glob("*broken*")) == [copy.name]


def test_nothing_is_taken_out_without_a_copy(
    postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with open_store(new_schema(postgresql_server, "test_no_copy")) as store:
        history = history_in(store)
        history.append(row("ash", "s1"))
        break_in(store, "UPDATE participations SET contribution_quality = 7")
        with pytest.raises(StoreError, match=r"is damaged: .* no copy could be made \(history: cannot write"):
            list(history.participations())
        with pytest.raises(StoreError, match="cannot write a copy to"):
            history.mend()
        assert len(history.unreadable().participations) == 1
