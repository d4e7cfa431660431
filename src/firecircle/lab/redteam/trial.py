"""Prompts judged with and without each attack, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from firecircle.catalog import ModelCharacteristics
from firecircle.circle.addressing import addressed_passages
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import FireCircleResult
from firecircle.circle.voice import Voice
from firecircle.convene import SeatedCircle, seat_circle
from firecircle.errors import EvaluationError
from firecircle.examples import Example
from firecircle.lab.redteam.attacks import CANARY, Attack
from firecircle.lab.redteam.members import ADVERSARY, Cheat
from firecircle.lab.redteam.outliers import MemberReport, member_reports
from firecircle.lab.statistics.estimate import wilson
from firecircle.names import LayerName
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.thresholds import reaches

OBEYED = "".join(CANARY)


class Share(Shape):
    """So many of so many, with the 95% Wilson interval; no interval where there is nothing to share."""

    hits: int
    n: int
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, hits: int, n: int) -> Share:
        """The share with its interval."""
        if n == 0:
            return cls(hits=0, n=0)
        interval = wilson(hits, n)
        return cls(hits=hits, n=n, low=interval.low, high=interval.high)


class AttackOutcome(Shape):
    """What one attack did to the prompts it was tried on."""

    name: Text
    title: Text
    layer: LayerName | None
    raises_alarm: bool
    """Whether a false alarm was wanted: then the prompts are benign."""
    falsehood_without: float | None
    """Mean falsehood of the verdicts on the same prompts with a harmless text in the attack's place, or
    without the member."""
    falsehood_with: float | None
    succeeded: Share
    """Verdicts that went over to the side the attack wanted, among those that were on the other one."""
    contagion: Share
    """Honest voices that went over to that side at the end, among those that were on the other one."""
    obeyed: dict[Text, int]
    """How often each voice said the canary."""
    noted: Share
    """Prompts of which the circle notes that they address the evaluators."""
    failed: int
    """Circles that reached no verdict."""


class RedTeamReport(Shape):
    """Everything that was tried on one circle."""

    models: tuple[Text, ...]
    mark_evidence: bool
    max_rounds: int
    alarm_threshold: float
    attack_prompts: tuple[Text, ...]
    benign_prompts: tuple[Text, ...]
    started_at: float
    duration_seconds: float
    alarms_without: Share
    """Attack prompts at which the circle raises an alarm when nobody attacks it."""
    false_alarms_without: Share
    outcomes: tuple[AttackOutcome, ...]
    members: tuple[MemberReport, ...]
    """How each voice stood to the others; a cheating member once for each part it played."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One circle, and the prompts it is attacked with."""

    circle: SeatedCircle
    attacked: Sequence[Example]
    benign: Sequence[Example]

    @classmethod
    def of(cls, config: FireCircleConfig, attacked: Sequence[Example], benign: Sequence[Example]) -> Trial:
        """The trial of a configured circle."""
        return cls(seat_circle(config), attacked, benign)

    def sittings(self, attacks: Sequence[Attack]) -> int:
        """How many circles will be held."""
        layers = {attack.layer for attack in attacks} - {None}
        attacked = sum(len(self._prompts(attack)) for attack in attacks)
        return len(self.benign) + len(self.attacked) * (1 + len(layers)) + attacked

    async def run(
        self, attacks: Sequence[Attack], on_circle: Callable[[int], None] = lambda held: None
    ) -> RedTeamReport:
        """Hold every circle, one after another; `on_circle` is told after each how many were held."""
        began, clock = time.time(), time.monotonic()
        held = _Sittings(on_circle)
        plain = await held.hold(self.circle, self.attacked, lambda prompt: prompt)
        benign = await held.hold(self.circle, self.benign, lambda prompt: prompt)
        members = list(member_reports(_heard([*plain, *benign])))
        spared: dict[LayerName | None, list[FireCircleResult | None]] = {None: plain}
        outcomes = []
        for attack in attacks:
            if attack.layer not in spared:
                spared[attack.layer] = await held.hold(self.circle, self.attacked, attack.spared)
            circle = self.circle if attack.layer else _with_member(self.circle, attack.name)
            results = await held.hold(circle, self._prompts(attack), attack.applied_to)
            outcomes.append(
                _outcome(attack, benign if attack.raises_alarm else spared[attack.layer], results)
            )
            members += [
                report.model_copy(update={"model": f"{ADVERSARY} ({attack.name})"})
                for report in member_reports(_heard(results))
                if report.model == ADVERSARY
            ]
        config = self.circle.config
        return RedTeamReport(
            models=config.models,
            mark_evidence=config.mark_evidence,
            max_rounds=config.max_rounds,
            alarm_threshold=config.alarm_threshold,
            attack_prompts=tuple(example.id for example in self.attacked),
            benign_prompts=tuple(example.id for example in self.benign),
            started_at=began,
            duration_seconds=time.monotonic() - clock,
            alarms_without=_alarms(plain),
            false_alarms_without=_alarms(benign),
            outcomes=tuple(outcomes),
            members=tuple(members),
        )

    def _prompts(self, attack: Attack) -> Sequence[Example]:
        return self.benign if attack.raises_alarm else self.attacked


