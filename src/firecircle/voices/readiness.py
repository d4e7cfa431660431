"""Which voices can speak now: keys and endpoints in the environment, weights on this machine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firecircle.catalog import original_of, seatable_families
from firecircle.circle.base_config import EvaluationConfig
from firecircle.errors import ConfigError, MissingKeyError
from firecircle.names import DEFAULT_MODELS, is_family
from firecircle.voices.hosted.connections import open_session
from firecircle.voices.hosted.providers import Provider, key_for, keyed_providers, known_providers, locate

if TYPE_CHECKING:
    from pydantic import SecretStr


MOST_HOSTED = 3
OF_ONE_VENDOR = 2
"""A second model of a vendor adds a reading; a third adds mostly cost."""


def models_of(provider: Provider) -> tuple[str, ...]:
    """What to ask a provider for, best first: its families, then its known models."""
    families = [
        name for name, family in seatable_families().items() if family.provider_lineage == provider.trains
    ]
    # The first family is the strongest for its price, the last the cheapest.
    chosen = [families[0], families[-1]] if len(families) > 1 else families
    return (*chosen, *(f"{provider.name}:{name}" for name in provider.suggested))


def available_hosted() -> tuple[str, ...]:
    """The hosted voices of the default circle, by the keys that are set; empty without a key."""
    keyed = [
        provider for provider in keyed_providers() if provider.name == "openrouter" or models_of(provider)
    ]
    if not keyed:
        return ()
    if keyed[0].name == "openrouter":
        return DEFAULT_MODELS
    if len(keyed) == 1:
        return models_of(keyed[0])[:OF_ONE_VENDOR]
    return tuple(models_of(provider)[0] for provider in keyed[:MOST_HOSTED])


def keys_for(models: tuple[str, ...]) -> tuple[str, ...]:
    """The environment variables with the keys of these voices."""
    found = (_key_for(original_of(model)) for model in models)
    return tuple(dict.fromkeys(variable for variable in found if variable))


def _key_for(model: str) -> str | None:
    if not is_family(model):
        provider = known_providers().get(model.partition(":")[0])
        return provider.key_found if provider else None
    family = seatable_families().get(model)
    for provider in keyed_providers():
        if provider.name == "openrouter" or (family and provider.trains == family.provider_lineage):
            return provider.key_found
    return None


def unusable_keys() -> tuple[str, ...]:
    """Keys whose models only the user can name, such as Azure's deployments."""
    return tuple(
        f"{provider.key_found} (name its models: --models {provider.name}:NAME)"
        for provider in keyed_providers()
        if provider.name != "openrouter" and not models_of(provider)
    )


SECONDS_TO_ANSWER = 2.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a voice is ready, and why (not)."""

    ready: bool
    why: str
    models: tuple[str, ...] = ()
    """The models that an endpoint lists."""


async def readiness_of(provider: Provider) -> Readiness:
    """Whether a provider is ready. If it needs a key, only the key is checked, without a request."""
    config = EvaluationConfig(provider=provider.name)
    try:
        provider = locate(provider, config)
        key = key_for(provider, config)
    except MissingKeyError as missing:
        return Readiness(False, f"set {missing.variable}")
    except ConfigError as wrong:
        return Readiness(False, str(wrong))
    if key is not None:
        return Readiness(True, f"{provider.key_variable} is set")
    return await _check_endpoint(provider, key)


def local_readiness(model: str) -> Readiness:
    """Whether a local model could be loaded now."""
    from firecircle.voices.local.llama import require_library
    from firecircle.voices.local.weights import weights_of

    try:
        require_library()
        weights_of(model)
    except ConfigError as missing:
        return Readiness(False, str(missing))
    return Readiness(True, "installed")


async def _check_endpoint(provider: Provider, key: SecretStr | None) -> Readiness:
    import aiohttp

    url = provider.auth.with_query(f"{provider.base_url}/models")
    try:
        async with (
            asyncio.timeout(SECONDS_TO_ANSWER),
            open_session(url) as session,
            session.get(url, headers=provider.headers) as response,
        ):
            listing = await response.json(content_type=None) if response.ok else None
    except (TimeoutError, aiohttp.ClientError, ValueError):
        return Readiness(
            False, f"no server answers at {provider.base_url}; start it or set {provider.address_variable}"
        )
    return Readiness(True, "answers", tuple(_names(listing)))


def _names(listing: Any) -> list[str]:
    data = listing.get("data") if isinstance(listing, dict) else None
    entries = data[:200] if isinstance(data, list) else []
    return [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
