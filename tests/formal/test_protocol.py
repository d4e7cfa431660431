"""TLC goes through all circles of some size; a wrong rule, put in the place of a right one, is caught."""

from __future__ import annotations

import re

import pytest

from firecircle.catalog import PRESENT_ABOVE, ROLE_WEIGHTS
from firecircle.circle.dialogue import DIVERGENT_ABOVE
from formal import protocol, tlc

pytestmark = pytest.mark.skipif(tlc.what_is_missing() is not None, reason=tlc.what_is_missing() or "")


def test_every_property_holds_in_every_circle(is_long: bool) -> None:
    checked = protocol.check_properties(larger=is_long)
    assert checked.completed, checked.complaint
    assert checked.states > 10_000
    ends = protocol.check_end()
    assert ends.completed, ends.complaint


def test_every_wrong_rule_is_caught_by_its_property_and_the_source_contradicts_its_own_rule() -> None:
    wrong = [mutant.wrong for mutant in protocol.mutants()]
    assert len(wrong) >= 20
    checked, caught = protocol.check_wrong_rules()
    assert checked.completed, checked.complaint
    assert caught == dict.fromkeys([*wrong, protocol.NO_RULE], True)


def test_every_property_has_a_wrong_rule_that_breaks_it() -> None:
    settings = (tlc.FOLDER / "Check.cfg").read_text(encoding="utf-8").partition("INVARIANTS")[2]
    checked = set(re.findall(r"^  (\w+)$", settings, re.MULTILINE)) | {"EveryCircleEnds"}
    broken = {mutant.property for mutant in protocol.mutants()}
    # this one only says how two variables go together
    assert checked - broken == {"OnlyTheEndHasAnOutcome"}
    assert broken <= checked


def test_specification_and_engine_weigh_alike() -> None:
    text = (tlc.FOLDER / "FireCircle.tla").read_text(encoding="utf-8")
    weights = re.findall(r"(\w+) \|-> (\d)", text[text.index("Weight == ") : text.index("Roles ==")])
    assert {role: float(weight) for role, weight in weights} == dict(ROLE_WEIGHTS)
    assert f"DivergentAbove == {DIVERGENT_ABOVE * 100:.0f}" in text
    assert f"PresentAbove == {PRESENT_ABOVE * 100:.0f}" in text
