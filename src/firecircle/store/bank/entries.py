"""An entry of the bank, where it was seen, and which entries a list is narrowed down to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from firecircle.shapes import Declaration, Shape, Text, Unit

Agreement = Literal["agreement:all", "agreement:most", "agreement:some"]


class Told(Declaration):
    """One pattern as somebody told it to the bank, checked."""

    description: Annotated[Text, Field(min_length=1)]
    agreement: Unit
    attack_id: Annotated[Text, Field(min_length=1)]
    examples: tuple[Text, ...] = ()
    models: tuple[Text, ...] = ()
    layers: tuple[Text, ...] = ()
    circle_id: Text = ""
    seen_at: float | None = None
    tags: tuple[Text, ...] = ()

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Everything this sighting can be found by."""
        share: Agreement = (
            "agreement:all"
            if self.agreement >= 1
            else "agreement:most"
            if self.agreement > 0.5
            else "agreement:some"
        )
        told = (
            f"attack:{self.attack_id}",
            share,
            *(f"voice:{model}" for model in self.models),
            *(f"layer:{layer}" for layer in self.layers),
            *self.tags,
        )
        return tuple(dict.fromkeys(tag for tag in told if tag))


class Sighting(Shape):
    """One circle in which a pattern was seen."""

    attack_id: Text
    circle_id: Text = ""
    at: float
    agreement: Unit
    description: Text
    """What it was called there."""
    models: tuple[Text, ...] = ()
    layers: tuple[Text, ...] = ()
    examples: tuple[Text, ...] = ()
    """The words of the prompt that show it."""
    tags: tuple[Text, ...] = ()


class BankEntry(Shape):
    """One pattern, however often and under whichever words it was seen."""

    id: Text
    category: Text
    pattern_type: Text
    description: Text
    """The words of the first sighting."""
    sightings: int
    attacks: int
    """In how many different attacks."""
    highest_agreement: Unit
    first_seen_at: float
    last_seen_at: float


class FullEntry(BankEntry):
    """An entry with every sighting; what is exported and imported."""

    seen: tuple[Sighting, ...] = ()


class Relevant(Shape):
    """An entry, and how relevant it is to what was asked; higher is more, and 0 is not at all."""

    entry: BankEntry
    score: float


class BankFilters(Declaration):
    """What a list of entries is narrowed down to; all that are given must hold."""

    pattern_type: str | None = None
    tag: str | None = None
    """Such as `layer:user`, `voice:NAME`, `attack:ID`, `agreement:all`, `label:NAME`."""
    text: str | None = None
    """Words that all stand in one of the descriptions and quotes of the entry."""
