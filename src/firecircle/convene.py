"""The one place where protocols meet implementations: from a configuration to seated voices.

Every circle is built here, whoever asks for it, so that the same settings ask the same questions everywhere.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from firecircle.circle.asking import judge_alone
from firecircle.circle.base_config import BaseEvaluationConfig, EvaluationConfig
from firecircle.circle.calibrated import VerdictCalibration
from firecircle.circle.circumstances import ChairPhase, Seating, circumstances_of
from firecircle.circle.config import FailureMode, FireCircleConfig
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.events import Event, Listener
from firecircle.circle.panel import Panel, PanelListener
from firecircle.circle.quorum import best_contributions
from firecircle.circle.result import CallRecord, CircleRecord, FireCircleResult
from firecircle.circle.voice import Voice
from firecircle.errors import BudgetError, ConfigError, NotKeptWarning, StoreError
from firecircle.files import read_regular
from firecircle.prompt import MultiNeutrosophicPrompt, PromptLike, as_prompt
from firecircle.session import SessionMemory
from firecircle.settings import settings_in_force
from firecircle.telemetry.watching import tell_panel, watching_listeners
from firecircle.voices.calibrations import shipped_calibration
from firecircle.voices.caller import Caller
from firecircle.voices.replay import recorded_voices
from firecircle.voices.seating import rehearsed_voices, seat_voices, with_todays_models

if TYPE_CHECKING:
    from firecircle.rotation.history import ParticipationHistory
    from firecircle.store.opening import Store
    from firecircle.store.recorder import Recording

Config = TypeVar("Config", bound=BaseEvaluationConfig)
LARGEST_PROMPT_BYTES = 100_000
"""Of the empty chair's own prompt: a page or two is usual."""


async def fire_circle_evaluate(
    prompt: PromptLike,
    config: FireCircleConfig,
    session_memory: SessionMemory | None = None,
    *,
    caller: Caller | None = None,
    on_event: Listener | None = None,
    baseline_question: str | None = None,
    store: Store | None = None,
    label: str | None = None,
) -> FireCircleResult:
    """Judge a prompt in a circle; a plain text is a user's message.

    `caller` answers for every voice instead of the configured providers; `on_event` is told what
    happens while it happens; `store` keeps the circle, under `label` if one is given, and has it before
    anybody is asked. Raises `EvaluationError`, which carries the partial result, when no consensus can be
    reached.
    """
    async with kept_in(store, label) as recording:
        return await hold_circle(
            prompt,
            config,
            session_memory,
            caller=caller,
            on_event=on_event,
            baseline_question=baseline_question,
            recording=recording,
            store=store,
        )


async def hold_circle(
    prompt: PromptLike,
    config: FireCircleConfig,
    session_memory: SessionMemory | None = None,
    *,
    caller: Caller | None = None,
    on_event: Listener | None = None,
    baseline_question: str | None = None,
    recording: Recording | None = None,
    seating: Seating | None = None,
    store: Store | None = None,
) -> FireCircleResult:
    """As `fire_circle_evaluate`, for whoever has the recording of `kept_in` already.

    `seating` tells how the voices came to sit, unless whoever calls this chose them; `store` is asked for
    the calibration of these voices.
    """
    seating = seating or Seating.of(config.first_asked)
    config = await with_todays_models(config, caller)
    if store is not None:
        config = await asyncio.to_thread(with_calibration, config, store)
    with settings_in_force():
        return await seat_circle(config, caller, seating).hold(
            as_prompt(prompt),
            session_memory,
            baseline_question=baseline_question,
            on_event=heard_by(on_event, recording.tell if recording else None),
            before_first_call=recording.begun if recording else None,
        )


Watcher = Callable[[str, Voice], Voice]
"""Given a model and its voice: whom to ask in its place, for instance one that journals every answer."""


@dataclass(frozen=True, slots=True)
class SeatedCircle:
    """A circle that can sit, as often as it is asked to: its voices, and what its chair is told."""

    config: FireCircleConfig
    voices: Mapping[str, Voice]
    chair_template: str | None = None
    chair_roles: Mapping[ChairPhase, str] = field(default_factory=dict)
    seating: Seating | None = None
    """How the voices came to sit; None for voices that the caller chose."""
    is_rehearsal: bool = False
    """Nobody is asked, so nobody who watches circles is told."""

    async def hold(
        self,
        prompt: MultiNeutrosophicPrompt,
        session_memory: SessionMemory | None = None,
        *,
        seed: int | None = None,
        watched: Watcher | None = None,
        baseline_question: str | None = None,
        on_event: Listener | None = None,
        before_first_call: Callable[[], Awaitable[None]] | None = None,
    ) -> FireCircleResult:
        """Judge a prompt, with this seed instead of the configured one if one is given."""
        config = _seeded(self.config, seed)
        circumstances = circumstances_of(
            prompt,
            seed=config.seed,
            session=session_memory,
            baseline_question=baseline_question,
            chair_template=self.chair_template,
            chair_roles=self.chair_roles,
            seating=self.seating or Seating.of(config.first_asked),
            templates=config.templates,
        )
        watchers = [] if self.is_rehearsal else watching_listeners()
        dialogue = Dialogue(
            prompt,
            config,
            _watched(self.voices, watched),
            circumstances,
            listener=heard_by(on_event, *watchers) if watchers else on_event,
            before_first_call=before_first_call,
        )
        with settings_in_force():
            return await dialogue.hold()


