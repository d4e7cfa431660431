"""The dialogue, from the first question to the verdict.

Round 1: every voice judges independently. From round 2 on every voice sees what the others said, and one of
them speaks for the absent from the empty chair. After each round the quorum of the remaining voices is
checked; if it is lost a reserve steps in, and if no reserve helps the circle aborts and returns what it has.
The circle stops early when the voices agree, but never before round 2.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any, NoReturn

from firecircle.catalog import ModelCharacteristics
from firecircle.circle import events
from firecircle.circle.asking import Asker, Turns, hear_all
from firecircle.circle.budget import Budget
from firecircle.circle.circumstances import Circumstances, circumstances_of
from firecircle.circle.classifying import Classification, classify_observations
from firecircle.circle.conclude import conclude
from firecircle.circle.config import CircleSize, FireCircleConfig, chair_of_round
from firecircle.circle.hearing import Hearing
from firecircle.circle.ledger import Ledger, RoundPage
from firecircle.circle.questions import Questions
from firecircle.circle.quorum import QuorumVerdict, judge_quorum, lost_lenses
from firecircle.circle.result import (
    CircleRecord,
    Failure,
    FireCircleResult,
    QuorumCheck,
    RoundKind,
    Substitution,
    VoicePrompt,
)
from firecircle.circle.voice import Voice, answers_at_once
from firecircle.errors import BudgetError, EvaluationError, QuorumError, carry_partial_result
from firecircle.evaluation import spread
from firecircle.names import StopReason
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.thresholds import exceeds, reaches

DIVERGENT_ABOVE = 0.3
_NOTHING_SAID = {name: field.default for name, field in CircleRecord.model_fields.items()}


class Dialogue:
    """One circle. Call `hold()` once to run it."""

    def __init__(
        self,
        prompt: MultiNeutrosophicPrompt,
        config: FireCircleConfig,
        voices: Mapping[str, Voice],
        circumstances: Circumstances | None = None,
        *,
        listener: events.Listener | None = None,
        before_first_call: Callable[[], Awaitable[None]] | None = None,
        circle_id: str | None = None,
    ) -> None:
        """`before_first_call` is awaited after the listener received `CircleConvened`."""
        prompt.require_text(config.focus)
        self._prompt = prompt
        self._config = config
        self._voices = voices
        self._listener = listener
        self._before_first_call = before_first_call
        self._circumstances = circumstances or circumstances_of(
            prompt, seed=config.seed, templates=config.templates
        )
        self._questions = Questions(
            prompt,
            (*config.models, *config.reserves),
            self._circumstances,
            focus=config.focus,
            anonymous=config.anonymize_peers,
            with_chair=config.empty_chair,
        )
        self._ledger = Ledger(config)
        self._reserves = list(config.reserves)
        self._characteristics: dict[str, ModelCharacteristics] = {}
        self._turns = Turns(prompt, config, self._circumstances, self._questions, self._ledger, listener)
        self._asker = Asker(
            voices,
            Budget.of(config),
            self._turns.turn,
            lambda: self._ledger.calls,
            self._questions.clarify,
            strict=config.strict,
            on_heard=self._tell_heard,
        )
        self._started = time.monotonic()
        opening = {
            "circle_id": circle_id
            or _new_circle_id(config, self._questions.nonce + self._circumstances.turn_context),
            "started_at": time.time(),
            "config": config.model_copy(update={"api_key": None}),
            "prompt": prompt,
            "circumstances": self._circumstances,
            "system_message": self._questions.system,
            "evidence": self._questions.evidence,
            "peer_labels": dict(self._questions.labels),
            "classified": {},
        }
        self._opening = CircleRecord.assembled(**{**_NOTHING_SAID, **opening})

    def _tell(self, event: Callable[..., events.Event], **facts: Any) -> None:
        """Pass an event to the listener; without one it is not even built."""
        if self._listener is not None:
            self._listener(event(**facts))

    async def run(self) -> FireCircleResult:
        """Run the dialogue. An `EvaluationError` that ends it has the partial result."""
        self._tell(
            events.CircleConvened,
            circle_id=self._opening.circle_id,
            models=self._config.models,
            max_rounds=self._config.max_rounds,
            record=self._opening,
        )
        try:
            if self._before_first_call is not None:
                await self._before_first_call()
                self._started = time.monotonic()  # waits before this are not part of the circle's own time
            number = 1
            while True:
                page = self._open_round(number)
                await self._hear_everybody(page)
                await self._keep_quorum(page)
                self._close_round(page)
                if stopped := self._reason_to_stop(page):
                    break
                number += 1
            return await self._conclude(stopped)
        except asyncio.CancelledError as cancelled:
            # Cancellation is raised unchanged, so that `asyncio.timeout` and task groups recognise it.
            carry_partial_result(cancelled, self._close("cancelled"))
            raise

    def _open_round(self, number: int) -> RoundPage:
        """Write this round's questions: one for all, the chair's own, and each voice's part."""
        kind = self._kind_of(number)
        history, active = self._ledger.rounds(), self._ledger.active
        page = RoundPage(
            number,
            kind,
            chair_of_round(number, self._config, active),
            self._questions.standard(kind, history, opposed=self._turns.is_extra(number)),
        )
        for model in active:
            page.prompts[model] = self._turns.prompt_for(page, model, history)
        self._require_budget(page, tuple(page.prompts.values()))
        self._ledger.pages.append(page)
        self._tell(
            events.RoundStarted,
            round_number=number,
            round_kind=kind,
            models=page.asked,
            empty_chair_model=page.chair,
            prompt_used=page.question,
            voice_prompts=tuple(page.prompts.values()),
            timestamp=page.opened_at,
        )
        return page

    def _kind_of(self, number: int) -> RoundKind:
        if number == 1:
            return "baseline"
        last = self._config.max_rounds
        return "synthesis" if number >= last > 2 else "discussion"

    def _hear_everybody(self, page: RoundPage) -> Awaitable[None]:
        """Ask all voices at once and wait for all; only a STRICT circle stops at the first failure."""
        hearings = (self._asker.ask(page, model) for model in page.asked)
        in_turn = all(answers_at_once(self._voices[model]) for model in page.asked)
        return hear_all(hearings, until_one_fails=self._config.strict, in_turn=in_turn)

    def _tell_heard(self, heard: Hearing, number: int) -> None:
        """Tell what became of one voice. If it failed, its evaluations stay, but its vote does not count."""
        model, calls = heard.model, tuple(heard.calls)
        if said := heard.evaluation:
            self._tell(events.VoiceAnswered, round_number=number, model=model, evaluation=said, calls=calls)
        elif lost := heard.failure:
            self._tell(events.VoiceFailed, round_number=number, model=model, failure=lost, calls=calls)

    def _close_round(self, page: RoundPage) -> None:
        page.close()
        if self._listener is None:
            return
        self._tell(
            events.RoundClosed,
            round_number=page.number,
            f_score_mean=fmean([said.falsehood for said in page.evaluations]),
            f_score_stddev=spread(page.evaluations),
            duration_seconds=page.duration,
        )

    def _reason_to_stop(self, page: RoundPage) -> StopReason | None:
        """Agreement ends a circle from round 2 on; division gives a large one a fourth round."""
        apart = spread(page.evaluations)
        if page.number >= 2 and not reaches(apart, self._config.early_stop_convergence):
            return "converged"
        if page.number < self._config.max_rounds:
            return None
        divided = (
            self._config.extra_round_on_divergence
            and self._config.size is CircleSize.LARGE
            and page.number == self._config.max_rounds == 3
            and exceeds(apart, DIVERGENT_ABOVE)
        )
        return None if divided else "all_rounds_held"

    async def _keep_quorum(self, page: RoundPage) -> None:
        """Check the quorum of the remaining voices. If it is lost, call reserves; if none helps, abort.

        A STRICT circle aborts at any loss.
        """
        if page.failures and self._config.strict:
            self._abort_strict(page.failures[0])
        active = self._ledger.active
        verdict = self._weigh(active, page)
        if not self._may_go_on(active, verdict):
            await self._recruit(page)
            active = self._ledger.active
            verdict = self._weigh(active, page)
        self._ledger.quorum_checks.append(QuorumCheck.assembled(round_number=page.number, verdict=verdict))
        self._tell(events.QuorumChecked, round_number=page.number, verdict=verdict)
        if not self._may_go_on(active, verdict):
            self._abort_for_quorum(page, verdict)

    def _weigh(self, models: Iterable[str], page: RoundPage) -> QuorumVerdict:
        return judge_quorum(
            [self._brought_by(model) for model in models],
            self._config.quorum_rules,
            chair=page.occupied_chair,
            enforced=self._config.enforce_quorum,
        )

    def _brought_by(self, model: str) -> ModelCharacteristics:
        """What a voice is declared to bring, looked up once."""
        if model not in self._characteristics:
            self._characteristics[model] = self._config.characteristics(model)
        return self._characteristics[model]

    def _may_go_on(self, models: Sequence[str], verdict: QuorumVerdict) -> bool:
        viable = len(models) >= self._config.min_viable_models
        return viable and (verdict.valid or not self._config.enforce_quorum)

    async def _recruit(self, page: RoundPage) -> None:
        """Add the fewest reserves that restore the quorum; if one fails, try others."""
        lost = tuple(failure.model for failure in page.failures)
        while chosen := self._reserves_that_help(page):
            for reserve in chosen:
                self._reserves.remove(reserve)
                if not await self._seat(reserve, page, lost):
                    break

    def _reserves_that_help(self, page: RoundPage) -> tuple[str, ...]:
        """The first reserve that restores the quorum by itself, otherwise the first two, and so on."""
        active = self._ledger.active
        if self._may_go_on(active, self._weigh(active, page)):
            return ()
        for several in range(1, len(self._reserves) + 1):
            for chosen in combinations(self._reserves, several):
                seated = (*active, *chosen)
                if self._may_go_on(seated, self._weigh(seated, page)):
                    return chosen
        return ()

    async def _seat(self, reserve: str, page: RoundPage, replaces: tuple[str, ...]) -> bool:
        """Ask a reserve the round 1 question, then this round's; returns whether it answered both."""
        for number in dict.fromkeys((1, page.number)):
            earlier = self._ledger.pages[number - 1]
            history = self._ledger.rounds(before=number)
            asked = self._turns.prompt_for(earlier, reserve, history, joins=True)
            self._require_budget(earlier, [asked])
            earlier.prompts[reserve] = asked
            self._tell(events.ReserveAsked, round_number=number, model=reserve, prompt=asked)
            if (await self._asker.ask(earlier, reserve)).failure:
                return False
        new = Substitution(model=reserve, round_number=page.number, replaces=replaces)
        self._ledger.substitutions.append(new)
        self._tell(events.VoiceRecruited, round_number=page.number, model=reserve, substitution=new)
        return True

    async def _conclude(self, stopped: StopReason) -> FireCircleResult:
        """The verdict, after a classifier voice has classified the patterns, if configured."""
        if self._config.pattern_classification == "heuristic" or self._config.classifier_model is None:
            return self._close(stopped)
        classifier = self._config.classifier_model
        outcome = await classify_observations(
            classifier,
            self._voices[classifier],
            self._ledger.rounds(),
            self._prompt,
            self._config,
            made=self._ledger.calls,
        )
        self._ledger.calls_outside_rounds.extend(outcome.calls)
        return self._close(stopped, classification=outcome)

    def _close(
        self,
        stopped: StopReason,
        *,
        abort_reason: str | None = None,
        classification: Classification | None = None,
    ) -> FireCircleResult:
        named = classification or Classification()
        record = self._ledger.added_to(self._opening).model_copy(
            update={
                "duration_seconds": time.monotonic() - self._started,
                "classified": named.types,
                "classifier_replies": tuple(named.replies),
                "stopped": stopped,
                "abort_reason": abort_reason,
                "advisories": (named.advisory,) if named.advisory else (),
            }
        )
        result = conclude(record, self._brought_by)
        self._tell(events.CircleClosed, result=result)
        return result

    def _abort(
        self,
        error: type[EvaluationError],
        message: str,
        *,
        model: str = "fire_circle",
        number: int | None = None,
        stopped: StopReason = "aborted",
    ) -> NoReturn:
        raise error(
            message,
            model=model,
            layer_name=f"round_{number}" if number else None,
            partial_result=self._close(stopped, abort_reason=message),
        )

    def _abort_strict(self, failure: Failure) -> NoReturn:
        number = failure.round_number
        message = f"Fire Circle failed in round {number}: {failure.model} error: {failure.message}"
        self._abort(EvaluationError, message, model=failure.model, number=number)

    def _abort_for_quorum(self, page: RoundPage, verdict: QuorumVerdict) -> NoReturn:
        """Abort with what is missing, and which voices were lost when and why."""
        fewest, active = self._config.min_viable_models, self._ledger.active
        losses = page.failures or self._ledger.failures
        lost = ", ".join(failure.model for failure in losses)
        if len(active) < fewest:
            message = f"Fire Circle degraded below minimum ({fewest} active models) after {lost} failure"
        elif page.failures:
            message = f"Loss of {lost} breaks quorum in round {page.number}: {verdict.reason}"
        else:
            message = f"Quorum broken in round {page.number}, in which no voice was lost: {verdict.reason}"
            if self._config.empty_chair and page.number > 1 and page.occupied_chair is None:
                message += ". No voice took the empty chair in this round"
        blind = lost_lenses(
            [self._config.characteristics(model) for model in (*active, *(loss.model for loss in losses))],
            [self._config.characteristics(model) for model in active],
        )
        if blind:
            message += f". Lost lenses: {', '.join(blind)}"
        alike: dict[tuple[str, int], list[str]] = {}
        for loss in losses:
            alike.setdefault((loss.message, loss.round_number), []).append(loss.model)
        causes = "; ".join(
            f"{told} in voice{'s' if len(models) > 1 else ''} {', '.join(models)}, round {number}"
            for (told, number), models in alike.items()
        )
        self._abort(QuorumError, f"{message}. {causes}" if causes else message, number=page.number)

    def _require_budget(self, page: RoundPage, questions: Sequence[VoicePrompt]) -> None:
        """Abort unless the budget covers all these questions: a budget ends the circle as a whole."""
        if spent := self._asker.shortage(page, questions):
            message = f"over_budget: {spent}, what is left is not enough for round {page.number}"
            self._abort(BudgetError, message, number=page.number, stopped="over_budget")


def _new_circle_id(config: FireCircleConfig, told: str) -> str:
    """A new id; with a seed, the same for the same circle at the same turn."""
    if config.seed is None:
        return uuid.uuid4().hex
    return hashlib.sha256(f"{told}/{config.model_dump_json()}".encode()).hexdigest()[:32]
