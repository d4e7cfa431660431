"""What the goldens would say of a change."""

from __future__ import annotations

from tests.goldens import differences


def test_a_difference_is_named_by_its_place() -> None:
    before = {"a": {"b": [1, {"c": 2}]}, "gone": 1, "page": ["<p>one", "<p>two"]}
    now = {"a": {"b": [1, {"c": 3}]}, "new": 2, "page": ["<p>one", "<p>2"]}
    assert list(differences(before, now)) == [
        ".a.b[1].c: 2 -> 3",
        ".gone: gone, was 1",
        ".page -<p>two",
        ".page +<p>2",
        ".new: new, 2",
    ]
    assert not list(differences(before, before))


def test_lists_of_other_lengths_and_longer_texts_differ() -> None:
    assert list(differences([{}], [{}, {}], "rows")) == ["rows: 1 entries, now 2"]
    assert list(differences("one\ntwo", "one\nthree", "help")) == ["help -two", "help +three"]
    assert list(differences(1, None, "n")) == ["n: 1 -> null"]
