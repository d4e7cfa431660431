"""The sum of a voice's rows in one domain, whether a database or this process added them up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a voice was heard in a domain, and when."""

    voice_id: str
    decision_domain: str
    count: int
    """The number of sittings in which it was heard."""
    last_heard: float
    chair_count: int
    last_chair: float | None
    measured: int
    """The number of contributions with a measured quality; `quality` is their mean."""
    quality: float | None
