"""What a session remembers between turns: how balanced they were, and how trust develops."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from firecircle.errors import ConfigError
from firecircle.files import write_whole
from firecircle.prompt import EarlierTurn
from firecircle.shapes import config_error

ExchangeType = Literal["extractive", "neutral", "reciprocal", "generative"]

TRUST_START = 0.5
TRUST_ALPHA = 0.3
TRUST_MOVED = 0.1
HOSTILE_ALARMS, HOSTILE_WINDOW = 3, 5
TREND_WINDOW = 3


def exchange_type_of(balance: float) -> ExchangeType:
    """The name of an exchange with this balance in [-1, 1]."""
    if balance <= -0.3:
        return "extractive"
    if balance < 0.1:
        return "neutral"
    return "reciprocal" if balance <= 0.7 else "generative"


class SessionMemory(BaseModel):
    """The turns of a session that were judged so far, with trust and trajectories. `turn_count` is the number
    of the turn under judgement, from 1.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    turn_count: int = Field(default=1, ge=1)
    balance_history: list[float] = Field(default_factory=list)
    trust_history: list[float] = Field(default_factory=list)
    alarm_history: list[bool] = Field(default_factory=list)
    messages: list[EarlierTurn] = Field(default_factory=list)
    """Messages known to the session: the evidence for claims about earlier turns."""
    unjudged_turns: list[int] = Field(default_factory=list)
    """Turns that took place but could not be judged."""

    @property
    def trust(self) -> float:
        """The moving average of trust, in [0, 1]."""
        return self.trust_history[-1] if self.trust_history else TRUST_START

    @property
    def trust_trajectory(self) -> str:
        """How trust develops, and what kind of exchange the last turn was."""
        kind = exchange_type_of(self.balance_history[-1]) if self.balance_history else "neutral"
        return f"{self._heading()}_{kind}"

    def _heading(self) -> Literal["hostile", "degrading", "improving", "stable"]:
        if sum(self.alarm_history[-HOSTILE_WINDOW:]) >= HOSTILE_ALARMS:
            return "hostile"
        path = [TRUST_START, *self.trust_history]
        moved = path[-1] - path[max(0, len(path) - 1 - TREND_WINDOW)]
        if abs(moved) <= TRUST_MOVED:
            return "stable"
        return "improving" if moved > 0 else "degrading"

    @property
    def earlier_turns(self) -> tuple[EarlierTurn, ...] | None:
        """The messages of the earlier turns; None if the session does not have all of them."""
        heard = sum(message.role == "user" for message in self.messages)
        return tuple(self.messages) if heard == self.turn_count - 1 else None

    def record_reply(self, text: str) -> None:
        """Add the assistant's reply to the turn that was judged last."""
        self.messages = [*self.messages, EarlierTurn(role="assistant", content=text)]

    def record_failure(self, message: str = "") -> None:
        """Advance past a turn that could not be judged; `message` is what the user said."""
        self.unjudged_turns = [*self.unjudged_turns, self.turn_count]
        self._next_turn(message)

    def take_back_failure(self, message: str) -> None:
        """Return to the last turn if it could not be judged and the same message is judged again."""
        last = self.messages[-1] if self.messages else None
        if self.unjudged_turns[-1:] == [self.turn_count - 1] and last and last.content == message:
            self.unjudged_turns = self.unjudged_turns[:-1]
            self.messages = self.messages[:-1]
            self.turn_count -= 1

    def record(self, balance: float, alarm: bool, message: str = "") -> None:
        """Save the judgement and message of the current turn, and advance to the next."""
        self.balance_history = [*self.balance_history, balance]
        trust = (1 - TRUST_ALPHA) * self.trust + TRUST_ALPHA * (balance + 1) / 2
        self.trust_history = [*self.trust_history, trust]
        self.alarm_history = [*self.alarm_history, alarm]
        self._next_turn(message)

    def _next_turn(self, message: str) -> None:
        if message:
            self.messages = [*self.messages, EarlierTurn(role="user", content=message)]
        self.turn_count += 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file, the whole of it or nothing."""
        write_whole(Path(path), self.model_dump_json(indent=2) + "\n", mode=0o600)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SessionMemory:
        """Read a session written by `save`."""
        try:
            return cls.model_validate_json(Path(path).read_text(encoding="utf-8"))
        except OSError as unreadable:
            raise ConfigError(
                "session", f"cannot read {os.fspath(path)}: {unreadable.strerror or unreadable}"
            ) from None
        except UnicodeDecodeError:
            raise ConfigError("session", f"{os.fspath(path)} is not UTF-8 text") from None
        except ValidationError as invalid:
            wrong = config_error(invalid, "session").within(f"{os.fspath(path)} is not a session file")
            raise wrong.within("session") from None


def format_turn_context(session: SessionMemory | None) -> str:
    """The one line about the session that a voice is shown; empty when there is no earlier turn."""
    if session is None or session.turn_count <= 1:
        return ""
    line = f"Session context (Turn {session.turn_count})"
    if not session.balance_history:
        return line
    return (
        f"{line}: Previous balance {session.balance_history[-1]:.2f}, trajectory {session.trust_trajectory}"
    )
