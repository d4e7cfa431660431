"""`firecircle voices --check`: what each family is today, and which models in the settings are gone."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from firecircle.catalog import find_characteristics, original_of, seatable_families
from firecircle.circle.base_config import EvaluationConfig
from firecircle.cli.output import console_on, outcomes_of, print_json, print_line, section
from firecircle.errors import ConfigError, MissingKeyError
from firecircle.names import DEFAULT_MODELS, is_embedded, is_family, is_local
from firecircle.settings import current_settings
from firecircle.telling.safe_text import printable_line
from firecircle.voices.hosted.families import Resolution, provider_of_bare_names, resolve, todays_list
from firecircle.voices.hosted.model_lists import ModelList, kept_list
from firecircle.voices.hosted.prices import FlatTariff, Rates, rates_of
from firecircle.voices.hosted.providers import Provider, key_for, known_providers, locate, provider_of

State = Literal["listed", "gone", "unchecked"]
NAMING = ("models", "reserves", "empty_chair_model", "classifier_model")
"""The keys of `[circle]` that name models."""


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that the settings name, and what its provider says of it."""

    model: str
    place: str
    """Where it is named, such as `[circle] models`."""
    state: State
    why: str


@dataclass(frozen=True, slots=True)
class Lists:
    """What the providers that are of interest list now, and why the others were not asked."""

    lists: dict[str, ModelList]
    not_asked: dict[str, str]


def show_todays_models(*, as_json: bool) -> int:
    """Ask the providers for their lists, print what follows, and leave with 1 if a named model is gone."""
    config = EvaluationConfig(provider=str(current_settings().circle.get("provider", "openrouter")))
    named = _named_in_settings()
    lists = asyncio.run(_ask({provider_of_bare_names(config).name, *_providers_of(named, config)}, config))
    families = _families(config, lists)
    models = [_check(model, place, config, lists) for model, place in named]
    if as_json:
        print_json(_document(families, models))
    else:
        _show(console_on(sys.stdout), families, models)
    return 1 if any(model.state == "gone" for model in models) else 0


def _named_in_settings() -> list[tuple[str, str]]:
    """Every model that the settings file names, with the place."""
    settings = current_settings()
    named: list[tuple[str, str]] = []
    for key in NAMING:
        value = settings.circle.get(key, ())
        models = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        named += [(model, f"[circle] {key}") for model in models if isinstance(model, str)]
    named += [(model, f'[models."{model}"]') for model in settings.models]
    named += [(model, f'[prices."{model}"]') for model in settings.prices]
    return [(model, place) for model, place in named if not is_embedded(model) and not is_local(model)]


def _providers_of(named: list[tuple[str, str]], config: EvaluationConfig) -> set[str]:
    providers = set()
    for model, _ in named:
        if not is_family(model):
            try:
                providers.add(provider_of(model, config.provider)[0].name)
            except ConfigError:
                continue  # told when the model is checked
    return providers


async def _ask(names: set[str], config: EvaluationConfig) -> Lists:
    not_asked: dict[str, str] = {}
    work = {}
    for name in sorted(names):
        of_provider = config.model_copy(update={"provider": name})
        try:
            provider = locate(known_providers()[name], of_provider)
            work[name] = todays_list(provider, key_for(provider, of_provider), refresh=True)
        except MissingKeyError as missing:
            not_asked[name] = f"set {missing.variable}"
        except ConfigError as wrong:
            not_asked[name] = str(wrong)
    lists = await outcomes_of(work)
    for name, models in lists.items():
        if models.trouble:
            not_asked[name] = f"its list could not be had: {models.trouble}"
    return Lists({name: models for name, models in lists.items() if not models.trouble}, not_asked)


def _families(config: EvaluationConfig, lists: Lists) -> list[Resolution]:
    """The families that can sit at the provider of bare names; those of the default circle first."""
    provider = provider_of_bare_names(config)
    models = lists.lists.get(provider.name) or kept_list(provider)
    names = dict.fromkeys((*DEFAULT_MODELS, *seatable_families()))
    resolutions = []
    for name in names:
        try:
            resolutions.append(resolve(name, provider, models))
        except ConfigError:
            continue  # this provider has none of the family
    return resolutions


def _check(model: str, place: str, config: EvaluationConfig, lists: Lists) -> NamedModel:
    if is_family(model):
        if original_of(model) in seatable_families():
            return NamedModel(model, place, "listed", "a family, see above")
        known = ", ".join(seatable_families())
        return NamedModel(model, place, "gone", f"there is no such family; the families are {known}")
    try:
        provider, name = provider_of(model, config.provider)
    except ConfigError as wrong:
        return NamedModel(model, place, "gone", wrong.message)
    if provider.name not in lists.lists:
        return NamedModel(model, place, "unchecked", lists.not_asked[provider.name])
    models = lists.lists[provider.name]
    entry = models.find(name) or models.find(name.rpartition(":")[0])  # :nitro and the like are not listed
    if entry is not None:
        until = f" until {entry.expires}" if entry.expires else ""
        return NamedModel(model, place, "listed", f"{provider.name} lists it{until}")
    return NamedModel(
        model, place, "gone", f"{provider.name} does not list it{_instead(model, provider, models)}"
    )


def _instead(model: str, provider: Provider, models: ModelList) -> str:
    """The family to write in its place, and who sits for it."""
    known = find_characteristics(model)
    for name, family in seatable_families().items():
        if known and family.seats(model):
            return f"; write {name}, today {resolve(name, provider, models).model}"
    return ""


def _document(families: list[Resolution], models: list[NamedModel]) -> dict[str, Any]:
    source = current_settings().source
    return {
        "families": [
            {
                "family": family.family,
                "model": family.model,
                "stand_ins": list(family.stand_ins),
                "source": family.source,
                "context": family.entry.context if family.entry else None,
                "usd_per_million_tokens": asdict(rates) if (rates := _rates(family)) else None,
            }
            for family in families
        ],
        "settings": str(source) if source else None,
        "models": [asdict(model) for model in models],
    }


def _rates(family: Resolution) -> Rates | None:
    price = family.entry.price if family.entry else None
    return rates_of(FlatTariff(price)) if price else None


def _show(console: Console, families: list[Resolution], models: list[NamedModel]) -> None:
    for family in families:
        parts = [printable_line(family.source, 200)]
        if family.entry and family.entry.context:
            parts.append(f"{family.entry.context:,} tokens of context")
        if rates := _rates(family):
            parts.append(f"${rates.input:g} in, ${rates.output:g} out per million tokens")
        if family.stand_ins:
            parts.append(f"next {printable_line(family.stand_ins[0])}")
        if not console.is_terminal:
            print_line(console, "\t".join(("family", family.family, printable_line(family.model), *parts)))
            continue
        line = Text().append(family.family, style="bold").append(f"  {printable_line(family.model)}")
        console.print(line)
        console.print(*section("", ["; ".join(parts)]))
    if console.is_terminal:
        source = current_settings().source
        note = "No settings file names a model." if not models else f"Models named in {source}:"
        console.print(f"\n{note}", soft_wrap=True)
    for model in models:
        name, why = printable_line(model.model), printable_line(model.why, 300)
        if not console.is_terminal:
            print_line(console, f"model\t{model.state}\t{name}\t{printable_line(model.place)}\t{why}")
            continue
        style = {"listed": "green", "gone": "bold red", "unchecked": "dim"}[model.state]
        console.print(Text().append(f"{model.state:<10}", style=style).append(name))
        console.print(*section("", [f"in {printable_line(model.place)}: {why}"]))
