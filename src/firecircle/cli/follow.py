"""Following a circle while it sits: a live table on a terminal, one plain line an event anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rich.console import Console
from rich.live import Live

from firecircle.circle.events import Event, Listener
from firecircle.cli.board import Board
from firecircle.cli.board_view import BoardView
from firecircle.cli.event_lines import line_of
from firecircle.cli.screen import print_line

FRAMES_PER_SECOND = 8


@contextmanager
def following(console: Console, threshold: float, introduction: str) -> Iterator[Listener]:
    """A listener that shows each event as it comes; the introduction waits until the voices are seated."""
    with ExitStack() as open_views:
        show: Listener | None = None

        def listener(event: Event) -> None:
            nonlocal show
            if show is None:
                console.print(introduction, soft_wrap=not console.is_terminal)
                show = open_views.enter_context(_view(console, threshold))
            show(event)

        yield listener


@contextmanager
def _view(console: Console, threshold: float) -> Iterator[Listener]:
    if console.is_terminal and not console.is_dumb_terminal:
        with _live(console, threshold) as listener:
            yield listener
    else:
        yield lambda event: print_line(console, line_of(event, threshold))


@contextmanager
def _live(console: Console, threshold: float) -> Iterator[Listener]:
    view = BoardView(Board(), threshold, running=True)
    with Live(view, console=console, refresh_per_second=FRAMES_PER_SECOND) as live:

        def show(event: Event) -> None:
            nonlocal view
            # Boards are never changed in place, so the thread that draws always sees a whole one.
            view = replace(view, board=view.board.after(event))
            live.update(view)

        try:
            yield show
        finally:
            live.update(replace(view, running=False))
