"""Who may sit in a circle that is convened over HTTP: voices that are known here, and people behind a link.

Any other name would let a reader of the page choose where this server connects, or which of its files it
opens.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit

from firecircle.catalog import in_catalog, original_of
from firecircle.circle.voice import Turn
from firecircle.errors import ConfigError
from firecircle.names import is_embedded, is_family, is_local, is_person
from firecircle.settings import current_settings
from firecircle.voices.hosted.providers import PROVIDERS, on_this_machine
from firecircle.voices.local.weights import local_models
from firecircle.voices.person import Answer, PersonVoice, person_name
from firecircle.web.problems import RequestError

SEATS = "/seats/"
SEAT_ENDED = "this link has ended: its circle is over, or the server was restarted; ask for a new link"
SeatState = Literal["asked", "waiting", "missed", "passed"]


class PersonSeat:
    """A person's place in one circle, behind a link that nobody else knows."""

    def __init__(self, model: str) -> None:
        self.model, self.name = model, person_name(model)
        self.token = secrets.token_urlsafe(24)
        self.voice = PersonVoice(model, self._ask)
        self.turn: Turn | None = None
        """The question that is open."""
        self._after: SeatState = "waiting"
        self.round_number = 0
        """Of the last question."""
        self._until = 0.0
        self._answer: asyncio.Future[Answer] | None = None

    @property
    def state(self) -> SeatState:
        """What the person is waiting for, or what waits for the person."""
        return self._after if self.turn is None else "asked"

    @property
    def stage(self) -> str:
        """The state with its round, such as `asked-2`."""
        return f"{self.state}-{self.round_number}"

    @property
    def url(self) -> str:
        """The address of the page where the person answers."""
        return f"{SEATS}{self.token}"

    @property
    def seconds_left(self) -> float:
        """How long the open question may still be answered."""
        return max(0.0, self._until - time.monotonic())

    def take(self, round_number: int, answer: Answer) -> None:
        """Give the open question its answer. Raises `RequestError` if there is none for it."""
        if round_number > self.round_number:
            raise RequestError(409, f"round {round_number} has not begun")
        if round_number < self.round_number or self._answer is None or self._answer.done():
            raise RequestError(409, self._why_not(round_number))
        self._answer.set_result(answer)

    def _why_not(self, round_number: int) -> str:
        if self.state == "missed" and round_number == self.round_number:
            return f"the time for round {round_number} is over, and the circle goes on without you"
        return f"round {round_number} is answered already; the first answer counts"

    async def _ask(self, turn: Turn) -> Answer:
        self.turn, self.round_number, self._after = turn, turn.round_number, "missed"
        self._until = time.monotonic() + turn.attempt_seconds
        self._answer = asyncio.get_running_loop().create_future()
        try:
            answer = await self._answer
            self._after = "passed" if answer.verdict is None and turn.own_last is None else "waiting"
            return answer
        finally:
            self.turn = None


def require_known_voices(field: str, models: Iterable[str]) -> None:
    """Refuse the first voice that neither the settings nor the package name."""
    if stranger := next((model for model in models if not _is_known(original_of(model))), None):
        raise ConfigError(
            field,
            f"{stranger!r} is not named in the settings",
            "declare it under [models] or its provider under [providers] in firecircle.toml",
        )


def _is_known(model: str) -> bool:
    if is_person(model):  # who answers on a page, see PersonSeat
        return bool(person_name(model).strip())
    settings = current_settings()
    seats = (*settings.circle.get("models", ()), *settings.circle.get("reserves", ()))
    if model in (*seats, *settings.models, *settings.prices, *settings.limits):
        return True
    if is_local(model):
        return model in local_models()
    provider = model.partition(":")[0]
    if is_embedded(model) or is_family(model) or provider in settings.providers:
        return True
    host = urlsplit(PROVIDERS[provider].base_url).hostname if provider in PROVIDERS else None
    return in_catalog(model) is not None and not on_this_machine(host or "")
