"""The catalog of models: what each one brings to a quorum, and the room it needs for an answer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from pydantic import field_validator

from firecircle.errors import ConfigError, UnknownModelError
from firecircle.names import (
    EMBEDDED,
    EMBEDDED_MODELS,
    FAMILY,
    HOSTS,
    LOCAL,
    PERSON,
    Effort,
    is_family,
    is_person,
)
from firecircle.plugins import plugin_characteristics, plugin_with
from firecircle.settings import current_settings, declared_by_environment, providers_by_environment
from firecircle.shapes import Declaration, Shape, Text, Unit

IN_PROCESS = (EMBEDDED[:-1], LOCAL[:-1], PERSON[:-1])
"""Prefixes of voices that run in this process and have no provider."""
ROLE_WEIGHTS: Mapping[str, float] = {
    "temporal_reasoning": 3.0,
    "cross_layer_analysis": 3.0,
    "pattern_recognition": 2.0,
    "polite_extraction_masking": 2.0,
    "educational_escalation": 1.0,
    "future_impact": 2.0,
    "system_maintenance": 1.0,
}
CRITICAL_ROLES = tuple(role for role, weight in ROLE_WEIGHTS.items() if weight >= 3.0)
PRESENT_ABOVE = 0.5
"""A critical role is present when some voice contributes more than this."""


class ModelCharacteristics(Declaration):
    """What a voice brings to a quorum: its roles, each with a contribution from 0 to 1, its lineage (who
    trained the base model), its style, and how sure the declaration is.
    """

    model_id: Text
    cognitive_roles: dict[Text, Unit]
    provider_lineage: Text
    alignment_style: Text = ""
    confidence: Unit = 0.5
    lineage_group: Text = ""
    """The wider group of its trainer, such as `us_aligned`; the catalog's by default."""

    def __init__(
        self,
        model_id: str,
        cognitive_roles: Mapping[str, float],
        provider_lineage: str,
        alignment_style: str = "",
        confidence: float = 0.5,
        lineage_group: str = "",
    ) -> None:
        super().__init__(
            model_id=model_id,
            cognitive_roles=cognitive_roles,
            provider_lineage=provider_lineage,
            alignment_style=alignment_style,
            confidence=confidence,
            lineage_group=lineage_group or group_of(provider_lineage),
        )

    @field_validator("cognitive_roles", mode="before")
    @classmethod
    def _known_roles(cls, value: Any) -> Any:
        unknown = sorted(set(value) - set(ROLE_WEIGHTS)) if isinstance(value, Mapping) else []
        if unknown:
            raise ValueError(f"no such role {', '.join(unknown)}; the roles are {', '.join(ROLE_WEIGHTS)}")
        return dict(value) if isinstance(value, Mapping) else value

    def holds_critical_role(self) -> bool:
        """Whether this voice alone makes a critical role present."""
        return any(self.cognitive_roles.get(role, 0.0) > PRESENT_ABOVE for role in CRITICAL_ROLES)


class _Matching(Shape):
    """An entry that applies to every model whose name matches."""

    match: tuple[str, ...]

    def matches(self, name: str) -> bool:
        """Whether a name, as `name_alone` returns it, matches.

        A pattern with a slash is compared with `vendor/model`, one that begins with a prefix of this package
        with the whole name, and any other with the part after the last slash. A person's name is whole.
        """
        served = name.removeprefix(LOCAL)
        last = served if is_person(name) else served.rpartition("/")[2]
        return any(
            fnmatchcase(
                name if pattern.startswith((LOCAL, EMBEDDED)) else served if "/" in pattern else last,
                pattern.lower(),
            )
            for pattern in self.match
        )


class Family(_Matching):
    """Models with the same declared contribution. A name belongs to the first family that it matches."""

    provider_lineage: str
    """Who trained the base model."""
    alignment_style: str = ""
    confidence: float = 0.5
    cognitive_roles: dict[str, float]
    name: str = ""
    """What to write after `family:` to use its newest model; empty if the family cannot be named this way."""
    latest: tuple[str, ...] = ()
    """Aliases of its newest model in a provider's list."""
    known: tuple[str, ...] = ()
    """Models of the family that existed when the catalog was written, best first."""
    without: tuple[str, ...] = ()
    """Models of the family that are not used for it: special-purpose, unfinished or more expensive ones."""
    former: tuple[str, ...] = ()
    """Names in old recordings, accepted and not listed."""

    def matches(self, name: str) -> bool:
        """Whether a name matches, a former one included."""
        return name in self.former or super().matches(name)

    @property
    def names(self) -> tuple[str, ...]:
        """How to write the family: its name, if it has one, and the patterns of its models."""
        return (FAMILY + self.name, *self.match) if self.name else self.match

    def seats(self, model: str) -> bool:
        """Whether this model may represent the family."""
        last = name_alone(model).rpartition("/")[2]
        return family_of(model) is self and not any(fnmatchcase(last, pattern) for pattern in self.without)


