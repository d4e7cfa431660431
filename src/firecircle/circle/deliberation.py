"""What happened to reasons during the discussion: quotes, positions, dissent, and the empty chair's reading.

All of it is computed from a circle's record on demand; nothing here decides a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from firecircle.circle.grounding import grounded_in_reasoning
from firecircle.circle.result import DialogueRound, FireCircleResult
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation
from firecircle.shapes import Shape, Text, Unit
from firecircle.thresholds import reaches

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
