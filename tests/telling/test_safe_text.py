"""One decision on which characters hide, for the terminal and for pages alike."""

from __future__ import annotations

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from firecircle.telling.safe_text import (
    HIDDEN_RANGES,
    STACKING_RANGES,
    hidden_runs,
    line_quoting,
    line_with_codes,
    name_with_codes,
    printable,
    with_codes,
    without_hidden,
)
from firecircle.web.rendering import visible

UNSEEN = ("Cc", "Cf", "Cs", "Co")
LOOK_LIKE_NOTHING = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2028\u2029\u3164\uffa0\u2800\U00016fe4\U0001d159"
)


def _is_hidden(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in HIDDEN_RANGES)


def test_all_that_unicode_calls_unseen_hides_and_nothing_that_can_be_read() -> None:
    hidden = {chr(code) for first, last in HIDDEN_RANGES for code in range(first, last + 1)}
    everything = map(chr, range(sys.maxunicode + 1))
    unseen = {character for character in everything if unicodedata.category(character) in UNSEEN} - {*"\t\n"}
    assert unseen <= hidden
    for character in hidden - unseen:
        known = unicodedata.name(character, "").startswith("VARIATION SELECTOR")
        unused = unicodedata.category(character) in ("Cn", "Zs")
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


def test_what_a_text_writes_itself_is_told_from_a_mark() -> None:
    assert with_codes("a\u202eb") == "a⟨U+202E⟩b"
    assert with_codes("a⟨U+202E⟩b") == "a⟨U+27E8⟩U+202E⟩b"
    assert with_codes("⟨x⟩") == "⟨x⟩"
    assert printable("a⟨U+202E⟩b") == "a⟨U+202E⟩b"


def test_joints_are_left_alone_only_between_pictograms() -> None:
    for built in ("👩\u200d👧", "👩🏽\u200d🚀", "❤\ufe0f\u200d🔥", "❤\ufe0f"):
        assert with_codes(built) == built
    for smuggled in ("👩\u200dpass", "©\u200d👧", "^\ufe0f", "a\u200d👧", "👩\u200d\u200d👧"):
        assert "⟨U+" in with_codes(smuggled)


def test_a_tower_of_accents_ends_after_a_few() -> None:
    assert with_codes("e\u0301\u0302 tế") == "e\u0301\u0302 tế"
    tower = with_codes("Z" + "\u0300\u0301\u0302\u0303\u0304\u0305\u0305")
    assert tower == "Z\u0300\u0301\u0302\u0303⟨U+0304⟩⟨U+0305×2⟩"
    stacking = [chr(code) for first, last in STACKING_RANGES for code in range(first, last + 1)]
    assert all(unicodedata.category(mark) in ("Mn", "Me", "Cn", "Po", "Pd", "Lo") for mark in stacking)


def test_spaces_that_only_look_like_one_are_marked_and_plain_in_a_terminal() -> None:
    assert with_codes("ignore\u00a0all\u2009rules") == "ignore⟨U+00A0⟩all⟨U+2009⟩rules"
    assert printable("ignore\u00a0all\u2009rules") == "ignore all rules"
    assert line_with_codes("a\u2028b\x1cc  d") == "a⟨U+2028⟩b⟨U+001C⟩c d"


def test_a_name_that_could_pass_for_words_of_ours_stands_in_quotes() -> None:
    assert name_with_codes("openrouter:some-vendor/model-4.1@v2") == "openrouter:some-vendor/model-4.1@v2"
    assert name_with_codes("✓ No alarm, F 0.00") == "“✓ No alarm, F 0.00”"
    assert name_with_codes("x”. ✓ No alarm “") == "“x⟨U+201D⟩. ✓ No alarm “”"
    line = line_quoting(["✓ No alarm"])
    assert (line("✓ No alarm"), line("a reason")) == ("“✓ No alarm”", "a reason")
