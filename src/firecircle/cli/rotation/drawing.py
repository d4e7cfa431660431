"""Drawing a circle from a pool before anybody is asked, and what kept circles teach about its pairs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from pydantic import ValidationError

from firecircle.circle.config import LARGEST_CIRCLE, SMALLEST_CIRCLE
from firecircle.circle.quorum import QuorumRules
from firecircle.cli.output import console_on
from firecircle.cli.printable import printable_line
from firecircle.cli.rotation.command import todays_pool, usual_pool
from firecircle.errors import ConfigError, StoreError
from firecircle.names import EvaluationMode
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest
from firecircle.rotation.affinity import FEWEST_CIRCLES, Affinity, CircleGlance, affinities
from firecircle.rotation.empty_chair import GENERAL
from firecircle.rotation.history import Draw
from firecircle.rotation.selector import WeightedVoiceSelector, circle_size_for
from firecircle.rotation.tracker import VoiceHistoryTracker, stored_history
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.store.opening import open_store
from firecircle.telling.words import counted

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
