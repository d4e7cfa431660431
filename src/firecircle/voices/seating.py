"""Seat the voices of a configuration: hosted, local, embedded, a caller, a person or a plugin's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from firecircle.catalog import original_of
from firecircle.circle.base_config import BaseEvaluationConfig
from firecircle.circle.voice import Priced, Turn, Usage, Voice
from firecircle.errors import ConfigError
from firecircle.names import is_embedded, is_family, is_local, is_person
from firecircle.voices.caller import Caller, CallerVoice, require_caller

Config = TypeVar("Config", bound=BaseEvaluationConfig)


def seat_voices(
    models: Iterable[str], config: BaseEvaluationConfig, caller: Caller | None = None
) -> dict[str, Voice]:
    """A voice for each model, by its name: `embedded:…`, `local:…`, `provider:model` or `vendor/model`."""
    if caller is not None:
        require_caller(caller)
    return {model: _voice(model, config, caller) for model in models}


def _voice(model: str, config: BaseEvaluationConfig, caller: Caller | None) -> Voice:
    if caller is not None:
        if config.budget_usd is not None:
            raise ConfigError("budget_usd", f"a function of your own reports no price, so {model!r} has none")
        if config.budget_tokens is not None:
            raise ConfigError(
                "budget_tokens",
                "a function of your own reports no tokens, so they cannot be counted",
                "leave it out",
            )
        return CallerVoice(model, caller)
    if is_embedded(model):
        from firecircle.voices.embedded import embedded_voice

        return embedded_voice(model)
    if is_local(model):
        from firecircle.voices.local import local_voice

        return local_voice(model, config.verdict_from)
    if is_person(model):
        from firecircle.voices.person import PersonVoice

        return PersonVoice(model)
    if original_of(model) in config.families:
        return _family_voice(model, config)
    return _plugin_voice(model) or _hosted_voice(model, config)


def _plugin_voice(model: str) -> Voice | None:
    """The voice of an installed plugin with this name; a provider's name is never a plugin's."""
    from firecircle.plugins import plugin_voice
    from firecircle.voices.hosted.providers import known_providers

    name = original_of(model)
    return None if "/" in name or name.partition(":")[0] in known_providers() else plugin_voice(name)


def _hosted_voice(model: str, config: BaseEvaluationConfig) -> Voice:
    from firecircle.voices.hosted.voice import hosted_voice

    voice = hosted_voice(model, config)
    if not config.uses_cache:
        return voice
    from firecircle.voices.cache import CachedVoice, ReplyCache

    return CachedVoice(voice, ReplyCache())


def _family_voice(model: str, config: BaseEvaluationConfig) -> Voice:
    from firecircle.voices.hosted.families import FamilyVoice, require_key_for_family, stand_ins
    from firecircle.voices.hosted.providers import locate, provider_of

    seated = original_of(model)
    provider = locate(provider_of(seated, config.provider)[0], config)
    require_key_for_family(config.families[seated], provider, config)
    others = stand_ins(config.families[seated], seated, config)
    return FamilyVoice(model, others, provider, lambda name: _hosted_voice(name, config))


async def with_todays_models(config: Config, caller: Caller | None = None) -> Config:
    """The configuration with a model in place of each family.

    Requests the provider's list at most once a day, and only if a family is named and no caller answers for
    all voices.
    """
    families = [model for model in config.named_models if is_family(model)]
    if not families:
        return config
    from firecircle.voices.hosted.families import todays_models

    resolutions = await todays_models(families, config, ask=caller is None)
    return config.seated_as({name: resolution.model for name, resolution in resolutions.items()})


def rehearsed_voices(models: Iterable[str], config: BaseEvaluationConfig) -> dict[str, Voice]:
    """Stand-ins that say what each model may consume, without any request."""
    from firecircle.voices.rehearsal import RehearsedVoice

    return {
        model: RehearsedVoice(_estimate(model, config), falsehood=place % 2)
        for place, model in enumerate(models)
    }


def _estimate(model: str, config: BaseEvaluationConfig) -> Callable[[Turn], Usage]:
    from firecircle.voices.hosted.prices import require_price, tariff_of
    from firecircle.voices.rehearsal import estimated_usage

    if is_embedded(model) or is_person(model):
        _voice(model, config, None)
        return lambda turn: Usage(0, 0, 0, 0.0)
    if is_local(model):
        from firecircle.voices.local.voice import local_estimate

        return partial(local_estimate, by_word=config.verdict_from != "numbers")
    if brought := _plugin_voice(model):
        return brought.estimate if isinstance(brought, Priced) else lambda turn: Usage(0, 0, 0, 0.0)
    from firecircle.voices.hosted.providers import locate, provider_of

    provider, name = provider_of(model, config.provider)
    tariff = tariff_of(model, locate(provider, config), name)
    if config.budget_usd is not None and not provider.states_cost:
        require_price(model, tariff)
    return partial(estimated_usage, tariff=tariff)
