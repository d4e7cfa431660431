"""Nothing a prompt or a voice says may steer the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firecircle.telling.safe_text import printable, printable_line, shortened


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;own the title\x07left", "left"),
        ("\x1b]8;;https://evil.test\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x1b]52;c;cGF5bG9hZA==\x07clipboard", "clipboard"),
        ("\x1bP0;1|17/ab\x1b\\device", "device"),
        ("\x1b(0line drawing", "line drawing"),
        ("\x1bcreset", "reset"),
        ("cut \x1b[", "cut "),
        ("nul\x00bell\x07back\x08del\x7f", "nulbellbackdel"),
        ("abc\u202edcba\u202c\u2066x\u2069", "abcdcbax"),
        ("zero\u200bwidth\u200d\ufeff\u2060", "zerowidth"),
        ("soft\u00adhyphen", "softhyphen"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("select\ufe0f\U000e0100", "select"),
        ("filler\u3164\uffa0\u115f", "filler"),
        ("private\ue000\uffff\ud800", "private"),
        ("over\rwrite", "over\nwrite"),
        ("a\r\nb\u2028c\x85d", "a\nb\nc\nd"),
        ("tab\tstop", "tab    stop"),
        ("Z" + "\u0336" * 50 + "algo", "Z" + "\u0336" * 4 + "algo"),
        ("größe 你好 مرحبا שלום é", "größe 你好 مرحبا שלום é"),
        ("[bold]not markup[/bold] :smile:", "[bold]not markup[/bold] :smile:"),
    ],
)
def test_hostile_text_is_made_harmless(hostile: str, harmless: str) -> None:
    assert printable(hostile) == harmless


@given(st.text())
def test_no_control_or_unseen_character_survives(text: str) -> None:
    shown = printable(text)
    assert all(
        character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co")
        for character in shown
    )
    assert printable(shown) == shown


@given(st.text(), st.integers(1, 60))
def test_a_line_is_one_line_and_no_longer_than_allowed(text: str, longest: int) -> None:
    line = printable_line(text, longest)
    assert "\n" not in line
    assert len(line) <= longest


def test_a_shortened_name_keeps_both_ends() -> None:
    name = shortened("anthropic/claude-sonnet-4#2", 16)
    assert len(name) == 16
    assert name.startswith("anthropic/")
    assert name.endswith("-4#2")
