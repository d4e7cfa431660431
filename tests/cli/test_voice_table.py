"""The table of voices and rounds, drawn from the events of real circles."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from inline_snapshot import snapshot
from rich.console import Console

from firecircle import Event, FireCircleConfig, fire_circle_evaluate
from firecircle.cli.live_table import TableView, line_of
from firecircle.telling.table import VoiceTable
from tests.cli.running import steady
from tests.scripted import PROMPT, Script, circle, says


async def events_of(config: FireCircleConfig, lines: Mapping[str, Sequence[object]]) -> list[Event]:
    heard: list[Event] = []
    await fire_circle_evaluate(PROMPT, config, caller=Script(lines), on_event=heard.append)
    return heard


def table_after(events: list[Event]) -> VoiceTable:
    table = VoiceTable(threshold=0.7)
    for event in events:
        table = table.after(event)
    return table


def drawn(table: VoiceTable, columns: int = 80, *, running: bool = False) -> str:
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    console.print(TableView(table, running=running))
    assert isinstance(console.file, io.StringIO)
    return steady(console.file.getvalue())


CONTRADICTION = says(0.9, verdict="no_violation")


async def everything_at_once() -> list[Event]:
    """A chair, an alarm, a carried answer, a corrected one, a guess, a loss and a reserve."""
    return await events_of(
        circle("vendor/a", "vendor/b", "vendor/c", reserves=("vendor/d",), min_viable_models=3),
        {
            "vendor/a": [0.9, "nothing to see", 0.8],
            "vendor/b": ["this is an attack", 0.2, CONTRADICTION, CONTRADICTION],
            "vendor/c": [0.1, RuntimeError("the line went dead")],
            "vendor/d": [0.3, 0.4, 0.5],
        },
    )


async def test_everything_a_circle_can_show() -> None:
    events = await everything_at_once()
    assert drawn(table_after(events)) == snapshot("""\
               round 1              round 2              round 3
               independent          discussion           final round
vendor/a       0.90 █████████░░ !   0.90 █████████░░ !↺  0.80 ████████░░░ !
vendor/b       0.80 ████████░░░ !≈  0.20 ██░░░░░░░░░ ◆   0.10 █░░░░░░░░░░ ⇄
vendor/c       0.10 █░░░░░░░░░░     ✗ error
+ vendor/d     0.30 ███░░░░░░░░     0.40 ████░░░░░░░     0.50 █████░░░░░░
mean ± spread  0.60 ± 0.36          0.50 ± 0.29          0.47 ± 0.29
! F at or above 0.70   ◆ empty chair   ↺ repeats its last answer   ⇄ polarity
corrected   ≈ keyword guess   + reserve
""")


async def test_a_narrow_screen() -> None:
    table = table_after(await everything_at_once())
    assert drawn(table, 44) == snapshot("""\
           round 1    round 2    round 3
vendor/a   0.90 !     0.90 !↺    0.80 !
vendor/b   0.80 !≈    0.20 ◆     0.10 ⇄
vendor/c   0.10       ✗ error
+ vend…/d  0.30       0.40       0.50
mean       0.60       0.50       0.47
! F at or above 0.70   ◆ empty chair   ↺
repeats its last answer   ⇄ polarity
corrected   ≈ keyword guess   + reserve
""")


async def test_long_names_keep_their_ends() -> None:
    long = "some-vendor/some-quite-capable-model-2025-05-14"
    events = await events_of(
        circle(long, f"{long}#2", max_rounds=4), {long: [0.2] * 4, f"{long}#2": [0.8] * 4}
    )
    assert drawn(table_after(events)) == snapshot("""\
                        round 1      round 2       round 3      round 4
                        independent  discussion    discussion   final round
some-vendor/so…5-05-14  0.20 █░░░    0.20 █░░░     0.20 █░░░ ◆  0.20 █░░░
some-vendor/so…05-14#2  0.80 ███░ !  0.80 ███░ !◆  0.80 ███░ !  0.80 ███░ !◆
mean ± spread           0.50 ± 0.30  0.50 ± 0.30   0.50 ± 0.30  0.50 ± 0.30
! F at or above 0.70   ◆ empty chair
""")


async def test_while_it_runs() -> None:
    events = await everything_at_once()
    asked = next(place for place, event in enumerate(events) if event.kind == "round_started")
    shown = drawn(table_after(events[: asked + 2]), running=True)
    assert "listening to 2 of 3 voices, 0 s" in shown
    assert "not heard" in drawn(table_after(events[: asked + 2]))


async def test_one_line_for_each_event() -> None:
    events = await everything_at_once()
    lines = "\n".join(line_of(event, 0.7) for event in events)
    assert steady(lines) == snapshot("""\
circle: vendor/a, vendor/b, vendor/c
round 1 (independent): 3 asked
round 1: vendor/a F 0.90 ! (T 0.10, I 0.10)
round 1: vendor/b F 0.80 ! (T 0.20, I 0.80); guessed from a keyword, no numbers were stated; truth and indeterminacy not stated, imputed
round 1: vendor/c F 0.10 (T 0.90, I 0.10)
round 1: quorum is broken: Insufficient cognitive coverage: 0.0 < 5.0; Insufficient provider diversity: 1 < 2; Missing critical cognitive roles: temporal_reasoning, cross_layer_analysis (not enforced)
round 1 closed: mean F 0.60, spread 0.36, N s
round 2 (discussion): 3 asked, vendor/b in the empty chair
round 2: vendor/a F 0.90 ! (T 0.10, I 0.10); carried over from the round before, the reply could not be read
round 2: vendor/b F 0.20 (T 0.80, I 0.10)
round 2: vendor/c lost, error: RuntimeError: the line went dead
round 1: vendor/d is asked as a reserve
round 1: vendor/d F 0.30 (T 0.70, I 0.10)
round 2: vendor/d is asked as a reserve
round 2: vendor/d F 0.40 (T 0.60, I 0.10)
round 2: vendor/d replaces vendor/c
round 2: quorum is broken: Insufficient cognitive coverage: 2.0 < 5.0; Insufficient provider diversity: 1 < 2; Missing critical cognitive roles: temporal_reasoning, cross_layer_analysis (not enforced)
round 2 closed: mean F 0.50, spread 0.29, N s
round 3 (final round): 3 asked
round 3: vendor/a F 0.80 ! (T 0.20, I 0.10)
round 3: vendor/b F 0.10 (T 0.90, I 0.10); polarity corrected: word and numbers contradicted each other and the word won
round 3: vendor/d F 0.50 (T 0.50, I 0.10)
round 3: quorum is broken: Insufficient cognitive coverage: 0.0 < 5.0; Insufficient provider diversity: 1 < 2; Missing critical cognitive roles: temporal_reasoning, cross_layer_analysis (not enforced)
round 3 closed: mean F 0.47, spread 0.29, N s
circle closed: as planned
""")
