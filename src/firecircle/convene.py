"""Build every circle in one place, so that the same settings ask the same questions everywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from firecircle.errors import BudgetError, ConfigError, StoreError
from firecircle.files import read_regular
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory
from firecircle.telemetry import tell_panel, watching_listeners
from firecircle.thresholds import reaches
from firecircle.voices.caller import Caller
from firecircle.voices.replay import recorded_voices
from firecircle.voices.seating import rehearsed_voices, seat_voices, with_todays_models

if TYPE_CHECKING:
    from firecircle.store.opening import Store

Config = TypeVar("Config", bound=BaseEvaluationConfig)
LARGEST_PROMPT_BYTES = 100_000
"""For the empty chair's own prompt: a page or two is usual."""


Watcher = Callable[[str, Voice], Voice]
"""Maps a model and its voice to the voice to ask instead, for instance one that journals every answer."""


@dataclass(frozen=True, slots=True)
class SeatedCircle:
    """A circle ready to judge any number of prompts: its voices and the prompts of its empty chair."""

    config: FireCircleConfig
    voices: Mapping[str, Voice]
    chair_template: str | None = None
    chair_roles: Mapping[ChairPhase, str] = field(default_factory=dict)
    seating: Seating | None = None
    """How the voices were chosen; None if the caller chose them."""
    is_rehearsal: bool = False
    """No voice is asked, so listeners receive no events."""

    async def run(
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
        """Judge a prompt. `seed` replaces the configured one."""
        config = _apply_seed(self.config, seed)
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
            _wrap_voices(self.voices, watched),
            circumstances,
            listener=combine_listeners(on_event, *watchers) if watchers else on_event,
            before_first_call=before_first_call,
        )
        return await dialogue.run()


@dataclass(frozen=True, slots=True)
class SeatedPanel:
    """Voices ready to judge independently any number of times: the single and parallel modes."""

    config: EvaluationConfig
    voices: Mapping[str, Voice]
    seating: Seating | None = None
    """How the voices were chosen; None if the caller chose them."""
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
        """Ask each voice once; each line of `guidance` names something to look out for."""
        config = _apply_seed(self.config, seed)
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
            _wrap_voices(self.voices, watched),
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
    """Build the circle of a configuration. Raises `ConfigError` if a voice or chair prompt is missing."""
    config = with_calibration(config)
    return SeatedCircle(
        config,
        seat_voices(config.named_models, config, caller),
        _chair_template(config),
        _chair_roles(config),
        seating,
    )


def with_calibration(config: FireCircleConfig, store: Store | None = None) -> FireCircleConfig:
    """Add the calibration of the configured voices, if the user fitted one.

    Without a store, the user's own store is read only if the calibration decides. Raises `ConfigError` if it
    must decide and there is none.
    """
    if config.calibration is not None:
        return config
    known = _stored_calibration(config, store)
    if known is None and config.alarm_rule == "calibrated":
        raise ConfigError(
            "alarm_rule",
            f"no calibration is known for circles of {', '.join(config.models)} with {config.max_rounds}"
            f" round{'s' if config.max_rounds > 1 else ''}",
            "fit one on labelled circles with `firecircle calibrate --verdict --write`, or use maximum",
        )
    return config if known is None else config.model_copy(update={"calibration": known})


def with_measured_errors(config: FireCircleConfig, store: Store) -> FireCircleConfig:
    """Add the measured errors that the configured voices share, if labelled circles show them.

    Raises `ConfigError`, before any voice is paid, if the voices amount to fewer independent ones than
    required.
    """
    try:
        known = store.independence.measured_of(config.models)
    except StoreError:
        return config  # additional information must not cost the verdict
    if known is None:
        return config
    found, floor = known.independence(config.models), config.min_independent_voices
    if found and floor is not None and config.enforce_quorum and not reaches(found.effective, floor):
        raise ConfigError(
            "min_independent_voices",
            f"{found.sentence}, fewer than {floor:g}",
            "`firecircle quorum MODEL…` names a replacement; lower the floor, or set enforce_quorum=False",
        )
    return config.model_copy(update={"measured_errors": known})


def _stored_calibration(config: FireCircleConfig, store: Store | None) -> VerdictCalibration | None:
    try:
        if store is not None:
            return store.verdicts.find(config.models, config.max_rounds)
        if config.alarm_rule != "calibrated":
            return None
        from firecircle.store.opening import open_store
        from firecircle.store.place import place_of

        place = place_of(None)
        if isinstance(place, Path) and not place.exists():
            return None
        with open_store(place) as own:
            return own.verdicts.find(config.models, config.max_rounds)
    except StoreError:
        if config.alarm_rule == "calibrated":
            raise
        return None  # additional information must not cost the verdict


def seat_panel(
    config: EvaluationConfig, caller: Caller | None = None, seating: Seating | None = None
) -> SeatedPanel:
    """Build the voices of a configuration; the single mode asks only the first model."""
    return SeatedPanel(config, seat_voices(config.first_asked, config, caller), seating)


def _apply_seed(config: Config, seed: int | None) -> Config:
    return config if seed is None else config.model_copy(update={"seed": seed})


def _wrap_voices(voices: Mapping[str, Voice], watched: Watcher | None) -> Mapping[str, Voice]:
    if watched is None:
        return voices
    return {model: watched(model, voice) for model, voice in voices.items()}


def combine_listeners(*listeners: Listener | None) -> Listener:
    """One listener that calls all of these in order."""
    present = [listener for listener in listeners if listener is not None]

    def tell(event: Event) -> None:
        for listener in present:
            listener(event)

    return tell


async def replay_circle(record: CircleRecord, *, on_event: Listener | None = None) -> FireCircleResult:
    """Hold a stored circle again with its recorded answers. No voice is called.

    The replies are read again, so a replay shows what today's reading makes of them. To change only
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
        return await dialogue.run()
    except BudgetError as ended:
        # The record has the abort message but not the estimates that led to it.
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
    """The calls that judging this prompt may take, with the most each may consume; sends nothing.

    Includes every round that may run, but not retries and questions about contradictions.
    """
    config = await with_todays_models(config)
    # Limits would cut a rehearsal short.
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
    return (await circle.run(prompt, session_memory)).calls


def _chair_roles(config: FireCircleConfig) -> Mapping[ChairPhase, str]:
    """The chair's prompts for the decision domain, given the lenses that the circle lacks."""
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
