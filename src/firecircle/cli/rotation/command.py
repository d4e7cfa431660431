"""`firecircle rotation`: who was heard and who is due, the next sittings, and how a circle was drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import (
    AsJson,
    ExportFile,
    Force,
    HeedAffinity,
    MatchExpertise,
    StoreOption,
    names_in,
    refuse_json_beside_export,
    refuse_to_replace,
)
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.rotation.affinity import Affinity
    from firecircle.rotation.history import Draw, ParticipationHistory

Pool = Annotated[
    list[str] | None,
    typer.Option("--models", metavar="A,B,C", help="The pool; default: the voices of the usual circle."),
]
HistoryFile = Annotated[
    str | None,
    typer.Option("--history", metavar="FILE", help="Look at an exported history instead of the store."),
]
Domain = Annotated[str, typer.Option("--domain", metavar="D", help="The decision domain.")]


def rotation_commands() -> typer.Typer:
    """The commands of the group."""
    group = typer.Typer(help="Show who was invited, how often and by which draws.")
    for command in (show, simulate):
        group.command()(command)
    group.command("export")(export_to)
    group.command("import")(import_from)
    return group


@contextmanager
def open_history(where: str | None = None) -> Iterator[ParticipationHistory]:
    """The history in the store, as rotation reads it."""
    from firecircle.rotation.tracker import stored_history
    from firecircle.store.opening import open_store

    with open_store(where) as store:
        yield stored_history(store)


def show(
    draw_id: Annotated[
        str | None,
        typer.Argument(metavar="DRAW_ID", help="A draw to repeat from its seed; the first letters will do."),
    ] = None,
    models: Pool = None,
    domain: Domain = "general",
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="Show which voices back more patterns together than either does alone."),
    ] = False,
    history: HistoryFile = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Show how often each voice was heard and held the chair, how even that is, and what each weighs now.

    With a DRAW_ID a recorded circle is drawn again. Exit status 0: the same circle, 1: another, 2: error.
    """
    import time

    if draw_id is not None:
        return _verify(draw_id, history, store, as_json=as_json)
    if pairs:
        return _pairs(store, as_json=as_json)

    from firecircle.cli.rotation.view import Standings, show_standings
    from firecircle.rotation.drawing import characteristics_in
    from firecircle.rotation.fairness import fairness_in
    from firecircle.rotation.selector import WeightedVoiceSelector, ranked_for
    from firecircle.rotation.tracker import VoiceHistoryTracker

    with _open_history(history, store) as participation:
        names, now = _pool(models), time.time()
        tracker = VoiceHistoryTracker(participation)
        if not models:
            # Whoever was heard belongs into the picture, member of the usual circle or not.
            names = tuple(dict.fromkeys((*names, *tracker.stats())))
        candidates = WeightedVoiceSelector(tracker, rules=None).candidates(names, domain, now)
        voices = [characteristics_in(candidate) for candidate in candidates]
        standings = Standings(
            report=fairness_in(participation, names),
            weights={candidate.voice_id: candidate.weight for candidate in candidates},
            expertise=ranked_for(domain, voices, tracker.stats(names)),
            draws=tuple(participation.draws()),
            domain=domain,
            at=now,
        )
        return show_standings(standings, as_json=as_json)


