"""Who hosts models: the endpoints a voice may name, where they are and whose key they ask for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from firecircle.catalog import original_of
from firecircle.errors import ConfigError
from firecircle.shapes import Declaration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firecircle.config import BaseEvaluationConfig


class Provider(Declaration):
    """An OpenAI-compatible endpoint."""

    name: str
    base_url: str
    """Everything before `/chat/completions`."""
    key_variable: str | None = None
    """The environment variable that holds the key; None for an endpoint that needs none."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request. Not for secrets: a declaration is shown freely."""
    seed_field: str = "seed"
    """What this endpoint calls the seed."""

    @field_validator("base_url")
    @classmethod
    def _reachable(cls, value: str) -> str:
        if "@" in value:
            # Raised as itself, because the usual complaint would quote the address with its password.
            raise ConfigError("base_url: carries a user name or password; give the key as api_key instead")
        parts = urlsplit(value.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as http://localhost:8000/v1")
        return value.strip().rstrip("/")

    def at(self, base_url: str) -> Provider:
        """The same provider at another address."""
        return Provider(**{**self.model_dump(), "base_url": base_url})


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_variable="OPENROUTER_API_KEY",
            headers={"X-Title": "Fire Circle"},
        ),
        Provider(name="openai", base_url="https://api.openai.com/v1", key_variable="OPENAI_API_KEY"),
        Provider(name="anthropic", base_url="https://api.anthropic.com/v1", key_variable="ANTHROPIC_API_KEY"),
        Provider(
            name="google",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_variable="GEMINI_API_KEY",
        ),
        Provider(
            name="mistral",
            base_url="https://api.mistral.ai/v1",
            key_variable="MISTRAL_API_KEY",
            seed_field="random_seed",
        ),
        Provider(name="deepseek", base_url="https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
        Provider(name="lmstudio", base_url="http://localhost:1234/v1"),
        Provider(name="ollama", base_url="http://localhost:11434/v1"),
        Provider(name="vllm", base_url="http://localhost:8000/v1"),
        Provider(name="llamacpp", base_url="http://localhost:8080/v1"),
    )
}


def provider_of(model: str, default: str) -> tuple[Provider, str]:
    """Who hosts this voice, and the name of its model there.

    `provider:model` names both; anything else belongs to the default provider. Model names hold colons
    themselves (`deepseek/deepseek-r1:free`), so only a known provider counts as a prefix.
    """
    original = original_of(model)
    prefix, _, name = original.partition(":")
    if name and prefix in PROVIDERS:
        return PROVIDERS[prefix], name
    known = ", ".join(PROVIDERS)
    if default not in PROVIDERS:
        raise ConfigError(f"provider: nobody is called {default!r}; the providers are {known}")
    if default == "openrouter" and "/" not in original:
        raise ConfigError(
            f"models: {model!r} is neither vendor/model, as openrouter writes it,"
            f" nor provider:model with one of {known}"
        )
    return PROVIDERS[default], original


def located(provider: Provider, config: BaseEvaluationConfig) -> Provider:
    """The provider at the address that the config or the environment gives it."""
    source, elsewhere = "lmstudio_base_url", config.lmstudio_base_url
    if provider.name != "lmstudio" or not elsewhere:
        source = f"FIRECIRCLE_{provider.name.upper()}_BASE_URL"
        elsewhere = os.environ.get(source)
    if not elsewhere:
        return provider
    try:
        return provider.at(elsewhere)
    except ConfigError as wrong:
        raise ConfigError(f"{source}: {wrong}") from None


def key_for(provider: Provider, config: BaseEvaluationConfig) -> SecretStr | None:
    """The key to show this provider. `api_key` belongs to `config.provider` and is shown to nobody else."""
    if config.api_key is not None and provider.name == config.provider:
        return _well_formed(config.api_key.get_secret_value(), "api_key")
    if provider.key_variable is None:
        return None
    if key := os.environ.get(provider.key_variable, "").strip():
        return _well_formed(key, provider.key_variable)
    raise ConfigError(
        f"{provider.name} needs a key: set {provider.key_variable},"
        f" or give api_key= together with provider={provider.name!r};"
        " the embedded circle needs none: FireCircleConfig.embedded()"
    )


def _well_formed(key: str, source: str) -> SecretStr:
    # Checked here because the HTTP library quotes a header it cannot send, and with it the key.
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{source}: is no key (empty, or holds characters that no key has)")
    return SecretStr(key)
