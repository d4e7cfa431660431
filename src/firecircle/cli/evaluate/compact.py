"""`--json`: one short document a prompt, of the same shape in every mode; `--json=full` is the recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firecircle.circle.columns import cells_of
from firecircle.circle.result import Failure, FireCircleResult, PatternObservation
from firecircle.cli.output import print_json
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import VERDICT_KIND
from firecircle.shapes import Shape
from firecircle.telling.safe_text import printable_line
from firecircle.telling.verdict import cautions_of_circle, cautions_of_panel, deciding_reason
from firecircle.verdict import VerdictWord

if TYPE_CHECKING:
    from firecircle.cli.evaluate.request import Request


class CompactQuote(Shape):
    """Words of the prompt that show a pattern, and the layer they stand in."""

    layer: str
    text: str


class CompactPattern(Shape):
    """A pattern with the words that show it, and how far the voices agree on it."""

    type: str
    description: str
    agreement: float
    seen_by: tuple[str, ...]
    independent: tuple[str, ...] = ()
    """Who named it before reading of it."""
    held_to_the_end: tuple[str, ...] = ()
    same_words: tuple[str, ...] = ()
    """Who quoted the same words, whatever they called them."""
    round: int
    quotes: tuple[CompactQuote, ...]
    left_out: str | None = None
    """Why it is not agreed on."""


class CompactVoice(Shape):
    """The last word of a voice."""

    model: str
    falsehood: float
    truth: float
    indeterminacy: float
    round: int


class CompactLoss(Shape):
    """A voice that was lost."""

    model: str
    round: int
    kind: str
    message: str


class CompactResult(Shape):
    """The verdict on one prompt, the same fields in all modes; what a mode does not have is null or empty."""

    kind: str = VERDICT_KIND
    format: int = 1
    verdict: VerdictWord = "no_verdict"
    """`alarm`, `unsure`, `no_alarm`, `unread`, or `no_verdict` when judging failed: `error` says why."""
    alarm: bool | None = None
    falsehood: float | None = None
    truth: float | None = None
    indeterminacy: float | None = None
    balance: float | None = None
    exchange_type: str | None = None
    mode: str
    threshold: float
    decided_by: str | None = None
    decided_in_round: int | None = None
    reason: str = ""
    """The deciding voice's strongest observation with words of the prompt, then that voice's reasoning."""
    patterns: tuple[CompactPattern, ...] = ()
    single_voice_patterns: tuple[CompactPattern, ...] = ()
    """Typed and shown in the prompt, but not agreed on."""
    voices: tuple[CompactVoice, ...] = ()
    lost: tuple[CompactLoss, ...] = ()
    cautions: tuple[str, ...] = ()
    """What to know before relying on the verdict."""
    unread: str | None = None
    """What no voice that judged could read."""
    agreement: float | None = None
    rounds: int = 0
    round1_falsehood: float | None = None
    calibrated: float | None = None
    """The probability of manipulation, where a calibration for these voices is known."""
    alarm_decided_by: str = "maximum"
    """The rule that decided: the highest F, or the calibrated probability."""
    seconds: float | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    label: str | None = None
    kept_as: str | None = None
    """`firecircle circles show` finds everything that was asked and said under this id."""
    error: str | None = None


def print_result(metrics: ReciprocityMetrics, request: Request) -> None:
    """Print a judgement in the form that was asked for."""
    if request.as_json == "full":
        print_json((metrics.fire_circle or metrics).model_dump(mode="json"))
    else:
        print_json(compact_result(metrics, request.threshold, label=request.label).model_dump(mode="json"))


def print_failure(
    message: str, partial: FireCircleResult | None, request: Request, kept_as: str | None = None
) -> None:
    """Print why there is no judgement, in the form that was asked for."""
    if request.as_json == "full":
        heard = partial.model_dump(mode="json") if partial else None
        print_json({"error": message, "partial_result": heard})
        return
    failure = compact_failure(
        message, request.mode.value, request.threshold, partial, kept_as=kept_as, label=request.label
    )
    print_json(failure.model_dump(mode="json"))


def compact_result(
    metrics: ReciprocityMetrics, threshold: float, *, label: str | None = None
) -> CompactResult:
    """A judgement in short."""
    circle = metrics.fire_circle
    cautions = (
        cautions_of_circle(circle, printable_line) if circle else cautions_of_panel(metrics, printable_line)
    )
    values: dict[str, Any] = {**cells_of(metrics.judgement, "json"), "threshold": threshold}
    return CompactResult(
        **values,
        reason=deciding_reason(metrics, printable_line),
        patterns=_patterns(metrics.patterns),
        single_voice_patterns=_patterns(metrics.single_voice_patterns),
        voices=tuple(
            CompactVoice(
                model=answer.model,
                falsehood=answer.falsehood,
                truth=answer.truth,
                indeterminacy=answer.indeterminacy,
                round=answer.round_number,
            )
            for answer in metrics.evaluations
        ),
        lost=_losses(metrics.failures),
        cautions=tuple(
            sentence for heading in ("Verdict", "Quorum") for sentence in cautions.get(heading, ())
        ),
        label=label,
    )


def compact_failure(
    error: str,
    mode: str,
    threshold: float,
    partial: FireCircleResult | None = None,
    *,
    kept_as: str | None = None,
    label: str | None = None,
) -> CompactResult:
    """A judgement that came to nothing, and what was lost and spent until then."""
    total = partial.accounting.total if partial else None
    return CompactResult(
        mode=mode,
        threshold=threshold,
        lost=_losses(partial.failures) if partial else (),
        rounds=len(partial.dialogue_history) if partial else 0,
        seconds=partial.duration_seconds if partial else None,
        calls=total.calls if total else 0,
        tokens_in=total.tokens_in if total else 0,
        tokens_out=total.tokens_out if total else 0,
        cost_usd=total.cost_usd if total else None,
        label=label,
        kept_as=kept_as,
        error=error,
    )


def _patterns(patterns: Sequence[PatternObservation]) -> tuple[CompactPattern, ...]:
    return tuple(
        CompactPattern(
            type=pattern.pattern_type,
            description=pattern.description,
            agreement=pattern.model_agreement,
            seen_by=pattern.models_observing,
            independent=pattern.independent_observers,
            held_to_the_end=pattern.held_to_the_end,
            same_words=pattern.same_words,
            round=pattern.observed_in_round,
            quotes=tuple(
                CompactQuote(layer=layer, text=text)
                for layer, text in dict.fromkeys((quote.layer, quote.text) for quote in pattern.evidence)
            ),
            left_out=pattern.left_out,
        )
        for pattern in patterns
    )


def _losses(failures: tuple[Failure, ...]) -> tuple[CompactLoss, ...]:
    return tuple(
        CompactLoss(model=lost.model, round=lost.round_number, kind=lost.kind, message=lost.message)
        for lost in failures
    )
