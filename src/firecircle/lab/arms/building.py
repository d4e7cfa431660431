"""Build the arms of a plan; every error names the arm at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from firecircle.catalog import original_of
from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.config import FireCircleConfig
from firecircle.convene import SeatedCircle, SeatedPanel, seat_circle, seat_panel
from firecircle.errors import ConfigError
from firecircle.lab.arms.arm import FIRST, SECOND, Arm, Matching
from firecircle.lab.arms.circle import USUAL_FOLDS, ApartArm, CascadeArm, CircleArm, GuidedArm
from firecircle.lab.arms.consistency import ConsistencyArm
from firecircle.lab.arms.council import CouncilArm
from firecircle.lab.arms.court import FEWEST, CourtArm
from firecircle.lab.arms.reflect import ReflectArm
from firecircle.lab.plan import ArmKind, ArmPlan, Plan
from firecircle.lab.redteam import (
    ADVERSARY,
    HARMLESS,
    chosen_attacks,
    obedient,
    with_harmless_text,
    with_member,
)
from firecircle.names import EvaluationMode, is_embedded, strongest_reader
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest, configure, default_models

A_DAY_AND_MORE = 26 * 3600.0
PATIENCE_FOR_BATCHES = {"timeout_seconds": A_DAY_AND_MORE, "timeout_per_round": A_DAY_AND_MORE}
"""A batch is answered within a day."""
UNSURE = (0.3, 0.8)
"""The default band of a cascade."""


def default_seats() -> tuple[str, ...]:
    """The default voices of a plan: as everywhere, but a run spends only what its plan asks for."""
    return default_models(EvaluationMode.FIRE_CIRCLE, only_free=True)


async def todays_families(plan: Plan) -> dict[str, str]:
    """The model for each family in the plan, by its provider's list of today."""
    if not plan.families:
        return {}
    from firecircle.voices.hosted.families import todays_models

    stated = {"provider": plan.circle["provider"]} if "provider" in plan.circle else {}
    resolutions = await todays_models(plan.families, EvaluationConfig(**stated))
    return {family: resolution.model for family, resolution in resolutions.items()}


def build_arms(plan: Plan, seats: Sequence[str] = ()) -> tuple[Arm, ...]:
    """The arms in the plan's order. `leave_one_out` becomes one arm for each voice.

    `seats` are the default voices of a run that was started earlier.
    """
    arms: list[Arm] = []
    for arm in plan.arms:
        draft = _Draft(plan, arm, tuple(seats) or default_seats(), tuple(arms))
        try:
            arms.extend(_MAKERS[arm.kind](draft))
        except ConfigError as wrong:
            raise _in_plan_words(wrong).in_table(f"arms.{arm.name}") from None
    return tuple(arms)


def _in_plan_words(wrong: ConfigError) -> ConfigError:
    """Reword the engine's Python remedies as TOML."""
    if wrong.remedy is None:
        return wrong
    return wrong.advising(wrong.remedy.replace("enforce_quorum=False", "enforce_quorum = false"))


