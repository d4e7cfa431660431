"""Spans and metrics of circles for OpenTelemetry.

A circle is a span, with a span per round and a span per call inside; calls follow the GenAI conventions, so
that a backend shows them next to other model calls. Text of prompts and answers is sent only on request, and
keys never.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from firecircle.telemetry.spans import export_over_otlp, instrument

__all__ = ["as_the_environment_says", "instrument"]


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
