"""`firecircle rotation`: who was heard and who is due, the next sittings, and how a circle was drawn."""

from __future__ import annotations

import asyncio
import math
import secrets
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.config import LARGEST_CIRCLE, SMALLEST_CIRCLE
from firecircle.circle.quorum import QuorumRules
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
from firecircle.cli.output import (
    bar,
    console_on,
    print_json,
    print_outcome,
    print_sections,
    section,
    with_progress,
)
from firecircle.errors import ConfigError, StoreError
from firecircle.names import EvaluationMode, is_family
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest, configure_by_file
from firecircle.rotation.affinity import FEWEST_CIRCLES, Affinity, CircleGlance, affinities, factors
from firecircle.rotation.drawing import DrawCheck, characteristics_in, verify_draw
from firecircle.rotation.empty_chair import GENERAL
from firecircle.rotation.selector import (
    DAY,
    DEFAULT_RULES,
    Evenness,
    FairnessReport,
    Simulation,
    WeightedVoiceSelector,
    circle_size_for,
    fairness_in,
    ranked_for,
    simulate_sittings,
)
from firecircle.rotation.tracker import (
    Draw,
    VoiceHistoryTracker,
    document_of,
    export_history,
    import_history,
    read_history,
    stored_history,
)
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.store.opening import open_store
from firecircle.telling.answers import CHAIR_SYMBOL
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.telling.words import counted, time_text
from firecircle.voices.seating import with_todays_models

if TYPE_CHECKING:
    from firecircle.rotation.tracker import ParticipationHistory

Pool = Annotated[
    list[str] | None,
    typer.Option("--models", metavar="A,B,C", help="The pool; default: the voices of the usual circle."),
]
HistoryFile = Annotated[
    str | None,
    typer.Option("--history", metavar="FILE", help="Look at an exported history instead of the store."),
]
Domain = Annotated[str, typer.Option("--domain", metavar="D", help="The decision domain.")]


@contextmanager
def open_history(where: str | None = None) -> Iterator[ParticipationHistory]:
    """The history in the store, as rotation reads it."""

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
    if draw_id is not None:
        return _verify(draw_id, history, store, as_json=as_json)
    if pairs:
        return _pairs(store, as_json=as_json)

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
    count: Annotated[int, typer.Argument(metavar="N", min=2, max=10, help="Number of voices in a circle.")],
    models: Pool = None,
    sittings: Annotated[
        int, typer.Option(metavar="K", min=1, max=1000, help="Number of circles to simulate.")
    ] = 10,
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
    with _open_history(history, store) as participation:
        draw = _find_draw(participation, draw_id)
        check = verify_draw(draw, participation)
    return show_check(draw, check, as_json=as_json)


def _pairs(store: str | None, *, as_json: bool) -> int:
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
    return nullcontext(read_history(file))


def usual_pool() -> tuple[str, ...]:
    """Who is drawn from when no voice was named: the voices of the usual circle."""
    return configure_by_file(JudgingRequest()).config.models


