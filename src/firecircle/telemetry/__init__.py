"""Spans, metrics and log lines of circles, for those who watch them with OpenTelemetry or read logs.

A circle is a span, a round a span in it, a call to a voice a span in its round; calls follow the GenAI
conventions, so that a backend shows them beside other uses of models. Nothing of a prompt or an answer leaves
unless it is asked for, and keys never do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from firecircle.telemetry.log import log_to, log_to_target
from firecircle.telemetry.spans import export_over_otlp, instrument

__all__ = ["as_the_environment_says", "instrument", "log_to"]

OTEL_VARIABLE, LOG_VARIABLE = "FIRECIRCLE_OTEL", "FIRECIRCLE_LOG"


@contextmanager
def as_the_environment_says() -> Iterator[None]:
    """Watch as `FIRECIRCLE_OTEL` and `FIRECIRCLE_LOG` say, for a command line; everything is sent at its end.

    `FIRECIRCLE_OTEL=1` sends to the endpoint of `OTEL_EXPORTER_OTLP_ENDPOINT`, `FIRECIRCLE_OTEL=content` with
    prompts and reasons. `FIRECIRCLE_LOG` names a file, or `-` for the error stream.
    """
    endings: list[Callable[[], None]] = []
    if asked := os.environ.get(OTEL_VARIABLE, ""):
        endings.append(export_over_otlp(capture_content=asked == "content"))
    if target := os.environ.get(LOG_VARIABLE, ""):
        endings.append(log_to_target(target))
    try:
        yield
    finally:
        for end in endings:
            end()
