"""The control for the discussion: the same voices, for as many rounds and as many tokens, but without peers.

Flips in this arm happen without influence. Only what a circle gains beyond it comes from the discussion.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from firecircle.circle.circumstances import Circumstances, circumstances_of
from firecircle.circle.conclude import conclude
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.grounding import fence, without_nonce
from firecircle.circle.hearing import Hearing, hear
from firecircle.circle.questions import Questions, reply_schema
from firecircle.circle.result import (
    CallRecord,
    CircleRecord,
    DialogueRound,
    FireCircleResult,
    RoundKind,
    VoicePrompt,
)
from firecircle.circle.templates import render, template
from firecircle.circle.voice import Voice
from firecircle.convene import SeatedCircle, rehearse
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.lab.arms.arm import Case, CaseVoices
from firecircle.lab.arms.outcomes import outcome_of_circle
from firecircle.lab.records import Outcome
from firecircle.names import Focus
from firecircle.prompt import MultiNeutrosophicPrompt

FEWEST_WORTH_SHOWING = 80
"""Characters; a shorter piece of an answer or of the evidence is confusing."""


class ReflectionQuestions:
    """Writes the questions of one voice. Evidence, markers and first question are those of the circle."""

    def __init__(
        self, prompt: MultiNeutrosophicPrompt, model: str, circumstances: Circumstances, focus: Focus
    ) -> None:
        self._prompt = prompt
        self._nonce = circumstances.nonce
        self.of_the_circle = Questions(prompt, (model,), circumstances, focus=focus)
        self.system = self.of_the_circle.system
        self.evidence = self.of_the_circle.evidence
        self.baseline = self.of_the_circle.standard("baseline", ())
        self.clarify = self.of_the_circle.clarify

    def reread(self, kind: RoundKind, earlier: Sequence[NeutrosophicEvaluation], length: int) -> str:
        """The question of a later round, extended to this length with the evidence, to read again."""
        values = {
            "turn_fact": self.of_the_circle.turn_fact,
            "answer": self.of_the_circle.answer_format(kind),
        }
        bare = len(
            render(template("reflect", "templates", "firecircle.lab.arms"), own="", again="", **values)
        )
        own = self._statements(earlier, length - bare)
        again = self._evidence_again(length - bare - len(own))
        return render(template("reflect", "templates", "firecircle.lab.arms"), own=own, again=again, **values)

    def _statements(self, earlier: Sequence[NeutrosophicEvaluation], room: int) -> str:
        """The voice's own answers as far as there is room, the last one first."""
        shown: list[str] = []
        for evaluation in reversed(earlier):
            label = f"your own answer of round {evaluation.round_number}"
            left = room - len(fence(self._nonce, label, ""))
            if shown and left < FEWEST_WORTH_SHOWING:
                break
            words = evaluation.raw_replies[-1] if evaluation.raw_replies else evaluation.reasoning
            cut = without_nonce(words.strip(), self._nonce)[: max(left, FEWEST_WORTH_SHOWING)]
            shown.append(fence(self._nonce, label, cut))
            room -= len(shown[-1]) + 2
        return "\n\n".join(reversed(shown))

    def _evidence_again(self, length: int) -> str:
        title = "The evidence once more:\n"
        room = length - len(title) - len(fence(self._nonce, "evidence", ""))
        text = "\n\n".join(layer.text for layer in self._prompt.layers)
        if room < FEWEST_WORTH_SHOWING or not text:
            return ""
        filled = (f"{text}\n\n" * (room // len(text) + 1))[:room]
        return title + fence(self._nonce, "evidence", filled)


@dataclass(slots=True)
class _Page:
    heard: Hearing
    prompt: VoicePrompt


@dataclass(frozen=True, slots=True)
class ReflectArm:
    """`reflect`: every voice of the circle `like` rereads its own answer, as often as it was asked."""

    name: str
    like: str
    circle: SeatedCircle
    kind: str = "reflect"

    @property
    def config(self) -> FireCircleConfig:
        """The settings of the circle to match, as far as independent voices need them."""
        return self.circle.config

    @property
    def models(self) -> tuple[str, ...]:
        """All voices that are asked."""
        return tuple(self.circle.voices)

    async def judge(self, case: Case, voices: CaseVoices) -> Outcome:
        """Let each voice reflect by itself; the score is the highest F of any voice."""
        model_rounds = _calls_in(case.earlier[self.like])
        if not model_rounds:
            return Outcome(status="failed", error=f"the circle to match, {self.like}, heard no voice")
        started = time.monotonic()
        circumstances = circumstances_of(
            case.record.prompt,
            seed=case.seed,
            seating=self.circle.seating,
            templates=self.config.templates,
        )
        async with asyncio.TaskGroup() as together:
            tasks = {
                model: together.create_task(
                    self._reflect(
                        case, circumstances, voices.seat(model, self.circle.voices[model]), model, asked
                    )
                )
                for model, asked in model_rounds.items()
            }
        pages = {model: task.result() for model, task in tasks.items()}
        seconds = max(time.monotonic() - started, voices.seconds())
        result = self._result(case.record.prompt, case.seed, circumstances, pages)
        error = None if result.active_models else "no voice could answer"
        return outcome_of_circle(result, seconds=seconds, error=error, with_peers=False)

    async def _reflect(
        self, case: Case, circumstances: Circumstances, voice: Voice, model: str, asked: tuple[int, ...]
    ) -> list[_Page]:
        questions = ReflectionQuestions(case.record.prompt, model, circumstances, self.config.focus)
        pages: list[_Page] = []
        earlier: list[NeutrosophicEvaluation] = []
        for number, length in enumerate(asked, 1):
            kind = self._kind_of(number)
            question = questions.baseline if number == 1 else questions.reread(kind, earlier, length)
            page = _Page(Hearing(model), VoicePrompt(model=model, text=question))
            pages.append(page)
            await hear(
                page.heard,
                voice,
                questions.of_the_circle.turn(
                    model, question, self.config, reply_schema(kind), number=number, seed=case.seed
                )._replace(own_last=earlier[-1] if earlier else None),
                strict=False,
                clarify=questions.clarify,
                may_ask=lambda _: True,
            )
            if page.heard.evaluation is None:
                break
            earlier.append(page.heard.evaluation)
        return pages

    def _kind_of(self, number: int) -> RoundKind:
        if number == 1:
            return "baseline"
        return "synthesis" if number >= self.config.max_rounds > 2 else "discussion"

    def _result(
        self,
        prompt: MultiNeutrosophicPrompt,
        seed: int,
        circumstances: Circumstances,
        pages: dict[str, list[_Page]],
    ) -> FireCircleResult:
        """The replies, concluded by the circle's own rules."""
        every = [page for own in pages.values() for page in own]
        longest = max(len(own) for own in pages.values())
        return conclude(
            CircleRecord(
                circle_id=f"reflect-{circumstances.nonce}",
                config=self.config.model_copy(update={"seed": seed}),
                prompt=prompt,
                circumstances=circumstances,
                dialogue_history=tuple(
                    self._round(number, [own[number - 1] for own in pages.values() if len(own) >= number])
                    for number in range(1, longest + 1)
                ),
                failures=tuple(page.heard.failure for page in every if page.heard.failure),
                calls=tuple(call for page in every for call in page.heard.calls),
            )
        )

    def _round(self, number: int, pages: list[_Page]) -> DialogueRound:
        return DialogueRound(
            round_number=number,
            kind=self._kind_of(number),
            evaluations=tuple(page.heard.evaluation for page in pages if page.heard.evaluation),
            asked_models=tuple(page.prompt.model for page in pages),
            active_models=tuple(page.heard.model for page in pages if page.heard.evaluation),
            voice_prompts=tuple(page.prompt for page in pages),
        )

    async def rehearse(self, case: Case) -> tuple[CallRecord, ...]:
        """As much as the circle to match."""
        return await rehearse(case.record.prompt, self.config)


def _calls_in(like: Outcome) -> dict[str, tuple[int, ...]]:
    """How much the circle asked each voice, round by round, if it answered in every one."""
    asked: dict[str, list[int]] = {}
    for voice in like.voices:
        lengths = asked.setdefault(voice.model, [])
        if len(lengths) == voice.round_number - 1:
            lengths.append(voice.asked_chars)
    return {model: tuple(lengths) for model, lengths in asked.items() if lengths}