def todays_pool(pool: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The pool with a model in place of each family, and for which family each sits: the store has ids."""
    if not any(map(is_family, pool)):
        return pool, {}
    seated = asyncio.run(with_todays_models(EvaluationConfig(models=pool)))
    return seated.models, seated.families


def _pool(models: list[str] | None) -> tuple[str, ...]:
    return todays_pool(names_in(models or (), "--models") or usual_pool())[0]


def _learnt(where: str | None, pool: tuple[str, ...]) -> tuple[Affinity, ...]:

    with open_store(where) as store:
        return pairs_learnt(store.circles, pool)


def _print_affinity(drawn: Draw) -> None:
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


AUTO = "auto"
LOOKED_AT = 1_000
"""So many of the newest circles are looked at, in a list that costs little."""
READ = 100
"""So many of them are read: the newest that found patterns and seated two of the pool."""


def draw_circle(
    asked: JudgingRequest,
    prompt: MultiNeutrosophicPrompt,
    rotate: str,
    *,
    shadow: bool = False,
    match_expertise: bool = False,
    affinity: bool = False,
    keep: bool = True,
    where: str | None = None,
) -> JudgingRequest:
    """The request with a draw; the models that were asked for are the pool.

    A draw that is not to be kept, for a rehearsal or without saving, is not recorded. The error stream tells
    who was drawn and how to verify it; a shadow's only trace would be the store otherwise.
    """
    if asked.mode is not EvaluationMode.FIRE_CIRCLE:
        raise ConfigError("--rotate", "only a circle rotates", "leave it out or use --mode fire_circle")
    settings = asked.asked
    pool, families = todays_pool(settings.get("models") or usual_pool())
    count = _count(rotate, prompt, len(pool))
    with open_store(where) as store:
        selector = WeightedVoiceSelector(
            VoiceHistoryTracker(stored_history(store)),
            rules=QuorumRules.among(settings) if settings.get("enforce_quorum", True) else None,
            match_expertise=match_expertise,
            affinity=pairs_learnt(store.circles, pool) if affinity else (),
            shadow=shadow,
        )
        seed = str(settings["seed"]) if "seed" in settings else None
        domain = settings.get("decision_domain", GENERAL)
        drawn = selector.draw(pool, count, domain, session_seed=seed, record=keep)
    console = console_on(sys.stderr)
    for note in (_draw_note(drawn, kept=keep), *((affinity_note(drawn),) if affinity else ())):
        console.print(note, soft_wrap=not console.is_terminal)
    named = {"families": families} if families and drawn.used else {}
    return replace(asked, draw=drawn, settings={**asked.settings, **named})


def _draw_note(drawn: Draw, *, kept: bool) -> str:
    names = ", ".join(map(printable_line, drawn.selected))
    how = "drawn" if drawn.used else "would be drawn (shadow)"
    verify = f"`firecircle rotation show {drawn.draw_id[:8]}`" if kept else "not recorded"
    return f"{how} from {len(drawn.candidates)} voices: {names}; {verify}"


def _count(rotate: str, prompt: MultiNeutrosophicPrompt, available: int) -> int:
    if rotate == AUTO:
        return circle_size_for(prompt, available)
    if rotate.isdecimal() and SMALLEST_CIRCLE <= int(rotate) <= LARGEST_CIRCLE:
        return int(rotate)
    raise ConfigError(
        "--rotate",
        f"a circle has {SMALLEST_CIRCLE} to {LARGEST_CIRCLE} voices, got {rotate[:20]!r}",
        f"write a number or {AUTO}, which follows from the prompt",
    )


def pairs_learnt(circles: CircleStore, pool: Collection[str]) -> tuple[Affinity, ...]:
    """What the newest kept circles say about pairs of these voices."""
    names = set(pool)
    newest = islice(circles.each_summary(Filters(mode="fire_circle", in_run=False)), LOOKED_AT)
    shared = (circle for circle in newest if circle.pattern_types and len(names & {*circle.voices}) > 1)
    return affinities(glances(circles, islice(shared, READ)))


def glances(circles: CircleStore, summaries: Iterable[CircleSummary]) -> Iterator[CircleGlance]:
    """What these circles say about pairs; one that cannot be read, or is gone by now, is left out."""
    for summary in summaries:
        try:
            yield CircleGlance.model_validate_json(circles.document(summary.id)[1])
        except (StoreError, ConfigError, ValidationError):
            continue


def affinity_note(drawn: Draw) -> str:
    """How much a draw that was asked to heed affinity knew."""
    if not drawn.affinities:
        return (
            "affinity: nothing learnt yet, drawn without it; no two of these voices have shared"
            f" {FEWEST_CIRCLES} saved circles that found patterns"
        )
    return f"affinity: {counted(len(drawn.affinities), 'pair')} of these voices known from saved circles"


SAME, ANOTHER = 0, 1
BAR = 8
MOST_PAIRS = 10
LATEST = 5
"""So many draws are shown; JSON has them all."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Who was heard, who is due, and the draws so far."""

    report: FairnessReport
    weights: Mapping[str, float]
    expertise: Sequence[tuple[str, float]]
    """How well each voice fits the domain, the best first."""
    draws: Sequence[Draw]
    domain: str
    at: float


def show_standings(standings: Standings, *, as_json: bool) -> int:
    """Print the standings; the exit status."""
    report = standings.report
    if as_json:
        print_json(
            {
                **report.model_dump(mode="json"),
                "domain": standings.domain,
                "weights": dict(standings.weights),
                "expertise": dict(standings.expertise),
                "draws": [draw.model_dump(mode="json") for draw in standings.draws],
            }
        )
        return 0
    console = console_on(sys.stdout)
    _headline(console, f"{counted(report.sittings, 'sitting')}, {counted(len(report.voices), 'voice')}")
    console.print(_table(console, report, standings.at, standings.weights))
    console.print(Text(f"weight: how much a voice is due in the domain {standings.domain}", style="dim"))
    console.print()
    _evenness(console, report)
    fit = ", ".join(f"{printable_line(voice)} {share:.2f}" for voice, share in standings.expertise)
    latest = list(standings.draws)[-LATEST:]
    print_sections(
        console,
        [
            ("Fit", [f"for {standings.domain}: {fit}"]),
            ("Draws", [_draw_line(draw) for draw in reversed(latest)]),
        ],
    )
    return 0


def show_simulation(outcome: Simulation, seed: str, *, as_json: bool) -> int:
    """Print what the next sittings would be; the exit status."""
    if as_json:
        print_json({"seed": seed, **outcome.model_dump(mode="json")})
        return 0
    console = console_on(sys.stdout)
    _headline(console, f"{counted(len(outcome.draws), 'sitting')} simulated, seed {printable_line(seed)}")
    for number, draw in enumerate(outcome.draws, start=1):
        names = [
            f"{printable_line(voice)}{CHAIR_SYMBOL if voice == draw.chair else ''}" for voice in draw.selected
        ]
        console.print(*section(f"{number:>6}", [", ".join(names)]))
    console.print()
    console.print(_table(console, outcome.after, outcome.draws[-1].at))
    console.print(Text(f"{CHAIR_SYMBOL} holds the chair first; counts include the real history", style="dim"))
    console.print()
    _evenness(console, outcome.after)
    return 0


def show_check(draw: Draw, check: DrawCheck, *, as_json: bool) -> int:
    """Print whether a draw is what its seed gives; the exit status."""
    if as_json:
        document = {
            "valid": check.valid,
            "problems": list(check.problems),
            "differences": list(check.differences),
        }
        print_json({**document, "draw": draw.model_dump(mode="json")})
        return SAME if check.valid else ANOTHER
    console = console_on(sys.stdout)
    word, colour = (" VERIFIED ", "green") if check.valid else (" NOT VERIFIED ", "red")
    headline = Text().append(word, style=f"bold reverse {colour}")
    console.print(headline.append(f"  {printable_line(draw.draw_id)}", style="bold"))
    console.print()
    weights = [
        f"{candidate.weight:.3f} {'*' if candidate.voice_id in draw.selected else ' '}"
        f" {printable_line(candidate.voice_id)}"
        for candidate in sorted(draw.candidates, key=lambda candidate: -candidate.weight)
    ]
    print_sections(
        console,
        [
            ("Drawn", [f"{_moment(draw.at)}, {draw.required_count} of {len(draw.candidates)}"]),
            ("Seed", [printable_line(draw.seed)]),
            ("Domain", [printable_line(draw.decision_domain)]),
            ("Circle", [", ".join(map(printable_line, draw.selected)) + _shadow(draw)]),
            ("Chair", [printable_line(draw.chair or "nobody")]),
            ("Weights", weights),
            ("Affinity", _pairs_in(draw)),
            ("Wrong", [printable_line(problem) for problem in check.problems]),
            ("History", [printable_line(difference) for difference in check.differences]),
        ],
    )
    return SAME if check.valid else ANOTHER


def show_pairs(pairs: Sequence[Affinity], *, as_json: bool) -> int:
    """Print who complements whom; the exit status."""
    if as_json:
        print_json([pair.model_dump(mode="json") for pair in pairs])
        return 0
    console = console_on(sys.stdout)
    if not pairs:
        console.print("no circle with patterns is saved yet")
    for pair in pairs[:MOST_PAIRS]:
        names = f"{printable_line(pair.first)} + {printable_line(pair.second)}"
        alone = max(pair.backed_by_first, pair.backed_by_second)
        shares = f"{pair.backed_by_either} of {pair.patterns} patterns together, {alone} by one alone"
        facts = f"{shares}; {counted(pair.circles, 'circle')}"
        console.print(*section(f"{pair.complement:.2f}", [names, facts]))
    return 0


def _headline(console: Console, words: str) -> None:
    console.print(Text().append(" ROTATION ", style="bold reverse cyan").append(f"  {words}", style="bold"))
    console.print()


def _table(
    console: Console, report: FairnessReport, at: float, weights: Mapping[str, float] | None = None
) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("voice", "heard", "chair", "last heard", *(("weight",) if weights is not None else ())):
        table.add_column(title, no_wrap=True)
    digits = len(str(report.heard.most)) + len(str(report.chairs.most))
    taken = 2 * (BAR + 1) + digits + len("last heard") + (BAR + 6 if weights is not None else 0)
    room = max(12, console.width - taken - 2 * len(table.columns))
    heaviest = max(weights.values(), default=1.0) if weights else 1.0
    for voice in report.voices:
        row = [
            Text(shortened(printable_line(voice.voice_id), room)),
            _share(voice.count, report.heard.most),
            _share(voice.chair_count, report.chairs.most),
            Text(_ago(at, voice.last_heard)),
        ]
        if weights is not None:
            weight = weights[voice.voice_id]
            row.append(Text(f"{bar(weight / heaviest, BAR)} {weight:.3f}"))
        table.add_row(*row)
    return table


def _share(count: int, most: int) -> Text:
    return Text(f"{bar(count / most if most else 0.0, BAR)} {count}")


def _evenness(console: Console, report: FairnessReport) -> None:
    never_in_chair = [voice for voice in report.never_in_chair if voice not in report.never_heard]
    never = [
        f"{what}: {', '.join(map(printable_line, voices))}"
        for what, voices in (("heard", report.never_heard), ("in the chair", never_in_chair))
        if voices
    ]
    even = [f"heard {_in_words(report.heard)}", f"chair {_in_words(report.chairs)}"]
    print_sections(console, [("Evenness", even), ("Never", never)])


def _in_words(even: Evenness) -> str:
    indices = f"Jain {even.jain:.2f} (1 is even), Gini {even.gini:.2f} (0 is even)"
    return f"{even.least} to {even.most} times; {indices}"


def _draw_line(draw: Draw) -> str:
    names = ", ".join(map(printable_line, draw.selected))
    domain = printable_line(draw.decision_domain)
    return f"{printable_line(draw.draw_id)} {_moment(draw.at)} {domain}: {names}{_shadow(draw)}"


def _pairs_in(draw: Draw) -> list[str]:
    """By what the voices of the circle bent each other's weight, the strongest first."""
    beside = factors(draw.affinities)
    if not beside:
        return []
    seated = [pair for pair in beside if set(pair) <= set(draw.selected)]
    seated.sort(key=lambda pair: (-abs(math.log(beside[pair])), pair))
    return [
        f"{counted(len(draw.affinities), 'pair')} known among the candidates",
        *(
            f"{beside[drawn, joining]:.2f}  {printable_line(joining)} beside {printable_line(drawn)}"
            for drawn, joining in seated[:MOST_PAIRS]
        ),
    ]


def _shadow(draw: Draw) -> str:
    return "" if draw.used else " (shadow: not used)"


def _ago(at: float, last: float | None) -> str:
    if last is None:
        return "never"
    hours = max(0.0, at - last) / 3600
    if hours < 1:
        return "just now"
    return f"{hours:.0f} h ago" if hours < 48 else f"{hours / 24:.0f} d ago"


def _moment(at: float) -> str:
    return time_text(at, "%Y-%m-%d %H:%M UTC", UTC)
