"""From the plan to the arms: every mistake in a setting is told with the arm it stands in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from firecircle.circle.config import EMBEDDED_MODELS, EvaluationConfig, FireCircleConfig
from firecircle.convene import seat_circle, seat_panel
from firecircle.errors import ConfigError
from firecircle.lab.arms.arm import FIRST, SECOND, Arm
from firecircle.lab.arms.circle import CascadeArm, CircleArm
from firecircle.lab.arms.guided import USUAL_FOLDS, GuidedArm
from firecircle.lab.arms.panel import ApartArm
from firecircle.lab.arms.reflect import ReflectArm
from firecircle.lab.plan import ArmKind, ArmPlan, Plan
from firecircle.names import EvaluationMode
from firecircle.request import EMBEDDED_GENERALIST

UNSURE = (0.3, 0.8)
"""The band of a cascade that names none."""


def build_arms(plan: Plan) -> tuple[Arm, ...]:
    """The arms in the plan's order. `leave_one_out` becomes one arm for each voice."""
    arms: list[Arm] = []
    for told in plan.arms:
        try:
            arms.extend(_MAKERS[told.kind](plan, told, tuple(arms)))
        except ConfigError as wrong:
            raise _in_plan_words(wrong).in_table(f"arms.{told.name}") from None
    return tuple(arms)


def _in_plan_words(wrong: ConfigError) -> ConfigError:
    """The ways out that the engine tells are Python; in a plan they are TOML."""
    if wrong.remedy is None:
        return wrong
    return wrong.advising(wrong.remedy.replace("enforce_quorum=False", "enforce_quorum = false"))


def _circle(plan: Plan, arm: ArmPlan, **changes: Any) -> FireCircleConfig:
    told = {"models": EMBEDDED_MODELS, **plan.circle, **arm.settings, **changes}
    return FireCircleConfig(**told, alarm_threshold=plan.alarm_threshold)


def _panel(plan: Plan, arm: ArmPlan, mode: EvaluationMode, **changes: Any) -> EvaluationConfig:
    """What a circle's settings mean to voices that do not talk; the rest is checked, and means nothing."""
    told = {"models": EMBEDDED_MODELS, **plan.circle, **arm.settings, **changes}
    FireCircleConfig(**{**told, "models": EMBEDDED_MODELS, "model_characteristics": {}, "reserves": ()})
    shared = {name: told[name] for name in told if name in EvaluationConfig.model_fields}
    return EvaluationConfig(**shared, mode=mode, alarm_threshold=plan.alarm_threshold)


def _lead(plan: Plan, arm: ArmPlan) -> str:
    """Who stands for the circle where one voice is asked: the named one, else the generalist or first."""
    if arm.model:
        return arm.model
    models = tuple(arm.settings.get("models", plan.circle.get("models", EMBEDDED_MODELS)))
    return EMBEDDED_GENERALIST if EMBEDDED_GENERALIST in models else models[0]


def _single(plan: Plan, arm: ArmPlan, _: tuple[Arm, ...]) -> Iterator[Arm]:
    config = _panel(plan, arm, EvaluationMode.SINGLE, models=(_lead(plan, arm),))
    yield ApartArm(arm.name, arm.kind, seat_panel(config))


def _parallel(plan: Plan, arm: ArmPlan, _: tuple[Arm, ...]) -> Iterator[Arm]:
    config = _panel(plan, arm, EvaluationMode.PARALLEL)
    yield ApartArm(arm.name, arm.kind, seat_panel(config))


def _circle_with(**changes: Any) -> Callable[[Plan, ArmPlan, tuple[Arm, ...]], Iterator[Arm]]:
    def make(plan: Plan, arm: ArmPlan, _: tuple[Arm, ...]) -> Iterator[Arm]:
        yield _talking(arm.name, arm.kind, _circle(plan, arm, **changes))

    return make


def _talking(name: str, kind: str, config: FireCircleConfig) -> CircleArm:
    return CircleArm(name, kind, seat_circle(config), with_turns=kind != "no_turns")


def _clones(plan: Plan, arm: ArmPlan, _: tuple[Arm, ...]) -> Iterator[Arm]:
    """As many voices as the circle has, all of them one: a quorum by number."""
    size = len(_circle(plan, arm).models)
    lead = _lead(plan, arm)
    models = (lead, *(f"{lead}#{number}" for number in range(2, size + 1)))
    yield _talking(arm.name, arm.kind, _circle(plan, arm, models=models, reserves=(), enforce_quorum=False))


def _leave_one_out(plan: Plan, arm: ArmPlan, _: tuple[Arm, ...]) -> Iterator[Arm]:
    everybody = _circle(plan, arm).models
    if len(everybody) < 3:
        raise ConfigError("models", "leaving one out takes at least three voices")
    for absent in everybody:
        rest = tuple(model for model in everybody if model != absent)
        config = _circle(plan, arm, models=rest, reserves=(), enforce_quorum=False)
        yield _talking(f"{arm.name} {absent}", arm.kind, config)


def _reflect(plan: Plan, arm: ArmPlan, before: tuple[Arm, ...]) -> Iterator[Arm]:
    like = circle_before(arm, before)
    # What a voice reads again follows from the circle to match; who must form a quorum does not matter here.
    apart = {"enforce_quorum": False, "empty_chair": False, "seed": None}
    yield ReflectArm(arm.name, like.name, like.config.model_copy(update=apart), like.circle.voices)


def circle_before(arm: ArmPlan, before: tuple[Arm, ...]) -> CircleArm:
    """The circle that an arm refers to: the named one, else the first."""
    circles = [one for one in before if isinstance(one, CircleArm)]
    for circle in circles:
        if arm.like in (None, circle.name):
            return circle
    if arm.like is None:
        raise ConfigError("like", f"{arm.kind} needs a fire_circle arm before it")
    raise ConfigError("like", f"there is no circle {arm.like!r} before this arm")


def _cascade(plan: Plan, arm: ArmPlan, _: tuple[Arm, ...]) -> Iterator[Arm]:
    second = _talking(f"{arm.name}{SECOND}", "fire_circle", _circle(plan, arm))
    first = FireCircleConfig(models=arm.first or EMBEDDED_MODELS, alarm_threshold=plan.alarm_threshold)
    if first.models == second.config.models:
        raise ConfigError(
            "models", "both circles of a cascade would be the same", "name the second one's models"
        )
    yield CascadeArm(
        arm.name, _talking(f"{arm.name}{FIRST}", "fire_circle", first), second, arm.band or UNSURE
    )


def _guided(plan: Plan, arm: ArmPlan, before: tuple[Arm, ...]) -> Iterator[Arm]:
    config = _panel(plan, arm, EvaluationMode.SINGLE, models=(_lead(plan, arm),))
    yield GuidedArm(arm.name, circle_before(arm, before), arm.folds or USUAL_FOLDS, seat_panel(config))


_MAKERS: dict[ArmKind, Callable[[Plan, ArmPlan, tuple[Arm, ...]], Iterator[Arm]]] = {
    "single": _single,
    "parallel": _parallel,
    "fire_circle": _circle_with(),
    "reflect": _reflect,
    "no_chair": _circle_with(empty_chair=False),
    "named_peers": _circle_with(anonymize_peers=False),
    "clones": _clones,
    "leave_one_out": _leave_one_out,
    "guided": _guided,
    "no_turns": _circle_with(),
    "cascade": _cascade,
}
