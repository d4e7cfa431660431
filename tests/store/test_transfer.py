"""Circles carried from one store to another: whole, once, and with every bad line told."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from firecircle import ConfigError
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from firecircle.store.rows import CircleOrPanel
from firecircle.store.transfer import IMPORTED, BadLine, ImportProgress, export_lines, import_circles
from tests.store.samples import asked_apart, held, saying


def lines_of(store: Store, **filters: object) -> list[str]:
    return list(export_lines(store.circles, Filters(**filters)))


def taken_from(store: Store, *lines: str) -> tuple[ImportProgress, list[BadLine]]:
    told = list(import_circles(store.circles, io.BytesIO("\n".join(lines).encode())))
    assert isinstance(told[-1], ImportProgress)
    return told[-1], [one for one in told if isinstance(one, BadLine)]


async def test_everything_arrives_as_it_was(store: Store, tmp_path: Path) -> None:
    first = await held(store, 0.1, 0.9, patterns=("temporal_inconsistency",), label="attack")
    second = await held(store, 0.1, seed=3, prompt=saying("naïve \x9b31m 🜂 \u2028 \x7f"))
    again = await held(store, 0.2, seed=3, prompt=saying("naïve \x9b31m 🜂 \u2028 \x7f"))
    panel = await asked_apart(store, 0.4)
    lines = lines_of(store)
    assert len(lines) == 5
    assert json.loads(lines[0]) == {"kind": "firecircle circles", "format": 1}
    for line in lines:
        assert line.isascii()
        assert line.isprintable()
    with open_store(tmp_path / "other.sqlite") as other:
        assert taken_from(other, *lines)[0] == ImportProgress(added=4)
        assert taken_from(other, *lines)[0] == ImportProgress(known=4)
        there = [one.model_dump(exclude={"pk"}) for one in other.circles.each_summary()]
        assert there == [one.model_dump(exclude={"pk"}) for one in store.circles.each_summary()]
        assert other.circles.load(first.circle_id) == imported(first)
        assert other.circles.load(second.circle_id) == imported(second)
        assert other.circles.load(f"{again.circle_id}-2") == imported(again)
        assert panel.kept_as
        assert other.circles.load(panel.kept_as) == imported(store.circles.load(panel.kept_as))


def imported(judged: CircleOrPanel) -> CircleOrPanel:
    return judged.model_copy(update={"advisories": (*judged.advisories, IMPORTED)})


async def test_only_what_matches_is_exported(store: Store) -> None:
    await held(store, 0.1, label="benign")
    await held(store, 0.9, label="attack", reasoning="an odd invoice")
    assert len(lines_of(store, label="benign")) == 2
    (line,) = lines_of(store, text="invoice")[1:]
    assert json.loads(line)["label"] == "attack"


async def test_a_bad_line_costs_itself(store: Store) -> None:
    await held(store, 0.1)
    await held(store, 0.1)
    header, first, second = lines_of(store)
    newer = json.loads(first)
    newer["document"]["schema_version"] = 99
    wrong = json.loads(first)
    wrong["document"]["consensus"]["falsehood"] = 7
    odd = json.loads(first)
    odd["document"]["circle_id"] = "\x1b[31m"
    endless, twice, elsewhere, echo = (json.loads(first) for _ in range(4))
    endless["document"]["dialogue_history"][0]["round_number"] = 10**9
    twice["document"]["dialogue_history"] *= 2
    elsewhere["document"]["dialogue_history"][0]["evaluations"][0]["round_number"] = 10**9
    echo["document"]["dialogue_history"][0]["evaluations"] *= 2
    for summary in list(store.circles.each_summary()):
        store.circles.delete(summary.id)
    lines = (
        *(header, first, "not json", "", json.dumps(newer), json.dumps(wrong), json.dumps(odd)),
        *('{"document": []}', second, *map(json.dumps, (endless, twice, elsewhere, echo)), first[:1000]),
    )
    taken, bad = taken_from(store, *lines)
    assert taken == ImportProgress(added=2, bad=10)
    assert [one.number for one in bad] == [3, 5, 6, 7, 8, 10, 11, 12, 13, 14]
    assert bad[0].why == "no circle in it"
    assert "newer Fire Circle (schema 99" in bad[1].why
    assert "circle.consensus.falsehood: must be between 0 and 1" in bad[2].why
    assert bad[3].why == "circle: its id is not valid"
    assert [one.why for one in bad[5:]] == [
        "circle: round 1 is numbered 1000000000",
        "circle: round 2 is numbered 1",
        "circle: an answer in round 1 says that it was given in another",
        "circle: a voice has 2 answers in round 1: ash",
        "no circle in it, it breaks off",
    ]
    assert store.circles.count() == 2


async def test_one_result_of_evaluate(store: Store) -> None:
    result = await held(None, 0.1)
    document = result.model_dump_json(indent=2)
    assert taken_from(store, document)[0] == ImportProgress(added=1)
    assert taken_from(store, json.dumps({"error": "x", "partial_result": json.loads(document)}))[0].known == 1
    assert store.circles.load(result.circle_id) == imported(result)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "neither an export nor a result"),
        ("[1, 2]", "neither an export nor a result"),
        ('{"mode": "single"}', "a result without what was asked and said"),
        ('{"kind": "firecircle circles", "format": 2}', "format 2, this Fire Circle reads 1"),
        ('{"dialogue_history": 1}', "circle"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    with open_store(tmp_path / "c.sqlite") as store, pytest.raises(ConfigError, match=complaint):
        taken_from(store, content)
