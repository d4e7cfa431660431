"""Effects of the discussion on opinions and reasons; what the chair brought; what other rules conclude.

All of it is computed from a circle's record on demand; nothing here decides a verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from firecircle.circle.grounding import grounded_in_reasoning
from firecircle.circle.pattern_types import UNTYPED, Typing, heuristic_typing
from firecircle.circle.patterns import group_observations, observe
from firecircle.circle.result import (
    Accounting,
    DialogueRound,
    FireCircleResult,
    Flip,
    Movement,
    Observation,
    PatternObservation,
    RivalVerdict,
    RoundMetrics,
    Usages,
)
from firecircle.circle.rules import BY_NAME, Words, values_by_rule
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation, spread
from firecircle.shapes import Shape, Text, Unit
from firecircle.thresholds import reaches

MOVED = 1e-9
LEAST_RUN = 4
"""Consecutive words that two texts rarely share by chance."""
LONGEST_COMPARED = 10_000
"""Characters of a reasoning."""
PERFORMATIVE_BELOW = 0.10


def round_metrics(
    history: Sequence[DialogueRound], observations: Sequence[Observation]
) -> tuple[RoundMetrics, ...]:
    """Mean and spread of F for every round, the change of spread, and what that round's chair added."""
    measured: list[RoundMetrics] = []
    for held in history:
        if not held.evaluations:
            continue
        deviation = spread(held.evaluations)
        before = measured[-1].f_score_stddev if measured else deviation
        chair = held.occupied_chair
        measured.append(
            RoundMetrics.assembled(
                round_number=held.round_number,
                f_score_mean=fmean([evaluation.falsehood for evaluation in held.evaluations]),
                f_score_stddev=deviation,
                convergence_delta=deviation - before,
                empty_chair_influence=influence_of(observations, {held.round_number: chair} if chair else {}),
            )
        )
    return tuple(measured)


def calculate_empty_chair_influence(
    dialogue_history: Sequence[DialogueRound],
    empty_chair_models: Mapping[int, str],
    typing: Typing = heuristic_typing,
) -> float:
    """The share of pattern types that the chair of a round mentioned first.

    Within a round, voices count in the order of their ids, so the figure does not depend on which answered
    first.
    """
    return influence_of(observe(dialogue_history, typing), empty_chair_models)


def typed_in_talk(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Observations that a chair can contribute: those with a type from round 2 on."""
    return tuple(seen for seen in observations if seen.round_number > 1 and seen.pattern_type not in UNTYPED)


def influence_of(observations: Sequence[Observation], empty_chair_models: Mapping[int, str]) -> float:
    """As `calculate_empty_chair_influence`, from classified observations."""
    firsts = [
        min(group, key=lambda seen: (seen.round_number, seen.model))
        for group in group_observations(typed_in_talk(observations))
    ]
    if not firsts:
        return 0.0
    brought = sum(empty_chair_models.get(first.round_number) == first.model for first in firsts)
    return brought / len(firsts)


def flips(history: Sequence[DialogueRound]) -> tuple[Flip, ...]:
    """How each voice's F moved between rounds, and whether toward its peers."""
    moves: list[Flip] = []
    for earlier, later in pairwise(history):
        before = {evaluation.model: evaluation.falsehood for evaluation in earlier.evaluations}
        said = {evaluation.model: evaluation.reasoning for evaluation in earlier.evaluations}
        for evaluation in later.evaluations:
            if evaluation.model not in before:
                continue
            peers = [falsehood for model, falsehood in before.items() if model != evaluation.model]
            words = [reasoning for model, reasoning in said.items() if model != evaluation.model]
            rose = evaluation.falsehood - before[evaluation.model] > MOVED
            moves.append(
                Flip.assembled(
                    model=evaluation.model,
                    round_number=later.round_number,
                    before=before[evaluation.model],
                    after=evaluation.falsehood,
                    movement=_movement(before[evaluation.model], evaluation.falsehood, peers),
                    repeats=repeated_share(evaluation.reasoning, words) if rose else None,
                )
            )
    return tuple(moves)


def repeated_share(reasoning: str, others: Iterable[str]) -> float | None:
    """The share of a reasoning's words in word sequences that some other text has too."""
    words = _words(reasoning)
    if len(words) < LEAST_RUN:
        return None
    theirs = {run for other in others for run in _runs(_words(other))}
    repeated = {
        place + step for place, run in enumerate(_runs(words)) if run in theirs for step in range(LEAST_RUN)
    }
    return len(repeated) / len(words)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text[:LONGEST_COMPARED].lower())


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[step:] for step in range(LEAST_RUN)), strict=False)


def _movement(before: float, after: float, peers: Sequence[float]) -> Movement:
    moved = after - before
    if abs(moved) <= MOVED:
        return "unchanged"
    pull = fmean(peers) - before if peers else 0.0
    return "toward_peers" if moved * pull > 0 else "away_from_peers"


