"""Files from elsewhere say what they like; what was said in a circle decides what is kept of it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from firecircle import ConfigError, FireCircleResult
from firecircle.store.bank.bank import entries_in
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from firecircle.store.transfer import IMPORTED, BadLine, ImportProgress, export_lines, import_circles
from tests.store.samples import asked_apart, held

HEADER = json.dumps({"kind": "firecircle circles", "format": 1})


def taken_from(store: Store, *documents: dict[str, Any]) -> tuple[ImportProgress, list[str]]:
    lines = (HEADER, *(json.dumps({"document": document}) for document in documents))
    outcome = list(import_circles(store.circles, io.BytesIO("\n".join(lines).encode())))
    assert isinstance(outcome[-1], ImportProgress)
    return outcome[-1], [line.why for line in outcome if isinstance(line, BadLine)]


async def document(*falsehoods: float, **settings: Any) -> dict[str, Any]:
    result = await held(None, *falsehoods, **settings)
    dumped: dict[str, Any] = json.loads(result.model_dump_json())
    return dumped


async def test_a_forged_verdict_gives_way_to_what_was_said_and_is_marked(store: Store) -> None:
    forged = await document(0.9, 0.8, patterns=("false_authority",))
    forged["verdict"], forged["alarm"] = "no_alarm", False
    forged["consensus"] = {**forged["consensus"], "falsehood": 0.0, "truth": 1.0}
    forged["patterns"] = []
    forged["zombies"] = ["ash"]
    assert taken_from(store, forged) == (ImportProgress(added=1), [])
    assert taken_from(store, forged) == (ImportProgress(known=1), [])
    kept = store.circles.load(forged["circle_id"])
    assert isinstance(kept, FireCircleResult)
    assert (kept.alarm, kept.consensus and kept.consensus.falsehood, kept.zombies) == (True, 0.9, ())
    assert [pattern.pattern_type for pattern in kept.patterns] == ["false_authority"]
    assert kept.advisories == (
        "imported with another verdict (no_alarm, F 0 by ash in round 1, no quorum; patterns: none); concluded"
        " again: alarm, F 0.9 by ash in round 1, no quorum; patterns: false_authority 1.00",
    )
    [summary] = store.circles.each_summary()
    assert (summary.alarm, summary.falsehood) == (True, 0.9)


async def test_an_honest_circle_is_marked_as_imported_once(store: Store, tmp_path: Path) -> None:
    result = await held(store, 0.1, 0.9, patterns=("temporal_inconsistency",))
    lines = list(export_lines(store.circles, Filters()))
    with open_store(tmp_path / "other.sqlite") as other:
        list(import_circles(other.circles, io.BytesIO("\n".join(lines).encode())))
        kept = other.circles.load(result.circle_id)
        assert kept == result.model_copy(update={"advisories": (*result.advisories, IMPORTED)})
        again = list(export_lines(other.circles, Filters()))
    with open_store(tmp_path / "third.sqlite") as third:
        list(import_circles(third.circles, io.BytesIO("\n".join(again).encode())))
        assert third.circles.load(result.circle_id) == kept


@pytest.mark.parametrize(
    ("path", "number"),
    [
        (("started_at",), 1e308),
        (("started_at",), float("nan")),
        (("started_at",), -5.0),
        (("started_at",), 1e13),
        (("duration_seconds",), float("inf")),
        (("dialogue_history", 0, "timestamp"), 1e308),
        (("calls", 0, "tokens_in"), 10**30),
        (("calls", 0, "cost_usd"), 1e308),
        (("calls", 0, "latency_seconds"), 1e308),
    ],
)
async def test_numbers_that_cannot_be_are_refused(
    tmp_path: Path, path: tuple[str | int, ...], number: float
) -> None:
    wrong: Any = await document(0.1, 0.2)
    inner = wrong
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = number
    with open_store(tmp_path / "c.sqlite") as store:
        taken, [why] = taken_from(store, wrong)
        assert taken == ImportProgress(bad=1)
        assert why.startswith("circle")
        assert store.circles.count() == 0


async def test_a_circle_that_gives_no_verdict_costs_its_line(store: Store) -> None:
    strange = await document(0.1, 0.2)
    strange["dialogue_history"][1]["evaluations"][0]["model"] = "nobody who sits here"
    strange["failures"] = [
        {"model": model, "round_number": 1, "kind": "timeout", "message": "x"}
        for model in strange["config"]["models"]
    ]
    honest = await document(0.1, 0.3)
    taken, _ = taken_from(store, strange, honest)
    assert taken.added + taken.bad == 2
    assert store.circles.load(honest["circle_id"])


def _lost(model: str, number: int) -> dict[str, Any]:
    return {"model": model, "round_number": number, "kind": "timeout", "message": "x"}


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        ({"failures": [_lost("ash", 1)]}, "ash was lost in round 1, and answers later"),
        ({"failures": [_lost("ash", 2)]}, "ash was lost in round 2, and answers later"),
        ({"failures": [_lost("ash", 10**12)] * 3}, "a voice has 3 failures: ash"),
        (
            {"substitutions": [{"model": "ash", "round_number": 2, "replaces": ["birch"]}]},
            "a voice has 2 seats: ash",
        ),
        ({"calls": [{"model": "ash", "round_number": 10**12}]}, "a call of ash in round 1000000000000"),
        ({"calls": [{"model": "ash", "round_number": -3}]}, "a call of ash in round -3"),
        *(
            ({"calls": [{"model": "ash", "round_number": 1, name: -1}]}, f"negative {name}")
            for name in ("attempts", "latency_seconds", "tokens_in", "cost_usd", "estimated_usd")
        ),
        (
            {"dialogue_history": [{"round_number": number} for number in range(1, 100_001)]},
            "100,000 rounds, and it was set to 2",
        ),
    ],
)
async def test_what_no_circle_can_have_left_costs_its_line_only(
    store: Store, forged: dict[str, Any], why: str
) -> None:
    """A vote that was taken away by a loss that cannot be, a seat taken twice (which ended the whole import),
    negative money, a hundred thousand rounds (which never came to an end)."""
    honest = await document(0.1, 0.3)
    taken, [line] = taken_from(store, {**await document(0.9, 0.9), **forged}, honest)
    assert (taken.added, taken.bad) == (1, 1)
    assert why in line


async def test_a_circle_of_countless_voices_is_refused_at_once(store: Store) -> None:
    """Each was compared with all before it."""
    crowded = await document(0.9)
    crowded["config"]["models"] = [f"voice {number}" for number in range(300_000)]
    _, [why] = taken_from(store, crowded)
    assert "a circle has 2 to 10 models, got 300000" in why


async def test_a_stranger_has_no_answer(store: Store) -> None:
    wrong = await document(0.9)
    wrong["dialogue_history"][0]["evaluations"][0]["model"] = "stranger"
    _, [why] = taken_from(store, wrong)
    assert "an answer of stranger, who does not sit in it" in why


async def test_what_no_panel_can_have_left_is_refused(store: Store) -> None:
    await asked_apart(store, 0.2)
    (line,) = list(export_lines(store.circles, Filters()))[1:]
    panel = json.loads(line)["document"]
    answer = panel["evaluations"][0]
    for forged, why in (
        ({"evaluations": [answer] * 9}, "a voice has 9 answers: ash"),
        ({"evaluations": [{**answer, "model": "x"}]}, "an answer of x, who does not sit in it"),
        ({"failures": [_lost("ash", 1)]}, "ash was lost in round 1, and answers later"),
        ({"calls": [{"model": "ash", "round_number": 1, "cost_usd": -5.0}]}, "negative cost_usd"),
    ):
        taken, [told] = taken_from(store, {**panel, **forged})
        assert (taken.bad, why in told) == (1, True)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("started_at", 1e308),
        ("started_at", "yesterday"),
        ("status", "dancing"),
        ("rounds", "many"),
        ("voices", 7),
    ],
)
async def test_a_damaged_row_never_breaks_a_list(tmp_path: Path, column: str, value: Any) -> None:
    with open_store(tmp_path / "c.sqlite") as store:
        broken = await held(store, 0.1)
        await held(store, 0.9)
        with store.database.writing() as connection:
            connection.execute(
                sa.text(f"UPDATE circles SET {column} = :value WHERE id = :id"),
                {"value": value, "id": broken.circle_id},
            )
        newest, oldest = store.circles.find().circles
        assert newest.falsehood == 0.9
        if column != "voices" and value != 1e308:
            assert oldest.title.startswith(f"(damaged: {column}) As we agreed")
        assert len(list(store.circles.each_summary())) == 2


def entry(**seen: Any) -> str:
    sighting = {"attack_id": "a", "at": 1.0, "agreement": 1.0, "description": "somebody claims a rank"}
    facts = {
        "id": "x",
        "category": "c",
        "pattern_type": "false_authority",
        "description": "d",
        "sightings": 999,
    }
    facts |= {"attacks": 99, "highest_agreement": 1.0, "first_seen_at": 0.0, "last_seen_at": 0.0}
    return json.dumps({**facts, "seen": [{**sighting, **seen}]})


BANK_HEADER = json.dumps({"kind": "firecircle bank", "format": 1})


@pytest.mark.parametrize("at", [1e308, float("nan"), -1.0, 1e13])
def test_a_bank_refuses_times_that_cannot_be(at: float) -> None:
    with pytest.raises(ConfigError, match=r"line 2: entry\.seen\.0\.at: must be a time between the years"):
        list(entries_in([BANK_HEADER, entry(at=at)]))


def test_a_bank_counts_for_itself(store: Store) -> None:
    list(store.bank.add_all(entries_in([BANK_HEADER, entry()])))
    [kept] = store.bank.find()
    assert (kept.sightings, kept.attacks) == (1, 1), "not what the file says"
