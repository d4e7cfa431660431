"""Families of models: the newest model of a family, by the lists that providers publish."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from firecircle.catalog import Family, name_alone, original_of, seatable_families
from firecircle.circle.voice import Priced, Reply, Retry, Turn, Usage, Voice
from firecircle.errors import ConfigError, MissingKeyError, UnknownModelError, VoiceError
from firecircle.names import HOSTS
from firecircle.settings import PriceTable
from firecircle.voices.hosted.model_lists import ListedModel, ModelList, kept_list, remember_gone, save_list
from firecircle.voices.hosted.providers import (
    Provider,
    key_for,
    keyed_providers,
    known_providers,
    locate,
    provider_of,
)

if TYPE_CHECKING:
    from pydantic import SecretStr

    from firecircle.circle.base_config import BaseEvaluationConfig

SECONDS_TO_ANSWER = 5.0
MOST_BYTES = 32_000_000
MOST_MODELS = 5_000
LONGEST_ID = 200
AN_ID = re.compile(r"~?[A-Za-z0-9][\w.:/@+-]*", re.ASCII)
"""A clone's `#2` is not part of an id, nor is anything a terminal could take for a command."""
MILLION = 1_000_000


async def todays_list(provider: Provider, key: SecretStr | None, *, refresh: bool = False) -> ModelList:
    """The provider's list of today; requested if the saved one is older than a day, or with `refresh`.

    If the request fails, returns the saved list, however old, with the reason in `trouble`.
    """
    # Of many circles that start at once, the first sends the request.
    async with _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        kept = await asyncio.to_thread(kept_list, provider)
        if not kept.needs_asking and not refresh:
            return kept
        try:
            models = _models_in(await _fetch(provider, key))
        except _NotHad as trouble:
            asked = kept.model_copy(update={"failed_at": time.time(), "trouble": str(trouble)})
        else:
            asked = ModelList(base_url=provider.base_url, asked_at=time.time(), models=models, gone=kept.gone)
        await asyncio.to_thread(save_list, asked)
        return asked


class _NotHad(Exception):  # noqa: N818 - an outcome, handled where it is raised
    """Says why the list is unavailable."""


