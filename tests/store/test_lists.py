"""Lists in another order, beginnings of words, outcomes against labels, and batches; on every database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import event

from firecircle import FireCircleConfig, PromptGuard
from firecircle.store.circles import list_batches, pair_batches
from firecircle.store.finding import Filters, Order
from firecircle.store.opening import Store, open_store
from tests.scripted import Script, says
from tests.store.samples import held, saying


def _titles(store: Store, order: Order, **filters: object) -> list[str]:
    return [one.title for one in store.circles.in_order(order, Filters(**filters))]


async def test_a_list_is_put_in_order_searched_and_held_against_its_labels(store: Store) -> None:
    for title, first, last, label in (
        ("calm words", 0.1, 0.1, "attack"),
        ("raised words", 0.2, 0.8, "attack:kind"),
        ("high words", 0.9, 0.9, "benign"),
    ):
        await held(store, first, last, prompt=saying(title), label=label)
    assert _titles(store, "falsehood") == ["high words", "raised words", "calm words"]
    assert _titles(store, "talking")[0] == "raised words"
    assert _titles(store, "oldest") == ["calm words", "raised words", "high words"]
    assert _titles(store, "falsehood", text="rais*") == ["raised words"]
    assert _titles(store, "falsehood", text='"calm wor*"') == ["calm words"]
    assert _titles(store, "falsehood", text="rais") == []
    assert _titles(store, "oldest", outcome="missed") == ["calm words"]
    assert _titles(store, "oldest", outcome="false_alarm") == ["high words"]
    assert _titles(store, "oldest", outcome="wrong") == ["calm words", "high words"]
    assert _titles(store, "oldest", outcome="right") == ["raised words"]
    assert [store.circles.count(most=most) for most in (1, 3, 10, None)] == [1, 3, 3, 3]
    assert [store.circles.count(Filters(label="attack"), most=most) for most in (1, 2, 9)] == [1, 2, 2]
    assert store.circles.count(Filters(text="words"), most=2) == 2
    assert store.circles.about_how_many() in (3, None)  # PostgreSQL tells when it has looked
    oldest, middle, newest = store.circles.in_order("oldest")
    assert store.circles.neighbours(middle.pk) == (newest.id, oldest.id)
    assert store.circles.neighbours(newest.pk) == (None, middle.id)


async def test_batches_are_listed_and_set_beside_each_other(store: Store) -> None:
    for batch, falsehoods in (("monday", (0.1, 0.9)), ("tuesday", (0.9, 0.9))):
        for number, falsehood in enumerate(falsehoods):
            config = FireCircleConfig(models=("a", "b"), max_rounds=2, enforce_quorum=False)
            script = Script({model: [says(falsehood)] * 2 for model in ("a", "b")})
            guard = PromptGuard(caller=script, store=store)
            prompt = saying(f"prompt {number}")
            await guard.evaluate_prompt(prompt, "fire_circle", config, record_id=f"{batch}:{number}")
    assert [
        (one.name, sum(one.verdicts.values()), one.verdicts["alarm"]) for one in list_batches(store.database)
    ] == [
        ("tuesday", 2, 2),
        ("monday", 2, 1),
    ]
    changes = pair_batches(store.circles, "tuesday", "monday")
    assert {name: change.turned for name, change in changes.items()} == {"0": True, "1": False}


def test_sqlite_looks_for_batches_in_their_index_alone(tmp_path: Path) -> None:
    """Without naming it every circle is looked at, which a small store does not show."""
    plans: list[str] = []

    def explain(connection: Any, _: Any, statement: str, values: Any, *__: Any) -> None:
        if statement.startswith("SELECT") and "record_id" in statement:
            rows = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement}", values)
            plans.append(" ".join(str(row[-1]) for row in rows))

    with open_store(tmp_path / "circles.sqlite") as store:
        event.listen(store.database.engine, "before_cursor_execute", explain)
        list_batches(store.database)
        store.circles.find(Filters(batch="monday"))
    assert plans
    assert all("USING INDEX circles_by_batch (record_id>?" in plan for plan in plans)
