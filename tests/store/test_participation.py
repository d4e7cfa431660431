"""The participation history on the store: durable, shared, and refused rather than guessed when damaged."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy as sa

from firecircle.errors import StoreError
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import (
    Draw,
    MemoryHistory,
    Participation,
    ParticipationHistory,
    VoiceHistoryTracker,
    export_history,
    import_history,
)
from firecircle.store.opening import Store, open_store

ROOT = Path(__file__).resolve().parents[2]
POOL = ("embedded:time", "embedded:layers", "embedded:hidden", "embedded:extraction", "embedded:ngrams")


def history_in(store: Store) -> ParticipationHistory:
    return store.participation.read_as(Participation, Draw)


def row(
    voice: str, sitting: str, at: float, quality: float | None = 0.5, domain: str = "general"
) -> Participation:
    return Participation(
        voice_id=voice,
        session_id=sitting,
        decision_domain=domain,
        role_played="voice",
        contribution_quality=quality,
        at=at,
    )


def test_rows_come_back_oldest_first(store: Store, place: str) -> None:
    rows = [row("ash", "s2", 20.0), row("ash", "s1", 10.0, None), row("birch", "s1", 10.0, domain="ethics")]
    for one in rows:
        history_in(store).append(one)
    with open_store(place) as again:
        kept = history_in(again)
        assert list(kept.participations()) == [rows[1], rows[2], rows[0]]
        assert list(kept.participations(voice_id="ash")) == [rows[1], rows[0]]
        assert list(kept.participations(decision_domain="ethics")) == [rows[2]]


def test_a_voice_sits_once_in_a_sitting(store: Store) -> None:
    history = history_in(store)
    history.append(row("ash", "s1", 10.0))
    history.append(row("ash", "s1", 10.0))
    with pytest.raises(StoreError, match="ash is in sitting s1 already, with other facts"):
        history.append(row("ash", "s1", 11.0))
    assert len(list(history.participations())) == 1


def test_more_rows_than_are_read_at_once(store: Store) -> None:
    rows = [row("ash", f"s{number}", float(number // 3)) for number in range(2_100)]
    table = (
        "INSERT INTO participations (voice_id, session_id, decision_domain, role_played, was_empty_chair, at)"
    )
    with store.database.writing() as connection:
        values = [{"s": one.session_id, "a": one.at} for one in rows]
        connection.execute(
            sa.text(f"{table} VALUES ('ash', :s, 'general', 'voice', false, :a)"),
            values,
        )
    assert [one.session_id for one in history_in(store).participations()] == [one.session_id for one in rows]


def test_rotation_draws_from_it(store: Store) -> None:
    history = history_in(store)
    selector = WeightedVoiceSelector(VoiceHistoryTracker(history), rules=None)
    drawn = [selector.draw(POOL, 3, session_seed=f"seed {number}") for number in range(3)]
    history.record_draw(drawn[0])
    assert list(history.draws()) == drawn


def test_it_is_exported_and_imported(store: Store, tmp_path: Path) -> None:
    history = history_in(store)
    memory = MemoryHistory([row("ash", "s1", 10.0), row("birch", "s1", 10.0)])
    export_history(memory, tmp_path / "history.json")
    assert import_history(tmp_path / "history.json", history).participations == 2
    assert import_history(tmp_path / "history.json", history).known == 2
    assert list(history.participations()) == list(memory.participations())


def test_a_damaged_row_is_refused_and_left(store: Store) -> None:
    history = history_in(store)
    history.append(row("ash", "s1", 10.0))
    selector = WeightedVoiceSelector(VoiceHistoryTracker(history), rules=None)
    selector.draw(POOL, 3)
    with store.database.writing() as connection:
        connection.execute(sa.text("UPDATE participations SET contribution_quality = 7"))
        connection.execute(sa.text("UPDATE draws SET body = '{}'"))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"has a damaged row: participations 1: .*; nothing was changed"):
            list(history.participations())
        with pytest.raises(StoreError, match="has a damaged row: draws 1: "):
            list(history.draws())


def test_several_processes_add_to_it_and_one_is_killed(store: Store, place: str) -> None:
    code = """
import sys
from firecircle.store.opening import open_store
from firecircle.rotation.tracker import Draw, Participation
history = open_store(sys.argv[1]).participation.read_as(Participation, Draw)
for number in range(int(sys.argv[3])):
    history.append(Participation(voice_id=sys.argv[2], session_id=f"{number}", decision_domain="general",
                                 role_played="voice", at=float(number)))
    print(number, flush=True)
"""

    def adding(voice: str, count: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, place, voice, str(count)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    killed = adding("killed", 1_000_000)
    others = [adding("ash", 40), adding("birch", 40)]
    assert killed.stdout is not None
    for other in others:
        assert other.communicate(timeout=60)[0].count("\n") == 40
    killed.kill()
    told = killed.stdout.read().splitlines()
    killed.communicate()
    rows = [one.voice_id for one in history_in(store).participations()]
    assert (rows.count("ash"), rows.count("birch")) == (40, 40)
    whole = [line for line in told if line.isdigit()]
    assert len(whole) - 1 <= rows.count("killed") <= len(whole) + 1


def test_a_long_history_is_added_up_where_it_is_kept(store: Store) -> None:
    rows = [
        Participation(
            voice_id=("ash", "birch", "cedar")[number % 3],
            session_id=f"s{number // 2}",
            decision_domain=("general", "finance")[number % 2],
            role_played="voice",
            contribution_quality=None if number % 4 == 0 else number / 20,
            was_empty_chair=number % 5 == 0,
            at=float(number * 7 % 20),
        )
        for number in range(20)
    ]
    history, memory = history_in(store), MemoryHistory(rows)
    for one in rows:
        history.append(one)
    tracker = VoiceHistoryTracker(MemoryHistory(), clock=lambda: 9.0)
    drawn = WeightedVoiceSelector(tracker, rules=None).draw(POOL, 3, record=False)
    for voices in (None, ["ash", "birch"], ["nobody"]):
        for before in (None, drawn):
            kept, told = (
                {(one.voice_id, one.decision_domain): one for one in its.tallies(voices, before=before)}
                for its in (history, memory)
            )
            assert kept.keys() == told.keys()
            for key, tally in kept.items():
                assert asdict(tally) == pytest.approx(asdict(told[key]))
        assert history.sittings(voices) == memory.sittings(voices)


def test_a_damaged_row_stops_a_draw(store: Store) -> None:
    history = history_in(store)
    history.append(row("embedded:time", "s1", 10.0))
    with store.database.writing() as connection:
        connection.execute(sa.text("UPDATE participations SET contribution_quality = 7"))
    with pytest.raises(StoreError, match="has a damaged row: participations 1: "):
        WeightedVoiceSelector(VoiceHistoryTracker(history), rules=None).draw(POOL, 3)
