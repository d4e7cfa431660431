"""Who watches the circles of this process. Nobody does unless asked to, and then nothing is made for them."""

from __future__ import annotations

from collections.abc import Callable

from firecircle.circle.events import Listener
from firecircle.circle.panel import Panel

_listeners: list[Callable[[], Listener]] = []
"""What makes a listener for each circle; empty unless somebody watches."""
_panel_listeners: list[Callable[[Panel], None]] = []


def watching_listeners() -> list[Listener]:
    """A listener for a circle that is about to sit, of each who watches."""
    return [make() for make in _listeners]


def tell_panel(panel: Panel) -> None:
    """Tell those who watch what voices judged apart."""
    for listener in _panel_listeners:
        listener(panel)


def watched_by(
    for_a_circle: Callable[[], Listener], for_a_panel: Callable[[Panel], None]
) -> Callable[[], None]:
    """Tell these of every circle and panel from now on; returns what stops it."""
    _listeners.append(for_a_circle)
    _panel_listeners.append(for_a_panel)

    def stop() -> None:
        _listeners.remove(for_a_circle)
        _panel_listeners.remove(for_a_panel)

    return stop
