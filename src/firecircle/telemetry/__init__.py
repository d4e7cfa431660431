"""Spans and metrics of circles for OpenTelemetry.

A circle is a span, a round a span in it, a call to a voice a span in its round; calls follow the GenAI
conventions, so that a backend shows them beside other uses of models. Nothing of a prompt or an answer leaves
unless it is asked for, and keys never do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from firecircle.telemetry.spans import export_over_otlp, instrument

__all__ = ["as_the_environment_says", "instrument"]

OTEL_VARIABLE = "FIRECIRCLE_OTEL"


@contextmanager
def as_the_environment_says() -> Iterator[None]:
    """Watch as `FIRECIRCLE_OTEL` says, for a command line; everything is sent at its end.

    `FIRECIRCLE_OTEL=1` sends to the endpoint of `OTEL_EXPORTER_OTLP_ENDPOINT`, `FIRECIRCLE_OTEL=content` with
    prompts and reasons.
    """
    asked = os.environ.get(OTEL_VARIABLE, "")
    if not asked:
        yield
        return
    end = export_over_otlp(capture_content=asked == "content")
    try:
        yield
    finally:
        end()