def rival_verdicts(
    history: Sequence[DialogueRound],
    active_models: Sequence[str],
    alarm_threshold: float,
    calibrated: float | None = None,
) -> dict[str, RivalVerdict]:
    """The verdict of each rule on the same transcript, active voices only."""
    evaluations = [
        evaluation for held in history for evaluation in held.evaluations if evaluation.model in active_models
    ]
    if not evaluations:
        return {}
    return {
        name: RivalVerdict.assembled(value=value, alarm=BY_NAME[name].alarms(value, alarm_threshold))
        for name, value in values_by_rule(Words.of(evaluations, alarm_threshold, calibrated)).items()
    }


def voice_scores(patterns: Sequence[PatternObservation], active_models: Sequence[str]) -> Mapping[str, float]:
    """The share of the circle's grounded patterns that each voice supported with a quote."""
    return {
        model: sum(any(place.quoted_by == model for place in pattern.evidence) for pattern in patterns)
        / len(patterns)
        if patterns
        else 0.0
        for model in active_models
    }


def together(accounts: Sequence[Accounting]) -> Accounting:
    """Several accounts as one."""
    rounds = dict.fromkeys(number for account in accounts for number in account.by_round)
    voices = dict.fromkeys(model for account in accounts for model in account.by_voice)
    return Accounting(
        total=_join([account.total for account in accounts]),
        by_round={
            n: _join([account.by_round[n] for account in accounts if n in account.by_round]) for n in rounds
        },
        by_voice={
            m: _join([account.by_voice[m] for account in accounts if m in account.by_voice]) for m in voices
        },
    )


def _join(sums: Sequence[Usages]) -> Usages:
    prices = [usages.cost_usd for usages in sums if usages.cost_usd is not None]
    counts = {
        name: sum(getattr(usages, name) for usages in sums)
        for name in Usages.model_fields
        if name != "cost_usd"
    }
    return Usages(**counts, cost_usd=sum(prices) if prices else None)


MOVED_BY = 0.1
"""A falsehood that changes by so much, or to the other side of the threshold, is a changed position."""


class Figures(Shape):
    """Truth, indeterminacy and falsehood, without a voice."""

    truth: Unit
    indeterminacy: Unit
    falsehood: Unit

    @classmethod
    def of(cls, evaluations: Sequence[NeutrosophicEvaluation | Figures]) -> Figures:
        """The mean of evaluations."""
        return cls(
            truth=fmean(each.truth for each in evaluations),
            indeterminacy=fmean(each.indeterminacy for each in evaluations),
            falsehood=fmean(each.falsehood for each in evaluations),
        )

    def distance(self, other: Figures) -> float:
        """The Euclidean distance, as a share of the largest there can be."""
        return math.dist(
            (self.truth, self.indeterminacy, self.falsehood),
            (other.truth, other.indeterminacy, other.falsehood),
        ) / math.sqrt(3)


class TwoReadings(Shape):
    """What a prompt is for those present and from the empty chair, in the last round that has both."""

    round_number: int
    chair_model: Text
    present: Figures
    """The mean of the voices that spoke for themselves in that round."""
    chair: Figures
    gap: float
    """The distance between the two, from 0 to 1."""
    apart_before: float | None = None
    """How far the same voice was from the same others in round 1, when no voice held the chair."""


def two_readings(rounds: Sequence[DialogueRound]) -> TwoReadings | None:
    """The two readings of a circle; None if no voice was in the chair next to another voice."""
    return readings_of(
        [
            (
                held.round_number,
                held.occupied_chair,
                {each.model: Figures.of([each]) for each in held.evaluations},
            )
            for held in rounds
        ]
    )


def readings_of(rounds: Sequence[tuple[int, str | None, Mapping[str, Figures]]]) -> TwoReadings | None:
    """As `two_readings`, from the number of each round, who held its chair, and what each voice stated."""
    for number, chair, stated in reversed(rounds):
        others = [model for model in stated if model != chair]
        if chair is None or chair not in stated or not others:
            continue
        present = Figures.of([stated[model] for model in others])
        first = rounds[0][2]
        before = None
        if chair in first and all(model in first for model in others):
            before = first[chair].distance(Figures.of([first[model] for model in others]))
        return TwoReadings(
            round_number=number,
            chair_model=chair,
            present=present,
            chair=stated[chair],
            gap=present.distance(stated[chair]),
            apart_before=before,
        )
    return None


class Dissent(Shape):
    """A voice that ends on the other side of the verdict, and why."""

    model: Text
    falsehood: Unit
    reason: Text
    """Its last observation with words of the prompt, or else its reasoning."""


