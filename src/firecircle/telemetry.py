"""Spans and metrics for OpenTelemetry, following its GenAI conventions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from firecircle.circle.events import (
    CircleClosed,
    CircleConvened,
    Event,
    Listener,
    QuorumChecked,
    RoundClosed,
    RoundStarted,
    VoiceAnswered,
    VoiceFailed,
    VoiceRetried,
)
from firecircle.circle.panel import Panel
from firecircle.circle.result import CallRecord
from firecircle.errors import ConfigError, install_command
from firecircle.names import HOSTS, is_embedded, is_local

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["as_the_environment_says", "instrument"]

_listeners: list[Callable[[], Listener]] = []
"""Factories of a listener for each circle; empty without instrumentation."""
_panel_listeners: list[Callable[[Panel], None]] = []


def watching_listeners() -> list[Listener]:
    """New listeners for a circle that is about to start."""
    return [make() for make in _listeners]


def tell_panel(panel: Panel) -> None:
    """Report a finished panel to the listeners."""
    for listener in _panel_listeners:
        listener(panel)


def watched_by(
    for_a_circle: Callable[[], Listener], for_a_panel: Callable[[Panel], None]
) -> Callable[[], None]:
    """Report every circle and panel from now on; returns a function that stops it."""
    _listeners.append(for_a_circle)
    _panel_listeners.append(for_a_panel)

    def stop() -> None:
        _listeners.remove(for_a_circle)
        _panel_listeners.remove(for_a_panel)

    return stop


NANOSECONDS = 1_000_000_000


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    capture_content: bool = False,
) -> Callable[[], None]:
    """Report every circle and panel of this process to OpenTelemetry; returns a function that stops it.

    By default uses the global providers. `capture_content` adds prompts and reasons to the spans.
    """
    try:
        from opentelemetry import metrics, trace
    except ModuleNotFoundError as missing:
        raise ConfigError("telemetry", f"{missing.name} is not installed", install_command("otel")) from None
    tracer = trace.get_tracer("firecircle", tracer_provider=tracer_provider)
    meter = metrics.get_meter("firecircle", meter_provider=meter_provider)
    instruments = _Instruments(meter)

    def for_a_circle() -> Listener:
        return _CircleSpans(tracer, instruments, capture_content).tell

    def for_a_panel(panel: Panel) -> None:
        _trace_panel(tracer, instruments, panel, capture_content)

    return watched_by(for_a_circle, for_a_panel)


def export_over_otlp(*, capture_content: bool) -> Callable[[], None]:
    """Send everything to the endpoint in the environment; returns a function that ends it."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as missing:
        raise ConfigError("telemetry", f"{missing.name} is not installed", install_command("otel")) from None
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    stop = instrument(tracers, meters, capture_content=capture_content)

    def end() -> None:
        stop()
        tracers.shutdown()
        meters.shutdown()

    return end


def provider_of_voice(model: str, default: str) -> str:
    """The provider of a voice, by its name in the conventions."""
    if is_embedded(model) or is_local(model):
        return "firecircle"
    prefix = model.partition(":")[0]
    return prefix if ":" in model and prefix in HOSTS else default


class _Instruments:
    """The metrics: the two GenAI metrics, and how circles end."""

    def __init__(self, meter: Any) -> None:
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", unit="s", description="How long a voice took to answer."
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", unit="{token}", description="Tokens of a call."
        )
        self.circles = meter.create_counter(
            "firecircle.circles", unit="{circle}", description="Circles by how they ended."
        )

    def count(self, call: CallRecord, facts: dict[str, Any]) -> None:
        kept = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")
        about = {name: facts[name] for name in kept if name in facts}
        self._duration.record(call.latency_seconds, about)
        for kind, tokens in (("input", call.tokens_in), ("output", call.tokens_out)):
            if tokens is not None:
                self._tokens.record(tokens, {**about, "gen_ai.token.type": kind})


