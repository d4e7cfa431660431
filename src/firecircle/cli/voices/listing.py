"""The list of all voices: who there is, what each brings and costs, and who could speak now."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.catalog import (
    Family,
    ModelCharacteristics,
    declared_in_settings,
    families,
    family_of,
    find_characteristics,
)
from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.config import LARGEST_CIRCLE, quorum_of
from firecircle.cli.output import outcomes_of
from firecircle.cli.printable import printable_line
from firecircle.errors import ConfigError
from firecircle.names import (
    NEURAL_MODEL,
    EvaluationMode,
    embedded_models,
    has_neural_weights,
    is_embedded,
    is_local,
)
from firecircle.request import default_models
from firecircle.settings import current_settings
from firecircle.voices.available import available_hosted, keys_for, unusable_keys
from firecircle.voices.hosted.prices import FREE, Rates, Tariff, listed_rates, rates_of, tariff_of
from firecircle.voices.hosted.providers import Provider, known_providers, locate, provider_of
from firecircle.voices.readiness import Readiness, local_readiness, readiness_of

MOST_OFFERED = 2
"""Models of a server on this machine that are offered as voices."""
VENDORS = {"mistralai": "mistral"}
"""Vendors whose own endpoint goes by another name than OpenRouter gives them."""


@dataclass(frozen=True, slots=True)
class HostEntry:
    """A provider and whether it could be asked now."""

    provider: Provider
    state: Readiness


@dataclass(frozen=True, slots=True)
class VoiceEntry:
    """A voice, or a family of them: what it brings, what a million tokens cost, who could speak for it."""

    names: tuple[str, ...]
    provider_lineage: str
    alignment_style: str
    confidence: float
    cognitive_roles: dict[str, float]
    price: tuple[Rates, Rates] | None
    """The cheapest and the dearest; None is unknown."""
    ready: bool
    why: str


async def list_voices() -> tuple[list[HostEntry], list[VoiceEntry]]:
    """Every provider and every voice."""
    providers = known_providers()
    states = await outcomes_of({name: readiness_of(provider) for name, provider in providers.items()})
    hosts = [HostEntry(_where_it_is(provider), states[name]) for name, provider in providers.items()]
    elsewhere = [family for family in families() if not is_local(family.match[0])]
    return hosts, [
        *(_family(family, hosts) for family in elsewhere),
        *_local(),
        *_plugins(),
        *_declared(hosts),
    ]


def can_convene(hosts: list[HostEntry]) -> list[str]:
    """The circle that judges by default here, and what servers on this machine could add to it."""
    keys = keys_for(available_hosted())
    found = f" (found {' and '.join(keys)})" if keys else " (no key needed)"
    lines = [f"You can convene: {', '.join(default_models(EvaluationMode.FIRE_CIRCLE))}{found}"]
    lines += [f"Also found: {key}" for key in unusable_keys()]
    for host in hosts:
        if host.state.models:
            offered = (printable_line(name) for name in host.state.models[:MOST_OFFERED])
            named = [f"{host.provider.name}:{name}" for name in offered]
            circle = ",".join((*named, *embedded_models()))
            lines.append(f"{host.provider.name} answers: --models {circle}")
    return lines


def proposal(well: tuple[str, ...]) -> str:
    """The circle that these voices can hold, with embedded readers where they are no quorum alone."""
    if not well:
        return "No circle: none of these voices can judge"
    readers = tuple(reader for reader in embedded_models() if reader not in well)
    for circle in (well, (*well, *readers)):
        if 1 < len(circle) <= LARGEST_CIRCLE and quorum_of(circle, {}).valid:
            return f"You can convene: --models {','.join(circle)}"
    return f"No circle: {', '.join(well)} and embedded readers are no quorum; --mode single asks one voice"


def _where_it_is(provider: Provider) -> Provider:
    try:
        return locate(provider, EvaluationConfig())
    except ConfigError:
        # Whether it is ready tells the same mistake.
        return provider


def _family(family: Family, hosts: list[HostEntry]) -> VoiceEntry:
    if is_embedded(family.match[0]):
        price: tuple[Rates, Rates] | None = (rates_of(FREE), rates_of(FREE))
        state = _embedded_readiness(family.match[0])
    else:
        price = listed_rates(family)
        able = [host.provider for host in hosts if host.state.ready and _hosts(host, family)]
        speakers = [provider.name for provider in able]
        by_family = family.name and any(provider.trains == family.provider_lineage for provider in able)
        why = f"by {', '.join(speakers)}" if speakers else "no provider that has it is ready"
        if speakers and "openrouter" not in speakers and not by_family:
            why += f", written {speakers[0]}:NAME"  # vendor/model is openrouter's
        state = Readiness(bool(speakers), why)
    return VoiceEntry(
        family.names,
        family.provider_lineage,
        family.alignment_style,
        family.confidence,
        family.cognitive_roles,
        price,
        state.ready,
        state.why,
    )


def _embedded_readiness(model: str) -> Readiness:
    if model == NEURAL_MODEL and not has_neural_weights():
        return Readiness(False, "needs `firecircle local fetch neural`")
    return Readiness(True, "built in")


def _hosts(host: HostEntry, family: Family) -> bool:
    if host.state.models:
        return any(family_of(f"{host.provider.name}:{name}") is family for name in host.state.models)
    if host.provider.name == "openrouter":
        return any("/" in match for match in family.match)
    vendors = {match.partition("/")[0] for match in family.match if "/" in match}
    return host.provider.name in {VENDORS.get(vendor, vendor) for vendor in vendors}


def _local() -> list[VoiceEntry]:
    """The models on this machine that have a name of their own."""
    from firecircle.voices.local.weights import local_models

    known = ((model, find_characteristics(model)) for model in local_models())
    return [_entry(model, brings, local_readiness(model), FREE) for model, brings in known if brings]


def _plugins() -> list[VoiceEntry]:
    """The voices that installed packages bring."""
    from firecircle.plugins import plugin_voice_names

    known = ((model, find_characteristics(model)) for model in plugin_voice_names())
    ready = Readiness(True, "brought by a plugin")
    return [_entry(model, brings, ready, None) for model, brings in known if brings]


def _declared(hosts: list[HostEntry]) -> list[VoiceEntry]:
    """The models that the user's own file declares."""
    states = {host.provider.name: host.state for host in hosts}
    entries = []
    for model in current_settings().models:
        brings = declared_in_settings(model)
        assert brings is not None
        try:
            provider, name = provider_of(model, "openrouter")
        except ConfigError as nobody:
            entries.append(_entry(model, brings, Readiness(False, str(nobody)), None))
        else:
            entries.append(_entry(model, brings, states[provider.name], tariff_of(model, provider, name)))
    return entries


def _entry(model: str, brings: ModelCharacteristics, state: Readiness, tariff: Tariff | None) -> VoiceEntry:
    rates = rates_of(tariff) if tariff else None
    return VoiceEntry(
        (model,),
        brings.provider_lineage,
        brings.alignment_style,
        brings.confidence,
        brings.cognitive_roles,
        (rates, rates) if rates else None,
        state.ready,
        state.why,
    )
