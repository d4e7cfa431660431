"""How benchmarks print a figure of the lab's statistics."""

from __future__ import annotations

from firecircle.lab.statistics.estimate import Estimate


def shown(figure: Estimate) -> str:
    """A figure with its interval."""
    if figure.value is None:
        return "-"
    return f"{figure.value:.3f}" + ("" if figure.low is None else f" [{figure.low:.2f}, {figure.high:.2f}]")
