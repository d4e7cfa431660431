"""Self-consistency: one voice asked the same k times, and the mean of its answers.

The simplest rival: a discussion must gain more than one voice gains from as many tokens. Each answer has its
own seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from firecircle.circle.result import CallRecord
from firecircle.convene import SeatedPanel
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.lab.arms.arm import Allowance, Case, CaseVoices, Matching
from firecircle.lab.arms.proceedings import Asked, Proceedings, Undecided, rehearsed
from firecircle.lab.records import Outcome

SEEDS = 2**31
"""Some endpoints accept no larger seed."""


@dataclass(frozen=True, slots=True)
class ConsistencyArm:
    """`consistency`: the circle's first question to one voice, k times; F is the mean of its answers."""

    name: str
    panel: SeatedPanel
    matching: Matching
    at_once: int
    """How many answers are requested at a time: as many as the circle has voices."""
    kind: str = "consistency"

    @property
    def model(self) -> str:
        """The voice's model."""
        return self.panel.config.models[0]

    @property
    def models(self) -> tuple[str, ...]:
        """The voice's model."""
        return (self.model,)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Ask k times. A lost answer is recorded but not in the mean."""
        proceedings = Proceedings.of(case, self.panel, voices)
        error = None
        answers: list[NeutrosophicEvaluation] = []
        try:
            await self._ask(proceedings, self.matching.in_case(case), answers)
        except Undecided as undecided:
            error = str(undecided)
        error = error or f"no answer ({proceedings.why_lost()})"
        return proceedings.outcome(
            self._mean(answers), seconds=voices.seconds(), error=error, answers=answers
        )

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """As many calls as the plan says, or as the circle's tokens allow."""
        allowance = await self.matching.at_most(case)
        return await rehearsed(case, self.panel, lambda proceedings: self._ask(proceedings, allowance, []))

    async def _ask(
        self, proceedings: Proceedings, allowance: Allowance, answers: list[NeutrosophicEvaluation]
    ) -> None:
        """Ask a few at a time, until the circle's use is reached."""
        question = proceedings.questions.standard("baseline", ())
        asked, k = 0, allowance.calls
        while asked < k:
            places = range(asked, min(k, asked + self.at_once))
            answers += await proceedings.judgements(
                1,
                [
                    Asked(self._name_of_answer(place), question, seed=self._seed(proceedings, place))
                    for place in places
                ],
            )
            asked = places.stop
            k = allowance.steps(asked, proceedings.calls)

    def _name_of_answer(self, place: int) -> str:
        return self.model if place == 0 else f"{self.model}#{place + 1}"

    def _seed(self, proceedings: Proceedings, place: int) -> int:
        return (proceedings.case.seed + place) % SEEDS

    def _mean(self, answers: list[NeutrosophicEvaluation]) -> NeutrosophicEvaluation | None:
        if not answers:
            return None
        return NeutrosophicEvaluation(
            truth=fmean(answer.truth for answer in answers),
            indeterminacy=fmean(answer.indeterminacy for answer in answers),
            falsehood=fmean(answer.falsehood for answer in answers),
            reasoning=answers[0].reasoning,
            model=self.model,
            round_number=1,
            guessed=any(answer.guessed for answer in answers),
        )
