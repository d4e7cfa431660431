"""The voices that the keys in the environment can call, and the default circle."""

from __future__ import annotations

from firecircle.catalog import original_of, seatable_families
from firecircle.names import DEFAULT_MODELS, is_family
from firecircle.voices.hosted.providers import Provider, keyed_providers, known_providers

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
