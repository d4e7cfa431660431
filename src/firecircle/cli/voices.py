"""`firecircle voices`: the providers and voices, and which of them can speak now."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firecircle.catalog import (
    Family,
    ModelCharacteristics,
    declared_in_settings,
    families,
    family_of,
    find_characteristics,
)
from firecircle.circle.base_config import EvaluationConfig
from firecircle.cli.options import AsJson
from firecircle.cli.output import outcomes_of
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
from firecircle.telling.safe_text import printable_line
from firecircle.voices.hosted.prices import FREE, Rates, Tariff, listed_rates, rates_of, tariff_of
from firecircle.voices.hosted.providers import Provider, known_providers, locate, provider_of
from firecircle.voices.readiness import (
    Readiness,
    available_hosted,
    keys_for,
    local_readiness,
    readiness_of,
    unusable_keys,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


def voices(
    ready: Annotated[bool, typer.Option("--ready", help="Only voices that can speak now.")] = False,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also list the hosted models that cannot be called here.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="What each family is today, and which models in the settings are gone (exit status 1).",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List providers and voices: lineage, roles, price, and whether they could speak now.

    The first lines say which circle the keys, servers and weights found here make. Endpoints without a key
    are asked for their models; no voice is asked to judge. `firecircle doctor` makes a real call.
    """
    import asyncio
    import sys

    from firecircle.cli.output import console_on, print_json

    if check:
        from firecircle.cli.todays_models import show_todays_models

        if ready:
            raise ConfigError("--ready", "does not go with --check", "leave one of them out")
        return show_todays_models(as_json=as_json)

    hosts, entries = asyncio.run(list_voices())
    if ready:
        hosts = [host for host in hosts if host.state.ready]
        entries = [entry for entry in entries if entry.ready]
    source = current_settings().source
    if as_json:
        print_json(
            {
                "settings": str(source) if source else None,
                "can_convene": can_convene(hosts),
                "providers": [_host_document(host) for host in hosts],
                "voices": [_voice_document(voice) for voice in entries],
            }
        )
        return 0
    console = console_on(sys.stdout)
    for line in can_convene(hosts):
        console.print(line, soft_wrap=True)
    console.print()
    if source and console.is_terminal:
        console.print(f"settings: {source}")
    _show_hosts(console, hosts)
    folded = [] if everyone or not console.is_terminal else [entry for entry in entries if not entry.ready]
    _show_voices(console, [entry for entry in entries if entry not in folded])
    if folded:
        console.print(
            f"and {len(folded)} more, known but not ready: set the key of a provider above to hear them,"
            " see them with --all",
            style="dim",
        )
    return 0


def _host_document(host: HostEntry) -> dict[str, Any]:
    return {
        "name": host.provider.name,
        "base_url": host.provider.base_url,
        "key_variable": host.provider.key_variable,
        "ready": host.state.ready,
        "why": host.state.why,
        "models": list(host.state.models),
    }


def _voice_document(voice: VoiceEntry) -> dict[str, Any]:
    low, high = voice.price or (None, None)
    return {
        "names": list(voice.names),
        "provider_lineage": voice.provider_lineage,
        "alignment_style": voice.alignment_style,
        "confidence": voice.confidence,
        "cognitive_roles": voice.cognitive_roles,
        "usd_per_million_tokens": {"lowest": asdict(low), "highest": asdict(high)} if low and high else None,
        "ready": voice.ready,
        "why": voice.why,
    }


def _show_hosts(console: Console, hosts: Sequence[HostEntry]) -> None:
    from rich.text import Text

    from firecircle.cli.output import print_line

    for host in hosts:
        why = printable_line(host.state.why, 200)
        if host.state.models:
            why += f": {printable_line(', '.join(host.state.models), 200)}"
        if not console.is_terminal:
            print_line(console, f"provider\t{host.provider.name}\t{_word(host.state.ready)}\t{why}")
            continue
        line = Text().append(f"{host.provider.name:<12}", style="bold")
        line.append(f"{_word(host.state.ready):<10}", style="green" if host.state.ready else "dim")
        console.print(line.append(why))
    if console.is_terminal:
        console.print()


def _show_voices(console: Console, entries: Sequence[VoiceEntry]) -> None:
    from rich.text import Text

    from firecircle.cli.output import print_line, section

    for voice in entries:
        names = printable_line(" ".join(voice.names))
        roles = ", ".join(f"{role} {share:.1f}" for role, share in voice.cognitive_roles.items())
        lineage, why = printable_line(voice.provider_lineage), printable_line(voice.why, 200)
        if not console.is_terminal:
            parts = (names, _word(voice.ready), lineage, roles, _price(voice.price), why)
            print_line(console, "voice\t" + "\t".join(parts))
            continue
        line = Text().append(names, style="bold").append("  ")
        console.print(line.append(_word(voice.ready), style="green" if voice.ready else "dim"))
        console.print(*section("", [f"{lineage}: {roles}", f"{_price(voice.price)}; {why}"]))


def _word(ready: bool) -> str:
    return "ready" if ready else "not ready"


def _price(price: tuple[Rates, Rates] | None) -> str:
    """Dollars for a million tokens in and out, of the cheapest and the dearest."""
    if price is None:
        return "price unknown"
    low, high = price
    if not high.input and not high.output:
        return "free"
    return f"{_span(low.input, high.input)} in, {_span(low.output, high.output)} out per million tokens"


def _span(low: float, high: float) -> str:
    return f"${low:g}" if low == high else f"${low:g} to ${high:g}"


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
