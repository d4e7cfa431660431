"""What a person reads is in plain English, and all of it is in one file.

`python -m tests.user_strings` writes the file again after a change.
"""

from __future__ import annotations

import re

from tests.user_strings import FILE, all_sentences, written

REPLACED = {
    r"(is|are|was|were) told|\btells?\b": "reports, shows, says",
    r"nobody|whoever|who sits": "no voice, any voice that, the voices in the circle",
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b|\bcure[sd]?\b": "fix",
    r"\bleaves? with\b": "exit with",
    r"(?<!there )(?<!what )\bis no (?!longer)\w|\bis none\b": "is not a, has no",
    r"\bbefell\b|\bas then\b|\bso it is with\b": "happened, the value used at the time, and N more",
    r"\bfrom which \w+ on\b": "threshold",
    r"\bclosing words\b|\btalking\b|\beach alone\b": "final round, discussion, independent",
    r"\brescues?\b|\bgroupthink\b": "changed to alarm, dropped an alarm",
    r"\bstands? (in|there|for)\b|\bkept\b": "is in, is saved",
    r"\bbeside the\b": "next to, compared with",
}
"""Words that this project once used, and what it says instead."""


def test_no_text_uses_a_quaint_word() -> None:
    found = [
        f"{place}: {text!r}: write {instead}"
        for place, text in all_sentences()
        for words, instead in REPLACED.items()
        if re.search(words, text, re.IGNORECASE)
    ]
    assert found == []


def test_the_file_of_all_texts_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), (
        "run `python -m tests.user_strings` and read its diff"
    )