@dataclass(frozen=True, slots=True)
class _Draft:
    """An arm under construction: its settings, and the arms before it."""

    plan: Plan
    arm: ArmPlan
    seats: tuple[str, ...]
    before: tuple[Arm, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The voices of the arm's circle."""
        return tuple(self._table.get("models", self.seats))

    @property
    def lead(self) -> str:
        """The voice that represents the circle: the named one, the strongest embedded one, or the first."""
        if self.arm.model:
            return self.arm.model
        return strongest_reader() if all(map(is_embedded, self.models)) else self.models[0]

    def circle(self, **changes: Any) -> SeatedCircle:
        """The plan's circle with these changes."""
        judges = configure(self._request(EvaluationMode.FIRE_CIRCLE, self.seats, changes))
        assert isinstance(judges.config, FireCircleConfig)
        return seat_circle(judges.config, seating=judges.seating)

    def panel(self) -> SeatedPanel:
        """The circle's voices, independent."""
        return self._panel(self._request(EvaluationMode.PARALLEL, self.seats, {}))

    def alone(self) -> SeatedPanel:
        """The one voice that represents the circle."""
        is_named = self.arm.model or "models" in self._table
        changes = {"models": (self.lead,)} if is_named else {}
        return self._panel(self._request(EvaluationMode.SINGLE, (self.lead,), changes))

    def circle_before(self) -> CircleArm:
        """The circle that the arm refers to: the named one, otherwise the first."""
        circles = [arm for arm in self.before if isinstance(arm, CircleArm)]
        for circle in circles:
            if self.arm.like in (None, circle.name):
                return circle
        if self.arm.like is None:
            raise ConfigError("like", f"{self.arm.kind} needs a fire_circle arm before it")
        raise ConfigError("like", f"there is no circle {self.arm.like!r} before this arm")

    def apart(self) -> SeatedCircle:
        """The circle's voices for a protocol without quorum, chair and reserves."""
        return self.circle(enforce_quorum=False, empty_chair=False, reserves=())

    def repeated_voice(self) -> SeatedPanel:
        """The one voice to ask repeatedly: the named one, otherwise the first whose answers vary."""
        named = (self.arm.model,) if self.arm.model else self.models
        varying = [original_of(model) for model in named if not is_embedded(model)]
        if not varying:
            raise ConfigError(
                "model",
                f"{named[0]} says the same however often it is asked",
                "name a hosted or local voice",
            )
        request = self._request(EvaluationMode.PARALLEL, self.seats, {"models": varying[:1]})
        return self._panel(request)

    def matching(self, planned: int | None, key: str) -> Matching:
        """As many calls as planned, otherwise what the circle before this arm takes."""
        if planned is not None:
            return Matching(planned)
        try:
            circle = self.circle_before()
        except ConfigError as wrong:
            raise (wrong if self.arm.like else wrong.advising(f"name one, or give {key}")) from None
        if all(map(is_embedded, circle.models)):
            raise ConfigError(
                "like",
                f"{circle.name} has only embedded voices, whose calls cost nothing to match",
                f"give {key}",
            )
        return Matching(circle=circle)

    @property
    def _table(self) -> dict[str, Any]:
        patience = PATIENCE_FOR_BATCHES if self.plan.concurrency.batch else {}
        return {**self.plan.circle, **self.arm.settings, **patience}

    def _request(
        self, mode: EvaluationMode, seats: tuple[str, ...], changes: dict[str, Any]
    ) -> JudgingRequest:
        settings = {**changes, "alarm_threshold": self.plan.alarm_threshold}
        return JudgingRequest(mode, settings, table=self._table, by_default=seats)

    def _panel(self, request: JudgingRequest) -> SeatedPanel:
        judges = configure(request)
        assert isinstance(judges.config, EvaluationConfig)
        return seat_panel(judges.config, seating=judges.seating)


def _single(draft: _Draft) -> Iterator[Arm]:
    yield ApartArm(draft.arm.name, draft.arm.kind, draft.alone())


def _parallel(draft: _Draft) -> Iterator[Arm]:
    yield ApartArm(draft.arm.name, draft.arm.kind, draft.panel())


def _circle_with(**changes: Any) -> Callable[[_Draft], Iterator[Arm]]:
    def make(draft: _Draft) -> Iterator[Arm]:
        yield CircleArm(draft.arm.name, draft.arm.kind, draft.circle(**changes))

    return make


def _without_turns(prompt: MultiNeutrosophicPrompt) -> MultiNeutrosophicPrompt:
    return prompt.model_copy(update={"turns": None})


def _no_turns(draft: _Draft) -> Iterator[Arm]:
    yield CircleArm(draft.arm.name, draft.arm.kind, draft.circle(), _without_turns)


def _attacked_arms(draft: _Draft) -> Iterator[Arm]:
    circle = draft.circle_before().circle
    attacks = chosen_attacks(draft.arm.attacks, draft.arm.layers)
    for layer in dict.fromkeys(attack.layer for attack in attacks if attack.layer):
        title = f"{draft.arm.name} {HARMLESS} {layer}"
        yield CircleArm(title, draft.arm.kind, circle, partial(with_harmless_text, layer=layer))
    for attack in attacks:
        title = f"{draft.arm.name} {attack.title}"
        if attack.layer:
            yield CircleArm(title, draft.arm.kind, circle, attack.applied_to, obedient)
        else:
            seated = with_member(circle, attack.name)
            yield CircleArm(title, draft.arm.kind, seated, roles_in=obedient, cheat=ADVERSARY)


def _clones(draft: _Draft) -> Iterator[Arm]:
    """A circle of the same size from clones of one voice: a quorum in number only."""
    lead = draft.lead
    models = (lead, *(f"{lead}#{number}" for number in range(2, len(draft.models) + 1)))
    clones = draft.circle(models=models, reserves=(), enforce_quorum=False)
    yield CircleArm(draft.arm.name, draft.arm.kind, clones)


def _leave_one_out(draft: _Draft) -> Iterator[Arm]:
    everybody = draft.circle().config.models
    if len(everybody) < 3:
        raise ConfigError("models", "leaving one out takes at least three voices")
    for absent in everybody:
        rest = tuple(model for model in everybody if model != absent)
        circle = draft.circle(models=rest, reserves=(), enforce_quorum=False)
        yield CircleArm(f"{draft.arm.name} {absent}", draft.arm.kind, circle)


def _reflect(draft: _Draft) -> Iterator[Arm]:
    like = draft.circle_before()
    # What a voice reads again depends on the circle to match; the quorum does not matter here.
    apart = {"enforce_quorum": False, "empty_chair": False, "seed": None}
    circle = replace(like.circle, config=like.config.model_copy(update=apart))
    yield ReflectArm(draft.arm.name, like.name, circle)


def _cascade(draft: _Draft) -> Iterator[Arm]:
    name = draft.arm.name
    second = CircleArm(f"{name}{SECOND}", "fire_circle", draft.circle())
    asked = {"models": draft.arm.first, "alarm_threshold": draft.plan.alarm_threshold}
    judges = configure(JudgingRequest(settings=asked, by_default=draft.seats))
    assert isinstance(judges.config, FireCircleConfig)
    if judges.config.models == second.config.models:
        raise ConfigError(
            "models", "both circles of a cascade would be the same", "name the second one's models"
        )
    first = CircleArm(f"{name}{FIRST}", "fire_circle", seat_circle(judges.config, seating=judges.seating))
    yield CascadeArm(name, first, second, draft.arm.band or UNSURE)


def _guided_arm(draft: _Draft) -> Iterator[Arm]:
    folds = draft.arm.folds or USUAL_FOLDS
    yield GuidedArm(draft.arm.name, draft.circle_before(), folds, draft.alone())


def _consistency(draft: _Draft) -> Iterator[Arm]:
    panel, matching = draft.repeated_voice(), draft.matching(draft.arm.k, "k")
    yield ConsistencyArm(draft.arm.name, panel, matching, at_once=len(draft.models))


def _court(draft: _Draft) -> Iterator[Arm]:
    silent = [model for model in draft.models if is_embedded(model)]
    if silent:
        raise ConfigError("models", f"{silent[0]} does not argue", "seat hosted or local voices in a court")
    if len(draft.models) < FEWEST:
        raise ConfigError("models", "a court needs three voices: prosecution, defence and judge")
    exchanges = draft.arm.exchanges
    matching = draft.matching(exchanges and 2 * exchanges + 1, "exchanges")
    yield CourtArm(draft.arm.name, draft.apart(), matching)


def _council(draft: _Draft) -> Iterator[Arm]:
    readers = [model for model in draft.models if not is_embedded(model)]
    if not readers:
        raise ConfigError(
            "models",
            "embedded voices do not read each other's words",
            "add a hosted or local voice to rank them",
        )
    chairman = draft.arm.model
    if chairman is not None and chairman not in readers:
        raise ConfigError("model", f"{chairman!r} is not a voice that can chair it", f"name {readers[0]}")
    yield CouncilArm(draft.arm.name, draft.apart(), chairman)


_MAKERS: dict[ArmKind, Callable[[_Draft], Iterator[Arm]]] = {
    "single": _single,
    "parallel": _parallel,
    "fire_circle": _circle_with(),
    "reflect": _reflect,
    "no_chair": _circle_with(empty_chair=False),
    "named_peers": _circle_with(anonymize_peers=False),
    "clones": _clones,
    "leave_one_out": _leave_one_out,
    "guided": _guided_arm,
    "no_turns": _no_turns,
    "attacked": _attacked_arms,
    "cascade": _cascade,
    "consistency": _consistency,
    "court": _court,
    "council": _council,
}