class _CircleSpans:
    """The spans of one circle, opened and closed by its events."""

    def __init__(self, tracer: Any, instruments: _Instruments, capture_content: bool) -> None:
        self._tracer = tracer
        self._instruments = instruments
        self._capture_content = capture_content
        self._circle: Span | None = None
        self._round: Span | None = None
        self._default_provider = ""

    def tell(self, event: Event) -> None:
        """Handle one event."""
        match event:
            case CircleConvened():
                self._open_circle(event)
            case RoundStarted():
                about: dict[str, Any] = {
                    "firecircle.round": event.round_number,
                    "firecircle.round.kind": event.round_kind,
                }
                if event.empty_chair_model:
                    about["firecircle.empty_chair"] = event.empty_chair_model
                self._round = self._open_span(f"round {event.round_number}", about, self._circle)
            case VoiceAnswered(evaluation=said):
                facts: dict[str, Any] = {"firecircle.falsehood": said.falsehood}
                if self._capture_content:
                    facts["firecircle.reasoning"] = said.reasoning
                self._calls(event.calls, facts)
            case VoiceFailed(failure=failure):
                self._calls(event.calls, {"error.type": failure.kind})
            case VoiceRetried() if self._round is not None:
                about = {"firecircle.voice": event.model, "firecircle.attempt": event.attempt}
                self._round.add_event("retry", {**about, "firecircle.wait_seconds": event.wait_seconds})
            case QuorumChecked() if self._round is not None:
                self._round.set_attribute("firecircle.quorum", event.verdict.valid)
            case RoundClosed() if self._round is not None:
                self._round.set_attribute("firecircle.falsehood.mean", event.f_score_mean)
                self._round.end()
                self._round = None
            case CircleClosed():
                self._close_circle(event)

    def _open_circle(self, event: CircleConvened) -> None:
        config = event.record.config
        self._default_provider = config.provider
        about: dict[str, Any] = {
            "gen_ai.conversation.id": event.circle_id,
            "firecircle.voices": list(event.models),
            "firecircle.max_rounds": event.max_rounds,
        }
        if self._capture_content:
            about["firecircle.prompt"] = event.record.prompt.model_dump_json()
        self._circle = self._open_span("fire_circle", about, None)

    def _close_circle(self, event: CircleClosed) -> None:
        result = event.result
        if self._round is not None:
            self._round.end()
        about = {"firecircle.status": result.stopped}
        self._instruments.circles.add(1, {**about, "firecircle.alarm": bool(result.alarm)})
        if self._circle is None:
            return
        self._circle.set_attributes(about)
        if result.consensus is not None:
            self._circle.set_attribute("firecircle.falsehood", result.consensus.falsehood)
            self._circle.set_attribute("firecircle.alarm", bool(result.alarm))
            self._circle.set_attribute("firecircle.decided_by", result.consensus.model)
        else:
            from opentelemetry.trace import Status, StatusCode

            self._circle.set_attribute("error.type", result.stopped)
            self._circle.set_status(Status(StatusCode.ERROR, result.stopped))
        self._circle.end()

    def _open_span(self, name: str, about: dict[str, Any], inside: Span | None) -> Span:
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(inside) if inside is not None else None
        span: Span = self._tracer.start_span(name, context=context, attributes=about)
        return span

    def _calls(self, calls: tuple[CallRecord, ...], facts: dict[str, Any]) -> None:
        _trace_calls(
            self._tracer,
            self._instruments,
            calls,
            facts,
            self._round or self._circle,
            self._default_provider,
        )


def _trace_calls(
    tracer: Any,
    instruments: _Instruments,
    calls: tuple[CallRecord, ...],
    facts: dict[str, Any],
    inside: Span | None,
    default_provider: str,
) -> None:
    """Spans of finished calls: the last ended now, and each before it when the next began."""
    from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

    context = set_span_in_context(inside) if inside is not None else None
    ended = time.time_ns()
    for call in reversed(calls):
        about = {**_gen_ai(call, default_provider), **facts}
        instruments.count(call, about)
        started = ended - int(call.latency_seconds * NANOSECONDS)
        span = tracer.start_span(
            f"chat {call.model}", context, SpanKind.CLIENT, attributes=about, start_time=started
        )
        if "error.type" in about:
            span.set_status(Status(StatusCode.ERROR, str(about["error.type"])))
        span.end(ended)
        ended = started


def _trace_panel(tracer: Any, instruments: _Instruments, panel: Panel, capture_content: bool) -> None:
    about: dict[str, Any] = {
        "gen_ai.conversation.id": panel.panel_id,
        "firecircle.voices": list(panel.config.first_asked),
    }
    if capture_content:
        about["firecircle.prompt"] = panel.prompt.model_dump_json()
    started = int(panel.started_at * NANOSECONDS)
    span = tracer.start_span(panel.config.mode.value, attributes=about, start_time=started)
    for call in panel.calls:
        said = {e.model: e.falsehood for e in panel.evaluations}
        facts = {"firecircle.falsehood": said[call.model]} if call.model in said else {}
        _trace_calls(tracer, instruments, (call,), facts, span, panel.config.provider)
    span.end()


def _gen_ai(call: CallRecord, default_provider: str) -> dict[str, Any]:
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider_of_voice(call.model, default_provider),
        "gen_ai.request.model": call.asked_id or call.model,
        "gen_ai.response.model": call.answered_by,
        "gen_ai.usage.input_tokens": call.tokens_in,
        "gen_ai.usage.cache_read.input_tokens": call.tokens_cached,
        "gen_ai.usage.output_tokens": call.tokens_out,
        "error.type": call.failed,
        "firecircle.purpose": call.purpose,
        "firecircle.attempts": call.attempts,
        "firecircle.cost_usd": call.cost_usd,
    }
    return {name: value for name, value in facts.items() if value is not None}


@contextmanager
def as_the_environment_says() -> Iterator[None]:
    """Instrument as `FIRECIRCLE_OTEL` says, for a command line; sends everything at its end.

    `FIRECIRCLE_OTEL=1` sends to the endpoint of `OTEL_EXPORTER_OTLP_ENDPOINT`, `FIRECIRCLE_OTEL=content`
    includes prompts and reasons.
    """
    asked = os.environ.get("FIRECIRCLE_OTEL", "")
    if not asked:
        yield
        return
    end = export_over_otlp(capture_content=asked == "content")
    try:
        yield
    finally:
        end()
