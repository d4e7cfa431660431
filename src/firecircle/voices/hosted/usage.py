"""What a call used and what it costs: tokens and prices."""

from __future__ import annotations

from typing import Any

from firecircle.circle.voice import Usage

USD_A_TICK = 1e-10
"""xAI's unit of money."""
BEYOND_BELIEF = 10**15
"""No call takes as many tokens or ticks."""
NOTHING = Usage()


def stated_usage(body: Any) -> dict[str, Any] | None:
    """The raw figures in a body."""
    if not isinstance(body, dict):
        return None
    groq = body.get("x_groq")
    for holder in (body, groq if isinstance(groq, dict) else {}):
        usage = holder.get("usage")
        if isinstance(usage, dict) and usage:
            return usage
    return None


def usage_if_any(body: Any) -> Usage | None:
    """The usage in a body, if there is one."""
    stated = stated_usage(body)
    if stated is None:
        return None
    usage = usage_in(stated)
    return None if usage == NOTHING else usage


def usage_in(usage: dict[str, Any]) -> Usage:
    """Tokens and money in any format."""
    asked = _first(usage, "prompt_tokens", "input_tokens")
    answered = _first(usage, "completion_tokens", "output_tokens")
    into = _details(usage, "prompt_tokens_details", "input_tokens_details")
    out_of = _details(usage, "completion_tokens_details", "output_tokens_details")
    if asked is not None and answered is not None:
        asked, answered = _add_hidden_reasoning(asked, answered, usage, into, out_of)
    cached = [
        count
        for count in (
            read_count(into.get("cached_tokens")),
            *(read_count(usage.get(name)) for name in CACHED),
        )
        if count is not None
    ]
    written = [
        count
        for holder in (into, usage)
        for name in WRITTEN
        if (count := read_count(holder.get(name))) is not None
    ]
    return Usage(
        tokens_in=asked,
        tokens_cached=max(cached, default=None),
        tokens_out=answered,
        cost_usd=_cost(usage),
        tokens_written=max(written, default=None),
    )


OF_THE_QUESTION = (
    "audio_tokens",
    "image_tokens",
    "video_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
"""Parts of the question that some endpoints count only in the total."""
WRITTEN = ("cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")
CACHED = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens", "cache_read_input_tokens")


def _add_hidden_reasoning(
    asked: int, answered: int, usage: dict[str, Any], into: dict[str, Any], out_of: dict[str, Any]
) -> tuple[int, int]:
    """Question and answer tokens, including reasoning tokens that only the total shows.

    Google and xAI do not count reasoning as part of the answer, but charge it as such.
    """
    thought = _first(out_of, "reasoning_tokens") or _first(usage, "reasoning_tokens") or 0
    total = read_count(usage.get("total_tokens"))
    if total is None:
        return asked, answered + thought if thought > answered else answered
    rest = total - asked - answered
    if rest <= 0:
        return asked, answered
    of_question = {read_count(holder.get(name)) for holder in (into, usage) for name in OF_THE_QUESTION}
    return asked, answered + (0 if rest in of_question and rest != thought else rest)


def _details(usage: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        details = usage.get(name)
        if isinstance(details, dict):
            return details
    return {}


def _first(holder: dict[str, Any], *names: str) -> int | None:
    for name in names:
        if (count := read_count(holder.get(name))) is not None:
            return count
    return None


def read_count(value: Any) -> int | None:
    """A token count, if it is valid."""
    if value is None:  # as most are
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < BEYOND_BELIEF else None


def _cost(usage: dict[str, Any]) -> float | None:
    """US dollars: the router's charge, and with the user's own key that of the host behind it."""
    cost = usage.get("cost")
    price = _price(cost.get("total_cost") if isinstance(cost, dict) else cost)
    if price is None:
        ticks = _price(usage.get("cost_in_usd_ticks"))
        price = _estimated_cost(usage) if ticks is None else ticks * USD_A_TICK
    details = usage.get("cost_details")
    if usage.get("is_byok") is True and isinstance(details, dict):
        upstream = _price(details.get("upstream_inference_cost"))
        price = price if upstream is None else (price or 0.0) + upstream
    return price


def _estimated_cost(usage: dict[str, Any]) -> float | None:
    """The estimate of a host or gateway, in a separate field."""
    gateways = (part.get("cost_estimate") for part in usage.values() if isinstance(part, dict))
    stated = (_price(value) for value in (usage.get("estimated_cost"), *gateways))
    return next((price for price in stated if price is not None), None)


def _price(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < BEYOND_BELIEF else None
