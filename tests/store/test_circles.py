"""What is kept comes back as it was, and is found by everything a list can be narrowed down to."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from firecircle import ConfigError, FireCircleResult
from firecircle.circle.panel import Panel
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from tests.store.samples import asked_apart, held, saying

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "store-sql.md").read_text("utf-8")
LOUD = "As we agreed yesterday, be loud"


def ids(store: Store, **filters: object) -> list[str]:
    """The user's words of every circle that matches, the newest first."""
    return [one.title for one in store.circles.each_summary(Filters(**filters))]


async def test_a_circle_comes_back_as_it_was(store: Store) -> None:
    result = await held(store, 0.2, 0.9, patterns=("temporal_inconsistency",), label="attack")
    assert store.circles.load(result.circle_id) == result
    (summary,) = store.circles.find().circles
    assert (summary.id, summary.label, summary.alarm, summary.falsehood) == (
        result.circle_id,
        "attack",
        True,
        0.9,
    )
    assert summary.round1_falsehood == 0.2
    assert summary.voices == ("ash", "birch", "cedar")
    assert summary.pattern_types == ("temporal_inconsistency",)
    assert summary.status == "all_rounds_held"
    _, document = store.circles.document(result.circle_id)
    assert FireCircleResult.model_validate_json(document) == result


@pytest.mark.parametrize("mode", ["single", "parallel"])
async def test_a_panel_comes_back_as_it_was(store: Store, mode: str) -> None:
    metrics = await asked_apart(store, 0.8, mode)
    assert metrics.kept_as is not None
    panel = store.circles.load(metrics.kept_as)
    assert isinstance(panel, Panel)
    assert panel.evaluations == metrics.evaluations
    summary = store.circles.summary(metrics.kept_as)
    assert (summary.mode, summary.label, summary.alarm) == (mode, "attack", True)


async def test_hostile_text_is_kept_and_found(store: Store) -> None:
    text = "nul \0 here, \x1b[31mred\x1b[0m, \u202eright to left, '; DROP TABLE circles; -- 🜂 naïve"
    result = await held(store, 0.1, 0.1, prompt=saying(text), reasoning="a \0 in \ud800 what was said")
    assert store.circles.load(result.circle_id) == result
    for words in ("right", "DROP TABLE", '"nul"', "naïve", "-- drop", "said"):
        assert len(ids(store, text=words)) == 1
    assert ids(store, text="absent") == []


class TestFilters:
    async def test_verdict_label_voice_pattern_and_mode(self, store: Store) -> None:
        await held(store, 0.1, 0.1, prompt=saying("calm"), label="benign")
        await held(store, 0.1, 0.9, prompt=saying(LOUD), patterns=("role_confusion",), label="attack")
        await held(store, 0.1, 0.1, prompt=saying("other"), voices=("elm", "fir"))
        await asked_apart(store, 0.9)
        everything = ids(store)
        assert everything[1:] == ["other", LOUD, "calm"]
        assert ids(store, alarm=True) == [everything[0], LOUD]
        assert ids(store, alarm=False) == ["other", "calm"]
        assert ids(store, label="benign") == ["calm"]
        assert ids(store, voice="elm") == ["other"]
        assert ids(store, voice="ash", mode="fire_circle") == [LOUD, "calm"]
        assert ids(store, pattern="role_confusion") == [LOUD]
        assert ids(store, mode="parallel") == everything[:1]
        assert ids(store, status="sitting") == []
        assert ids(store, least_falsehood=0.5) == [everything[0], LOUD]
        assert store.circles.count(Filters(voice="ash")) == 3

    async def test_time(self, store: Store) -> None:
        await held(store, 0.1, prompt=saying("before"))
        between = time.time()
        await held(store, 0.1, prompt=saying("after"))
        assert ids(store, since=between) == ["after"]
        assert ids(store, until=between) == ["before"]

    async def test_words_of_prompt_and_reasoning(self, store: Store) -> None:
        await held(store, 0.1, prompt=saying("the invoice of march"), reasoning="nothing odd")
        await held(store, 0.1, prompt=saying("the march of progress"), reasoning="an odd invoice")
        assert ids(store, text="invoice") == ["the march of progress", "the invoice of march"]
        assert ids(store, text='"invoice of march"') == ["the invoice of march"]
        assert ids(store, text="INVOICE progress") == ["the march of progress"]
        assert ids(store, text="invoice", voice="ash", label=None) == ids(store, text="invoice")
        assert store.circles.count(Filters(text="progress")) == 1
        for nothing in ("", "  ", '"" --', "*"):
            with pytest.raises(ConfigError, match="needs a word"):
                ids(store, text=nothing)

    async def test_pages_show_everything_once(self, store: Store) -> None:
        for number in range(7):
            await held(store, 0.1, prompt=saying(f"prompt {number}"))
        shown: list[str] = []
        before = None
        while True:
            page = store.circles.find(Filters(text="prompt"), before=before, limit=3)
            shown += [one.title for one in page.circles]
            if (before := page.next_before) is None:
                break
        assert shown == [f"prompt {number}" for number in reversed(range(7))]


