"""Voices know each other by anonymous labels; a reader of the report is told who is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping


def with_names(text: str, labels: Mapping[str, str]) -> str:
    """The text with a voice's name after each mention of its label; `labels` tells them by name."""
    names = {label: name for name, label in labels.items()}
    if not names:
        return text
    mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return mention.sub(lambda found: f"{found[0]} ({names[found[0]]})", text)
