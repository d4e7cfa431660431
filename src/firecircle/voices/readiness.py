"""Which voices are ready: a key is set, an endpoint answers, an extra is installed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firecircle.circle.base_config import EvaluationConfig
from firecircle.errors import ConfigError, MissingKeyError
from firecircle.voices.hosted.connections import open_session
from firecircle.voices.hosted.providers import Provider, key_for, locate

if TYPE_CHECKING:
    from pydantic import SecretStr

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
