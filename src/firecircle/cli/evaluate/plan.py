"""From options to a plan: which mode, which voices, under which rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from firecircle.circle.config import EvaluationConfig, FireCircleConfig
from firecircle.errors import ConfigError
from firecircle.names import EvaluationMode, ModeName, is_embedded
from firecircle.prompt import Focus
from firecircle.request import DEFAULT_KEY_VARIABLE, default_circle, default_panel, with_file_defaults
from firecircle.settings import current_settings


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for; None and empty leave it to the defaults."""

    mode: ModeName = "fire_circle"
    models: tuple[str, ...] = ()
    focus: Focus | None = None
    seed: int | None = None
    threshold: float | None = None
    rounds: int | None = None
    strict: bool = False
    reserves: tuple[str, ...] = ()
    chair_prompt: str | None = None
    domain: str | None = None
    no_quorum: bool = False
    budget_usd: float | None = None
    budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration that holds together, and how its voices were chosen."""

    mode: EvaluationMode
    config: FireCircleConfig | EvaluationConfig
    chosen_by_user: bool

    @property
    def asked(self) -> tuple[str, ...]:
        """Whom the first question goes to."""
        return self.config.models[:1] if self.mode is EvaluationMode.SINGLE else self.config.models

    @property
    def introduction(self) -> str:
        """One line that says who is going to judge, and why they."""
        count = len(self.asked)
        who = f"{count} voice{'s' if count > 1 else ''}"
        all_embedded = all(map(is_embedded, self.asked))
        how = {
            EvaluationMode.SINGLE: "asked once",
            EvaluationMode.PARALLEL: "each asked once, apart from the others",
            EvaluationMode.FIRE_CIRCLE: f"up to {_rounds(self.config)}",
        }[self.mode]
        if self.chosen_by_user:
            return f"{who}, {how}"
        if all_embedded:
            return f"{who} built in (no {DEFAULT_KEY_VARIABLE}, no --models: offline and free), {how}"
        return f"{who} hosted by {self.config.provider} (the default models), {how}"


def plan_from(wishes: Wishes) -> Plan:
    """The plan for these wishes, or a `ConfigError` that names the option and the way out."""
    mode = EvaluationMode(wishes.mode)
    settings: dict[str, object] = {
        name: value
        for name, value in (
            ("models", wishes.models or None),
            ("focus", wishes.focus),
            ("seed", wishes.seed),
            ("alarm_threshold", wishes.threshold),
            ("budget_usd", wishes.budget_usd),
            ("budget_tokens", wishes.budget_tokens),
        )
        if value is not None
    }
    chosen = bool(wishes.models) or "models" in current_settings().circle
    only_circle = _circle_settings(wishes)
    if mode is EvaluationMode.FIRE_CIRCLE:
        wished = {**settings, **{name: value for name, (_, value) in only_circle.items()}}
        circle = with_file_defaults(default_circle, wished, FireCircleConfig)
        return Plan(mode, circle, chosen)
    for option, _ in only_circle.values():
        raise ConfigError(option, "only a circle has that", "leave it out or use --mode fire_circle")
    if mode is EvaluationMode.SINGLE and len(wishes.models) > 1:
        raise ConfigError(
            "--models",
            f"the single mode asks one voice, got {len(wishes.models)}",
            "name one or use --mode parallel",
        )
    panel = with_file_defaults(partial(default_panel, mode), settings, EvaluationConfig)
    return Plan(mode, panel, chosen)


def names_in(values: Sequence[str], option: str) -> tuple[str, ...]:
    """The names in an option that may be repeated and may hold several, separated by commas."""
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    if values and not names:
        raise ConfigError(option, "no name in it", f"write {option} a,b,c or leave it out")
    return names


def _circle_settings(wishes: Wishes) -> dict[str, tuple[str, object]]:
    """The wishes that only a circle can grant: the setting, the option and its value."""
    told: dict[str, tuple[str, object]] = {}
    if wishes.rounds is not None:
        told["max_rounds"] = ("--rounds", wishes.rounds)
    if wishes.strict:
        told["failure_mode"] = ("--strict", "strict")
    if wishes.reserves:
        told["reserves"] = ("--reserves", wishes.reserves)
    if wishes.chair_prompt is not None:
        told["empty_chair_prompt_path"] = ("--chair-prompt", wishes.chair_prompt)
    if wishes.domain is not None:
        told["decision_domain"] = ("--domain", wishes.domain)
    if wishes.no_quorum:
        told["enforce_quorum"] = ("--no-quorum", False)
    return told


def _rounds(config: FireCircleConfig | EvaluationConfig) -> str:
    rounds = config.max_rounds if isinstance(config, FireCircleConfig) else 1
    return "1 round" if rounds == 1 else f"{rounds} rounds"
