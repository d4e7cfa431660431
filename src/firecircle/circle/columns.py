"""The columns of a verdict, the source of all its flat forms.

A column is one entry of `COLUMNS`, which names its forms. `row`: `to_row`, data frames, and the CSV, JSONL
and Parquet files of batches. `json`: `--json` and MCP. `store`: the table `circles` and the lists that read
it. `scan`: the shards of a scan. `run`: the records of a run. `CompactResult`, the table `circles` and
`RunRecord` declare their fields too, because they are schemas; a test compares them with this table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from firecircle.circle.result import FireCircleResult, PatternObservation, Usages, account
from firecircle.circle.rules import AlarmRule
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.verdict import VerdictWord

if TYPE_CHECKING:
    from firecircle.circle.panel import Panel

Cell = str | float | bool | None
Kind = type[str] | type[int] | type[float] | type[bool]
Form = Literal["row", "json", "store", "scan", "run"]
IN_PARQUET: dict[Kind, str] = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
"""DuckDB's name of each type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The source of the columns, for every mode."""

    mode: str
    verdict: VerdictWord
    threshold: float
    consensus: NeutrosophicEvaluation | None
    """None without a verdict."""
    rounds: int
    round1_falsehood: float | None
    voices: int
    voices_lost: int
    total: Usages
    seconds: float | None = None
    patterns: Sequence[PatternObservation] = ()
    single_voice_patterns: Sequence[PatternObservation] = ()
    balance: float | None = None
    exchange_type: str | None = None
    agreement: float | None = None
    unread: str | None = None
    kept_as: str | None = None
    calibrated: float | None = None
    alarm_decided_by: AlarmRule = "maximum"


def judgement_of(judged: FireCircleResult | Panel) -> Judgement:
    """The facts of a circle or a panel, with or without a verdict."""
    if isinstance(judged, FireCircleResult):
        first = judged.rival_verdicts.get("round1_max")
        return Judgement(
            mode="fire_circle",
            verdict=judged.verdict,
            threshold=judged.config.alarm_threshold,
            consensus=judged.consensus,
            rounds=len(judged.dialogue_history),
            round1_falsehood=first.value if first else None,
            voices=len(judged.final_evaluations),
            voices_lost=len(judged.failures),
            total=judged.accounting.total,
            seconds=judged.duration_seconds,
            patterns=judged.patterns,
            single_voice_patterns=judged.single_voice_patterns,
            unread=judged.unread,
            calibrated=judged.calibrated,
            alarm_decided_by=judged.alarm_decided_by,
        )
    consensus = judged.consensus if judged.evaluations else None
    return Judgement(
        mode=judged.config.mode.value,
        verdict=judged.verdict,
        threshold=judged.config.alarm_threshold,
        consensus=consensus,
        rounds=1,
        round1_falsehood=consensus.falsehood if consensus else None,
        voices=len(judged.evaluations),
        voices_lost=len(judged.failures),
        total=account(judged.calls).total,
        seconds=judged.duration_seconds,
        unread=judged.unread,
    )


@dataclass(frozen=True, slots=True)
class Column:
    """One fact of a verdict: its name, type and meaning, how to read it, and the forms that have it."""

    name: str
    kind: Kind
    meaning: str
    get: Callable[[Judgement], Cell]
    forms: tuple[Form, ...] = ("row", "json")


ALL: tuple[Form, ...] = ("row", "json", "store", "scan", "run")
JUDGED: tuple[Form, ...] = ("row", "json", "store", "run")
KEPT: tuple[Form, ...] = ("row", "json", "store")


def _types(patterns: Sequence[PatternObservation]) -> str:
    return ", ".join(pattern.pattern_type for pattern in patterns)


def _of_consensus(name: str) -> Callable[[Judgement], Cell]:
    return lambda one: None if one.consensus is None else getattr(one.consensus, name)


COLUMNS = (
    Column(
        "verdict",
        str,
        "`alarm`, `unsure`, `no_alarm`, `unread` or `no_verdict`",
        lambda one: one.verdict,
        ALL,
    ),
    Column("mode", str, "`single`, `parallel` or `fire_circle`", lambda one: one.mode, KEPT),
    Column(
        "alarm",
        bool,
        "whether the verdict is `alarm`",
        lambda one: None if one.consensus is None else one.verdict == "alarm",
        ALL,
    ),
    Column("falsehood", float, "F of the consensus", _of_consensus("falsehood"), ALL),
    Column("truth", float, "T of the consensus", _of_consensus("truth"), ALL),
    Column("indeterminacy", float, "I of the consensus", _of_consensus("indeterminacy"), ALL),
    Column("balance", float, "(T - F)(1 - I)", lambda one: one.balance),
    Column("exchange_type", str, "the balance in a word", lambda one: one.exchange_type),
    Column("decided_by", str, "the voice whose words are the consensus", _of_consensus("model"), ALL),
    Column("decided_in_round", int, "the round of these words", _of_consensus("round_number"), JUDGED),
    Column("agreement", float, "how close the voices of the parallel mode are", lambda one: one.agreement),
    Column("rounds", int, "rounds that were held", lambda one: one.rounds, JUDGED),
    Column("voices", int, "voices that were heard to the end", lambda one: one.voices, ("row",)),
    Column("voices_lost", int, "voices that failed", lambda one: one.voices_lost, ("row",)),
    Column("patterns", str, "types that the voices agree on", lambda one: _types(one.patterns), ("row",)),
    Column(
        "single_voice_patterns",
        str,
        "types that fell short of agreement",
        lambda one: _types(one.single_voice_patterns),
        ("row",),
    ),
    Column("round1_falsehood", float, "F after round 1 alone", lambda one: one.round1_falsehood, JUDGED),
    Column("calls", int, "calls to voices", lambda one: one.total.calls),
    Column("tokens_in", int, "prompt tokens", lambda one: one.total.tokens_in, KEPT),
    Column("tokens_out", int, "answered tokens", lambda one: one.total.tokens_out, KEPT),
    Column(
        "cost_usd",
        float,
        "what the calls cost; empty if no price is known",
        lambda one: one.total.cost_usd,
        KEPT,
    ),
    Column("seconds", float, "from the first question to the verdict", lambda one: one.seconds, ("json",)),
    Column("threshold", float, "the alarm threshold", lambda one: one.threshold, ("json",)),
    Column("unread", str, "what no voice could read", lambda one: one.unread),
    Column("kept_as", str, "the id in the store", lambda one: one.kept_as),
    Column(
        "calibrated", float, "probability by your own calibration of these voices", lambda one: one.calibrated
    ),
    Column("alarm_decided_by", str, "the rule that decided", lambda one: one.alarm_decided_by),
)


def columns_of(form: Form) -> tuple[Column, ...]:
    """The columns of a form, in order."""
    return tuple(column for column in COLUMNS if form in column.forms)


def cells_of(judgement: Judgement, form: Form) -> dict[str, Cell]:
    """A judgement as one row of a form."""
    return {column.name: column.get(judgement) for column in columns_of(form)}
