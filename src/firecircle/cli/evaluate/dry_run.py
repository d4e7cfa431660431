"""`firecircle evaluate --dry-run`: what judging a prompt may take, before anybody is asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.budget import Budget
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.result import Accounting, CallRecord, Usages, account
from firecircle.circle.voice import Usage
from firecircle.cli.evaluate.request import Request
from firecircle.cli.output import console_on, figures_table, print_json
from firecircle.convene import rehearse
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.telling.safe_text import printable_line, shortened
from firecircle.telling.words import counted

NOTES = (
    "No prompt was sent. Input is estimated from bytes (three a token), output is all that an answer may"
    " take; rounds after the first assume answers of typical length.",
    "A circle that agrees early runs fewer rounds; a contradiction adds a question.",
)


def estimate(request: Request) -> int:
    """Print calls, tokens and price per round and voice; the exit status."""
    guidance = request.bank.guidance_for(request.prompt) if request.bank else ()
    calls = asyncio.run(rehearse(request.prompt, request.config, request.session, guidance=guidance))
    accounting = account(calls)
    over = _first_round_over_budget(calls, Budget.of(request.config))
    if request.as_json:
        print_json({**_document(accounting), "over_budget_in_round": over})
    else:
        remark = "" if over is None else f"The budget would end it before round {over}."
        _show(console_on(sys.stdout), request.introduction, accounting, remark)
    return 0


def estimate_batch(
    name: str,
    prompts: Sequence[tuple[MultiNeutrosophicPrompt, FireCircleConfig | EvaluationConfig]],
    *,
    as_json: bool,
) -> int:
    """The same for all prompts of a batch together."""

    async def rehearse_all() -> tuple[CallRecord, ...]:
        return tuple([call for prompt, config in prompts for call in await rehearse(prompt, config)])

    calls = asyncio.run(rehearse_all())
    accounting = account(calls)
    budget = Budget.of(prompts[0][1]) if prompts else Budget(None, None)
    coming = [Usage(call.tokens_in, None, call.tokens_out, call.cost_usd) for call in calls]
    is_over = budget.shortage((), coming) is not None
    if as_json:
        print_json({**_document(accounting), "prompts": len(prompts), "may_exceed_budget": is_over})
    else:
        introduction = f"Batch {printable_line(name)}: {counted(len(prompts), 'prompt')}\n"
        remark = "The budget may end it before the last prompt." if is_over else ""
        _show(console_on(sys.stdout), introduction, accounting, remark)
    return 0


def _document(accounting: Accounting) -> dict[str, object]:
    return {
        "dry_run": True,
        "calls": accounting.total.calls,
        "total": _figures(accounting.total),
        "by_round": {str(number): _figures(sums) for number, sums in accounting.by_round.items()},
        "by_voice": {model: _figures(sums) for model, sums in accounting.by_voice.items()},
    }


def _first_round_over_budget(calls: tuple[CallRecord, ...], budget: Budget) -> int | None:
    for number in sorted({call.round_number for call in calls}):
        before = [call for call in calls if call.round_number < number]
        here = [call for call in calls if call.round_number == number]
        coming = [Usage(call.tokens_in, None, call.tokens_out, call.cost_usd) for call in here]
        if budget.shortage(before, coming):
            return number
    return None


def _figures(sums: Usages) -> dict[str, float | int | None]:
    """A price that misses some calls is no price."""
    return {
        "calls": sums.calls,
        "tokens_in": sums.tokens_in,
        "tokens_out": sums.tokens_out,
        "cost_usd": None if sums.calls_without_price else sums.cost_usd,
    }


def _show(console: Console, introduction: str, accounting: Accounting, remark: str) -> None:
    console.print(introduction, soft_wrap=not console.is_terminal)
    console.print(_table(_rows(accounting), console.width))
    console.print()
    if remark:
        console.print(Text(remark, style="bold yellow"))
    for note in NOTES:
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


def _rows(accounting: Accounting) -> Iterator[tuple[str, Usages]]:
    for number, sums in accounting.by_round.items():
        yield f"round {number}", sums
    for model, sums in accounting.by_voice.items():
        yield printable_line(model), sums
    yield "all, at most", accounting.total


def _table(rows: Iterator[tuple[str, Usages]], width: int) -> Table:
    table = figures_table(("calls", "tokens in", "tokens out", "price"))
    for label, sums in rows:
        table.add_row(
            shortened(label, max(16, width - 56)),
            f"{sums.calls}",
            f"{sums.tokens_in:,}",
            f"{sums.tokens_out:,}",
            _price(sums),
        )
    return table


def _price(sums: Usages) -> str:
    if sums.cost_usd is None:
        return "unknown"
    missing = f" + {sums.calls_without_price} unknown" if sums.calls_without_price else ""
    return (f"${sums.cost_usd:.4f}" if sums.cost_usd else "free") + missing
