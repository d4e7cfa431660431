"""Estimate a plan before anything is spent: calls, tokens, price and time, by arm."""

from __future__ import annotations

import os
import time
from itertools import islice
from pathlib import Path

from firecircle.circle.result import CallRecord
from firecircle.errors import ConfigError
from firecircle.lab.arms.arm import Arm, Case, Unwatched
from firecircle.lab.arms.building import build_arms, todays_families
from firecircle.lab.plan import Plan
from firecircle.lab.records import Outcome, VoiceRound
from firecircle.lab.runs.cases import Census, chosen_records, take_census
from firecircle.lab.runs.judging import judge_with
from firecircle.names import is_embedded
from firecircle.shapes import Shape, Text

REHEARSED = 100
"""Records that are rehearsed; the figures of a larger dataset are scaled by its characters."""
TIMED = 6
"""Records that embedded arms really judge, to measure the time. They use no tokens."""
SECONDS_PER_CALL = 6.0
"""The assumed time of a hosted model for an answer."""


class ArmEstimate(Shape):
    """The most that one arm may take, over all sittings."""

    arm: Text
    kind: Text
    records: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    """None if some voice's price is unknown."""
    seconds: float
    """Measured for embedded arms; for others, calls at the plan's concurrency, each of the stated length."""


class Estimate(Shape):
    """The most that the whole plan may take."""

    census: Census
    arms: tuple[ArmEstimate, ...]
    rehearsed: int
    seconds_per_call: float = SECONDS_PER_CALL
    over_budget: Text | None = None

    @property
    def cost_usd(self) -> float | None:
        """Over all arms; None if some price is unknown."""
        prices = [arm.cost_usd for arm in self.arms]
        return None if None in prices else sum(price or 0.0 for price in prices)

    @property
    def tokens(self) -> int:
        """Input and output, over all arms."""
        return sum(arm.tokens_in + arm.tokens_out for arm in self.arms)


async def estimate(plan: Plan, base: Path) -> Estimate:
    """Rehearse the plan. Assumes every round, so this is the maximum."""
    arms = build_arms(plan.seated_as(await todays_families(plan)))
    census = take_census(plan, base)
    chosen = list(islice(chosen_records(plan, base), REHEARSED))
    cases = [Case(row.record, row.dataset, 0, plan.seeds[0]) for row in chosen]
    heard = sum(len(layer.text) for case in cases for layer in case.record.prompt.layers)
    characters = sum(dataset.characters for dataset in census.datasets)
    sittings = len(plan.sittings)
    arm_estimates: list[ArmEstimate] = []
    most_rehearsed = 0
    for arm in arms:
        calls: list[CallRecord] = []
        rehearsed = cases[:TIMED] if all(map(is_embedded, arm.models)) else cases
        most_rehearsed = max(most_rehearsed, len(rehearsed))
        for case in rehearsed:
            calls.extend(await arm.rehearse(case))
        records = census.records * sittings
        by_record = records / len(rehearsed)
        # A prompt adds to a question in proportion to its length; the circle's own text does not.
        by_length = by_record if not heard else characters * sittings / heard
        unpriced = any(call.cost_usd is None for call in calls)
        count = round(len(calls) * by_record)
        tokens_in = round(sum(call.tokens_in or 0 for call in calls) * (by_record + by_length) / 2)
        arm_estimates.append(
            ArmEstimate(
                arm=arm.name,
                kind=arm.kind,
                records=records,
                calls=count,
                tokens_in=tokens_in,
                tokens_out=round(sum(call.tokens_out or 0 for call in calls) * by_record),
                cost_usd=None if unpriced else sum(call.cost_usd or 0.0 for call in calls) * by_record,
                seconds=await _seconds(arm, arms, plan, cases, records, count),
            )
        )
    whole = Estimate(census=census, arms=tuple(arm_estimates), rehearsed=most_rehearsed)
    return whole.model_copy(update={"over_budget": _over(plan, whole)})


async def _seconds(
    arm: Arm, arms: tuple[Arm, ...], plan: Plan, cases: list[Case], records: int, calls: int
) -> float:
    if not all(map(is_embedded, arm.models)):
        return calls * SECONDS_PER_CALL / plan.concurrency.calls
    started = time.perf_counter()
    timed = cases[:TIMED]
    for case in timed:
        like = getattr(arm, "like", None)
        earlier = {like: _three_rounds(arm)} if like else {}
        await judge_with(arm, Case(case.record, case.dataset, 0, case.plan_seed, earlier), Unwatched())
    workers = plan.concurrency.workers or os.cpu_count() or 1
    return (time.perf_counter() - started) / len(timed) * records / workers


def _three_rounds(arm: Arm) -> Outcome:
    """A circle of three rounds, to time an arm that must match one."""
    voice_rounds = [
        VoiceRound(model=model, round_number=number, truth=0, indeterminacy=0, falsehood=0, asked_chars=4000)
        for number in (1, 2, 3)
        for model in arm.models
    ]
    return Outcome(status="judged", voices=tuple(voice_rounds))


def _over(plan: Plan, estimate: Estimate) -> str | None:
    budget = plan.budget
    if budget.usd is not None:
        if estimate.cost_usd is None:
            raise ConfigError(
                "usd",
                "the price of a voice is not known",
                "declare it under [prices] in firecircle.toml, or limit tokens instead",
            ).in_table("budget")
        if estimate.cost_usd > budget.usd:
            return f"it may cost ${estimate.cost_usd:.2f}, the budget is ${budget.usd:.2f}"
    if budget.tokens is not None and estimate.tokens > budget.tokens:
        return f"it may take {estimate.tokens:,} tokens, the budget is {budget.tokens:,}"
    return None
