"""What one `evaluate` command line asks for, once it is understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firecircle.cli.evaluate.plan import Plan
from firecircle.cli.printable import printable_line
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory

if TYPE_CHECKING:
    from firecircle.circle.panel import Guide
    from firecircle.store.opening import Store


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt, who is to judge it and how, and how to tell the outcome."""

    prompt: MultiNeutrosophicPrompt
    plan: Plan
    session: SessionMemory | None = None
    session_file: str | None = None
    example: str | None = None
    store: Store | None = None
    """Where the outcome is kept."""
    label: str | None = None
    bank: Guide | None = None
    """Who tells the voices of the single and parallel modes what to look out for."""
    as_json: bool = False
    verbose: bool = False

    @property
    def threshold(self) -> float:
        """The falsehood from which on it is an alarm."""
        return self.plan.config.alarm_threshold

    @property
    def introduction(self) -> str:
        """Two lines: who judges, and what."""
        sizes = ", ".join(f"{layer.name} {len(layer.text):,}" for layer in self.prompt.layers)
        turn = self.session.turn_count if self.session else self.prompt.turn_number
        focus = self.plan.config.focus
        parts = [
            f"example {printable_line(self.example)}" if self.example else "",
            f"{sizes} characters",
            f"turn {turn}" if turn else "turn unknown",
            f"only the {focus} layer is judged" if focus != "prompt" else "",
        ]
        told = "; ".join(part for part in parts if part)
        return f"Fire Circle: {self.plan.introduction}\nPrompt: {told}\n"
