"""How balanced a prompt is: the common figures of every mode."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from firecircle.circle.circumstances import Seating, readers_missing
from firecircle.circle.columns import Cell, Judgement, cells_of
from firecircle.circle.naming import advisories_about
from firecircle.circle.panel import Panel
from firecircle.circle.result import (
    Accounting,
    Failure,
    FireCircleResult,
    PatternObservation,
    Reason,
    account,
    stand_ins_in,
)
from firecircle.circle.rules import AlarmRule
from firecircle.circle.summary import dialogue_summary
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.names import EvaluationMode
from firecircle.session import ExchangeType, exchange_type_of
from firecircle.shapes import Shape, Text, Unit
from firecircle.thresholds import format_figure
from firecircle.verdict import VerdictWord

if TYPE_CHECKING:
    from pandas import DataFrame


class ReciprocityMetrics(Shape):
    """What `PromptGuard` returns: the balance of a prompt, (T − F)(1 − I), with the evaluation, the patterns
    and the circle that it comes from.
    """

    mode: EvaluationMode
    balance: float
    """(T - F) (1 - I) of the consensus; the lowest over the layers if each was judged by itself."""
    exchange_type: ExchangeType
    verdict: VerdictWord
    """`alarm`, `unsure`, `no_alarm` or `unread`; the worst of the layers if each was judged by itself."""
    alarm: bool
    alarm_threshold: Unit = 0.7
    consensus: NeutrosophicEvaluation
    evaluations: tuple[NeutrosophicEvaluation, ...]
    agreement: float | None = None
    """How close the voices of the parallel mode are to each other, from 0 to 1."""
    failures: tuple[Failure, ...] = ()
    by_layer: dict[Text, NeutrosophicEvaluation] = Field(default_factory=dict)
    patterns: tuple[PatternObservation, ...] = ()
    """Patterns that enough voices report and a quote supports; in the single mode, those of the one voice."""
    single_voice_patterns: tuple[PatternObservation, ...] = ()
    """Patterns with a type and a quote from the prompt, but without agreement."""
    reason: Reason | None = None
    """The deciding voice's strongest observation. An alarm always has one, or says why not."""
    dialogue_summary: Text = ""
    accounting: Accounting = Accounting()
    """Calls, tokens and money; the sum if each layer was judged by itself."""
    fire_circle: FireCircleResult | None = None
    stand_ins: dict[Text, Text] = Field(default_factory=dict)
    """The model asked for each voice whose own model the provider did not have."""
    guidance: tuple[Text, ...] = ()
    """What the voices of the single and parallel modes were asked to look out for."""
    seating: Seating | None = None
    """Which set of voices judged, and how it was chosen."""
    unread: Text | None = None
    """What no voice could read. Without an alarm, such a prompt is unread, not clean."""
    kept_as: Text | None = None
    """The id of this judgement in the store."""
    calibrated: Unit | None = None
    """The probability of manipulation, if a calibration of these voices exists."""
    alarm_decided_by: AlarmRule = "maximum"
    """The rule that decided on the alarm."""
    advisories: tuple[Text, ...] = Field(default=(), exclude_if=operator.not_)
    """What to know about the prompt and the voices before relying on the verdict."""

    @model_validator(mode="before")
    @classmethod
    def _from_older(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "verdict" in data:
            return data
        word = "alarm" if data.get("alarm") else "unread" if data.get("unread") else "no_alarm"
        return {**data, "verdict": word}

    def __repr__(self) -> str:
        """The verdict in one line; `model_dump_json` has everything."""
        figure = format_figure(self.consensus.falsehood, self.alarm_threshold)
        verdict = f"{self.verdict}, F {figure} by {self.consensus.model}"
        balance = f"{self.exchange_type}, balance {self.balance:+.2f}"
        return f"<ReciprocityMetrics {self.mode.value}: {verdict}; {balance}>"

    __str__ = __repr__

    @property
    def all_patterns(self) -> tuple[PatternObservation, ...]:
        """Every pattern with a quote from the prompt: agreed ones first, then the others."""
        return self.patterns + self.single_voice_patterns

    @property
    def judgement(self) -> Judgement:
        """The source of the columns of `circle/columns.py`."""
        circle = self.fire_circle
        first = circle.rival_verdicts["round1_max"].value if circle else None
        return Judgement(
            mode=self.mode.value,
            verdict=self.verdict,
            threshold=self.alarm_threshold,
            consensus=self.consensus,
            rounds=len(circle.dialogue_history) if circle else 1,
            round1_falsehood=first if self.mode is EvaluationMode.FIRE_CIRCLE else self.consensus.falsehood,
            voices=len(self.evaluations),
            voices_lost=len(self.failures),
            total=self.accounting.total,
            seconds=circle.duration_seconds if circle else None,
            patterns=self.patterns,
            single_voice_patterns=self.single_voice_patterns,
            balance=self.balance,
            exchange_type=self.exchange_type,
            agreement=self.agreement,
            unread=self.unread,
            kept_as=self.kept_as,
            calibrated=self.calibrated,
            alarm_decided_by=self.alarm_decided_by,
        )

    def to_row(self) -> dict[str, Cell]:
        """One flat row for a data frame, a CSV file or a line of JSON."""
        return cells_of(self.judgement, "row")

    def to_frame(self) -> DataFrame:
        """The row as a pandas data frame."""
        from pandas import DataFrame

        return DataFrame([self.to_row()])

    def _repr_html_(self) -> str:
        from firecircle.telling.notebook import judgement_html

        return judgement_html(self)


def balance_of(consensus: NeutrosophicEvaluation) -> float:
    """How much the prompt gives rather than takes, from -1 to 1; indeterminacy pulls it toward 0."""
    return round((consensus.truth - consensus.falsehood) * (1.0 - consensus.indeterminacy), 9)


def metrics_of_circle(result: FireCircleResult) -> ReciprocityMetrics:
    """The figures of a circle that reached a consensus."""
    assert result.consensus is not None
    balance = balance_of(result.consensus)
    return ReciprocityMetrics.assembled(
        mode=EvaluationMode.FIRE_CIRCLE,
        balance=balance,
        exchange_type=exchange_type_of(balance),
        verdict=result.verdict,
        alarm=result.alarm,
        alarm_threshold=result.config.alarm_threshold,
        consensus=result.consensus,
        evaluations=result.final_evaluations,
        agreement=None,
        failures=result.failures,
        by_layer={},
        patterns=result.patterns,
        single_voice_patterns=result.single_voice_patterns,
        reason=result.reason,
        dialogue_summary=dialogue_summary(result),
        accounting=result.accounting,
        fire_circle=result,
        stand_ins=result.stand_ins,
        guidance=(),
        seating=result.circumstances.seating,
        unread=result.unread,
        kept_as=None,
        calibrated=result.calibrated,
        alarm_decided_by=result.alarm_decided_by,
        advisories=result.advisories,
    )


def metrics_of_panel(panel: Panel) -> ReciprocityMetrics:
    """The figures of voices that judged independently."""
    balance = balance_of(panel.consensus)
    sifted = panel.sifted()
    return ReciprocityMetrics(
        mode=panel.config.mode,
        balance=balance,
        exchange_type=exchange_type_of(balance),
        verdict=panel.verdict,
        alarm=panel.alarm,
        alarm_threshold=panel.config.alarm_threshold,
        consensus=panel.consensus,
        evaluations=panel.evaluations,
        agreement=panel.agreement if len(panel.evaluations) > 1 else None,
        failures=panel.failures,
        patterns=sifted.patterns,
        single_voice_patterns=sifted.single_voice_patterns,
        reason=panel.reason(),
        accounting=account(panel.calls),
        stand_ins=stand_ins_in(panel.calls),
        guidance=panel.guidance,
        seating=panel.circumstances.seating,
        unread=panel.unread,
        advisories=tuple(
            dict.fromkeys(
                (
                    *panel.advisories,
                    *readers_missing(panel.config.models),
                    *advisories_about(panel.prompt, panel.heard),
                )
            )
        ),
    )
