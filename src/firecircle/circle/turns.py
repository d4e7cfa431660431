"""What each voice is asked in each round: its prompt, and the turn with everything that goes along."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from firecircle.circle import events
from firecircle.circle.answer import reply_schema
from firecircle.circle.circumstances import Circumstances
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.grounding import grounded_words
from firecircle.circle.ledger import Ledger, RoundPage
from firecircle.circle.questions import Questions
from firecircle.circle.result import DialogueRound, VoicePrompt, messages
from firecircle.circle.voice import Peer, Turn
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt


@dataclass(slots=True)
class Turns:
    """The turns of one circle. A voice sees the others only from round 2 on, and by their labels."""

    prompt: MultiNeutrosophicPrompt
    config: FireCircleConfig
    circumstances: Circumstances
    questions: Questions
    ledger: Ledger
    tell: events.Listener
    _peers: dict[tuple[str, int | None], Peer] = field(default_factory=dict)

    def is_extra(self, number: int) -> bool:
        """Whether a round is held only because the voices are divided."""
        return number > self.config.max_rounds

    def prompt_for(
        self, page: RoundPage, model: str, history: Sequence[DialogueRound], *, joins: bool = False
    ) -> VoicePrompt:
        """What a voice is asked beyond what all are asked; the chair has a question of its own.

        `history` are the rounds before this one; a voice that `joins` in it has no statement among them yet.
        """
        kind, is_chair = page.kind, model == page.chair
        if kind == "baseline":
            return VoicePrompt(model=model, text="")
        last = self.ledger.last_said(model, before=page.number)
        closing = self.questions.closing(model, kind, last, is_chair=is_chair, joins=joins)
        if not is_chair:
            return VoicePrompt(model=model, text=f"\n\n{closing}")
        question = self.questions.chair(kind, history, closing, opposed=self.is_extra(page.number))
        return VoicePrompt(model=model, is_chair=True, text=question)

    def turn(self, page: RoundPage, asked: VoicePrompt) -> Turn:
        """The question to one voice, with all that goes with it."""
        model = asked.model
        question = asked.question(page.question)
        return Turn(
            messages=messages(self.questions.system, self.questions.evidence, question),
            prompt=self.prompt,
            question=question,
            plain_question=not self.circumstances.asks_in_other_words(is_chair=asked.is_chair),
            round_number=page.number,
            focus=self.config.focus,
            turn_number=self.circumstances.turn_number,
            is_chair=asked.is_chair,
            own_last=self.ledger.last_said(model, before=page.number),
            peers=self._peers_of(model, before=page.number),
            reply_schema=reply_schema(page.kind, is_chair=asked.is_chair),
            max_tokens=self.config.max_tokens,
            temperature=self.config.temperature,
            seed=self.config.seed,
            attempt_seconds=self.config.timeout_seconds,
            deadline=asyncio.get_running_loop().time() + self.config.timeout_per_round,
            on_retry=lambda retry: self.tell(
                events.VoiceRetried(
                    round_number=page.number,
                    model=model,
                    attempt=retry.attempt,
                    reason=retry.reason,
                    wait_seconds=retry.wait_seconds,
                )
            ),
        )

    def _peers_of(self, model: str, before: int) -> tuple[Peer, ...]:
        """The last words of everybody else, under their labels, with what they quoted and what was found."""
        if before == 1:
            return ()
        labels = self.questions.labels
        others = [other for other in sorted(labels, key=labels.__getitem__) if other != model]
        return tuple(self._peer(evaluation) for evaluation in self.ledger.last_words(others, before))

    def _peer(self, evaluation: NeutrosophicEvaluation) -> Peer:
        """One who said this, as all others see it."""
        key = (evaluation.model, evaluation.round_number)
        if key not in self._peers:
            quotes = grounded_words(evaluation, self.prompt)
            shown = self.questions.without_names(evaluation)
            self._peers[key] = Peer(self.questions.labels[evaluation.model], shown, quotes)
        return self._peers[key]
