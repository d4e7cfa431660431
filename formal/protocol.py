"""What is checked: every property in every circle, and that a wrong rule breaks its property."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from formal import tlc

TEMPORAL = ("RequirementsNeverRelax", "NothingSaidIsLost", "EveryStepLeadsOn", "EveryCircleEnds")
SMALL: Mapping[str, int | str] = {"MixedSize": 3, "MostVoices": 3}
"""Enough for every wrong rule to show."""
SMALLEST: Mapping[str, int | str] = {"MixedSize": 2, "MostVoices": 2, "MostReserves": 1}
"""Fairness is dear: each state is compared with all that can follow it."""
LARGER: Mapping[str, int | str] = {"MixedSize": 4, "AllSettings": "TRUE"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong rule, which rule it stands for, and the property that must fail."""

    rule: str
    wrong: str
    property: str


def mutants() -> list[Mutant]:
    """The wrong rules of Broken.tla, in their order."""
    text = (tlc.FOLDER / "Broken.tla").read_text(encoding="utf-8")
    listed = re.findall(r"^\\\* (\w+) -> (\w+)\n(\w+)", text, re.MULTILINE)
    return [Mutant(rule, wrong, broken) for rule, broken, wrong in listed]


def check_properties(*, larger: bool = False) -> tlc.Outcome:
    """Every property but the one about time, on all circles."""
    return tlc.check("Check", _settings(LARGER if larger else {}), quick=not larger)


def check_end() -> tlc.Outcome:
    """That every circle ends, as a statement about time, on the smallest circles."""
    return tlc.check("Check", _only("EveryCircleEnds", SMALLEST), quick=True)


def check_mutant(mutant: Mutant) -> tlc.Outcome:
    """Put a wrong rule in the place of the right one and check its property."""
    sizes = SMALLEST if mutant.property == "EveryCircleEnds" else SMALL
    settings = _only(mutant.property, sizes)
    swapped = settings.replace("CONSTANTS\n", f"CONSTANTS\n  {mutant.rule} <- {mutant.wrong}\n", 1)
    return tlc.check("Broken", swapped, quick=True)


def check_formula_of_the_source() -> tlc.Outcome:
    """The safety formula of the source document, under the right rules."""
    return tlc.check("Broken", _only("SafetyOfTheSource", SMALL), quick=True)


def _settings(changed: Mapping[str, int | str]) -> str:
    text = (tlc.FOLDER / "Check.cfg").read_text(encoding="utf-8")
    for name, value in changed.items():
        text = re.sub(rf"^  {name} = \w+$", f"  {name} = {value}", text, flags=re.MULTILINE)
    return text


def _only(name: str, sizes: Mapping[str, int | str]) -> str:
    kind = "PROPERTY" if name in TEMPORAL else "INVARIANT"
    return f"{_settings(sizes).partition('INVARIANTS')[0]}{kind} {name}\n"
