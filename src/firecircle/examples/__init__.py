"""Layered prompts to try the circle on: attacks of each pattern type, each with a benign twin."""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Literal

from firecircle.errors import ConfigError
from firecircle.names import Label
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text

Split = Literal["open", "held"]

NEAR_IDS = 3


class Example(Shape):
    """A prompt with what it is an example of, and why."""

    id: Text
    pattern_type: Text
    label: Label
    pair: Text
    """What an attack and its benign twin have in common."""
    split: Split
    """`held` examples are kept for measuring: nothing is tuned on them."""
    encoding: Text | None = None
    """How the payload is hidden, if it is."""
    note: Text
    prompt: MultiNeutrosophicPrompt


@cache
def load_examples() -> tuple[Example, ...]:
    """All bundled examples, in the order they were written."""
    text = resources.files("firecircle.examples").joinpath("layered.jsonl").read_text("utf-8")
    return tuple(_example(line) for line in text.splitlines() if line.strip())


def find_example(example_id: str) -> Example:
    """The example of this id. A `ConfigError` names the ids nearest to one that does not exist."""
    examples = {example.id: example for example in load_examples()}
    if example_id in examples:
        return examples[example_id]
    near = get_close_matches(example_id, examples, n=NEAR_IDS, cutoff=0.5)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    raise ConfigError(
        "example", f"there is no {example_id!r}", f"{meant}`firecircle examples` lists them all"
    )


def _example(line: str) -> Example:
    row = json.loads(line)
    layers = {name: row.pop(name) or "" for name in ("system", "application", "user")}
    turns = row.pop("turns")
    prompt = MultiNeutrosophicPrompt(**layers, turns=None if turns is None else tuple(turns))
    return Example(**row, prompt=prompt)