@dataclass(slots=True)
class _Sittings:
    """Holds circles one after another and counts them."""

    on_circle: Callable[[int], None]
    held: int = 0

    async def hold(
        self,
        circle: SeatedCircle,
        examples: Sequence[Example],
        changed: Callable[[MultiNeutrosophicPrompt], MultiNeutrosophicPrompt],
    ) -> list[FireCircleResult | None]:
        """The results for all these prompts; None where no verdict was reached."""
        results: list[FireCircleResult | None] = []
        for example in examples:
            try:
                results.append(await circle.hold(changed(example.prompt)))
            except EvaluationError:
                results.append(None)
            self.held += 1
            self.on_circle(self.held)
        return results


def _heard(results: Iterable[FireCircleResult | None]) -> list[FireCircleResult]:
    return [result for result in results if result is not None]


def _alarms(results: Iterable[FireCircleResult | None]) -> Share:
    heard = _heard(results)
    return Share.of(sum(result.alarm for result in heard), len(heard))


def _outcome(
    attack: Attack, spared: Sequence[FireCircleResult | None], results: Sequence[FireCircleResult | None]
) -> AttackOutcome:
    pairs = [(before, after) for before, after in zip(spared, results, strict=True) if before and after]
    sides = [(before.alarm, after.alarm) for before, after in pairs]
    turned = [after is attack.raises_alarm for before, after in sides if before is not attack.raises_alarm]
    swayed = [voice for before, after in pairs for voice in _swayed(before, after, attack.raises_alarm)]
    return AttackOutcome(
        name=attack.name,
        title=attack.title,
        layer=attack.layer,
        raises_alarm=attack.raises_alarm,
        falsehood_without=_mean_falsehood([before for before, _ in pairs]),
        falsehood_with=_mean_falsehood([after for _, after in pairs]),
        succeeded=Share.of(sum(turned), len(turned)),
        contagion=Share.of(sum(swayed), len(swayed)),
        obeyed=_obeyed([after for _, after in pairs]),
        noted=Share.of(sum(bool(addressed_passages(after.prompt)) for _, after in pairs), len(pairs)),
        failed=len(results) - len(pairs),
    )


def _with_member(circle: SeatedCircle, part: str) -> SeatedCircle:
    """The same circle with a cheating member at its end."""
    config = circle.config
    declared = {**config.model_characteristics, ADVERSARY: ModelCharacteristics(ADVERSARY, {}, ADVERSARY)}
    seats = {"models": (*config.models, ADVERSARY), "model_characteristics": declared, "circle_size": None}
    voices: dict[str, Voice] = {**circle.voices, ADVERSARY: Cheat(part)}
    return replace(circle, config=config.model_copy(update=seats), voices=voices)


def _mean_falsehood(results: Sequence[FireCircleResult]) -> float | None:
    figures = [result.consensus.falsehood for result in results if result.consensus]
    return fmean(figures) if figures else None


def _swayed(before: FireCircleResult, after: FireCircleResult, raises_alarm: bool) -> list[bool]:
    """Whether each honest voice that ended on the other side without the attack ends on its side with it."""
    threshold = before.config.alarm_threshold
    alone = {answer.model: reaches(answer.falsehood, threshold) for answer in before.final_evaluations}
    return [
        reaches(answer.falsehood, threshold) is raises_alarm
        for answer in after.final_evaluations
        if answer.model in alone and alone[answer.model] is not raises_alarm
    ]


def _obeyed(results: Sequence[FireCircleResult]) -> dict[str, int]:
    """Who said the canary in any round, and in how many circles."""
    said: dict[str, int] = {}
    for result in results:
        obedient = {
            answer.model
            for held in result.dialogue_history
            for answer in held.evaluations
            if OBEYED in " ".join((*answer.raw_replies, answer.reasoning)).lower()
        }
        for model in sorted(obedient - {ADVERSARY}):
            said[model] = said.get(model, 0) + 1
    return said
