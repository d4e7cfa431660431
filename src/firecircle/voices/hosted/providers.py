"""Providers: the endpoints that a voice may name, their addresses and their keys."""

from __future__ import annotations

import ipaddress
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from firecircle.catalog import original_of, unknown_provider
from firecircle.errors import ConfigError, MissingKeyError
from firecircle.names import EMBEDDED, LOCAL, WireName
from firecircle.settings import (
    Auth,
    Concurrency,
    Settings,
    current_settings,
    providers_by_environment,
)
from firecircle.shapes import Declaration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firecircle.circle.base_config import BaseEvaluationConfig


KEY_SHAPED = re.compile(r"(sk|pk|gsk|xai|csk|fw|tgp|hf|AIza|key|api)[-_][A-Za-z0-9_-]{16,}|AIza[\w-]{30,}")
"""The form of vendors' keys, which must not be in an address."""


class Provider(Declaration):
    """An endpoint that hosts models: its address, its request format, and how it expects its key."""

    name: str
    base_url: str
    """Everything before `/chat/completions` or the path of the wire format; `{model}` stands for the model's
    name, as in Azure's deployments.
    """
    key_variable: str | None = None
    """The environment variable with the key; None for an endpoint without one."""
    other_key_variables: tuple[str, ...] = ()
    """Other usual names of that variable."""
    trains: str | None = None
    """The lineage of its models in the catalog; None for a host of many vendors' models."""
    suggested: tuple[str, ...] = ()
    """Models to begin with if there is no family; best first."""
    auth: Auth = Auth()
    wire: WireName = "chat"
    """The format of its requests."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request. Not for secrets: a declaration is public."""
    seed_field: str = "seed"
    """The endpoint's name for the seed."""
    batches: Literal["openai", "anthropic"] | None = None
    states_cost: bool = False
    """Whether every answer states its cost, as with some gateways; a budget then uses it."""
    concurrency: Concurrency = Concurrency()
    structured_output: Literal["auto", "off"] = "auto"
    """`auto` sends the answer's JSON schema, and omits it if rejected."""

    @field_validator("base_url")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if "@" in value:
            # Raised as itself, because pydantic's message would quote the address with its password.
            raise ConfigError(
                "base_url", "carries a user name or password", "give the key as api_key instead"
            )
        parts = urlsplit(value.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as http://localhost:8000/v1")
        if parts.query or parts.fragment:
            raise ConfigError(
                "base_url", "carries a query", "give parameters as auth.query, and keys as api_key"
            )
        if any(KEY_SHAPED.fullmatch(step) for step in parts.path.split("/")):
            raise ConfigError("base_url", "carries what looks like a key", "give the key as api_key instead")
        return value.strip().rstrip("/")

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable() and name.strip()):
                # Checked here because the HTTP library would quote it.
                raise ConfigError("headers", f"{name!r} has characters that no header may have")
        return headers

    def at(self, base_url: str) -> Provider:
        """The same provider at another address; cached, since every circle asks."""
        known = _providers_at.get(base_url)
        if known is None or known[0] is not self:
            if len(_providers_at) >= MOST_ADDRESSES:
                _providers_at.clear()
            known = _providers_at[base_url] = (self, Provider(**{**dict(self), "base_url": base_url}))
        return known[1]

    @property
    def key_found(self) -> str | None:
        """The environment variable that has its key now, if any."""
        names = (self.key_variable, *self.other_key_variables) if self.key_variable else ()
        return next((name for name in names if os.environ.get(name, "").strip()), None)

    @property
    def on_this_machine(self) -> bool:
        """Whether the endpoint is a server on loopback."""
        return on_this_machine(_host_of(self.base_url))

    @property
    def reads_control_tokens(self) -> bool:
        """Whether this endpoint may obey a control token such as `<|im_end|>` in a message.

        By address, not by name: a known provider may be moved. Routers pass messages on to such servers.
        """
        return _host_of(self.base_url) not in TEXT_STAYS_TEXT

    @property
    def address_variable(self) -> str:
        """The environment variable that gives this provider another address."""
        return f"FIRECIRCLE_{self.name.upper().replace('-', '_')}_BASE_URL"


MOST_ADDRESSES = 100
_providers_at: dict[str, tuple[Provider, Provider]] = {}
"""By address: the original provider, and the same at that address."""


@lru_cache(maxsize=256)
def _host_of(base_url: str) -> str:
    """Cached: every call asks for its host."""
    return urlsplit(base_url).hostname or ""


