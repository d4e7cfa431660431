"""Whether the answers of a record are those that its replies give: each is read again by the same reader.

A file from elsewhere may say anything. What cannot be checked is not found here: an answer without a reply on
record, the probability of a verdict word (only whether its three numbers belong together), and a reply that
was forged together with its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from firecircle.circle.classifier import classified_by
from firecircle.circle.hearing import (
    Lost,
    carried,
    cleared_up,
    contradicts,
    evaluation_of,
    read_now,
    word_wins,
)
from firecircle.circle.panel import Panel
from firecircle.circle.reading import Reading, Refused, Unreadable, answers_nothing
from firecircle.circle.result import CallPurpose, CallRecord, CircleRecord, DialogueRound
from firecircle.circle.voice import Reply
from firecircle.evaluation import NeutrosophicEvaluation, Polarity
from firecircle.names import is_embedded

WAYS: dict[int, tuple[tuple[CallPurpose, ...], ...]] = {
    1: (("answer",),),
    2: (("answer", "clarify"), ("answer", "more_room")),
    3: (("answer", "more_room", "clarify"),),
}
"""What so many replies of one voice in one round may have been asked for."""

CallsByAnswer = Mapping[tuple[str, int | None], Sequence[CallRecord]]


@dataclass(frozen=True, slots=True)
class Misreading:
    """An answer that is not what its own replies give."""

    claimed: NeutrosophicEvaluation
    read: NeutrosophicEvaluation | None
    """What they give; None where they give no numbers."""

    def __str__(self) -> str:
        """Whose answer it is, what it is said to be, and what the replies say."""
        whose = f"{self.claimed.model} in round {self.claimed.round_number or 1}"
        if self.read is None:
            return f"{whose} has {_numbers(self.claimed)}, and its reply gives no numbers"
        if _numbers(self.claimed) != _numbers(self.read):
            return f"{whose} has {_numbers(self.claimed)}, and its reply gives {_numbers(self.read)}"
        others = [name for name, value in self.read if getattr(self.claimed, name) != value]
        return f"{whose} has another {' and '.join(others)} than its reply gives"


@dataclass(frozen=True, slots=True)
class Mistyping:
    """Types of patterns that are not what the classifier's own replies give."""

    descriptions: tuple[str, ...]

    def __str__(self) -> str:
        """How many, and the first of them."""
        first = repr(self.descriptions[0])[:80]
        return f"{len(self.descriptions):,} types of patterns are not as its classifier gave them ({first})"


def reread_circle(record: CircleRecord) -> tuple[CircleRecord, tuple[Misreading | Mistyping, ...]]:
    """The record with what its replies give, and what of it was something else."""
    calls = _by_answer(record.calls)
    layers = tuple(layer.text for layer in record.prompt.layers)
    last: dict[str, NeutrosophicEvaluation] = {}
    misread: list[Misreading | Mistyping] = []
    rounds: list[DialogueRound] = []
    for held in record.dialogue_history:
        answers = []
        for claimed in held.evaluations:
            texts = (*layers, held.question_to(claimed.model) or "")
            wrong = _misreading(claimed, texts, calls, last.get(claimed.model))
            answers.append(wrong.read or claimed if wrong else claimed)
            misread += [wrong] if wrong else []
        last |= {answer.model: answer for answer in answers}
        rounds.append(held.model_copy(update={"evaluations": tuple(answers)}))
    replies = record.classifier_replies
    types = classified_by(replies, rounds) if replies else record.classified
    if others := record.classified.items() ^ types.items():
        misread.append(Mistyping(tuple(sorted({description for description, _ in others}))))
    if misread:
        record = record.model_copy(update={"dialogue_history": tuple(rounds), "classified": types})
    return record, tuple(misread)


def reread_panel(panel: Panel) -> tuple[Panel, tuple[Misreading, ...]]:
    """The panel with what its replies give, and the answers that were something else."""
    calls = _by_answer(panel.calls)
    texts = (*(layer.text for layer in panel.prompt.layers), panel.question)
    checked = [(claimed, _misreading(claimed, texts, calls, None)) for claimed in panel.evaluations]
    misread = tuple(wrong for _, wrong in checked if wrong)
    if misread:
        answers = tuple((wrong and wrong.read) or claimed for claimed, wrong in checked)
        panel = panel.model_copy(update={"evaluations": answers})
    return panel, misread