class Veto(Shape):
    """Grounds for a veto that a voice stated in the last round. No rule counts them."""

    model: Text
    grounds: Text


class Deliberation(Shape):
    """What became of reasons and positions from the first round to the last."""

    quotes: int = 0
    """Passages of the prompt that active voices quoted before the last round."""
    quotes_held: int = 0
    """Those of them that an active voice still quotes in the last round."""
    peers_cited: int = 0
    """Answers that take up words which only a peer had quoted before."""
    answers: int = 0
    """Answers of active voices after round 1."""
    moved_with_new_words: int = 0
    """Changed positions of a voice that quotes words it had not quoted before."""
    moved_without: int = 0
    dissent: tuple[Dissent, ...] = ()
    vetoes: tuple[Veto, ...] = ()

    @property
    def survival(self) -> float | None:
        """The share of quotes that remain in the last round; None without quotes."""
        return self.quotes_held / self.quotes if self.quotes else None


def deliberation(result: FireCircleResult) -> Deliberation:
    """The figures of one circle, from what its active voices quoted and stated."""
    rounds = result.dialogue_history
    quoted = _quotes(result)
    last = rounds[-1].round_number if rounds else 0
    passages = _distinct([each for (number, _), own in quoted.items() if number < last for each in own])
    at_the_end = [each for (number, _), own in quoted.items() if number == last for each in own]
    threshold = result.config.alarm_threshold
    cited = answers = moved_with = moved_without = 0
    before: dict[str, NeutrosophicEvaluation] = {}
    for held in rounds:
        earlier = {key: own for key, own in quoted.items() if key[0] < held.round_number}
        for each in held.evaluations:
            if each.model not in result.active_models:
                continue
            own_before = [q for (_, model), own in earlier.items() if model == each.model for q in own]
            peers_before = [q for (_, model), own in earlier.items() if model != each.model for q in own]
            new = [
                quote
                for quote in quoted.get((held.round_number, each.model), ())
                if not any(_touch(quote, known) for known in own_before)
            ]
            if each.model in before:
                answers += 1
                cited += any(_touch(quote, known) for quote in new for known in peers_before)
                if _changed(before[each.model].falsehood, each.falsehood, threshold):
                    moved_with += bool(new)
                    moved_without += not new
            before[each.model] = each
    return Deliberation(
        quotes=len(passages),
        quotes_held=sum(any(_touch(passage, held) for held in at_the_end) for passage in passages),
        peers_cited=cited,
        answers=answers,
        moved_with_new_words=moved_with,
        moved_without=moved_without,
        dissent=_dissent(result) if result.consensus is not None else (),
        vetoes=tuple(
            Veto(model=each.model, grounds=each.veto_grounds)
            for each in (rounds[-1].evaluations if rounds else ())
            if each.veto_grounds
        ),
    )


Quoted = Mapping[tuple[int, str], Sequence[GroundedQuote]]
"""By round and voice."""


def _quotes(result: FireCircleResult) -> Quoted:
    """The words of the prompt that each active voice quoted in each round."""
    found: dict[tuple[int, str], list[GroundedQuote]] = {}
    for held in result.dialogue_history:
        for each in held.evaluations:
            if each.model in result.active_models:
                found[held.round_number, each.model] = list(grounded_in_reasoning(each, result.prompt))
    for seen in result.observations:
        if seen.model in result.active_models:
            found.setdefault((seen.round_number, seen.model), []).extend(seen.grounded)
    return found


def _distinct(quotes: Sequence[GroundedQuote]) -> list[GroundedQuote]:
    """Passages that do not overlap, the first of each."""
    distinct: list[GroundedQuote] = []
    for quote in quotes:
        if not any(_touch(quote, known) for known in distinct):
            distinct.append(quote)
    return distinct


def _touch(first: GroundedQuote, second: GroundedQuote) -> bool:
    return first.layer == second.layer and first.start < second.end and second.start < first.end


def _changed(before: float, after: float, threshold: float) -> bool:
    return abs(after - before) >= MOVED_BY or reaches(before, threshold) != reaches(after, threshold)


def _dissent(result: FireCircleResult) -> tuple[Dissent, ...]:
    threshold = result.config.alarm_threshold
    return tuple(
        Dissent(model=each.model, falsehood=each.falsehood, reason=_reason_of(each, result))
        for each in result.final_evaluations
        if reaches(each.falsehood, threshold) != result.alarm
    )


def _reason_of(evaluation: NeutrosophicEvaluation, result: FireCircleResult) -> str:
    own = [seen for seen in result.observations if seen.model == evaluation.model and seen.grounded]
    if reaches(evaluation.falsehood, result.config.alarm_threshold) and own:
        return f"{own[-1].description} (\u201c{own[-1].grounded[0].text}\u201d)"
    return evaluation.reasoning