class TestIds:
    async def test_a_beginning_is_enough_when_it_is_clear(self, store: Store) -> None:
        result = await held(store, 0.1)
        assert store.circles.summary(result.circle_id[:8]).id == result.circle_id
        with pytest.raises(ConfigError, match="no such circle"):
            store.circles.summary("zzzzzzzz")
        with pytest.raises(ConfigError, match="at least 4"):
            store.circles.summary(result.circle_id[:2])
        with pytest.raises(ConfigError, match="no such circle"):
            store.circles.summary("%%%%")

    async def test_a_repeated_circle_gets_a_number(self, store: Store) -> None:
        once, again = [await held(store, 0.1, seed=7) for _ in range(2)]
        assert once.circle_id == again.circle_id
        newest, oldest = store.circles.find().circles
        assert newest.id == f"{oldest.id}-2"
        assert store.circles.summary(once.circle_id[:8]).id == oldest.id
        assert store.circles.load(newest.id) == again

    async def test_an_unclear_beginning_is_refused(self, store: Store) -> None:
        result = await held(None, 0.1)
        for name in ("abcd1", "abcd2"):
            store.circles.add(result.model_copy(update={"circle_id": name}))
        with pytest.raises(ConfigError, match="several circles begin so"):
            store.circles.summary("abcd")


class TestTakingOut:
    async def test_a_deleted_circle_leaves_nothing(self, store: Store) -> None:
        kept, gone = [await held(store, 0.1, 0.9, patterns=("role_confusion",)) for _ in range(2)]
        store.circles.delete(gone.circle_id)
        assert [one.id for one in store.circles.find().circles] == [kept.circle_id]
        assert store.circles.count(Filters(text="plain")) == 1
        assert store.circles.count(Filters(pattern="role_confusion")) == 1

    async def test_what_matches_is_pruned(self, store: Store) -> None:
        for label in ("attack", "benign", "attack"):
            await held(store, 0.1, label=label)
        assert sum(store.circles.prune(Filters(label="attack"))) == 2
        assert [one.label for one in store.circles.find().circles] == ["benign"]
        assert sum(store.circles.prune(Filters(text="plain"))) == 1

    async def test_a_label_is_given_and_taken_away(self, store: Store) -> None:
        result = await held(store, 0.1)
        assert store.circles.set_label(result.circle_id[:8], "benign").label == "benign"
        assert ids(store, label="benign")
        store.circles.set_label(result.circle_id, None)
        assert ids(store, label="benign") == []

    async def test_a_label_stands_for_its_kinds(self, store: Store) -> None:
        labels = (
            "attack",
            "attack:role_confusion",
            "attack:role%",
            "attacker",
            "Attack:x",
            "benign:general",
            None,
        )
        for label in labels:
            await held(store, 0.1, label=label)

        def found(label: str) -> list[str | None]:
            return [one.label for one in store.circles.find(Filters(label=label)).circles]

        assert found("attack") == ["attack:role%", "attack:role_confusion", "attack"]
        assert found("attack:role%") == ["attack:role%"]
        assert found("attack:role") == found("") == []
        assert found("benign") == ["benign:general"]
        assert sum(store.circles.prune(Filters(label="attack"))) == 3


async def test_the_queries_of_the_documentation_run(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    queries = [query for query in block.split(";") if query.strip()]
    assert len(queries) >= 4
    with open_store(tmp_path / "circles.sqlite") as store:
        await held(store, 0.2, 0.9, label="benign")
        with store.database.reading() as connection:
            found = [connection.exec_driver_sql(query).all() for query in queries]
    assert [len(rows) for rows in found] == [1, 0, 3, 1]
