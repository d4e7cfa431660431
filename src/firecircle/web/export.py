"""A circle as one HTML file that needs nothing else: same templates, with styles and scripts written in."""

from __future__ import annotations

import base64
import hashlib
import re

from jinja2 import Environment

from firecircle.store.documents import CircleOrPanel
from firecircle.store.finding import CircleSummary
from firecircle.telling.answers import all_answers
from firecircle.web.rendering import static_text
from firecircle.web.shown.page import caption_of, page_of

STYLE = "viewer.css"
SCRIPTS = ("theme.js", "reading.js")


def exported_html(templates: Environment, summary: CircleSummary, judged: CircleOrPanel) -> str:
    """The file. Its policy allows exactly the styles and scripts written into it, and no connection."""
    style, scripts = static_text(STYLE), [static_text(name) for name in SCRIPTS]
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return templates.get_template("export.html").render(
        page=page_of(caption_of(summary), judged),
        answers=all_answers(judged),
        standalone=True,
        policy=policy,
        style=style,
        scripts=scripts,
    )


def file_name(summary: CircleSummary, kind: str) -> str:
    """A name that any file system takes."""
    return f"circle-{re.sub(r'[^0-9A-Za-z_-]', '_', summary.id)[:60]}.{kind}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
