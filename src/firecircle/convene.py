"""The one place where protocols meet implementations: from a configuration to seated voices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path

from firecircle.circle.circumstances import circumstances_of
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.events import Event, Listener
from firecircle.circle.result import CircleRecord, FireCircleResult
from firecircle.circle.voice import Voice
from firecircle.config import EMBEDDED_MODELS, BaseEvaluationConfig, EvaluationConfig, EvaluationMode
from firecircle.errors import ConfigError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory
from firecircle.voices.caller import Caller, CallerVoice
from firecircle.voices.recorded import recorded_voices

DEFAULT_KEY_VARIABLE = "OPENROUTER_API_KEY"
EMBEDDED_GENERALIST = "embedded:ngrams"


async def fire_circle_evaluate(
    prompt: MultiNeutrosophicPrompt,
    config: FireCircleConfig,
    session_memory: SessionMemory | None = None,
    *,
    caller: Caller | None = None,
    on_event: Listener | None = None,
    baseline_question: str | None = None,
) -> FireCircleResult:
    """Judge a prompt in a circle.

    `caller` answers for every voice instead of the configured providers; `on_event` is told what
    happens while it happens. Raises `EvaluationError`, which carries the partial result, when no
    consensus can be reached.
    """
    dialogue = Dialogue(
        prompt,
        config,
        seat_voices(_all_models(config), config, caller),
        circumstances_of(
            prompt,
            seed=config.seed,
            session=session_memory,
            baseline_question=baseline_question,
            chair_template=_chair_template(config),
        ),
        listener=on_event,
    )
    return await dialogue.hold()


async def fire_circle_events(
    prompt: MultiNeutrosophicPrompt,
    config: FireCircleConfig,
    session_memory: SessionMemory | None = None,
    *,
    caller: Caller | None = None,
) -> AsyncIterator[Event]:
    """The events of a circle as they happen; the last is `CircleClosed` and holds the result.

    Leaving the loop early calls the circle off.
    """
    told: asyncio.Queue[Event | None] = asyncio.Queue()
    circle = asyncio.create_task(
        fire_circle_evaluate(prompt, config, session_memory, caller=caller, on_event=told.put_nowait)
    )
    circle.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (event := await told.get()) is not None:
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
    return await dialogue.hold()


def seat_voices(
    models: Iterable[str], config: BaseEvaluationConfig, caller: Caller | None = None
) -> dict[str, Voice]:
    """A voice for each model, by its name: `embedded:…`, `provider:model` or a bare `vendor/model`."""
    return {model: _voice(model, config, caller) for model in models}


def _voice(model: str, config: BaseEvaluationConfig, caller: Caller | None) -> Voice:
    if caller is not None:
        return CallerVoice(model, caller)
    if model.startswith("embedded:"):
        from firecircle.voices.embedded import embedded_voice

        return embedded_voice(model)
    from firecircle.voices.hosted import hosted_voice

    return hosted_voice(model, config)


def default_circle(**settings: object) -> FireCircleConfig:
    """The hosted circle when its key is set, else the embedded one."""
    if os.environ.get(DEFAULT_KEY_VARIABLE):
        return FireCircleConfig(**settings)
    return FireCircleConfig.embedded(**settings)


def default_panel(mode: EvaluationMode, **settings: object) -> EvaluationConfig:
    """Who judges in the single and parallel modes when nobody was named."""
    if os.environ.get(DEFAULT_KEY_VARIABLE):
        return EvaluationConfig(mode=mode, **settings)
    embedded = EMBEDDED_MODELS if mode is EvaluationMode.PARALLEL else (EMBEDDED_GENERALIST,)
    return EvaluationConfig(**{"mode": mode, "models": embedded, **settings})


def _all_models(config: FireCircleConfig) -> tuple[str, ...]:
    classifier = (config.classifier_model,) if config.classifier_model else ()
    return tuple(dict.fromkeys((*config.models, *config.reserves, *classifier)))


def _chair_template(config: FireCircleConfig) -> str | None:
    path = config.empty_chair_prompt_path
    if path is None:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as unreadable:
        why = unreadable.strerror or unreadable
        raise ConfigError(
            f"empty_chair_prompt_path: cannot read {path}: {why}; leave it out for the built-in prompt"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"empty_chair_prompt_path: {path} is not UTF-8 text") from None
    if not text.strip():
        raise ConfigError(f"empty_chair_prompt_path: {path} is empty")
    return text
