"""The shapes of the bank: content for a pattern, an entry, its sightings, and filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, Protocol, TypedDict

from pydantic import Field

from firecircle.circle.result import FireCircleResult, PatternObservation
from firecircle.shapes import Declaration, Moment, Shape, Text, Unit

CATEGORY = "fire_circle_pattern"


class PatternContent(TypedDict):
    """One pattern to add to a bank."""

    description: str
    agreement: float
    attack_id: str
    examples: Sequence[str]
    models: Sequence[str]
    layers: NotRequired[Sequence[str]]
    circle_id: NotRequired[str]
    seen_at: NotRequired[float]
    """When the circle ran, in seconds since 1970."""
    tags: NotRequired[Sequence[str]]


class ReasoningBankClient(Protocol):
    """Any object with a `store` method that saves a pattern, such as the bank of an open store."""

    def store(self, *, category: str, subcategory: str, content: PatternContent) -> object:
        """Save a pattern; the return value is up to the bank."""
        ...


def store_fire_circle_patterns(
    result: FireCircleResult, attack_id: str, reasoningbank: ReasoningBankClient
) -> None:
    """Save the patterns that a circle agreed on and showed in the prompt, one entry for each."""
    for pattern in result.patterns:
        reasoningbank.store(
            category=CATEGORY,
            subcategory=pattern.pattern_type,
            content=content_of(pattern, attack_id, result.circle_id, result.started_at),
        )


def content_of(
    pattern: PatternObservation,
    attack_id: str,
    circle_id: str,
    seen_at: float,
    tags: Sequence[str] = (),
) -> PatternContent:
    """The bank content of a pattern."""
    return {
        "description": pattern.description,
        "agreement": pattern.model_agreement,
        "attack_id": attack_id,
        "examples": pattern.examples,
        "models": pattern.models_observing,
        "layers": tuple(dict.fromkeys(quote.layer for quote in pattern.evidence)),
        "circle_id": circle_id,
        "seen_at": seen_at,
        "tags": tuple(tags),
    }


Agreement = Literal["agreement:all", "agreement:most", "agreement:some"]


class NewSighting(Declaration):
    """The checked content of one new sighting."""

    description: Annotated[Text, Field(min_length=1)]
    agreement: Unit
    attack_id: Annotated[Text, Field(min_length=1)]
    examples: tuple[Text, ...] = ()
    models: tuple[Text, ...] = ()
    layers: tuple[Text, ...] = ()
    circle_id: Text = ""
    seen_at: Moment | None = None
    tags: tuple[Text, ...] = ()

    @property
    def all_tags(self) -> tuple[str, ...]:
        """All tags that find this sighting."""
        share: Agreement = (
            "agreement:all"
            if self.agreement >= 1
            else "agreement:most"
            if self.agreement > 0.5
            else "agreement:some"
        )
        tags = (
            f"attack:{self.attack_id}",
            share,
            *(f"voice:{model}" for model in self.models),
            *(f"layer:{layer}" for layer in self.layers),
            *self.tags,
        )
        return tuple(dict.fromkeys(tag for tag in tags if tag))


class Sighting(Shape):
    """One circle that saw a pattern."""

    attack_id: Text
    circle_id: Text = ""
    at: Moment
    agreement: Unit
    description: Text
    models: tuple[Text, ...] = ()
    layers: tuple[Text, ...] = ()
    examples: tuple[Text, ...] = ()
    tags: tuple[Text, ...] = ()


class BankEntry(Shape):
    """One pattern, over all its sightings and wordings."""

    id: Text
    category: Text
    pattern_type: Text
    description: Text
    """The words of the first sighting."""
    sightings: int
    attacks: int
    highest_agreement: Unit
    first_seen_at: float
    last_seen_at: float


class FullEntry(BankEntry):
    """An entry with every sighting; the unit of export and import."""

    seen: tuple[Sighting, ...] = ()


class Relevant(Shape):
    """An entry and its relevance to a question, from 0 (none) to 1 (covers all of it)."""

    entry: BankEntry
    score: Unit


class BankFilters(Declaration):
    """Filters for a list of entries; all of those given must match."""

    pattern_type: str | None = None
    tag: str | None = None
    """Such as `layer:user`, `voice:NAME`, `attack:ID`, `agreement:all`, `label:NAME`."""
    text: str | None = None
    """Words that all occur in one of the entry's descriptions and quotes."""