def simulate(
    count: Annotated[
        int, typer.Argument(metavar="N", min=2, max=10, help="How many voices sit in a circle.")
    ],
    models: Pool = None,
    sittings: Annotated[int, typer.Option(metavar="K", min=1, max=1000, help="How many sittings.")] = 10,
    domain: Domain = "general",
    seed: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Simulate the same again; default: a fresh one.")
    ] = None,
    no_quorum: Annotated[bool, typer.Option("--no-quorum", help="Draw without a quorum.")] = False,
    match_expertise: MatchExpertise = False,
    affinity: HeedAffinity = False,
    history: HistoryFile = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Draw the next K circles of N voices on a copy of the history; no voice is asked, nothing is saved."""
    import secrets
    import time

    from firecircle.cli.rotation.view import show_simulation
    from firecircle.rotation.fairness import DAY, simulate_sittings
    from firecircle.rotation.selector import DEFAULT_RULES

    if affinity and history is not None:
        raise ConfigError(
            "--affinity", "an exported history has no circles to learn from", "leave one of them out"
        )
    seed = secrets.token_hex(8) if seed is None else seed
    pool = _pool(models)
    with _open_history(history, store) as participation:
        outcome = simulate_sittings(
            participation,
            pool,
            count,
            sittings,
            start=time.time(),
            seed=seed,
            domain=domain,
            every_seconds=DAY,
            rounds=3,
            rules=None if no_quorum else DEFAULT_RULES,
            match_expertise=match_expertise,
            affinity=_learnt(store, pool) if affinity else (),
        )
    if affinity:
        _print_affinity(outcome.draws[0])
    return show_simulation(outcome, seed, as_json=as_json)


def _verify(draw_id: str, history: str | None, store: str | None, *, as_json: bool) -> int:
    from firecircle.cli.rotation.view import show_check
    from firecircle.rotation.drawing import verify_draw

    with _open_history(history, store) as participation:
        draw = _find_draw(participation, draw_id)
        check = verify_draw(draw, participation)
    return show_check(draw, check, as_json=as_json)


def _pairs(store: str | None, *, as_json: bool) -> int:
    from firecircle.cli.output import with_progress
    from firecircle.cli.rotation.drawing import glances
    from firecircle.cli.rotation.view import show_pairs
    from firecircle.rotation.affinity import affinities
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        summaries = opened.circles.each_summary(Filters(mode="fire_circle", in_run=False))
        counted_summaries = with_progress(summaries, "reading circle")
        with_patterns = (summary for summary in counted_summaries if summary.pattern_types)
        known_pairs = affinities(glances(opened.circles, with_patterns))
    return show_pairs(known_pairs, as_json=as_json)


def export_to(
    file: ExportFile = "-",
    force: Force = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Write the whole participation history to one JSON file."""
    from firecircle.cli.output import print_outcome
    from firecircle.rotation.history import document_of, export_history
    from firecircle.telling.words import counted

    refuse_json_beside_export(file, as_json=as_json)
    refuse_to_replace(file, force=force)
    with open_history(store) as participation:
        if file == "-":
            print(document_of(participation).model_dump_json(indent=2), flush=True)
            return 0
        written = export_history(participation, file)
    rows, draws = len(written.participations), len(written.draws)
    return print_outcome(
        f"{counted(rows, 'participation')} and {counted(draws, 'draw')} written",
        {"file": file, "participations": rows, "draws": draws},
        as_json=as_json,
    )


def import_from(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that `rotation export` wrote.")],
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Take over the participations and draws of a file; a damaged file is refused as a whole."""
    from firecircle.cli.output import print_outcome
    from firecircle.rotation.history import import_history
    from firecircle.telling.words import counted

    with open_history(store) as participation:
        taken = import_history(file, participation)
    return print_outcome(
        f"{counted(taken.participations, 'participation')} and {counted(taken.draws, 'draw')} taken over,"
        f" {taken.known:,} were there already",
        {"file": file, **asdict(taken)},
        as_json=as_json,
    )


def _open_history(file: str | None, where: str | None) -> AbstractContextManager[ParticipationHistory]:
    if file is None:
        return open_history(where)
    if where is not None:
        raise ConfigError("--history", "a file is looked at instead of a store", "leave one of them out")
    from firecircle.rotation.history import read_history

    return nullcontext(read_history(file))


def usual_pool() -> tuple[str, ...]:
    """Who is drawn from when no voice was named: the voices of the usual circle."""
    from firecircle.request import JudgingRequest, configure_by_file

    return configure_by_file(JudgingRequest()).config.models


def todays_pool(pool: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The pool with a model in place of each family, and for which family each sits: the store has ids."""
    from firecircle.names import is_family

    if not any(map(is_family, pool)):
        return pool, {}
    import asyncio

    from firecircle.circle.base_config import EvaluationConfig
    from firecircle.voices.seating import with_todays_models

    seated = asyncio.run(with_todays_models(EvaluationConfig(models=pool)))
    return seated.models, seated.families


def _pool(models: list[str] | None) -> tuple[str, ...]:
    return todays_pool(names_in(models or (), "--models") or usual_pool())[0]


def _learnt(where: str | None, pool: tuple[str, ...]) -> tuple[Affinity, ...]:
    from firecircle.cli.rotation.drawing import pairs_learnt
    from firecircle.store.opening import open_store

    with open_store(where) as store:
        return pairs_learnt(store.circles, pool)


def _print_affinity(drawn: Draw) -> None:
    import sys

    from firecircle.cli.output import console_on
    from firecircle.cli.rotation.drawing import affinity_note

    console = console_on(sys.stderr)
    console.print(affinity_note(drawn), soft_wrap=not console.is_terminal)


def _find_draw(history: ParticipationHistory, given: str) -> Draw:
    draws = [draw for draw in history.draws() if given and draw.draw_id.startswith(given)]
    if not draws:
        raise ConfigError(
            "DRAW_ID", f"no draw begins with {given!r}", "`firecircle rotation show` lists them"
        )
    if len({draw.draw_id for draw in draws}) > 1:
        raise ConfigError("DRAW_ID", f"{len(draws)} draws begin with {given!r}", "write more of the id")
    return draws[0]
