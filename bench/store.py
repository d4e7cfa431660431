"""What keeping costs a circle, and how finding grows with what is kept.

`python -m bench.store` measures SQLite in a folder of its own, `--store URL --small URL` two empty PostgreSQL
databases or schemas; `--explain` prints how the database looks for each answer. The many circles are varied
copies of a few that were really held, kept through the store's own functions.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import sqlalchemy as sa

from bench.speed import PROMPT, circle_of, cpu_seconds, elapsed, endpoint, interleaved
from firecircle import FireCircleConfig, FireCircleResult, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.store.circles import list_batches
from firecircle.store.finding import Filters
from firecircle.store.opening import Store, open_store
from firecircle.store.transfer import ImportProgress, export_lines, import_circles
from firecircle.store.writing import add_finished

FEW, MANY = 1_000, 100_000
RARE_EVERY = 500
"""Of so many circles one has the rare word, label, voice and pattern; never fewer than two have."""
AT_ONCE = 200
TRIES = 15
TURNS = 3
"""How often the small and the large store are asked in turn: a machine is not equally busy all along."""
DAY = 86_400.0
VOICES = ("north", "east", "south")

Ask = Callable[[], object]


# -- what keeping costs --------------------------------------------------------------------------------


async def cost_of_keeping(store: Store, latency: float) -> tuple[float, float]:
    """Time and CPU of a 10 x 3 circle that is kept, in times of one that is not."""
    config = circle_of(10)

    async def kept() -> FireCircleResult:
        return await fire_circle_evaluate(PROMPT, config, store=store)

    async def not_kept() -> FireCircleResult:
        return await fire_circle_evaluate(PROMPT, config)

    with endpoint(latency):
        times = await interleaved([not_kept, kept], elapsed)
        work = await interleaved([not_kept, kept], lambda task: cpu_seconds(task, 1))
    return median(times[1]) / median(times[0]), median(work[1]) / median(work[0])


# -- many circles --------------------------------------------------------------------------------------


async def templates() -> list[FireCircleResult]:
    """A few real circles: quiet ones and alarms, with and without a pattern."""

    async def held(falsehood: float, kind: str | None, voices: tuple[str, ...]) -> FireCircleResult:
        seen = [{"type": kind, "description": f"signs of {kind}", "quote": "as we agreed"}] if kind else []
        reply = json.dumps(
            {
                "truth": 1 - falsehood,
                "indeterminacy": 0.1,
                "falsehood": falsehood,
                "reasoning": "WORDS",
                "patterns_observed": seen,
            }
        )

        async def caller(model: str, messages: list[dict[str, str]]) -> str:
            return reply

        prompt = MultiNeutrosophicPrompt(
            system="You are the assistant of a bookshop.", user="as we agreed", turns=()
        )
        config = FireCircleConfig(models=voices, max_rounds=2, enforce_quorum=False, early_stop_convergence=0)
        return await fire_circle_evaluate(prompt, config, caller=caller)

    return [
        await held(0.1, None, VOICES),
        await held(0.9, "temporal_inconsistency", VOICES),
        await held(0.5, None, VOICES),
        await held(0.8, "role_confusion", (*VOICES, "west")),
    ]


def varied(kinds: list[FireCircleResult], count: int, first: int) -> Iterator[tuple[FireCircleResult, str]]:
    """So many circles with words, times and ids of their own, and their labels."""
    chance = random.Random(first)
    words = [
        f"{a}{b}{c}" for a in "bdgklmnprst" for b in ("a", "ei", "o", "u") for c in ("la", "n", "rk", "sto")
    ]
    for number in range(first, first + count):
        is_rare = number % RARE_EVERY == 0
        base = kinds[3] if is_rare else kinds[number % 3]
        text = " ".join(chance.choices(words, k=40))
        reasoning = " ".join(chance.choices(words, k=30))
        if is_rare:
            text += " chrysanthemum"
        rounds = tuple(
            held.model_copy(
                update={
                    "evaluations": tuple(
                        evaluation.model_copy(update={"reasoning": f"{evaluation.model} thinks: {reasoning}"})
                        for evaluation in held.evaluations
                    )
                }
            )
            for held in base.dialogue_history
        )
        prompt = base.prompt.model_copy(update={"user": f"as we agreed, number {number}: {text}"})
        changed = {
            "circle_id": f"{chance.getrandbits(128):032x}",
            "started_at": 1.7e9 + number * 60,
            "prompt": prompt,
            "dialogue_history": rounds,
        }
        yield base.model_copy(update=changed), "rare" if is_rare else "attack" if number % 2 else "benign"


def fill(store: Store, kinds: list[FireCircleResult], count: int, first: int) -> float:
    """Keep so many circles; how many a second."""
    started = time.perf_counter()
    waiting = varied(kinds, count, first)
    for _ in range(0, count, AT_ONCE):
        with store.database.writing() as connection:
            for _, (result, label) in zip(range(AT_ONCE), waiting, strict=False):
                add_finished(connection, result, label=label)
    return count / (time.perf_counter() - started)


# -- finding -------------------------------------------------------------------------------------------


def questions(store: Store) -> dict[str, Ask]:
    """What a user asks of a store."""
    find = store.circles.find
    newest = find(limit=1).circles[0]
    oldest = 1.7e9
    return {
        "list, page 1": lambda: find(),
        "list, alarms": lambda: find(Filters(alarm=True)),
        "list, a rare label": lambda: find(Filters(label="rare")),
        "list, a common label": lambda: find(Filters(label="attack")),
        "list, a rare voice": lambda: find(Filters(voice="west")),
        "list, a voice never heard": lambda: find(Filters(voice="nobody")),
        "list, a common voice": lambda: find(Filters(voice="north")),
        "list, a rare pattern": lambda: find(Filters(pattern="role_confusion")),
        "list, a pattern never seen": lambda: find(Filters(pattern="none_such")),
        "list, a common pattern": lambda: find(Filters(pattern="temporal_inconsistency")),
        "list, the oldest day": lambda: find(Filters(until=oldest + DAY)),
        "list, interrupted": lambda: find(Filters(status="interrupted")),
        "search, a rare word": lambda: find(Filters(text="chrysanthemum")),
        "search, a word of every circle": lambda: find(Filters(text="agreed")),
        "search, two common words": lambda: find(Filters(text="agreed thinks")),
        "search, a common phrase": lambda: find(Filters(text='"as we agreed"')),
        "search, no such word": lambda: find(Filters(text="qqqq")),
        "search, every circle, rare label": lambda: find(Filters(text="agreed", label="rare")),
        "list, a page from the middle": lambda: find(before=newest.pk // 2),
        "list, a page from the middle, alarms": lambda: find(Filters(alarm=True), before=newest.pk // 2),
        "list, missed attacks": lambda: find(Filters(outcome="missed")),
        "list, F from 0.85": lambda: find(Filters(least_falsehood=0.85)),
        "list, greatest F first": lambda: store.circles.in_order("falsehood"),
        "list, a run nobody knows": lambda: find(Filters(run_id="none")),
        "list, a batch nobody knows": lambda: find(Filters(batch="none")),
        "batches": lambda: list_batches(store.database),
        "open by its id": lambda: store.circles.load(newest.id),
        "open by the beginning of an id": lambda: store.circles.load(newest.id[:8]),
        "its neighbours": lambda: store.circles.neighbours(newest.pk // 2),
        "count all": lambda: store.circles.count(),
        "count alarms": lambda: store.circles.count(Filters(alarm=True)),
    }


def milliseconds(ask: Ask) -> float:
    """How long an answer takes, usually."""
    ask()
    took = []
    for _ in range(TRIES):
        started = time.perf_counter()
        ask()
        took.append(time.perf_counter() - started)
    return 1000 * median(took)


def size_of(store: Store) -> int:
    """Bytes of the file, or of the database on its server, once everything is in it."""
    with store.database.engine.connect() as connection:
        if not store.database.is_sqlite:
            return int(
                connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one()
            )
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    return Path(store.name).stat().st_size


def plans(store: Store, ask: Ask) -> Iterator[str]:
    """How the database says that it looks for an answer."""
    asked: list[tuple[Any, Any]] = []

    def remember(_: Any, __: Any, statement: str, values: Any, ___: Any, ____: Any) -> None:
        asked.append((statement, values))

    engine = store.database.engine
    sa.event.listen(engine, "before_cursor_execute", remember)
    ask()
    sa.event.remove(engine, "before_cursor_execute", remember)
    explain = "EXPLAIN QUERY PLAN" if store.database.is_sqlite else "EXPLAIN (ANALYZE, COSTS OFF)"
    with store.database.reading() as connection:
        for statement, values in asked:
            if statement.lstrip().startswith(("SELECT", "WITH")):
                yield from (
                    str(row[-1]) for row in connection.exec_driver_sql(f"{explain} {statement}", values)
                )


def carried(store: Store, into: Store, circles: int) -> tuple[float, float]:
    """How many circles an export writes and an import takes a second."""
    started = time.perf_counter()
    lines = []
    for line in export_lines(store.circles, Filters()):
        lines.append(line)
        if len(lines) > circles:
            break
    out = circles / (time.perf_counter() - started)
    file = io.BytesIO("\n".join(lines).encode() + b"\n")
    started = time.perf_counter()
    progress = [step for step in import_circles(into.circles, file) if isinstance(step, ImportProgress)]
    taken = progress[-1]
    if taken.added != circles:
        raise RuntimeError(f"of {circles} circles {taken.added} were taken over")
    return out, circles / (time.perf_counter() - started)


def growth(small: Store, store: Store, other: Store, few: int, most: int, explain: bool) -> None:
    """Fill a small and a large store, ask them the same things in turn, and print both."""
    kinds = asyncio.run(templates())
    empty = size_of(store)
    fill(small, kinds, few, 0)
    rate = fill(store, kinds, most, 0)
    asked_of_large = questions(store)
    before, after = {}, {}
    for name, ask in questions(small).items():
        turns = [(milliseconds(ask), milliseconds(asked_of_large[name])) for _ in range(TURNS)]
        before[name], after[name] = map(median, zip(*turns, strict=True))
    large = size_of(store) - empty
    print(f"fill    {rate:.0f} circles a second, 3 voices and 2 rounds each, {AT_ONCE} a transaction")
    print(f"size    {large / most / 1000:.1f} kB a circle; {large / 1e6:.0f} MB for {most:,}")
    print(f"find    of {few:,} circles -> of {most:,}")
    for name, small_ms in before.items():
        times = after[name] / small_ms
        print(f"find    {name:38} {small_ms:8.2f} ms -> {after[name]:8.2f} ms  x {times:.1f}")
    if explain:
        for name, ask in questions(store).items():
            print(f"\n-- {name}", *plans(store, ask), sep="\n   ")
    out, back = carried(store, other, FEW)
    print(f"carry   export {out:.0f}, import {back:.0f} circles a second")
    started = time.perf_counter()
    gone = sum(store.circles.prune(Filters(until=1.7e9 + 60 * FEW)))
    print(f"prune   {gone / (time.perf_counter() - started):.0f} circles a second")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("most", nargs="?", type=int, default=MANY)
    parser.add_argument("--few", type=int, default=FEW)
    parser.add_argument("--store", help="an empty PostgreSQL database or schema instead of SQLite")
    parser.add_argument("--small", help="another empty one beside it")
    parser.add_argument("--explain", action="store_true")
    asked = parser.parse_args()
    if (asked.store is None) != (asked.small is None):
        raise SystemExit("--store and --small: name both, or none for SQLite")
    with tempfile.TemporaryDirectory() as folder:
        if asked.store is None:
            with open_store(Path(folder) / "one.sqlite") as store:
                measure_keeping(store)
        with (
            open_store(asked.small or Path(folder) / "few.sqlite") as small,
            open_store(asked.store or Path(folder) / "many.sqlite") as store,
            open_store(Path(folder) / "b.sqlite") as other,
        ):
            if store.circles.count() or small.circles.count():
                raise SystemExit("--store, --small: there are circles already; name empty databases")
            growth(small, store, other, asked.few, asked.most, asked.explain)


def measure_keeping(store: Store) -> None:
    """What it costs a circle that it is kept."""
    for latency in (0.2, 0.0):
        seconds, work = asyncio.run(cost_of_keeping(store, latency))
        target = " (target 1.05)" if latency else ""
        print(
            f"keep    10 x 3 at {latency:.1f} s: {seconds:.3f} x the circle's own time{target},"
            f" {work:.2f} x its CPU"
        )
    per_circle = size_of(store) / store.circles.count() / 1000
    print(f"size    {per_circle:.0f} kB for a circle of 10 voices and 3 rounds")


if __name__ == "__main__":
    main()