TEXT_STAYS_TEXT = frozenset(
    {
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "api.mistral.ai",
        "api.deepseek.com",
    }
)
"""Endpoints that treat a control token in a message as text. Any other may be a user's own server."""


@lru_cache(maxsize=256)
def on_this_machine(host: str) -> bool:
    """Whether a host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


NO_ADDRESS = "https://azure.invalid/openai/v1"
"""A placeholder for providers whose customers each have their own address."""
PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_variable="OPENROUTER_API_KEY",
            headers={"X-Title": "Fire Circle"},
        ),
        Provider(
            name="openai",
            base_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            trains="openai",
            batches="openai",
            suggested=("gpt-5-mini",),
        ),
        Provider(
            name="anthropic",
            base_url="https://api.anthropic.com/v1",
            key_variable="ANTHROPIC_API_KEY",
            auth=Auth(header="x-api-key", scheme=""),
            wire="messages",
            trains="anthropic",
            batches="anthropic",
        ),
        Provider(
            name="google",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_variable="GEMINI_API_KEY",
            other_key_variables=("GOOGLE_API_KEY",),
            trains="google",
            suggested=("gemini-2.5-flash",),
        ),
        Provider(
            name="mistral",
            base_url="https://api.mistral.ai/v1",
            key_variable="MISTRAL_API_KEY",
            seed_field="random_seed",
            trains="mistral",
            suggested=("mistral-medium-latest",),
        ),
        Provider(
            name="deepseek",
            base_url="https://api.deepseek.com/v1",
            key_variable="DEEPSEEK_API_KEY",
            trains="deepseek",
            suggested=("deepseek-reasoner",),
        ),
        Provider(name="xai", base_url="https://api.x.ai/v1", key_variable="XAI_API_KEY", trains="xai"),
        Provider(
            name="groq",
            base_url="https://api.groq.com/openai/v1",
            key_variable="GROQ_API_KEY",
            suggested=("openai/gpt-oss-120b", "qwen/qwen3-32b", "llama-3.3-70b-versatile"),
        ),
        Provider(
            name="together",
            base_url="https://api.together.xyz/v1",
            key_variable="TOGETHER_API_KEY",
            suggested=("openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3.1"),
        ),
        Provider(
            name="fireworks",
            base_url="https://api.fireworks.ai/inference/v1",
            key_variable="FIREWORKS_API_KEY",
            suggested=("accounts/fireworks/models/gpt-oss-120b", "accounts/fireworks/models/deepseek-v3p1"),
        ),
        Provider(
            name="cerebras",
            base_url="https://api.cerebras.ai/v1",
            key_variable="CEREBRAS_API_KEY",
            suggested=("gpt-oss-120b", "zai-glm-4.7"),
        ),
        Provider(
            name="azure",
            base_url=NO_ADDRESS,
            key_variable="AZURE_OPENAI_API_KEY",
            other_key_variables=("AZURE_API_KEY",),
            auth=Auth(header="api-key", scheme=""),
        ),
        Provider(name="lmstudio", base_url="http://localhost:1234/v1"),
        Provider(name="ollama", base_url="http://localhost:11434/v1"),
        Provider(name="vllm", base_url="http://localhost:8000/v1"),
        Provider(name="llamacpp", base_url="http://localhost:8080/v1"),
    )
}
RESERVED = tuple(prefix.rstrip(":") for prefix in (EMBEDDED, LOCAL))


def known_providers() -> Mapping[str, Provider]:
    """The built-in providers with the changes in `firecircle.toml`, and the user's own."""
    settings = current_settings()
    named = tuple(name for name in providers_by_environment() if name not in PROVIDERS)
    if not settings.providers and not named:
        return PROVIDERS
    if not _last_known or _last_known[0][0] is not settings or _last_known[0][1] != named:
        by_user = {name: _in_environment(name) for name in named if name not in RESERVED}
        declared = {name: _provider_in_settings(name, settings) for name in settings.providers}
        _last_known[:] = [(settings, named, {**PROVIDERS, **by_user, **declared})]
    return _last_known[0][2]


_last_known: list[tuple[Settings, tuple[str, ...], Mapping[str, Provider]]] = []
"""Cache of the last call: every voice of every circle asks."""


