"""What a call costs: the prices of settings, providers and the price list."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from firecircle.catalog import Family, family_of, original_of
from firecircle.circle.voice import Usage
from firecircle.errors import ConfigError
from firecircle.settings import PriceTable, current_settings
from firecircle.voices.hosted.model_lists import listed_price
from firecircle.voices.hosted.providers import PROVIDERS, Provider

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice


MILLION = 1_000_000
A_DATE = re.compile(r"-20\d{6}$")


class Tariff(Protocol):
    """What a model's tokens cost."""

    def cost(
        self, tokens_in: int, tokens_cached: int, tokens_out: int, tokens_written: int = 0
    ) -> float | None:
        """US dollars for these tokens; of the input, `tokens_cached` were read from the provider's cache and
        `tokens_written` written to it.
        """
        ...


@dataclass(frozen=True, slots=True)
class FlatTariff:
    """A constant price per token."""

    table: PriceTable

    def cost(
        self, tokens_in: int, tokens_cached: int, tokens_out: int, tokens_written: int = 0
    ) -> float | None:
        """US dollars for these tokens."""
        price = self.table
        read = price.input if price.cached_input is None else price.cached_input
        write = price.input if price.cache_write is None else price.cache_write
        fresh = tokens_in - tokens_cached - tokens_written
        asked = fresh * price.input + tokens_cached * read + tokens_written * write
        return (asked + tokens_out * price.output) / MILLION


FREE = FlatTariff(PriceTable(input=0.0, output=0.0))


@dataclass(frozen=True, slots=True)
class ListedTariff:
    """A price from the list, with its tiers."""

    price: ModelPrice

    def cost(
        self, tokens_in: int, tokens_cached: int, tokens_out: int, tokens_written: int = 0
    ) -> float | None:
        """US dollars for these tokens."""
        from genai_prices import Usage as Counted

        counted = Counted(
            input_tokens=tokens_in,
            cache_read_tokens=tokens_cached,
            cache_write_tokens=tokens_written,
            output_tokens=tokens_out,
        )
        return float(self.price.calc_price(counted)["total_price"])


def tariff_of(model: str, provider: Provider, name: str) -> Tariff | None:
    """What a voice costs; None if the price is unknown."""
    own = stated_tariff(model, provider, name)
    return own if own is not None else _price_in_list(provider, name)


def stated_tariff(model: str, provider: Provider, name: str) -> Tariff | None:
    """The price without a public price list: the user's own, nothing for the user's own server, or what the
    provider itself lists.
    """
    stated = current_settings().prices
    for spelling in (original_of(model), f"{provider.name}:{name}"):
        if spelling in stated:
            return FlatTariff(stated[spelling])
    if provider.on_this_machine and provider.key_variable is None:
        return FREE
    listed = listed_price(provider, name)
    return FlatTariff(listed) if listed else None


def price_of(usage: Usage, tariff: Tariff | None) -> float | None:
    """The cost of a call: stated by the provider, otherwise by tariff, otherwise unknown."""
    if usage.cost_usd is not None or tariff is None:
        return usage.cost_usd
    if tariff is FREE:
        return 0.0
    if usage.tokens_in is None or usage.tokens_out is None:
        return None
    return tariff.cost(*_counts(usage, usage.tokens_in, usage.tokens_out))


def saved_by_cache(usage: Usage, tariff: Tariff | None) -> float | None:
    """What the provider's cache saved, by tariff; None if unused or without a known price."""
    used = usage.tokens_cached or usage.tokens_written
    if not used or tariff is None or tariff is FREE:
        return None
    if usage.tokens_in is None or usage.tokens_out is None:
        return None
    plain = tariff.cost(usage.tokens_in, 0, usage.tokens_out)
    actual = tariff.cost(*_counts(usage, usage.tokens_in, usage.tokens_out))
    return None if plain is None or actual is None else plain - actual


def _counts(usage: Usage, tokens_in: int, tokens_out: int) -> tuple[int, int, int, int]:
    read = min(usage.tokens_cached or 0, tokens_in)
    return tokens_in, read, tokens_out, min(usage.tokens_written or 0, tokens_in - read)


def require_price(model: str, tariff: Tariff | None) -> Tariff:
    """The tariff, or a `ConfigError`: a budget needs a price."""
    if tariff is None:
        raise ConfigError(
            "budget_usd",
            f"the price of {model!r} is unknown",
            f'state it in firecircle.toml under [prices."{original_of(model)}"], set states_cost'
            " for a gateway that reports costs, or use budget_tokens",
        )
    return tariff


def load_price_list() -> None:
    """Import the price list, which takes a third of a second: best during another wait."""
    importlib.import_module("genai_prices")


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens, for small calls."""

    input: float
    cached_input: float
    output: float


def rates_of(tariff: Tariff) -> Rates:
    """A tariff in three numbers, for display."""
    counts = ((1000, 0, 0), (1000, 1000, 0), (0, 0, 1000))
    return Rates(*(round((tariff.cost(*count) or 0.0) * 1000, 6) for count in counts))


def listed_rates(family: Family) -> tuple[Rates, Rates] | None:
    """The lowest and highest rates that OpenRouter lists for a family's models, if any."""
    return _rates_by_family(datetime.now(UTC).replace(second=0, microsecond=0)).get(family.match)


@lru_cache(maxsize=1)
def _rates_by_family(now: datetime) -> dict[tuple[str, ...], tuple[Rates, Rates]]:
    """All families at once, because callers need all. Some prices depend on the hour."""
    from genai_prices.data_snapshot import get_snapshot

    listed: dict[tuple[str, ...], list[Rates]] = {}
    for model in get_snapshot().find_provider(None, "openrouter", None).models:
        if "/" not in model.id or model.id.endswith(":free") or (family := family_of(model.id)) is None:
            continue
        if tariff := _tariff_if_priced(model.get_prices(now), model.id):
            listed.setdefault(family.match, []).append(rates_of(tariff))
    return {match: (_each(min, rates), _each(max, rates)) for match, rates in listed.items()}


def _each(choose: Callable[[Iterable[float]], float], several: list[Rates]) -> Rates:
    return Rates(
        choose(rates.input for rates in several),
        choose(rates.cached_input for rates in several),
        choose(rates.output for rates in several),
    )


def _price_in_list(provider: Provider, name: str) -> ListedTariff | None:
    """The list's price, by the provider's name if it is built in, otherwise by the address."""
    from genai_prices.data_snapshot import get_snapshot

    known = PROVIDERS.get(provider.name)
    by_name = known is not None and known.key_variable is not None
    for spelling in dict.fromkeys((name, A_DATE.sub("", name))):
        try:
            _, model = get_snapshot().find_provider_model(
                spelling,
                None,
                provider.name if by_name else None,
                None if by_name else provider.base_url,
            )
        except LookupError:
            continue
        return _tariff_if_priced(model.get_prices(datetime.now(UTC)), spelling)
    return None


def _tariff_if_priced(price: ModelPrice, name: str) -> ListedTariff | None:
    """Leave out entries without a price: those that are free, and those unknown to the list."""
    stated = getattr(price, "input_mtok", None) is not None or getattr(price, "output_mtok", None) is not None
    return ListedTariff(price) if stated or name.endswith(":free") else None
