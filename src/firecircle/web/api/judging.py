"""Judging over HTTP: what it may cost, and to begin."""

from __future__ import annotations

from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.circle.measures import account
from firecircle.circle.result import Usages
from firecircle.names import EvaluationMode
from firecircle.web.api.reading import body_as
from firecircle.web.api.shapes import Amount, Begun, Estimate, Judging
from firecircle.web.planning import config_of, prompt_of
from firecircle.web.viewer import viewer_of


async def estimate(request: Request) -> Response:
    """What judging may take at most."""
    asked = await body_as(Judging, request)
    config = config_of(asked)
    calls = await viewer_of(request).convener.rehearse(prompt_of(asked), config)
    sums = account(calls)
    heard = config.models[:1] if asked.mode == EvaluationMode.SINGLE.value else config.models
    told = Estimate(
        total=_amount(sums.total),
        by_round={str(number): _amount(one) for number, one in sums.by_round.items()},
        by_voice={model: _amount(one) for model, one in sums.by_voice.items()},
        models=heard,
    )
    return JSONResponse(told.model_dump())


async def evaluate(request: Request) -> Response:
    """Begin to judge. 202 while the circle sits, 200 when it is over already."""
    asked = await body_as(Judging, request)
    viewer = viewer_of(request)
    circle_id = await viewer.convener.convene(prompt_of(asked), config_of(asked), asked.label)
    summary = await run_in_threadpool(viewer.store.circles.summary, circle_id)
    told = Begun(id=summary.id, status=summary.status, url=f"/circles/{quote(summary.id, safe='')}")
    location = {"location": f"/api/v1/circles/{quote(summary.id, safe='')}"}
    status = 202 if summary.status == "sitting" else 200
    return JSONResponse(told.model_dump(), status_code=status, headers=location)


def _amount(sums: Usages) -> Amount:
    price = None if sums.calls_without_price else sums.cost_usd
    return Amount(calls=sums.calls, tokens_in=sums.tokens_in, tokens_out=sums.tokens_out, cost_usd=price)
