"""Who judges without key and network: the embedded lenses, and a model on this machine where they are unsure.

The lenses take milliseconds and the model takes seconds a round, so the lenses sit alone first. Where they
are sure, theirs is the verdict; else the circle is held with the model among them. The result says which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from firecircle.circle.circumstances import Seating
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import FireCircleResult
from firecircle.convene import seat_circle
from firecircle.errors import ConfigError, EvaluationError
from firecircle.names import EvaluationMode
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import Configured, JudgingRequest, configured_by_file, default_models
from firecircle.session import SessionMemory

MODEL = "local:qwen"
UNSURE = (0.1, 0.7)
"""The falsehood of the lenses' circle from which on the model is asked, and from which on it is not.

Lower it would be asked about nearly everything; what lies above is an alarm already (decision 095)."""


@dataclass(frozen=True, slots=True)
class OfflineCircle:
    """Who sits, and what the user should know about who does not."""

    judges: Configured
    notice: str | None = None


async def offline_circle(
    request: JudgingRequest, prompt: MultiNeutrosophicPrompt, session: SessionMemory | None = None
) -> OfflineCircle:
    """Who judges this prompt offline; a `ConfigError` if the request names voices of its own."""
    if "models" in request.asked or request.draw is not None:
        raise ConfigError("--offline", "it seats the voices itself", "leave --models and --rotate out")
    lenses = default_models(request.mode, only_free=True)
    alone = _seated(request, lenses, Seating.of(lenses, "offline"))
    if request.mode is EvaluationMode.SINGLE:
        return OfflineCircle(alone)
    if missing := missing_model():
        return OfflineCircle(alone, missing)
    if isinstance(alone.config, FireCircleConfig) and await _are_sure(alone.config, prompt, session):
        return OfflineCircle(_seated(request, lenses, Seating.of(lenses, "offline", not_asked=MODEL)))
    everybody = (*lenses, MODEL)
    return OfflineCircle(_seated(request, everybody, Seating.of(everybody, "offline")))


def missing_model() -> str | None:
    """Why the model cannot sit, and how it could; None when it can."""
    from firecircle.voices.local import local_voice

    try:
        local_voice(MODEL)
    except ConfigError as missing:
        return str(missing)
    return None


def _seated(request: JudgingRequest, models: tuple[str, ...], seating: Seating) -> Configured:
    return configured_by_file(replace(request, by_default=models, seating=seating))


async def _are_sure(
    config: FireCircleConfig, prompt: MultiNeutrosophicPrompt, session: SessionMemory | None
) -> bool:
    if session is not None and prompt.turns is None:
        prompt = prompt.model_copy(update={"turns": session.earlier_turns})
    try:
        return is_sure(await seat_circle(config).hold(prompt, session))
    except EvaluationError:
        return False


def is_sure(result: FireCircleResult) -> bool:
    """Whether the lenses' circle needs nobody else: far from an alarm, or an alarm already."""
    low, high = UNSURE
    return result.consensus is not None and not low <= result.consensus.falsehood < high
