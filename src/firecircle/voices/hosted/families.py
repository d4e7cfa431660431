"""Families: which model sits for `family:…` today, and who speaks when the provider no longer has it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from firecircle.catalog import Family, name_alone, original_of, seatable_families
from firecircle.circle.voice import Priced, Reply, Retry, Turn, Usage, Voice
from firecircle.errors import ConfigError, MissingKeyError, UnknownModelError, VoiceError
from firecircle.names import HOSTS
from firecircle.voices.hosted.model_list import ListedModel, ModelList, kept_list, remember_gone, todays_list
from firecircle.voices.hosted.providers import Provider, key_for, known_providers, located

if TYPE_CHECKING:
    from firecircle.circle.base_config import BaseEvaluationConfig

MOST_STAND_INS = 4
"""How many further models of a family are tried when the provider does not know the first."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Who sits for a family, and how that is known."""

    family: str
    model: str
    """The id that is asked."""
    stand_ins: tuple[str, ...]
    """Who is asked instead, in this order, if the provider does not know it."""
    source: str
    """Where the id comes from, in a few words."""
    entry: ListedModel | None = None
    """The provider's own entry of the model, with price and context."""


async def todays_models(
    families: Iterable[str], config: BaseEvaluationConfig, *, ask: bool = True, anew: bool = False
) -> dict[str, Resolution]:
    """Who sits for each of these families today.

    From the provider's list, which is asked for once a day or `anew`; without a key from what is kept of it;
    else, and with `ask=False`, from the catalog.
    """
    wanted = {original_of(family) for family in families}
    if not wanted:
        return {}
    provider = provider_of_families(config)
    if ask:
        try:
            models = await todays_list(provider, key_for(provider, config), anew=anew)
        except MissingKeyError:
            models = await asyncio.to_thread(kept_list, provider)
    else:
        models = ModelList(base_url=provider.base_url)
    return {name: resolved(name, provider, models) for name in sorted(wanted)}


def provider_of_families(config: BaseEvaluationConfig) -> Provider:
    """Who is asked for families: the provider of bare names."""
    providers = known_providers()
    if config.provider not in providers:
        raise ConfigError(
            "provider", f"nobody is called {config.provider!r}", f"the providers are {', '.join(providers)}"
        )
    return located(providers[config.provider], config)


def resolved(name: str, provider: Provider, models: ModelList) -> Resolution:
    """Who sits for a family, going by a provider's list."""
    families = seatable_families()
    if name not in families:
        raise UnknownModelError("models", f"there is no {name}", f"the families are {', '.join(families)}")
    family = families[name]
    listed = _candidates(family, models)
    # The catalog's names are OpenRouter's; a provider of the user's own may be a router like it.
    known = family.known if provider.name == "openrouter" or provider.name not in HOSTS else ()
    known = tuple(model for model in known if not models.knows_gone(model)) or known
    order = list(dict.fromkeys([*(model.id for model in listed), *known]))
    if not order:
        raise ConfigError(
            "models",
            f"{provider.name} lists no model of {name}" + (f" ({models.trouble})" if models.trouble else ""),
            "name a model of its own",
        )
    if listed:
        source = f"from the list of {provider.name}"
    elif models.trouble:
        source = f"from the catalog, for the list of {provider.name} could not be had: {models.trouble}"
    elif models.models:
        source = f"from the catalog, for {provider.name} lists none of this family"
    else:
        source = f"from the catalog, for {provider.name} was not asked"
    return Resolution(name, order[0], tuple(order[1 : 1 + MOST_STAND_INS]), source, models.find(order[0]))


def stand_ins(name: str, model: str, provider: Provider) -> tuple[str, ...]:
    """Who is asked for a family, in this order, where the provider does not know this model of it."""
    seated = resolved(name, provider, kept_list(provider))
    return tuple(other for other in (seated.model, *seated.stand_ins) if other != model)


def _candidates(family: Family, models: ModelList) -> list[ListedModel]:
    """The models of a family in a list, whoever should sit first: its aliases, then the newest."""
    present = models.present
    aliases = [model for alias in family.latest for model in present if model.id == alias]
    # What stands before a colon would be taken for a provider, and its key be asked for.
    plain = (model for model in present if not model.id.startswith("~") and ":" not in model.id)
    seatable = [model for model in plain if family.seats(model.id)]
    return [*aliases, *sorted(seatable, key=lambda model: _rank(family, model))]


def _rank(family: Family, model: ListedModel) -> tuple[int, float, tuple[float, ...]]:
    """By the order of the family's patterns, then by age, then by the numbers in the name."""
    name = name_alone(model.id)
    last = name.rpartition("/")[2]
    tried = (fnmatchcase(name if "/" in pattern else last, pattern) for pattern in family.match)
    place = next((at for at, matches in enumerate(tried) if matches), len(family.match))
    numbers = tuple(-float(number) for number in re.findall(r"\d+(?:\.\d+)?", last))
    return place, -(model.created or 0.0), numbers


class FamilyVoice:
    """Whoever of a family the provider has: the seated model, else the next one, told in the reply."""

    def __init__(
        self, model: str, stand_ins: tuple[str, ...], provider: Provider, voice_of: Callable[[str], Voice]
    ) -> None:
        self.model = model
        """The voice's name in the circle."""
        self._waiting = list(stand_ins)
        self._provider = provider
        self._voice_of = voice_of
        self._asked = original_of(model)
        self._voice = voice_of(model)

    async def speak(self, turn: Turn) -> Reply:
        """Answer the turn; a model that the provider does not know gives its seat to the next."""
        before, spent = 0, Usage()
        while True:
            asked, voice = self._asked, self._voice
            try:
                reply = await voice.speak(turn)
            except VoiceError as failure:
                if not failure.unknown_model:
                    raise
                await asyncio.to_thread(remember_gone, self._provider, asked)
                if not self._give_seat_away(asked):
                    raise
                before += failure.attempts
                spent += failure.usage or Usage()
                turn.on_retry(Retry(before + 1, f"{failure}; {self._asked} is asked instead", 0.0))
                continue
            asked_id = asked if asked != original_of(self.model) else None
            return replace(
                reply, asked_id=asked_id, attempts=reply.attempts + before, usage=reply.usage + spent
            )

    def estimate(self, turn: Turn) -> Usage:
        """What answering the turn may consume."""
        return self._voice.estimate(turn) if isinstance(self._voice, Priced) else Usage()

    def _give_seat_away(self, failed: str) -> bool:
        """Whether somebody else has the seat now, given to them here or by another call meanwhile."""
        number = self.model.removeprefix(original_of(self.model))
        while self._asked == failed and self._waiting:
            following = self._waiting.pop(0)
            with suppress(ConfigError):  # a budget may ask for a price that nobody knows
                self._voice = self._voice_of(following + number)
                self._asked = following
        return self._asked != failed
