"""Judging over HTTP: what it may cost, and to begin."""

from __future__ import annotations

from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.circle.measures import account
from firecircle.circle.result import Usages
from firecircle.names import EvaluationMode
from firecircle.prompt import EarlierTurn, MultiNeutrosophicPrompt
from firecircle.request import JudgingRequest, configured_by_file
from firecircle.web.api.reading import body_as
from firecircle.web.api.shapes import Amount, Begun, Estimate, Judging
from firecircle.web.viewer import viewer_of


async def estimate(request: Request) -> Response:
    """What judging may take at most."""
    form = await body_as(Judging, request)
    config = configured_by_file(_asked_for(form)).config
    calls = await viewer_of(request).convener.rehearse(_prompt_in(form), config)
    sums = account(calls)
    estimated = Estimate(
        total=_amount(sums.total),
        by_round={str(number): _amount(usages) for number, usages in sums.by_round.items()},
        by_voice={model: _amount(usages) for model, usages in sums.by_voice.items()},
        models=config.first_asked,
    )
    return JSONResponse(estimated.model_dump())


async def evaluate(request: Request) -> Response:
    """Begin to judge. 202 while the circle sits, 200 when it is over already."""
    form = await body_as(Judging, request)
    viewer = viewer_of(request)
    judges = configured_by_file(_asked_for(form))
    circle_id = await viewer.convener.convene(_prompt_in(form), judges.config, form.label, judges.seating)
    summary = await run_in_threadpool(viewer.store.circles.summary, circle_id)
    begun = Begun(id=summary.id, status=summary.status, url=f"/circles/{quote(summary.id, safe='')}")
    location = {"location": f"/api/v1/circles/{quote(summary.id, safe='')}"}
    status = 202 if summary.status == "sitting" else 200
    return JSONResponse(begun.model_dump(), status_code=status, headers=location)


_FIELDS = {"alarm_threshold": "threshold", "max_rounds": "rounds", "failure_mode": "strict"}
"""What the form calls otherwise than the configuration."""


def _asked_for(form: Judging) -> JudgingRequest:
    return JudgingRequest(
        EvaluationMode(form.mode),
        {
            "models": form.models or None,
            "reserves": form.reserves or None,
            "focus": form.focus,
            "max_rounds": form.rounds,
            "alarm_threshold": form.threshold,
            "empty_chair": form.empty_chair,
            "failure_mode": "strict" if form.strict else None,
            "enforce_quorum": None if form.enforce_quorum else False,
            "seed": form.seed,
            "budget_usd": form.budget_usd,
            "budget_tokens": form.budget_tokens,
        },
        written=_FIELDS,
    )


def _prompt_in(form: Judging) -> MultiNeutrosophicPrompt:
    """The prompt to judge; one with nothing in it is refused."""
    turns = None
    if form.turns is not None:
        turns = tuple(EarlierTurn(role=turn.role, content=turn.content) for turn in form.turns)
    prompt = MultiNeutrosophicPrompt(
        system=form.system, application=form.application, user=form.user, turns=turns
    )
    prompt.require_text(form.focus or "prompt")
    return prompt


def _amount(sums: Usages) -> Amount:
    price = None if sums.calls_without_price else sums.cost_usd
    return Amount(calls=sums.calls, tokens_in=sums.tokens_in, tokens_out=sums.tokens_out, cost_usd=price)