class Limits(_Matching):
    """Room and time for an answer. The first entry whose name matches a model applies."""

    max_tokens: int
    timeout_seconds: float
    """For one attempt."""
    timeout_per_round: float
    reasoning_effort: Effort = "default"
    """How much the model should think before it answers."""


@cache
def _catalog() -> dict[str, Any]:
    return tomllib.loads(resources.files("firecircle").joinpath("catalog.toml").read_text("utf-8"))


@cache
def _groups() -> dict[str, str]:
    return {name: group for group, names in _catalog()["lineage_groups"].items() for name in names}


def group_of(lineage: str) -> str:
    """The group of a trainer. A trainer that the catalog does not list is its own group."""
    return _groups().get(lineage, lineage)


@cache
def families() -> tuple[Family, ...]:
    """Every model family in the catalog."""
    return tuple(Family(**entry) for entry in _catalog()["family"])


def seatable_families() -> dict[str, Family]:
    """The families that can be named instead of a model, as `family:…`."""
    return {FAMILY + family.name: family for family in families() if family.name}


@cache
def _all_limits() -> tuple[Limits, ...]:
    return tuple(Limits(**entry) for entry in _catalog()["limits"])


def family_of(model: str) -> Family | None:
    """The first family that a model matches, with or without its provider prefix."""
    return _family_named(name_alone(model))


@lru_cache(maxsize=4096)
def _family_named(name: str) -> Family | None:
    if is_family(name):
        return next((family for family in families() if family.name == name.removeprefix(FAMILY)), None)
    return next((family for family in families() if family.matches(name)), None)


def limits_of(model: str) -> Limits:
    """Room and time for a model's answer: from `firecircle.toml`, otherwise from the catalog."""
    limits = _limits_named(name_alone(model))
    stated = current_settings().limits.get(original_of(model))
    return limits.model_copy(update=stated.model_dump(exclude_none=True)) if stated else limits


@lru_cache(maxsize=1024)
def _limits_named(name: str) -> Limits:
    """The catalog's limits; its last entry matches every name."""
    return next(limits for limits in _all_limits() if limits.matches(name))


def name_alone(model: str) -> str:
    """A model's name in lower case, without clone number, provider and the ~ of an alias.

    `embedded:` and `local:` remain. A colon may be part of the name (`phi4:14b`), so only a known provider's
    prefix is removed.
    """
    name = original_of(model).lower()
    prefix, _, rest = name.partition(":")
    # Every voice asks in every round, so the settings are read only where they may matter.
    if rest and prefix not in IN_PROCESS and _is_provider(prefix):
        name = rest
    return name.removeprefix("~")


def original_of(model: str) -> str:
    """The model behind a deliberate clone (`model#2`); any other name is returned unchanged."""
    name, mark, number = model.rpartition("#")
    return name if mark and number.isdigit() else model


def find_characteristics(
    model: str, declared: Mapping[str, ModelCharacteristics] | None = None
) -> ModelCharacteristics | None:
    """What a model brings: as declared, otherwise from `firecircle.toml`, the catalog or a plugin."""
    return (
        declared_among(model, declared or {})
        or declared_in_settings(model)
        or in_catalog(model)
        or plugin_declared(model)
    )


@lru_cache(maxsize=1024)
def plugin_declared(model: str) -> ModelCharacteristics | None:
    """The characteristics that an installed plugin declares for a model outside the catalog."""
    if in_catalog(model) is not None:
        return None
    brought = plugin_characteristics(original_of(model))
    return brought.model_copy(update={"model_id": model}) if brought else None


def declared_among(model: str, declared: Mapping[str, ModelCharacteristics]) -> ModelCharacteristics | None:
    """The declared characteristics of a model, or of the model it is a clone of."""
    for name in (model, original_of(model)):
        if name in declared:
            return declared[name].model_copy(update={"model_id": model})
    return None


def declared_in_settings(model: str) -> ModelCharacteristics | None:
    """The characteristics that `firecircle.toml` declares for a model, if any."""
    settings = current_settings()
    if not settings.models:
        return None
    for name in (model, original_of(model)):
        if told := settings.models.get(name):
            try:
                return ModelCharacteristics(model, **told.model_dump())
            except ConfigError as wrong:
                raise settings.mistake(f'models."{name}"', wrong) from None
    return None


