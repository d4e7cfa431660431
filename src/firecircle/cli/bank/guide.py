"""The bank as `evaluate --bank K` uses it: opened when a prompt is about to be judged alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from firecircle.cli.output import Section, section
from firecircle.errors import ConfigError
from firecircle.names import is_embedded

if TYPE_CHECKING:
    from firecircle.prompt import MultiNeutrosophicPrompt


def guide_for(k: int | None, mode: str, where: str | None) -> StoredGuide | None:
    """Whoever tells the voices about the k most relevant patterns, if that was asked for."""
    if k is None:
        return None
    if mode == "fire_circle":
        raise ConfigError("--bank", "a circle judges unaided first", "use --mode single or --mode parallel")
    return StoredGuide(k, where)


class StoredGuide:
    """The bank of a store, as a guide."""

    def __init__(self, k: int, where: str | None) -> None:
        self._k, self._where = k, where

    def guidance_for(self, prompt: MultiNeutrosophicPrompt) -> tuple[str, ...]:
        """A line for each of the most relevant patterns."""
        from firecircle.store.opening import open_store

        with open_store(self._where) as store:
            if not store.bank.count():
                raise ConfigError(
                    "--bank", "the bank is empty", "`firecircle bank learn` fills it from the circles kept"
                )
            return store.bank.guidance_for(prompt, self._k)


def guidance_lines(guidance: Sequence[str], voices: Sequence[str]) -> Iterator[Section]:
    """What the voices were told to look out for, and whether they can read it."""
    if not guidance:
        return
    deaf = [voice for voice in voices if is_embedded(voice)]
    note = ["the built-in voices look at the prompt alone and were not swayed by it"] if deaf else []
    yield from section("Told", [*guidance, *note])