def _in_environment(name: str) -> Provider:
    """The provider that `NAME_API_KEY` and `NAME_BASE_URL` declare."""
    address = os.environ[f"{name.upper()}_BASE_URL"]
    try:
        return Provider(name=name, base_url=address, key_variable=f"{name.upper()}_API_KEY")
    except ConfigError as wrong:
        raise wrong.within(f"{name.upper()}_BASE_URL") from None


def keyed_providers() -> tuple[Provider, ...]:
    """The providers with a key in the environment, routers of many vendors first."""
    found = [provider for provider in known_providers().values() if provider.key_found]
    return tuple(sorted(found, key=lambda provider: provider.name != "openrouter"))


def _provider_in_settings(name: str, settings: Settings) -> Provider:
    table = f"providers.{name}"
    if name in RESERVED:
        raise settings.mistake(
            table, ConfigError(None, "is a name of voices that are not hosted", "take another")
        )
    stated = {key: value for key, value in dict(settings.providers[name]).items() if value is not None}
    preset = PROVIDERS.get(name)
    if preset is None and "base_url" not in stated:
        missing = ConfigError("base_url", "is missing, and no provider of that name is known")
        raise settings.mistake(table, missing)
    try:
        return Provider(**{**dict(preset or {}), "name": name, **stated})
    except ConfigError as wrong:
        raise settings.mistake(table, wrong) from None


def provider_of(model: str, default: str) -> tuple[Provider, str]:
    """The provider of a voice, and the name of its model there.

    `provider:model` names both; anything else belongs to the default provider. Model names may have colons
    (`deepseek/deepseek-r1:free`), so only a known provider counts as a prefix.
    """
    providers = known_providers()
    original = original_of(model)
    prefix, _, name = original.partition(":")
    if name and prefix in providers:
        return providers[prefix], name
    known = ", ".join(providers)
    if default not in providers:
        raise ConfigError(
            "provider", f"no provider or family is called {default!r}", f"the providers are {known}"
        )
    if default == "openrouter" and unknown_provider(model) is not None:
        raise ConfigError(
            "models",
            f"{model!r}: there is no provider {prefix!r}",
            f"the providers are {known}; others by {prefix.upper()}_API_KEY and {prefix.upper()}_BASE_URL",
        )
    if default == "openrouter" and "/" not in original:
        raise ConfigError(
            "models",
            (
                f"{model!r} is neither vendor/model, as openrouter writes it, nor provider:model with one"
                f" of {known}"
            ),
        )
    return providers[default], original


def locate(provider: Provider, config: BaseEvaluationConfig) -> Provider:
    """The provider at the address in the config or the environment."""
    source, elsewhere = "lmstudio_base_url", config.lmstudio_base_url
    if provider.name != "lmstudio" or not elsewhere:
        source = next((name for name in _address_variables(provider) if os.environ.get(name)), "")
        elsewhere = os.environ.get(source)
    if not elsewhere:
        if provider.base_url == NO_ADDRESS:
            raise ConfigError(
                "AZURE_OPENAI_ENDPOINT", "is not set", "set it to https://NAME.openai.azure.com"
            )
        return provider
    if provider.name in PROVIDERS and urlsplit(elsewhere).path in ("", "/"):
        # Vendors' own tools take an address without the common path.
        elsewhere = elsewhere.rstrip("/") + urlsplit(provider.base_url).path
    try:
        return provider.at(elsewhere)
    except ConfigError as wrong:
        raise wrong.within(source) from None


def _address_variables(provider: Provider) -> tuple[str, ...]:
    """The environment variables that may have an address, in order."""
    usual = f"{provider.name.upper().replace('-', '_')}_BASE_URL"
    azure = ("AZURE_OPENAI_ENDPOINT",) if provider.name == "azure" else ()
    return provider.address_variable, usual, *azure


def key_for(provider: Provider, config: BaseEvaluationConfig) -> SecretStr | None:
    """The key for this provider. `api_key` belongs to `config.provider` and is never sent elsewhere."""
    if config.api_key is not None and provider.name == config.provider:
        key = _check_key(config.api_key.get_secret_value(), "api_key")
    elif provider.key_variable is None:
        return None
    elif found := provider.key_found:
        key = _check_key(os.environ[found], found)
    else:
        raise MissingKeyError(provider.name, provider.key_variable)
    return key


def _check_key(key: str, source: str) -> SecretStr:
    # Checked here because the HTTP library quotes a header it cannot send, including the key.
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(source, "is not a key (empty, or with characters that no key has)")
    return SecretStr(key)
