"""Who hosts models: the endpoints a voice may name, where they are and whose key they ask for."""

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
from firecircle.settings import Auth, Concurrency, Settings, current_settings
from firecircle.shapes import Declaration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firecircle.circle.base_config import BaseEvaluationConfig


KEY_SHAPED = re.compile(r"(sk|pk|gsk|xai|csk|fw|tgp|hf|AIza|key|api)[-_][A-Za-z0-9_-]{16,}|AIza[\w-]{30,}")
"""How vendors' keys look: none of them belongs in an address."""


class Provider(Declaration):
    """An endpoint that hosts models: where it is, how it is asked, and how it wants to see its key."""

    name: str
    base_url: str
    """Everything before `/chat/completions` or what the wire format has there; `{model}` stands for the
    model's name, as in Azure's deployments."""
    key_variable: str | None = None
    """The environment variable that holds the key; None for an endpoint that needs none."""
    auth: Auth = Auth()
    """How the key is shown."""
    wire: WireName = "chat"
    """The format it is asked in."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request. Not for secrets: a declaration is shown freely."""
    seed_field: str = "seed"
    """What this endpoint calls the seed."""
    concurrency: Concurrency = Concurrency()
    structured_output: Literal["auto", "off"] = "auto"
    """`auto` sends the answer's JSON schema and does without where it is turned down."""

    @field_validator("base_url")
    @classmethod
    def _reachable(cls, value: str) -> str:
        if "@" in value:
            # Raised as itself, because the usual complaint would quote the address with its password.
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
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable() and name.strip()):
                # Checked here because the HTTP library would quote it.
                raise ConfigError("headers", f"{name!r} holds characters that no header may have")
        return headers

    def at(self, base_url: str) -> Provider:
        """The same provider at another address; worked out once, since every circle asks."""
        known = _elsewhere.get(base_url)
        if known is None or known[0] is not self:
            if len(_elsewhere) >= MOST_ADDRESSES:
                _elsewhere.clear()
            known = _elsewhere[base_url] = (self, Provider(**{**dict(self), "base_url": base_url}))
        return known[1]

    @property
    def on_this_machine(self) -> bool:
        """Whether the endpoint is a server on loopback."""
        return on_this_machine(_host_of(self.base_url))

    @property
    def reads_control_tokens(self) -> bool:
        """Whether a control token such as `<|im_end|>`, spelled in a message, may be obeyed here.

        By address, not by name: a known provider may be moved. Routers pass messages on to such servers.
        """
        return _host_of(self.base_url) not in TEXT_STAYS_TEXT

    @property
    def address_variable(self) -> str:
        """The environment variable that gives this provider another address."""
        return f"FIRECIRCLE_{self.name.upper().replace('-', '_')}_BASE_URL"


MOST_ADDRESSES = 100
_elsewhere: dict[str, tuple[Provider, Provider]] = {}
"""By address: whose place it was last, and that provider there."""


@lru_cache(maxsize=256)
def _host_of(base_url: str) -> str:
    """Every call asks where it goes."""
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
"""Who takes a control token in a message for text. Any other server may be one of the user's own."""


@lru_cache(maxsize=256)
def on_this_machine(host: str) -> bool:
    """Whether a host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


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
        Provider(
            name="anthropic",
            base_url="https://api.anthropic.com/v1",
            key_variable="ANTHROPIC_API_KEY",
            auth=Auth(header="x-api-key", scheme=""),
            wire="messages",
        ),
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
"""The providers that come with the package."""
RESERVED = tuple(prefix.rstrip(":") for prefix in (EMBEDDED, LOCAL))


def known_providers() -> Mapping[str, Provider]:
    """The providers that come with the package, as `firecircle.toml` changes them, and its own."""
    settings = current_settings()
    if not settings.providers:
        return PROVIDERS
    if not _declared_by or _declared_by[0][0] is not settings:
        declared = {name: _declared(name, settings) for name in settings.providers}
        _declared_by[:] = [(settings, {**PROVIDERS, **declared})]
    return _declared_by[0][1]


_declared_by: list[tuple[Settings, Mapping[str, Provider]]] = []
"""The settings that were last asked for, and the providers under them: every voice of every circle asks."""


def _declared(name: str, settings: Settings) -> Provider:
    table = f"providers.{name}"
    if name in RESERVED:
        raise settings.mistake(
            table, ConfigError(None, "is a name of voices that nobody hosts", "take another")
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
    """Who hosts this voice, and the name of its model there.

    `provider:model` names both; anything else belongs to the default provider. Model names hold colons
    themselves (`deepseek/deepseek-r1:free`), so only a known provider counts as a prefix.
    """
    providers = known_providers()
    original = original_of(model)
    prefix, _, name = original.partition(":")
    if name and prefix in providers:
        return providers[prefix], name
    known = ", ".join(providers)
    if default not in providers:
        raise ConfigError("provider", f"nobody is called {default!r}", f"the providers are {known}")
    if default == "openrouter" and unknown_provider(model) is not None:
        raise ConfigError(
            "models", f"{model!r}: there is no provider {prefix!r}", f"the providers are {known}"
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


def located(provider: Provider, config: BaseEvaluationConfig) -> Provider:
    """The provider at the address that the config or the environment gives it."""
    source, elsewhere = "lmstudio_base_url", config.lmstudio_base_url
    if provider.name != "lmstudio" or not elsewhere:
        source = provider.address_variable
        elsewhere = os.environ.get(source)
    if not elsewhere:
        return provider
    try:
        return provider.at(elsewhere)
    except ConfigError as wrong:
        raise wrong.within(source) from None


def key_for(provider: Provider, config: BaseEvaluationConfig) -> SecretStr | None:
    """The key to show this provider. `api_key` belongs to `config.provider` and is shown to nobody else."""
    if config.api_key is not None and provider.name == config.provider:
        key = _well_formed(config.api_key.get_secret_value(), "api_key")
    elif provider.key_variable is None:
        return None
    elif stated := os.environ.get(provider.key_variable, "").strip():
        key = _well_formed(stated, provider.key_variable)
    else:
        raise MissingKeyError(provider.name, provider.key_variable)
    return key


def _well_formed(key: str, source: str) -> SecretStr:
    # Checked here because the HTTP library quotes a header it cannot send, and with it the key.
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(source, "is no key (empty, or holds characters that no key has)")
    return SecretStr(key)
