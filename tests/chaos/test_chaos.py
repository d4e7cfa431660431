"""Circles in a storm: real voices over HTTP at a server that fails every fifth time, against an oracle.

`pytest tests/chaos --long` holds 2,000 circles instead of 60.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from firecircle import EvaluationError, FireCircleConfig, ModelCharacteristics, MultiNeutrosophicPrompt
from firecircle import fire_circle_evaluate as hold
from firecircle.circle import conclude
from firecircle.circle.quorum import QuorumRules
from firecircle.circle.result import FireCircleResult
from tests.chaos.oracle import ROUNDS, Circle, Expected, circle, expected
from tests.loopback import Answer, ChatRequest, LoopbackServer, completion, failure
from tests.scripted import says

FEW, MANY = 60, 2000
AT_ONCE = 30
MUTATED = 40


class Storm:
    """The server's side: each voice meets its fate in each round of each circle."""

    def __init__(self, circles: Iterable[Circle]) -> None:
        self._circles = {sitting.number: sitting for sitting in circles}
        self._asked: dict[tuple[int, str], list[str]] = {}
        self._troubles: dict[tuple[int, str, int], int] = {}

    def answer(self, request: ChatRequest) -> Answer:
        text = "\n".join(str(message["content"]) for message in request.body["messages"])
        number = int(re.findall(r"storm number (\d+)", text)[0])
        questions = self._asked.setdefault((number, request.model), [])
        if text not in questions:  # the same question again is the same turn
            questions.append(text)
        place = number, request.model, questions.index(text) + 1
        fate = self._circles[number].fates[place[1:]]
        met = self._troubles.get(place, 0)
        if met < len(fate.troubles):
            self._troubles[place] = met + 1
            return _trouble(fate.troubles[met], fate.falsehood)
        match fate.final:
            case "400":
                return failure(400, "this text is not for us")
            case "refusal":
                return completion("I'm sorry, but I can't help with that.")
            case "garbage":
                return completion("Weather is fine.")
        return completion(says(fate.falsehood))


def _trouble(name: str, falsehood: float) -> Answer:
    whole = completion(says(falsehood))
    match name:
        case "503":
            return failure(503, "one moment", retry_after="0")
        case "429":
            return failure(429, "one moment", retry_after="0")
        case "half":
            return Answer(whole.body, delivery="half")
    return Answer(delivery="reset")


async def held(sitting: Circle, base_url: str) -> FireCircleResult:
    names = {member.name: f"lmstudio:{member.name}" for member in sitting.members}
    config = FireCircleConfig(
        models=tuple(names.values()),
        lmstudio_base_url=base_url,
        model_characteristics={
            names[member.name]: ModelCharacteristics(names[member.name], member.roles, member.lineage)
            for member in sitting.members
        },
        enforce_quorum=sitting.enforced,
        early_stop_convergence=0.1 if sitting.stops_early else 0.0,
        extra_round_on_divergence=False,
        max_rounds=ROUNDS,
        empty_chair=False,
        require_empty_chair_role=False,
        timeout_seconds=60,
        timeout_per_round=60,
        seed=sitting.number,
    )
    prompt = MultiNeutrosophicPrompt(user=f"This is storm number {sitting.number}, please answer.")
    try:
        return await hold(prompt, config)
    except EvaluationError as called_off:
        partial = called_off.partial_result
    assert partial is not None
    return partial


def ended(result: FireCircleResult) -> Expected:
    """The end of a real circle in the oracle's words."""
    decided = result.consensus
    return Expected(
        len(result.dialogue_history),
        tuple(model.removeprefix("lmstudio:") for model in result.active_models),
        {lost.model.removeprefix("lmstudio:"): lost.round_number for lost in result.failures},
        (decided.falsehood, decided.model.removeprefix("lmstudio:"), decided.round_number or 0)
        if decided
        else None,
    )


async def differences(numbers: range) -> list[tuple[int, Expected, Expected]]:
    """The circles that end otherwise than they have to: number, what should be, what is."""
    circles = [circle(number) for number in numbers]
    room = asyncio.Semaphore(AT_ONCE)
    async with LoopbackServer(Storm(circles).answer, record=False) as server:

        async def end_of(sitting: Circle) -> Expected:
            async with room:
                return ended(await held(sitting, server.base_url))

        ends = await asyncio.gather(*(end_of(sitting) for sitting in circles))
    return [
        (sitting.number, should, end)
        for sitting, end in zip(circles, ends, strict=True)
        if end != (should := expected(sitting))
    ]


async def test_every_circle_ends_as_the_oracle_says(is_long: bool) -> None:
    assert await differences(range(MANY if is_long else FEW)) == []


def test_the_storm_is_one() -> None:
    """The short slice holds what the long one is about."""
    ends = [expected(circle(number)) for number in range(FEW)]
    assert sum(end.decided is None for end in ends) > 5
    assert sum(bool(end.lost) and end.decided is not None for end in ends) > 10
    assert sum(end.decided is not None and end.decided[2] < end.rounds for end in ends) > 10
    assert len({end.rounds for end in ends}) == ROUNDS


def _zombies_vote(evaluations: Any, active: Any) -> Any:
    heard = list(evaluations)
    return conclude_highest(heard, tuple(dict.fromkeys([*active, *(said.model for said in heard)])))


def _last_round_only(evaluations: Any, active: Any) -> Any:
    heard = list(evaluations)
    last = max((said.round_number for said in heard), default=0)
    return conclude_highest([said for said in heard if said.round_number == last], active)


conclude_highest: Callable[..., Any] = conclude.highest_falsehood
MUTANTS: dict[str, tuple[object, str, object]] = {
    "zombies vote": (conclude, "highest_falsehood", _zombies_vote),
    "last round only": (conclude, "highest_falsehood", _last_round_only),
    "one lineage is enough": (
        FireCircleConfig,
        "quorum_rules",
        property(lambda _: QuorumRules(min_provider_groups=1)),
    ),
    "little coverage is enough": (
        FireCircleConfig,
        "quorum_rules",
        property(lambda _: QuorumRules(min_cognitive_coverage=1.0)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_the_oracle_sees_an_engine_that_breaks_a_rule(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, attribute, broken = MUTANTS[name]
    monkeypatch.setattr(where, attribute, broken)
    assert await differences(range(MUTATED)) != []
