"""One decision on which characters hide, for the terminal and for pages alike."""

from __future__ import annotations

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from firecircle.cli.printable import printable
from firecircle.telling.safe_text import (
    HIDDEN_RANGES,
    hidden_runs,
    line_with_codes,
    with_codes,
    without_hidden,
)
from firecircle.web.rendering import visible

UNSEEN = ("Cc", "Cf", "Cs", "Co")
LOOK_LIKE_NOTHING = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2028\u2029\u3164\uffa0"


def _is_hidden(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in HIDDEN_RANGES)


def test_all_that_unicode_calls_unseen_hides_and_nothing_that_can_be_read() -> None:
    hidden = {chr(code) for first, last in HIDDEN_RANGES for code in range(first, last + 1)}
    everything = map(chr, range(sys.maxunicode + 1))
    unseen = {character for character in everything if unicodedata.category(character) in UNSEEN} - {*"\t\n"}
    assert unseen <= hidden
    for character in hidden - unseen:
        known = unicodedata.name(character, "").startswith("VARIATION SELECTOR")
        unused = unicodedata.category(character) == "Cn"
        assert known or unused or character in LOOK_LIKE_NOTHING, hex(ord(character))


@given(st.characters(), st.sampled_from(["ab", "größe", "你好"]))
def test_terminal_and_page_agree_on_what_hides(character: str, word: str) -> None:
    text = f"{word}{character}{word}"
    hides = _is_hidden(character)
    assert (without_hidden(text) != text) == hides
    assert (with_codes(text) != text) == hides
    assert [run.character for run in hidden_runs(text)] == ([character] if hides else [])
    assert ('class="odd"' in visible(text)) == hides
    if not hides and character != "\t":
        assert printable(text) == text
    else:
        assert character not in printable(text)


def test_a_line_is_short_and_says_that_it_was_cut() -> None:
    assert line_with_codes("a\nb\u202e") == "a b⟨U+202E⟩"
    assert line_with_codes("x" * 1_000_000, 10) == "x" * 10 + "…"
    assert line_with_codes("x" * 1_000) == "x" * 1_000
