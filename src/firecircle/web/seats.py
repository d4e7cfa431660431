"""Which voices a request over HTTP may seat: those the settings name, and those known to the package.

Any other name would let a reader of the page choose where this server connects, or which of its files it
opens.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from firecircle.catalog import in_catalog, original_of
from firecircle.errors import ConfigError
from firecircle.names import is_embedded, is_family, is_local, is_person
from firecircle.settings import current_settings
from firecircle.voices.hosted.providers import PROVIDERS, on_this_machine
from firecircle.voices.local.weights import local_models


def require_known_voices(field: str, models: Iterable[str]) -> None:
    """Refuse the first voice that neither the settings nor the package name."""
    if stranger := next((model for model in models if not _is_known(original_of(model))), None):
        raise ConfigError(
            field,
            f"{stranger!r} is not named in the settings",
            "declare it under [models] or its provider under [providers] in firecircle.toml",
        )


def _is_known(model: str) -> bool:
    if is_person(model):  # who would be asked at the terminal of the server
        return False
    settings = current_settings()
    seats = (*settings.circle.get("models", ()), *settings.circle.get("reserves", ()))
    if model in (*seats, *settings.models, *settings.prices, *settings.limits):
        return True
    if is_local(model):
        return model in local_models()
    provider = model.partition(":")[0]
    if is_embedded(model) or is_family(model) or provider in settings.providers:
        return True
    host = urlsplit(PROVIDERS[provider].base_url).hostname if provider in PROVIDERS else None
    return in_catalog(model) is not None and not on_this_machine(host or "")
