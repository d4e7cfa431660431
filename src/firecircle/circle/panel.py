"""A panel: the questions and answers of independent voices, in the single and parallel modes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from statistics import fmean
from typing import Annotated, Protocol

from pydantic import AfterValidator, Field

from firecircle.circle.base_config import PATTERN_THRESHOLD, EvaluationConfig
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.patterns import Sifted, last_lists, observe, reason_for, sift
from firecircle.circle.result import (
    SCHEMA_VERSION,
    CallRecord,
    DialogueRound,
    Failure,
    Reason,
    require_known_version,
)
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.languages import unread_advisory
from firecircle.names import EvaluationMode
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Moment, Shape, Text
from firecircle.verdict import VerdictWord, verdict_word


class Panel(Shape):
    """The questions and answers of independent voices."""

    schema_version: Annotated[int, AfterValidator(require_known_version)] = SCHEMA_VERSION
    panel_id: Text
    started_at: Moment = 0.0
    duration_seconds: float = 0.0
    config: EvaluationConfig
    prompt: MultiNeutrosophicPrompt
    circumstances: Circumstances
    system_message: Text = ""
    evidence: Text = ""
    question: Text = ""
    """The one question for all; the evidence comes before it."""
    guidance: tuple[Text, ...] = ()
    """What the question said about manipulations in other prompts."""
    evaluations: tuple[NeutrosophicEvaluation, ...] = ()
    failures: tuple[Failure, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    advisories: tuple[Text, ...] = Field(default=(), exclude_if=operator.not_)
    """What was found out about it later, for instance on import."""

    @property
    def consensus(self) -> NeutrosophicEvaluation:
        """The one evaluation of the single mode, otherwise the average."""
        return self.evaluations[0] if self.config.mode is EvaluationMode.SINGLE else self.mean

    @property
    def heard(self) -> dict[str, str]:
        """The reasoning of each voice that answered."""
        return {said.model: said.reasoning for said in self.evaluations}

    @property
    def unread(self) -> str | None:
        """A sentence on what no voice could read."""
        return unread_advisory(self.prompt, self.heard)

    @property
    def verdict(self) -> VerdictWord:
        """What they say together, in one word."""
        if not self.evaluations:
            return "no_verdict"
        together = self.consensus
        return verdict_word(
            together.falsehood,
            self.config.alarm_threshold,
            indeterminacy=together.indeterminacy,
            unread=self.unread is not None,
            unsure_from=self.config.unsure_threshold,
        )

    @property
    def alarm(self) -> bool:
        """Whether the verdict is `alarm`."""
        return self.verdict == "alarm"

    @property
    def deciding(self) -> NeutrosophicEvaluation:
        """The voice whose reason is shown: the one of the single mode, otherwise that with the highest F."""
        return max(self.evaluations, key=lambda said: said.falsehood)

    def sifted(self) -> Sifted:
        """The patterns of these voices, as in a circle of one round."""
        rounds = (DialogueRound(round_number=1, evaluations=self.evaluations),)
        models = [said.model for said in self.evaluations]
        return sift(observe(rounds, prompt=self.prompt), models, last_lists(rounds), PATTERN_THRESHOLD)

    def reason(self) -> Reason | None:
        """The deciding voice's reason; None without an alarm if it observed nothing."""
        sifted = self.sifted()
        agreed = {pattern.pattern_type for pattern in sifted.patterns}
        reason = reason_for(self.deciding, sifted.observations, agreed, self.prompt)
        return reason if self.alarm or reason.quotes else None

    @property
    def mean(self) -> NeutrosophicEvaluation:
        """The average evaluation."""
        return NeutrosophicEvaluation(
            truth=fmean(evaluation.truth for evaluation in self.evaluations),
            indeterminacy=fmean(evaluation.indeterminacy for evaluation in self.evaluations),
            falsehood=fmean(evaluation.falsehood for evaluation in self.evaluations),
            reasoning="\n".join(
                f"{evaluation.model}: {evaluation.reasoning}" for evaluation in self.evaluations
            ),
            model="parallel",
            round_number=1,
            guessed=any(evaluation.guessed for evaluation in self.evaluations),
        )

    @property
    def agreement(self) -> float:
        """1 if all agree; falls with the mean Euclidean distance from the average, to 0."""
        centre = self.mean
        apart = fmean(
            math.dist(
                (evaluation.truth, evaluation.indeterminacy, evaluation.falsehood),
                (centre.truth, centre.indeterminacy, centre.falsehood),
            )
            for evaluation in self.evaluations
        )
        return 1.0 - apart / math.sqrt(3.0)


PanelListener = Callable[[Panel], None]


class Guide(Protocol):
    """A source of guidance: manipulations in other prompts, and those to look out for in this one."""

    def guidance_for(self, prompt: MultiNeutrosophicPrompt) -> tuple[str, ...]:
        """One line for each, in our own words only."""
        ...
