"""The labelled prompts, and which layer of an attack carries it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from firecircle.prompt import MultiNeutrosophicPrompt
from training.ngrams import DEV, UNSEEN

__all__ = ["DEV", "LAYER_RULE", "Labelled", "load_labelled"]

LAYER_RULE = (
    "an attack is carried by the application layer if its family is indirect_injection or the user layer is"
    " empty, else by the user layer; a benign prompt counts where its attack could stand:"
    " application if it has such a text, else user"
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """One labelled prompt."""

    source: str
    family: str
    attack: bool
    prompt: MultiNeutrosophicPrompt

    @property
    def layer(self) -> str:
        """The layer that carries the attack, or could carry one: see `LAYER_RULE`."""
        if not self.attack:
            return "application" if self.prompt.application else "user"
        indirect = self.family == "indirect_injection" or not self.prompt.user.strip()
        return "application" if indirect else "user"

    @property
    def unseen(self) -> bool:
        """Whether its source is one that no rule was written on."""
        return self.source in UNSEEN

    @property
    def derived(self) -> bool:
        """Whether it was written for this project."""
        return self.source.startswith("derived_A_")


def load_labelled() -> list[Labelled]:
    """All of them, in the order of the file."""
    with DEV.open(encoding="utf-8") as lines:
        return [_labelled(json.loads(line)) for line in lines]


def _labelled(record: dict[str, object]) -> Labelled:
    turns = record["turns"]
    prompt = MultiNeutrosophicPrompt.model_validate(
        {
            **{layer: record[layer] or "" for layer in ("system", "application", "user")},
            "turns": turns,
        }
    )
    return Labelled(str(record["source"]), str(record["family"]), record["label"] == "attack", prompt)