@dataclass(frozen=True, slots=True)
class SeatedPanel:
    """Voices that judge apart, as often as they are asked to: the single and parallel modes."""

    config: EvaluationConfig
    voices: Mapping[str, Voice]
    seating: Seating | None = None
    """How the voices came to sit; None for voices that the caller chose."""
    is_rehearsal: bool = False

    async def ask(
        self,
        prompt: MultiNeutrosophicPrompt,
        session_memory: SessionMemory | None = None,
        *,
        seed: int | None = None,
        watched: Watcher | None = None,
        baseline_question: str | None = None,
        listener: PanelListener | None = None,
        guidance: Sequence[str] = (),
    ) -> Panel:
        """Ask each voice once; `guidance` tells them what to look out for, a line each."""
        config = _seeded(self.config, seed)
        circumstances = circumstances_of(
            prompt,
            seed=config.seed,
            session=session_memory,
            baseline_question=baseline_question,
            seating=self.seating or Seating.of(config.first_asked),
            templates=config.templates,
        )
        panel = await judge_alone(
            prompt,
            config,
            _watched(self.voices, watched),
            circumstances,
            listener=listener,
            guidance=guidance,
        )
        if not self.is_rehearsal:
            tell_panel(panel)
        return panel


def seat_circle(
    config: FireCircleConfig, caller: Caller | None = None, seating: Seating | None = None
) -> SeatedCircle:
    """The circle of a configuration. A `ConfigError` if a voice or the chair's prompt cannot be had."""
    config = with_calibration(config)
    return SeatedCircle(
        config,
        seat_voices(config.named_models, config, caller),
        _chair_template(config),
        _chair_roles(config),
        seating,
    )


def with_calibration(config: FireCircleConfig, store: Store | None = None) -> FireCircleConfig:
    """The same with the calibration of its voices, where one is known: a stored one, else the shipped one.

    Without a store the user's own is asked only where the calibration decides. A `ConfigError` if it shall
    decide and there is none.
    """
    if config.calibration is not None:
        return config
    known = _stored_calibration(config, store) or shipped_calibration(config.models, config.max_rounds)
    if known is None and config.alarm_rule == "calibrated":
        raise ConfigError(
            "alarm_rule",
            f"no calibration is known for circles of {', '.join(config.models)} with {config.max_rounds}"
            f" round{'s' if config.max_rounds > 1 else ''}",
            "fit one on labelled circles with `firecircle calibrate --verdict --write`, or use maximum",
        )
    return config if known is None else config.model_copy(update={"calibration": known})


def _stored_calibration(config: FireCircleConfig, store: Store | None) -> VerdictCalibration | None:
    try:
        if store is not None:
            return store.verdicts.find(config.models, config.max_rounds)
        if config.alarm_rule != "calibrated":
            return None
        from firecircle.store.address import place_of
        from firecircle.store.opening import open_store

        place = place_of(None)
        if isinstance(place, Path) and not place.exists():
            return None
        with open_store(place) as own:
            return own.verdicts.find(config.models, config.max_rounds)
    except StoreError:
        if config.alarm_rule == "calibrated":
            raise
        return None  # what would only be told beside the verdict is not worth losing it


def seat_panel(
    config: EvaluationConfig, caller: Caller | None = None, seating: Seating | None = None
) -> SeatedPanel:
    """The voices of a configuration; the single mode asks the first model alone."""
    return SeatedPanel(config, seat_voices(config.first_asked, config, caller), seating)


def _seeded(config: Config, seed: int | None) -> Config:
    return config if seed is None else config.model_copy(update={"seed": seed})


def _watched(voices: Mapping[str, Voice], watched: Watcher | None) -> Mapping[str, Voice]:
    if watched is None:
        return voices
    return {model: watched(model, voice) for model, voice in voices.items()}


def heard_by(*listeners: Listener | None) -> Listener:
    """One listener that tells all of these, in this order."""
    present = [listener for listener in listeners if listener is not None]

    def tell(event: Event) -> None:
        for listener in present:
            listener(event)

    return tell


@asynccontextmanager
async def kept_in(
    store: Store | None,
    label: str | None = None,
    *,
    record_id: str | None = None,
    on_unkept: Callable[[str], None] | None = None,
) -> AsyncIterator[Recording | None]:
    """A recording in the store, if there is one, which is complete when this is left, however it is left.

    `record_id` says which prompt of a batch it is: the name of the batch, a colon, and its own.

    A verdict is not given up because a disk is full: what could not be kept, and why, is told to
    `on_unkept`, else as a warning.
    """
    if store is None:
        yield None
        return
    from firecircle.store.recorder import InBatch

    place = None if record_id is None else InBatch(record_id)
    loop, judging = asyncio.get_running_loop(), asyncio.current_task()

    def call_off() -> None:
        if judging is not None:
            loop.call_soon_threadsafe(judging.cancel)

    recording = store.recorder.recording(label=label, place=place, on_cancel=call_off)
    try:
        yield recording
    finally:
        if unkept := await _unkept(recording, store):
            if on_unkept is not None:
                on_unkept(unkept)
            else:
                warnings.warn(NotKeptWarning(unkept), stacklevel=2)


