"""A council: voices answer independently, rank each other's anonymous answers, and a chairman combines them.

In this rival, voices judge each other instead of discussing: none changes its answer, and the verdict is one
voice's.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from firecircle.circle.hearing import Lost
from firecircle.circle.questions import closed_object
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Peer
from firecircle.convene import SeatedCircle
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.proceedings import Asked, Proceedings, Undecided, object_in, rehearsed
from firecircle.lab.records import Outcome
from firecircle.names import is_embedded

FEWEST_ANSWERS = 2


@dataclass(slots=True)
class Sitting:
    """The state of a council."""

    answers: list[NeutrosophicEvaluation]
    chairman: str | None = None


@dataclass(frozen=True, slots=True)
class CouncilArm:
    """`council`: answers, anonymous ranking, a chairman's synthesis. F is the chairman's.

    Embedded voices answer and are ranked; only voices that read others' text rank and chair.
    """

    name: str
    circle: SeatedCircle
    chairman: str | None = None
    """The permanent chairman; drawn for each record if None."""
    kind: str = "council"

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that may be asked."""
        return tuple(self.circle.voices)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Run the council."""
        proceedings, sitting = Proceedings.of(case, self.circle, voices), Sitting([])
        verdict, error = None, None
        try:
            verdict = await self._run(proceedings, sitting)
        except Undecided as undecided:
            error = str(undecided)
        return proceedings.outcome(
            verdict,
            seconds=voices.seconds(),
            error=error,
            answers=sitting.answers,
            roles={"chairman": (sitting.chairman,)} if sitting.chairman else {},
        )

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """An answer from every voice, a ranking from every reader of text, and the chairman."""
        return await rehearsed(case, self.circle, lambda proceedings: self._run(proceedings, Sitting([])))

    async def _run(self, proceedings: Proceedings, sitting: Sitting) -> NeutrosophicEvaluation:
        question = proceedings.questions.standard("baseline", ())
        sitting.answers += await proceedings.judgements(1, [Asked(model, question) for model in self.models])
        if len(sitting.answers) < FEWEST_ANSWERS:
            raise Undecided(f"fewer than two members answered ({proceedings.why_lost()})")
        rankings = await self._rankings(proceedings, sitting.answers)
        if not rankings:
            raise Undecided(f"no member ranked the answers ({proceedings.why_lost()})")
        sitting.chairman = self._chair(proceedings, rankings)
        places = mean_places(rankings, [answer.model for answer in sitting.answers])
        ranked = sorted(sitting.answers, key=lambda answer: places[answer.model])
        verdicts = await proceedings.judgements(
            3, [_synthesis_question(proceedings, sitting.chairman, ranked)]
        )
        if not verdicts:
            raise Undecided(f"the chairman gave no verdict ({proceedings.why_lost(sitting.chairman)})")
        return verdicts[0]

    async def _rankings(
        self, proceedings: Proceedings, answers: Sequence[NeutrosophicEvaluation]
    ) -> dict[str, tuple[str, ...]]:
        letters = {_letter(proceedings, answer.model): answer.model for answer in answers}
        in_order = sorted(answers, key=lambda answer: _letter(proceedings, answer.model))
        question = proceedings.rendered(
            "council_review",
            statements="\n\n".join(map(proceedings.questions.statement, in_order)),
            count=str(len(answers)),
            letters=", ".join(sorted(letters)),
        )
        labels = proceedings.questions.labels
        shown = tuple(Peer(labels[answer.model], answer) for answer in in_order)
        asked = [Asked(answer.model, question, shown) for answer in answers if not is_embedded(answer.model)]
        schema = _ranking_of(sorted(letters))
        return await proceedings.words(2, asked, schema, _reader(letters))

    def _chair(self, proceedings: Proceedings, rankings: Mapping[str, object]) -> str:
        """The chairman: the named one, otherwise drawn by the seed of the case."""
        present = [model for model in self.models if model in rankings]
        if self.chairman is None:
            return random.Random(f"council/{proceedings.case.seed}").choice(present)
        if self.chairman not in present:
            raise Undecided(f"the chairman was lost before ({proceedings.why_lost(self.chairman)})")
        return self.chairman


def mean_places(rankings: Mapping[str, Sequence[str]], members: Sequence[str]) -> dict[str, float]:
    """The mean rank of each member's answer among the others, without a member's rank of its own."""
    places: dict[str, list[int]] = {member: [] for member in members}
    for judge, ranking in rankings.items():
        for place, member in enumerate((member for member in ranking if member != judge), 1):
            places[member].append(place)
    return {member: fmean(its) if its else float(len(members)) for member, its in places.items()}


def _synthesis_question(
    proceedings: Proceedings, chairman: str, ranked: Sequence[NeutrosophicEvaluation]
) -> Asked:
    statements = "\n\n".join(map(proceedings.questions.statement, ranked))
    labels = proceedings.questions.labels
    peers = tuple(
        Peer(f"{labels[answer.model]}, ranked {place} of {len(ranked)},", answer)
        for place, answer in enumerate(ranked, 1)
    )
    return Asked(chairman, proceedings.rendered("council_chair", statements=statements), peers)


def _letter(proceedings: Proceedings, model: str) -> str:
    return proceedings.questions.labels[model].rpartition(" ")[2]


def _ranking_of(letters: Sequence[str]) -> dict[str, Any]:
    ranking = {"type": "array", "items": {"type": "string", "enum": [*letters]}}
    return closed_object({"reasoning": {"type": "string"}, "ranking": ranking})


def _reader(letters: Mapping[str, str]) -> Callable[[str], tuple[str, ...]]:
    """A parser for rankings of these letters: a list, or a line such as `B > A`, with each letter once."""

    def read(answer: str) -> tuple[str, ...]:
        told = (object_in(answer) or {}).get("ranking", answer)
        entries = [str(entry) for entry in told] if isinstance(told, list) else [str(told)]
        named = [
            letter for entry in entries for letter in re.findall(r"\b[A-Z]\b", entry) if letter in letters
        ]
        if sorted(named) != sorted(letters):
            raise Lost(
                "unparseable", f"the ranking must name {', '.join(sorted(letters))} once each, not {told!r}"
            )
        return tuple(letters[letter] for letter in named)

    return read
