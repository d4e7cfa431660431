"""What is checked: every property in every circle, and that a wrong rule breaks its property."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from formal import tlc

ABOUT_TIME = "EveryCircleEnds"
NO_RULE = "nothing"
SMALL: Mapping[str, int | str] = {"MixedSize": 2, "MostVoices": 3, "MostReserves": 1}
"""Enough for every wrong rule to show but that for groups of reserves, which are tried with two of them."""
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
    return tlc.check("Check", _ending(), quick=True)


def check_wrong_rules() -> tuple[tlc.Outcome, dict[str, bool]]:
    """Which wrong rules are caught by their property, and whether the source's formula is contradicted.

    All are tried in one start of TLC: a circle says which rule is wrong in it, and the circles of a rule are
    left as soon as one of them broke its property. A statement about time needs a start of its own.
    """
    tried = [mutant for mutant in mutants() if mutant.property != ABOUT_TIME]
    tried.append(Mutant(NO_RULE, NO_RULE, "SafetyOfTheSource"))
    swapped = "".join(f"  {rule} <- Or{rule}\n" for rule in _by_rule(tried))
    settings = _settings(SMALL).partition("INVARIANTS")[0].replace("CheckedCircles", "CirclesWithAWrongRule")
    settings = settings.replace("CONSTANTS\n", f"CONSTANTS\n{swapped}", 1)
    settings += "CONSTRAINT StateIsLookedAt\nACTION_CONSTRAINT StepIsLookedAt\n"
    module = _module_of_wrong_rules(tried)
    outcome = tlc.check("Wrong", settings, modules=[("Wrong", module)], quick=True, allow_ends=True)
    numbers = {number for number, _ in tlc.printed(outcome, "caught")}
    caught = {mutant.wrong: number in numbers for number, mutant in enumerate(tried, start=1)}
    for mutant in mutants():
        if mutant.property == ABOUT_TIME:
            swapped = f"CONSTANTS\n  {mutant.rule} <- {mutant.wrong}\n"
            ending = tlc.check("Broken", _ending().replace("CONSTANTS\n", swapped, 1), quick=True)
            caught[mutant.wrong] = ending.violated == ABOUT_TIME
    return outcome, caught


def _by_rule(tried: list[Mutant]) -> dict[str, list[Mutant]]:
    rules = dict.fromkeys(mutant.rule for mutant in tried if mutant.rule != NO_RULE)
    return {rule: [mutant for mutant in tried if mutant.rule == rule] for rule in rules}


def _module_of_wrong_rules(tried: list[Mutant]) -> str:
    """Each rule as a choice between the right one and the wrong ones, and what catches them."""
    specification = (tlc.FOLDER / "FireCircle.tla").read_text(encoding="utf-8")
    steps = dict(re.findall(r"^(\w+) == \[\]\[(\w+)\]_vars", specification, re.MULTILINE))
    rules = ""
    for rule, wrong in _by_rule(tried).items():
        declared = re.search(rf"^{rule}(\(.*?\))? ==", specification, re.MULTILINE)
        assert declared, rule
        given = declared[1] or ""
        cases = _cases({mutant.wrong: f"{mutant.wrong}{given}" for mutant in wrong}, f"Right!{rule}{given}")
        rules += f"Or{rule}{given} == {cases}\n"
    broken = {mutant.wrong: mutant.property for mutant in tried}
    states = {wrong: name for wrong, name in broken.items() if name not in steps}
    moves = {wrong: f"[{steps[name]}]_vars" for wrong, name in broken.items() if name in steps}
    grouped = [mutant.wrong for mutant in tried if mutant.rule == "HelpfulGroups"]
    numbers = {wrong: str(number) for number, wrong in enumerate(broken, start=1)}
    return f"""---- MODULE Wrong ----
EXTENDS Broken, TLC
Right == INSTANCE FireCircle
{rules}
CirclesWithAWrongRule ==
    {{[wrong |-> rule] @@ declared : rule \\in {_set(broken)}, declared \\in CheckedCircles}}
    \\cup {{[wrong |-> rule] @@ declared : rule \\in {_set(grouped)}, declared \\in CirclesWithTwoReserves}}
Number == {_cases(numbers, "0")}
ASSUME \\A number \\in 1..{len(tried)} : TLCSet(number, FALSE)
Catch == TLCSet(Number, TRUE) /\\ PrintT(<<"caught", Number, round>>)
StateIsLookedAt == ~TLCGet(Number) /\\ ({_cases(states, "TRUE")} \\/ (Catch /\\ FALSE))
StepIsLookedAt == ~TLCGet(Number) /\\ ({_cases(moves, "TRUE")} \\/ (Catch /\\ FALSE))
====
"""


def _set(words: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{word}"' for word in words) + "}"


def _cases(answers: Mapping[str, str], otherwise: str) -> str:
    chosen = " [] ".join(f'circle.wrong = "{wrong}" -> {answer}' for wrong, answer in answers.items())
    return f"(CASE {chosen} [] OTHER -> {otherwise})"


def _settings(changed: Mapping[str, int | str]) -> str:
    text = (tlc.FOLDER / "Check.cfg").read_text(encoding="utf-8")
    for name, value in changed.items():
        text = re.sub(rf"^  {name} = \w+$", f"  {name} = {value}", text, flags=re.MULTILINE)
    return text


def _ending() -> str:
    return f"{_settings(SMALLEST).partition('INVARIANTS')[0]}PROPERTY {ABOUT_TIME}\n"
