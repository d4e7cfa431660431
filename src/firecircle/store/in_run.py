"""Which judgement of a run a circle is; by itself, so that whoever names one needs no database."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InRun:
    """A circle's place in a run of the lab."""

    run_id: str
    arm: str
    record_id: str
