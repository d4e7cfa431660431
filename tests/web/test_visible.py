"""Text is shown as it is, except that nothing in it can hide, reorder or become markup."""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from firecircle.telling.safe_text import with_codes
from firecircle.web.rendering import visible

HIDING = [
    "\u202e",
    "\u2066",
    "\u200b",
    "\u200d",
    "\x00",
    "\x1b",
    "\ufeff",
    "\u00ad",
    "\U000e0041",
    "\u2028",
    "\u3164",
]


def _text_of(markup: Markup) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.parametrize("character", HIDING)
def test_a_hiding_character_becomes_a_mark_with_its_code(character: str) -> None:
    shown = visible(f"ab{character}cd")
    assert character not in shown
    assert f"U+{ord(character):04X}" in shown
    assert 'class="odd"' in shown
    assert character not in with_codes(f"ab{character}cd")


def test_markup_in_a_text_stays_text() -> None:
    shown = visible("<script>alert(1)</script> & \"quoted\" 'too' {{ 7 * 7 }}")
    assert "<" not in shown
    assert _text_of(shown) == "<script>alert(1)</script> & \"quoted\" 'too' {{ 7 * 7 }}"


def test_a_run_is_one_mark_and_a_text_of_marks_stays_small() -> None:
    assert visible("a" + "\u200b" * 5000 + "b").count("odd") == 1
    many = visible("a\u200b" * 100_000)
    assert many.count('class="odd"') == 2_000
    assert len(many) < 3_000_000


def test_pictograms_keep_their_joints_and_letters_do_not() -> None:
    family = "👩\u200d👧"
    assert visible(family) == family
    assert visible("❤\ufe0f") == "❤\ufe0f"
    assert "U+200D" in visible("pass\u200dword")
    assert "U+FE01" in visible("x\ufe01")


@given(st.text())
def test_whatever_the_text_nothing_hides_and_nothing_is_lost(text: str) -> None:
    shown = _text_of(visible(text.replace("\ud800", "")))
    hidden = [
        character
        for place, character in enumerate(shown)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs")
        and character not in "\n\t"
        and not (place and unicodedata.category(shown[place - 1]) in ("So", "Sk"))
        and not (place > 1 and shown[place - 1] == "\ufe0f")
    ]
    assert hidden == []
    plain = [c for c in text.replace("\r\n", "\n") if unicodedata.category(c)[0] in "LNP"]
    assert [c for c in plain if c not in shown] == []