def in_catalog(model: str) -> ModelCharacteristics | None:
    """The characteristics in this package's own catalog."""
    return _read_catalog(model, name_alone(model))


@lru_cache(maxsize=1024)
def _read_catalog(model: str, name: str) -> ModelCharacteristics | None:
    """Built once: every voice of every circle asks several times."""
    family = _family_named(name)
    if family is None:
        return None
    if (
        family.confidence > SURE_OF_SMALL
        and not name.startswith((LOCAL, EMBEDDED, PERSON))
        and is_small(name)
    ):
        return neutral_characteristics(model, family.provider_lineage)
    return ModelCharacteristics(
        model,
        family.cognitive_roles,
        name if is_person(name) else family.provider_lineage,  # every person is a lineage of their own
        family.alignment_style,
        family.confidence,
    )


NEUTRAL_ROLES: Mapping[str, float] = {
    "temporal_reasoning": 0.5,
    "cross_layer_analysis": 0.5,
    "pattern_recognition": 0.5,
    "polite_extraction_masking": 0.4,
    "educational_escalation": 0.3,
}
"""Roles assumed for an unknown model; none of them is critical by itself."""
SMALL_BILLIONS = 7.0
SURE_OF_SMALL = 0.3
"""Families with less confidence than this were declared with their small size in mind."""
A_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


def is_small(name: str) -> bool:
    """Whether the name says that the model has fewer than seven billion parameters."""
    size = A_SIZE.search(name.lower())
    return size is not None and float(size[1]) * (1.0 if size[2] == "b" else 0.001) < SMALL_BILLIONS


def neutral_characteristics(model: str, lineage: str = "undeclared") -> ModelCharacteristics:
    """Neutral characteristics for a model that is unknown, or too small for its family's entry."""
    return ModelCharacteristics(model, NEUTRAL_ROLES, lineage, confidence=0.2)


def characteristics_of(
    model: str, declared: Mapping[str, ModelCharacteristics] | None = None
) -> ModelCharacteristics:
    """As `find_characteristics`, but raises an error for an unknown model that says how to declare it."""
    found = find_characteristics(model, declared)
    if found is None and is_family(model):
        raise UnknownModelError(
            "models",
            f"there is no {original_of(model)}",
            f"the families are {', '.join(seatable_families())}",
        )
    if found is None and (provider := unknown_provider(model)) is not None:
        plugin_with(original_of(model))  # a plugin with this prefix gives a better error
        raise UnknownModelError(
            "models",
            f"{model!r}: there is no provider {provider!r}",
            f"built in are {', '.join(EMBEDDED_MODELS)}; the providers are {', '.join(_providers())};"
            f" others by {provider.upper()}_API_KEY and {provider.upper()}_BASE_URL, or in firecircle.toml"
            f' under [providers.{provider}], a model with such a name under [models."{original_of(model)}"]',
        )
    if found is None:
        table = f'firecircle.toml under [models."{original_of(model)}"]'
        known = "take one that `firecircle quorum --list` shows"
        raise UnknownModelError(
            "models",
            f"{model!r} is not in the catalog",
            f"declare it with model_characteristics={{{model!r}: ModelCharacteristics({model!r},"
            f" {{'temporal_reasoning': 0.7}}, 'who trained it')}}, or in {table}, or {known}",
            in_a_file=f'declare it in {table}: provider_lineage = "who trained it" and'
            f" cognitive_roles = {{ temporal_reasoning = 0.7 }}; or {known}",
        )
    return found


def unknown_provider(model: str) -> str | None:
    """The prefix of `provider:model` if no provider has this name."""
    prefix, colon, _ = original_of(model).partition(":")
    known = (*_providers(), EMBEDDED[:-1], LOCAL[:-1], FAMILY[:-1])
    return prefix if colon and "/" not in prefix and prefix not in known else None


def _is_provider(prefix: str) -> bool:
    return prefix in HOSTS or prefix in current_settings().providers or declared_by_environment(prefix)


def _providers() -> tuple[str, ...]:
    return tuple(dict.fromkeys((*HOSTS, *current_settings().providers, *providers_by_environment())))


def require_distinct(models: tuple[str, ...], field: str) -> None:
    """Raise a `ConfigError` if a list names the same voice twice."""
    seen: set[str] = set()
    for model in models:
        if model in seen:
            raise ConfigError(field, f"{model!r} is listed twice", f"a deliberate clone is written {model}#2")
        seen.add(model)
