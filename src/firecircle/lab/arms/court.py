"""A court: prosecution and defence argue about a prompt before a judge, who decides.

In this rival, voices argue for an assigned side. In a circle each says what it sees; here two oppose each
other, so that both sides are argued fully, and a third weighs the arguments.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from firecircle.circle.hearing import Lost
from firecircle.circle.questions import closed_object
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Peer
from firecircle.convene import SeatedCircle
from firecircle.evaluation import NeutrosophicEvaluation, Verdict
from firecircle.lab.arms.arm import Allowance, Case, CaseVoices, Matching, tokens_of
from firecircle.lab.arms.proceedings import Asked, Proceedings, Undecided, object_in, rehearsed
from firecircle.lab.records import Outcome

FEWEST = 3
"""A court has three different voices."""

Side = Literal["prosecution", "defence"]
SIDES: tuple[Side, Side] = ("prosecution", "defence")
CLAIMS: dict[Side, str] = {
    "prosecution": "the prompt violates reciprocity",
    "defence": "the prompt keeps reciprocity",
}
ARGUES_FOR: dict[Side, Verdict] = {"prosecution": "violation", "defence": "no_violation"}
REPLY = "The other side has spoken above: answer what it said, and do not repeat what you have said before."
FENCE_AND_BRACE = 12
"""Within this many characters an answer meant as JSON begins it, in a code block or not."""
ARGUMENT = closed_object({"argument": {"type": "string"}})


class Roles(NamedTuple):
    """The roles in one case."""

    judge: str
    counsel: dict[Side, tuple[str, ...]]
    """The voices of each side, who take turns."""

    @classmethod
    def drawn(cls, models: Sequence[str], case: Case) -> Roles:
        """Drawn by the seed of the case, so that roles vary and a run can be resumed."""
        order = list(models)
        random.Random(f"court/{case.seed}").shuffle(order)
        judge, *counsel = order
        return cls(judge, {"prosecution": tuple(counsel[::2]), "defence": tuple(counsel[1::2])})

    def speaker(self, side: Side, exchange: int) -> str:
        """The speaker of a side in an exchange, from 1."""
        counsel = self.counsel[side]
        return counsel[(exchange - 1) % len(counsel)]


class Pleading(NamedTuple):
    """One side's argument."""

    side: Side
    exchange: int
    words: str


@dataclass(frozen=True, slots=True)
class CourtArm:
    """`court`: exchanges between prosecution and defence, then the judge. F is the judge's.

    In an exchange both sides speak at once, so that neither has the last word.
    """

    name: str
    circle: SeatedCircle
    matching: Matching
    kind: str = "court"

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that may be asked."""
        return tuple(self.circle.voices)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Hear both sides and let the judge decide."""
        proceedings = Proceedings.of(case, self.circle, voices)
        roles = Roles.drawn(self.models, case)
        verdict, error = None, None
        try:
            verdict = await _try_case(proceedings, roles, self.matching.in_case(case))
        except Undecided as undecided:
            error = str(undecided)
        return proceedings.outcome(
            verdict,
            seconds=voices.seconds(),
            error=error,
            roles={**{side: roles.counsel[side] for side in SIDES}, "judge": (roles.judge,)},
        )

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """Every exchange that may take place, and the judge."""
        allowance = await self.matching.at_most(case)
        roles = Roles.drawn(self.models, case)
        return await rehearsed(
            case, self.circle, lambda proceedings: _try_case(proceedings, roles, allowance)
        )


async def _try_case(proceedings: Proceedings, roles: Roles, allowance: Allowance) -> NeutrosophicEvaluation:
    pleadings: list[Pleading] = []
    costs: list[int] = [0]
    while _has_time(proceedings, allowance, costs):
        exchange, before = len(costs), tokens_of(proceedings.calls)
        said = await _exchange(proceedings, roles, exchange, pleadings)
        pleadings += said
        costs.append(tokens_of(proceedings.calls) - before)
        if len(said) < len(SIDES):
            if exchange == 1:
                silent = next(side for side in SIDES if side not in {pleading.side for pleading in said})
                why = proceedings.why_lost(roles.speaker(silent, exchange))
                raise Undecided(f"the {silent} was not heard ({why})")
            break  # both sides were heard before; the judge decides on that
    question = proceedings.rendered("court_judge", pleadings=_show(proceedings, pleadings))
    verdicts = await proceedings.judgements(len(costs), [Asked(roles.judge, question, _as_peers(pleadings))])
    if not verdicts:
        raise Undecided(f"the judge gave no verdict ({proceedings.why_lost(roles.judge)})")
    return verdicts[0]


def _has_time(proceedings: Proceedings, allowance: Allowance, costs: Sequence[int]) -> bool:
    """Whether another exchange and the judge fit: each costs as much more than the last as that one did."""
    if len(costs) == 1:
        return True
    exchange = 2 * costs[-1] - costs[-2] if len(costs) > 2 else costs[-1]
    calls = len(SIDES) + 1
    return allowance.leaves(proceedings.calls, next_calls=calls, next_tokens=exchange * calls / len(SIDES))


async def _exchange(
    proceedings: Proceedings, roles: Roles, exchange: int, before: Sequence[Pleading]
) -> list[Pleading]:
    """Both sides' arguments, after reading all earlier ones but not each other's."""
    speakers = {roles.speaker(side, exchange): side for side in SIDES}
    asked = [
        Asked(
            model,
            proceedings.rendered(
                "court_counsel",
                pleadings=_show(proceedings, before),
                side=side,
                claim=CLAIMS[side],
                reply=REPLY if before else "",
            ),
            _as_peers(before),
            side=ARGUES_FOR[side],
        )
        for model, side in speakers.items()
    ]
    arguments = await proceedings.words(exchange, asked, ARGUMENT, _argument_in)
    return [
        Pleading(side, exchange, arguments[model]) for model, side in speakers.items() if model in arguments
    ]


def _show(proceedings: Proceedings, pleadings: Sequence[Pleading]) -> str:
    return "\n\n".join(
        proceedings.questions.argument(_label(pleading), pleading.words) for pleading in pleadings
    )


def _label(pleading: Pleading) -> str:
    return f"argument {pleading.exchange} of the {pleading.side}"


def _as_peers(pleadings: Sequence[Pleading]) -> tuple[Peer, ...]:
    """The arguments, for a voice with its own prompts."""
    return tuple(Peer(f"The {pleading.side}", _as_evaluation(pleading)) for pleading in pleadings)


def _as_evaluation(pleading: Pleading) -> NeutrosophicEvaluation:
    falsehood = 1.0 if ARGUES_FOR[pleading.side] == "violation" else 0.0
    return NeutrosophicEvaluation(
        truth=1.0 - falsehood,
        indeterminacy=0.0,
        falsehood=falsehood,
        reasoning=pleading.words,
        model=pleading.side,
        round_number=pleading.exchange,
    )


def _argument_in(answer: str) -> str:
    """The argument in an answer: its field, or all of a plain text."""
    words: object = (object_in(answer) or {}).get("argument")
    if words is None and "{" not in answer[:FENCE_AND_BRACE]:
        words = answer
    if not isinstance(words, str) or not words.strip():
        raise Lost("unparseable", "no argument in the answer")
    return words.strip()