def _by_answer(calls: Iterable[CallRecord]) -> CallsByAnswer:
    """The calls that brought replies, by whose answer they belong to."""
    by_answer: dict[tuple[str, int | None], list[CallRecord]] = {}
    for call in calls:
        if call.failed is None and call.purpose != "classify":
            by_answer.setdefault((call.model, call.round_number), []).append(call)
    return by_answer


def _misreading(
    claimed: NeutrosophicEvaluation,
    texts: tuple[str, ...],
    calls: CallsByAnswer,
    last: NeutrosophicEvaluation | None,
) -> Misreading | None:
    """What is wrong with an answer, if its replies are on record and give another one."""
    if not claimed.raw_replies:
        return None
    readings = []
    for way, replies in _as_they_came(claimed, calls.get((claimed.model, claimed.round_number), ())):
        if "clarify" in way and answers_nothing(replies[-2].text):
            return None  # it contradicted itself in its thinking, and of that only the last is on record
        read = _heard_again(claimed, "clarify" in way, replies, texts, last)
        if read == claimed:
            return None
        readings += [read] if read else []
    return Misreading(claimed, max(readings, key=lambda read: _alike(read, claimed), default=None))


def _as_they_came(
    claimed: NeutrosophicEvaluation, calls: Sequence[CallRecord]
) -> Iterator[tuple[Sequence[CallPurpose], tuple[Reply, ...]]]:
    """Its replies with what each was asked for; in every possible way where the calls do not tell."""
    texts = claimed.raw_replies
    if len(calls) == len(texts):
        ways: Sequence[tuple[CallPurpose, ...]] = [tuple(call.purpose for call in calls)]
        endings = [[call.finished for call in calls]]
    else:
        ways = WAYS.get(len(texts), ())
        endings = [[True] * len(texts), [False] * len(texts)]
    # The thinking on record stood beside the reply, or in it.
    traces = dict.fromkeys((claimed.reasoning_trace, None))
    for way, finished, trace, probability in product(ways, endings, traces, _probabilities(claimed)):
        *before, final = (
            Reply(text, finished=whole, violation_probability=probability)
            for text, whole in zip(texts, finished, strict=True)
        )
        yield way, (*before, replace(final, reasoning_trace=trace))


def _probabilities(claimed: NeutrosophicEvaluation) -> Iterable[float | None]:
    """Which probability of the verdict word its numbers may come from."""
    if claimed.read_as != "logprobs" or is_embedded(claimed.model):
        return (None,)
    return dict.fromkeys((claimed.falsehood, 1.0 - claimed.truth))


def _heard_again(
    claimed: NeutrosophicEvaluation,
    has_second: bool,
    replies: tuple[Reply, ...],
    texts: tuple[str, ...],
    last: NeutrosophicEvaluation | None,
) -> NeutrosophicEvaluation | None:
    """The answer that these replies make; None where they give no numbers.

    A strict circle loses a voice sooner, but what it reads, any other reads too.
    """
    number = claimed.round_number or 1
    try:
        first = read_now(replies[-2] if has_second else replies[-1], texts, strict=False)
    except (Refused, Lost):
        return None
    except Unreadable:
        read = carried(last, number, replies) if last and not has_second else None
    else:
        if has_second and not contradicts(first):
            return None
        reading, polarity = _settled(first, replies[-1] if has_second else None, texts)
        read = evaluation_of(claimed.model, number, reading, polarity, replies)
    about = {"reasoning_trace": claimed.reasoning_trace, "round_number": claimed.round_number}
    return read and read.model_copy(update=about)


def _settled(first: Reading, second: Reply | None, texts: tuple[str, ...]) -> tuple[Reading, Polarity]:
    """A reading without contradiction: as it is, as the voice cleared it up, or as its word has it."""
    if not contradicts(first):
        return first, "consistent"
    if second is not None:
        with suppress(Refused, Lost, Unreadable):
            return cleared_up(first, read_now(second, texts, strict=True))
    return word_wins(first), "corrected"


def _alike(read: NeutrosophicEvaluation, claimed: NeutrosophicEvaluation) -> int:
    """In how many fields two answers are the same."""
    return sum(getattr(claimed, name) == value for name, value in read)


def _numbers(answer: NeutrosophicEvaluation) -> str:
    return f"T {answer.truth:g} I {answer.indeterminacy:g} F {answer.falsehood:g}"