async def _fetch(provider: Provider, key: SecretStr | None) -> bytes:
    import aiohttp

    from firecircle.voices.hosted.connections import open_session
    from firecircle.voices.hosted.wires import WIRES

    if "{model}" in provider.base_url:
        raise _NotHad("it has an address for each model, and none for a list")
    headers = {
        "accept": "application/json",
        "accept-encoding": "gzip",
        **WIRES[provider.wire].headers,
        **provider.headers,
        **provider.auth.headers(key),
    }
    url = provider.auth.with_query(f"{provider.base_url}/models")
    try:
        async with (
            asyncio.timeout(SECONDS_TO_ANSWER),
            open_session(url) as session,
            session.get(url, headers=headers, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise _NotHad(f"HTTP {response.status}")
            body = b""
            async for part in response.content.iter_any():
                body += part
                if len(body) > MOST_BYTES:
                    raise _NotHad(f"more than {MOST_BYTES:,} bytes")
            return body
    except TimeoutError:
        raise _NotHad(f"no answer within {SECONDS_TO_ANSWER:g} s") from None
    except aiohttp.ClientError:
        raise _NotHad("it cannot be reached") from None


def _models_in(body: bytes) -> tuple[ListedModel, ...]:
    try:
        listing = json.loads(body)
    except (ValueError, RecursionError):
        raise _NotHad("its answer is not JSON") from None
    entries = listing.get("data", listing.get("models")) if isinstance(listing, dict) else listing
    if not isinstance(entries, list):
        raise _NotHad("its answer has no list of models")
    models = tuple(model for entry in entries[:MOST_MODELS] if (model := _model_in(entry)))
    if not models:
        raise _NotHad("its list names no model")
    return models


def _model_in(entry: Any) -> ListedModel | None:
    """One entry in the format of OpenRouter, OpenAI, Google and others; other fields are ignored."""
    if not isinstance(entry, dict):
        return None
    name = entry.get("id", entry.get("name"))
    name = name.removeprefix("models/") if isinstance(name, str) else name
    if not isinstance(name, str) or len(name) > LONGEST_ID or not AN_ID.fullmatch(name):
        return None
    created = _number(entry.get("created")) or _moment(entry.get("created_at"))
    context = _number(entry.get("context_length"))
    expires = entry.get("expiration_date")
    return ListedModel(
        id=name,
        created=created,
        context=int(context) if context else None,
        price=_price_in(entry.get("pricing")),
        expires=expires if isinstance(expires, str) and expires.isprintable() else None,
    )


def _moment(written: Any) -> float | None:
    """Anthropic's date format, in seconds since 1970."""
    try:
        return datetime.fromisoformat(written).timestamp() if isinstance(written, str) else None
    except (ValueError, OverflowError):
        return None


def _price_in(pricing: Any) -> PriceTable | None:
    """OpenRouter's price per token as a price per million; below zero means that it varies."""
    if not isinstance(pricing, Mapping):
        return None
    prompt, completion = _number(pricing.get("prompt")), _number(pricing.get("completion"))
    cached, written = _number(pricing.get("input_cache_read")), _number(pricing.get("input_cache_write"))
    if prompt is None or completion is None:
        return None
    return PriceTable(
        input=round(prompt * MILLION, 6),
        output=round(completion * MILLION, 6),
        cached_input=None if cached is None else round(cached * MILLION, 6),
        cache_write=None if written is None else round(written * MILLION, 6),
    )


def _number(value: Any) -> float | None:
    """A number, as JSON or text; None if it is not one or below zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


MOST_STAND_INS = 4
"""How many further models of a family are tried if the provider does not have the first."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The model for a family, and its source."""

    family: str
    model: str
    stand_ins: tuple[str, ...]
    """The ids to ask for instead, in this order, if the provider does not have it."""
    source: str
    entry: ListedModel | None = None
    """The provider's own entry of the model, with price and context."""

    def written_for(self, provider: Provider) -> Resolution:
        """The same with the provider's prefix in the names."""
        others = tuple(f"{provider.name}:{name}" for name in self.stand_ins)
        return replace(self, model=f"{provider.name}:{self.model}", stand_ins=others)


async def todays_models(
    families: Iterable[str], config: BaseEvaluationConfig, *, ask: bool = True, refresh: bool = False
) -> dict[str, Resolution]:
    """Today's model for each of these families.

    From the provider's list, requested once a day or with `refresh`; without a key from the saved list;
    otherwise, and with `ask=False`, from the catalog.
    """
    wanted = {original_of(family) for family in families}
    if not wanted:
        return {}
    resolutions: dict[str, Resolution] = {}
    lists: dict[str, ModelList] = {}
    for name in sorted(wanted):
        provider = provider_of_family(name, config)
        if provider.name not in lists:
            lists[provider.name] = await _list_of(provider, config, ask=ask, refresh=refresh)
        found = resolve(name, provider, lists[provider.name])
        resolutions[name] = found if provider.name == config.provider else found.written_for(provider)
    return resolutions


async def _list_of(
    provider: Provider, config: BaseEvaluationConfig, *, ask: bool, refresh: bool
) -> ModelList:
    if not ask:
        return ModelList(base_url=provider.base_url)
    try:
        return await todays_list(provider, key_for(provider, config), refresh=refresh)
    except MissingKeyError:
        return await asyncio.to_thread(kept_list, provider)


def provider_of_family(name: str, config: BaseEvaluationConfig) -> Provider:
    """The provider of a family: that of bare names, or if its key is missing, the vendor's own."""
    usual = provider_of_bare_names(config)
    family = seatable_families().get(original_of(name))
    has_key = usual.key_variable is None or usual.key_found or config.api_key is not None
    if family is None or has_key or "provider" in config.model_fields_set:
        return usual
    own = (provider for provider in keyed_providers() if provider.trains == family.provider_lineage)
    return next((locate(provider, config) for provider in own), usual)


def require_key_for_family(name: str, provider: Provider, config: BaseEvaluationConfig) -> None:
    """Raise a `MissingKeyError` that names the vendor's own key too, if neither key is set."""
    if provider.key_variable is None or provider.key_found or config.api_key is not None:
        return
    lineage = seatable_families()[name].provider_lineage
    own = next((its.key_variable for its in known_providers().values() if its.trains == lineage), None)
    other = f" or {own}" if own and own != provider.key_variable else ""
    raise MissingKeyError(provider.name, f"{provider.key_variable}{other}")


def provider_of_bare_names(config: BaseEvaluationConfig) -> Provider:
    """The provider of `vendor/model`."""
    providers = known_providers()
    if config.provider not in providers:
        raise ConfigError(
            "provider",
            f"no provider or family is called {config.provider!r}",
            f"the providers are {', '.join(providers)}",
        )
    return locate(providers[config.provider], config)


def resolve(name: str, provider: Provider, models: ModelList) -> Resolution:
    """The model for a family in a provider's list."""
    families = seatable_families()
    if name not in families:
        raise UnknownModelError("models", f"there is no {name}", f"the families are {', '.join(families)}")
    family = families[name]
    listed = _candidates(family, models)
    # The catalog's names are OpenRouter's; a user's own provider may be a similar router.
    known = family.known if provider.name == "openrouter" or provider.name not in HOSTS else ()
    if provider.trains == family.provider_lineage:
        known = tuple(_vendor_id(model) for model in family.known if not model.startswith("~"))
    known = tuple(model for model in known if not models.knows_gone(model)) or known
    order = list(dict.fromkeys([*(model.id for model in listed), *known]))
    if not order:
        raise ConfigError(
            "models",
            f"{provider.name} lists no model of {name}" + (f" ({models.trouble})" if models.trouble else ""),
            "name a model of its own",
        )
    if listed:
        source = f"from the list of {provider.name}"
    elif models.trouble:
        source = f"from the catalog, for the list of {provider.name} could not be had: {models.trouble}"
    elif models.models:
        source = f"from the catalog, because {provider.name} lists no model of this family"
    else:
        source = f"from the catalog, for {provider.name} was not asked"
    return Resolution(name, order[0], tuple(order[1 : 1 + MOST_STAND_INS]), source, models.find(order[0]))


def _vendor_id(model: str) -> str:
    """An OpenRouter id in the vendor's own form, as far as a rule is known."""
    vendor, _, name = model.partition("/")
    return name.replace(".", "-") if vendor == "anthropic" else name


def stand_ins(name: str, model: str, config: BaseEvaluationConfig) -> tuple[str, ...]:
    """The replacements in a family, in order, if the provider does not have this model."""
    provider = locate(provider_of(model, config.provider)[0], config)
    seated = resolve(name, provider, kept_list(provider))
    if provider.name != config.provider:
        seated = seated.written_for(provider)
    return tuple(other for other in (seated.model, *seated.stand_ins) if other != model)


def _candidates(family: Family, models: ModelList) -> list[ListedModel]:
    """The models of a family in a list, best first: its aliases, then the newest."""
    present = models.present
    aliases = [model for alias in family.latest for model in present if model.id == alias]
    # The part before a colon would be read as a provider, and select its key.
    plain = (model for model in present if not model.id.startswith("~") and ":" not in model.id)
    seatable = [model for model in plain if family.seats(model.id) and not OF_OTHER_WORK.search(model.id)]
    return [*aliases, *sorted(seatable, key=lambda model: _rank(family, model))]


OF_OTHER_WORK = re.compile(
    r"image|imagine|video|audio|tts|realtime|transcri|embed|moderation|ocr|search|customtools|computer-use",
    re.IGNORECASE,
)
"""Vendors' lists have models of all kinds in one family."""
A_YEAR = 1000
"""A larger number in a name is a date, not a version."""


def _rank(family: Family, model: ListedModel) -> tuple[int, float, tuple[float, ...], tuple[float, ...]]:
    """Sort by the order of the family's patterns, then by age, then by version and date in the name."""
    name = name_alone(model.id)
    last = name.rpartition("/")[2]
    tried = (fnmatchcase(name if "/" in pattern else last, pattern) for pattern in family.match)
    place = next((at for at, matches in enumerate(tried) if matches), len(family.match))
    numbers = [-float(number) for number in re.findall(r"\d+(?:\.\d+)?", last)]
    version = (*(number for number in numbers if number > -A_YEAR), 0.0)  # 4.6 before 4
    return place, -(model.created or 0.0), version, tuple(number for number in numbers if number <= -A_YEAR)


class FamilyVoice:
    """The first model of a family that the provider has; the reply names a replacement."""

    def __init__(
        self, model: str, stand_ins: tuple[str, ...], provider: Provider, voice_of: Callable[[str], Voice]
    ) -> None:
        self.model = model
        self._waiting = list(stand_ins)
        self._provider = provider
        self._voice_of = voice_of
        self._asked = original_of(model)
        self._voice = voice_of(model)

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn; if the provider does not have the model, switch to the next."""
        before, spent = 0, Usage()
        while True:
            asked, voice = self._asked, self._voice
            try:
                reply = await voice.speak(turn)
            except VoiceError as failure:
                if not failure.unknown_model:
                    raise
                await asyncio.to_thread(
                    remember_gone, self._provider, asked.removeprefix(f"{self._provider.name}:")
                )
                if not self._give_seat_away(asked):
                    raise
                before += failure.attempts
                spent += failure.usage or Usage()
                turn.on_retry(Retry(before + 1, f"{failure}; {self._asked} is asked instead", 0.0))
                continue
            asked_id = asked if asked != original_of(self.model) else None
            return replace(
                reply, asked_id=asked_id, attempts=reply.attempts + before, usage=reply.usage + spent
            )

    def estimate(self, turn: Turn) -> Usage:
        """The most that answering the turn may consume."""
        return self._voice.estimate(turn) if isinstance(self._voice, Priced) else Usage()

    def _give_seat_away(self, failed: str) -> bool:
        """Whether another model replaces the failed one, set here or by a parallel call."""
        number = self.model.removeprefix(original_of(self.model))
        while self._asked == failed and self._waiting:
            following = self._waiting.pop(0)
            with suppress(ConfigError):  # a budget may need a price that is unknown
                self._voice = self._voice_of(following + number)
                self._asked = following
        return self._asked != failed
