"""Asking voices within a budget, one or several at once: for a round of a circle as for voices apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firecircle.circle.budget import Budget
from firecircle.circle.hearing import Hearing, hear
from firecircle.circle.ledger import RoundPage
from firecircle.circle.result import CallRecord, VoicePrompt
from firecircle.circle.voice import Turn, Voice


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks the voices of a judgement, and holds every question against what is left of the budget."""

    voices: Mapping[str, Voice]
    budget: Budget
    turn: Callable[[RoundPage, VoicePrompt], Turn]
    """The question to one voice, with all that goes with it."""
    calls: Callable[[], Sequence[CallRecord]]
    """Every call of this judgement so far."""
    clarify: Callable[[str, float, float], str]
    strict: bool = False

    def shortage(self, page: RoundPage, questions: Iterable[VoicePrompt]) -> str | None:
        """How much is spent, if what is left is not enough for all these questions; else None."""
        coming = ((self.voices[asked.model], self.turn(page, asked)) for asked in questions)
        return self.budget.shortage_for(coming, self.calls)

    async def ask(self, page: RoundPage, model: str) -> Hearing:
        """Ask one voice the question on the page. Only a cancellation escapes; all else is on record."""
        heard = page.hearings[model] = Hearing(model)
        await hear(
            heard,
            self.voices[model],
            self.turn(page, page.prompts[model]),
            strict=self.strict,
            clarify=self.clarify,
            may_ask=lambda again: self._may_ask_again(page, model, again),
        )
        return heard

    def _may_ask_again(self, page: RoundPage, model: str, again: Turn) -> bool:
        """Whether a further question fits beside the answers that are still under way."""

        def coming() -> Iterable[tuple[Voice, Turn]]:
            for asked in page.under_way:
                if asked.model != model:
                    yield self.voices[asked.model], self.turn(page, asked)
            yield self.voices[model], again

        return self.budget.shortage_for(coming(), self.calls) is None


async def hear_all(asking: Iterable[Coroutine[Any, Any, Hearing]], *, until_one_fails: bool = False) -> None:
    """Ask all at once and hear everybody out, or only until the first one fails; no task is left behind."""
    hearings = [asyncio.create_task(hearing) for hearing in asking]
    try:
        under_way = set(hearings)
        while under_way:
            over, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            failed = [hearing for hearing in over if hearing.result().failure]
            if failed and until_one_fails:
                break
    finally:
        stray = [hearing for hearing in hearings if not hearing.done()]
        for hearing in stray:
            hearing.cancel()
        await asyncio.gather(*stray, return_exceptions=True)