async def _unkept(recording: Recording, store: Store) -> str | None:
    """Wait until everything is written; what could not be, and why."""
    try:
        await recording.settled()
    except StoreError as trouble:
        return str(trouble)
    try:
        if recording.result is not None:
            await asyncio.to_thread(_remember, recording.result, store)
    except StoreError as trouble:
        return f"who took part, which rotation goes by (the circle itself is kept): {trouble}"
    return None


def participation_history(store: Store) -> ParticipationHistory:
    """Who took part in which sitting, as rotation reads it from a store."""
    from firecircle.rotation.history import Draw, Participation

    return store.participation.read_as(Participation, Draw)


def _remember(result: FireCircleResult, store: Store) -> None:
    """Keep who was heard, verdict or not: rotation goes by it."""
    from firecircle.rotation.domains import GENERAL
    from firecircle.rotation.tracker import VoiceHistoryTracker

    tracker = VoiceHistoryTracker(participation_history(store))
    tracker.record_circle(result, result.config.decision_domain or GENERAL)


async def fire_circle_events(
    prompt: PromptLike,
    config: FireCircleConfig,
    session_memory: SessionMemory | None = None,
    *,
    caller: Caller | None = None,
) -> AsyncIterator[Event]:
    """The events of a circle as they happen; the last is `CircleClosed` and holds the result.

    Leaving the loop early calls the circle off.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    circle = asyncio.create_task(
        fire_circle_evaluate(prompt, config, session_memory, caller=caller, on_event=queue.put_nowait)
    )
    circle.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await circle
    finally:
        circle.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await circle


async def replay_circle(record: CircleRecord, *, on_event: Listener | None = None) -> FireCircleResult:
    """Hold a stored circle again with the words that were said then; nobody is called.

    The replies are read anew, so a replay shows what today's reading makes of them. To change only
    settings that concern the verdict, `reaggregate` is enough.
    """
    dialogue = Dialogue(
        record.prompt,
        record.config,
        recorded_voices(record),
        record.circumstances,
        listener=on_event,
        circle_id=record.circle_id,
    )
    try:
        return await dialogue.hold()
    except BudgetError as ended:
        # What the voices expected to need is not on record; the words that told it are.
        if ended.partial_result is not None and record.abort_reason:
            then = {"abort_reason": record.abort_reason}
            ended.partial_result = ended.partial_result.model_copy(update=then)
        raise


async def rehearse(
    prompt: MultiNeutrosophicPrompt,
    config: FireCircleConfig | EvaluationConfig,
    session_memory: SessionMemory | None = None,
    *,
    guidance: Sequence[str] = (),
) -> tuple[CallRecord, ...]:
    """The calls that judging this prompt may take, with what each may consume; nobody is asked.

    Every round is held that could be. Questions about contradictions and retries are not foreseen.
    """
    config = await with_todays_models(config)
    # What would cut a rehearsal short is left out.
    boundless: dict[str, object] = {"budget_tokens": None, "budget_usd": None}
    if isinstance(config, EvaluationConfig):
        panel = SeatedPanel(
            config.model_copy(update=boundless),
            rehearsed_voices(config.first_asked, config),
            is_rehearsal=True,
        )
        return (await panel.ask(prompt, session_memory, guidance=guidance)).calls
    boundless |= {"early_stop_convergence": 0.0, "failure_mode": FailureMode.RESILIENT}
    circle = SeatedCircle(
        config.model_copy(update=boundless),
        rehearsed_voices(config.named_models, config),
        _chair_template(config),
        _chair_roles(config),
        is_rehearsal=True,
    )
    return (await circle.hold(prompt, session_memory)).calls


def _chair_roles(config: FireCircleConfig) -> Mapping[ChairPhase, str]:
    """The chair's words for the decision domain, knowing which lenses the circle lacks."""
    if config.decision_domain is None:
        return {}
    from firecircle.rotation.empty_chair import EmptyChairProtocol

    brought = best_contributions(config.characteristics(model) for model in config.models)
    protocol = EmptyChairProtocol()
    context = protocol.prepare_empty_chair_context(config.decision_domain, participating_perspectives=brought)
    return protocol.prompts_of(context)


def _chair_template(config: FireCircleConfig) -> str | None:
    path = config.empty_chair_prompt_path
    if path is None:
        return None
    try:
        text = read_regular(path, LARGEST_PROMPT_BYTES).decode("utf-8")
    except OSError as unreadable:
        why = unreadable.strerror or unreadable
        raise ConfigError(
            "empty_chair_prompt_path", f"cannot read {path}: {why}", "leave it out for the built-in prompt"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError("empty_chair_prompt_path", f"{path} is not UTF-8 text") from None
    if not text.strip():
        raise ConfigError("empty_chair_prompt_path", f"{path} is empty")
    return text
