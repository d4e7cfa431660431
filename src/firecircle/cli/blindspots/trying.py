"""Trying proposed additions: kept prompts are judged again by one voice, with and without each of them."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.result import FireCircleResult
from firecircle.cli.output import progress
from firecircle.cli.printable import printable_line
from firecircle.convene import seat_panel
from firecircle.errors import ConfigError, EvaluationError, StoreError
from firecircle.names import is_attack, is_benign, is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.store.circles import CircleStore
from firecircle.store.finding import CircleSummary, Filters
from firecircle.thresholds import reaches
from firecircle.voices.seating import with_todays_models

AT_ONCE = 4
USUAL_THRESHOLD = 0.7
PATIENCE = 300.0
"""Seconds one answer may take: a local model on a busy machine is slow."""


class Outcome(Shape):
    """How the single pass did on prompts of one kind, before and after; only prompts answered both times."""

    prompts: int
    alarms_before: int
    alarms_after: int
    mean_before: float
    """The mean falsehood."""
    mean_after: float


class Trial(Shape):
    """What one addition changed."""

    addition: Text
    attacks: Outcome | None
    benign: Outcome | None
    unanswered: int = 0

    @property
    def gain(self) -> float | None:
        """How much farther attacks and benign prompts are apart than before; negative: closer together."""
        if self.attacks is None or self.benign is None:
            return None
        after = self.attacks.mean_after - self.benign.mean_after
        return after - (self.attacks.mean_before - self.benign.mean_before)


class Trials(Shape):
    """Every addition tried on the same prompts."""

    voice: Text
    threshold: float
    attacks: int
    """In the sample, those first that round 1 had missed."""
    benign: int
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class _Case:
    prompt: MultiNeutrosophicPrompt
    attack: bool


def try_additions(
    circles: CircleStore,
    additions: Sequence[str],
    voice: str,
    *,
    sample: int,
    seed: int,
    threshold: float | None = None,
    run_id: str | None = None,
    in_run: bool | None = False,
) -> Trials:
    """Judge a sample of labelled prompts alone, plainly and with each addition.

    `run_id` and `in_run` say, as in `Filters`, whether the sample is of a run, of all runs, or of none.
    """
    if is_embedded(voice):
        raise ConfigError(
            "--voice", f"{voice} reads no question", "name a language model, such as local:smollm2"
        )
    alarm_from = USUAL_THRESHOLD if threshold is None else threshold
    among = Filters(mode="fire_circle", run_id=run_id, in_run=in_run)
    cases = _sampled(circles, among, sample, seed, alarm_from)
    if not cases:
        raise ConfigError("--try", "no kept circle is labelled attack or benign", "keep some with --label")
    scores = asyncio.run(_scores(cases, additions, voice, seed))
    plain = scores[0]
    trials = [
        _trial(addition, cases, plain, with_addition, alarm_from)
        for addition, with_addition in zip(additions, scores[1:], strict=True)
    ]
    return Trials(
        voice=voice,
        threshold=alarm_from,
        attacks=sum(case.attack for case in cases),
        benign=sum(not case.attack for case in cases),
        trials=tuple(trials),
    )


def _sampled(circles: CircleStore, among: Filters, sample: int, seed: int, threshold: float) -> list[_Case]:
    """So many attacks and benign prompts; of the attacks those first that round 1 missed."""
    draw = random.Random(seed)
    missed: list[str] = []
    attacks: list[str] = []
    benign: list[str] = []
    for summary in circles.each_summary(among):
        if is_benign(summary.label):
            benign.append(summary.id)
        elif is_attack(summary.label):
            (missed if _was_missed(summary, threshold) else attacks).append(summary.id)
    for ids in (missed, attacks, benign):
        draw.shuffle(ids)
    chosen = [(name, True) for name in (*missed, *attacks)[:sample]]
    chosen += [(name, False) for name in benign[:sample]]
    return [case for name, attack in chosen if (case := _case(circles, name, attack))]


def _was_missed(summary: CircleSummary, threshold: float) -> bool:
    first, last = summary.round1_falsehood, summary.falsehood
    return (
        first is not None and last is not None and reaches(last, threshold) and not reaches(first, threshold)
    )


def _case(circles: CircleStore, name: str, attack: bool) -> _Case | None:
    try:
        kept = circles.load(name)
    except StoreError:
        return None
    return _Case(kept.prompt, attack) if isinstance(kept, FireCircleResult) else None


async def _scores(
    cases: Sequence[_Case], additions: Sequence[str], voice: str, seed: int
) -> list[list[float | None]]:
    """For the plain question and each addition the falsehood of every prompt; None is unanswered."""
    config = EvaluationConfig(
        models=(voice,),
        temperature=0.0,
        seed=seed,
        timeout_seconds=PATIENCE,
        timeout_per_round=2 * PATIENCE,
        verdict_from="numbers",  # the plain question and the additions have to be asked in the same way
    )
    at_once = asyncio.Semaphore(AT_ONCE)
    ways = [(), *((addition,) for addition in additions)]
    answers = itertools.count(1)
    panel = seat_panel(await with_todays_models(config))

    async def score(case: _Case, guidance: Iterable[str]) -> float | None:
        async with at_once:
            try:
                heard = await panel.ask(case.prompt, guidance=tuple(guidance))
            except EvaluationError:
                return None
            finally:
                show_progress(next(answers))
            return heard.consensus.falsehood

    asking = f"asking {printable_line(voice)}: answer"
    with progress(asking, len(cases) * len(ways), after=0.0) as show_progress:  # one may take minutes
        show_progress(0)
        # One prompt after another, so that a model that remembers the beginning of a question profits.
        by_case = [await asyncio.gather(*(score(case, way) for way in ways)) for case in cases]
    return [[scores[place] for scores in by_case] for place in range(len(ways))]


def _trial(
    addition: str,
    cases: Sequence[_Case],
    plain: Sequence[float | None],
    with_addition: Sequence[float | None],
    threshold: float,
) -> Trial:
    answered = [
        (case.attack, before, after)
        for case, before, after in zip(cases, plain, with_addition, strict=True)
        if before is not None and after is not None
    ]
    return Trial(
        addition=addition,
        attacks=_outcome([(b, a) for attack, b, a in answered if attack], threshold),
        benign=_outcome([(b, a) for attack, b, a in answered if not attack], threshold),
        unanswered=len(cases) - len(answered),
    )


def _outcome(pairs: Sequence[tuple[float, float]], threshold: float) -> Outcome | None:
    if not pairs:
        return None
    before, after = zip(*pairs, strict=True)
    return Outcome(
        prompts=len(pairs),
        alarms_before=sum(reaches(value, threshold) for value in before),
        alarms_after=sum(reaches(value, threshold) for value in after),
        mean_before=fmean(before),
        mean_after=fmean(after),
    )
