"""`circles export --html`: one circle as a page that works from disk and loads nothing."""

from __future__ import annotations

import sys

from firecircle.errors import ConfigError


def write_page(circle_id: str, file: str, store: str | None, *, as_json: bool) -> int:
    """Write the page of a circle or panel; the beginning of its id will do."""
    from firecircle.cli.circles_files import written_whole
    from firecircle.cli.printable import printable_line
    from firecircle.cli.screen import print_json
    from firecircle.store.opening import open_store

    try:
        from firecircle.web.export import exported_html
        from firecircle.web.rendering import templates
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"--html: {missing.name} is not installed; pip install 'firecircle[view]'"
        ) from None
    with open_store(store) as opened:
        summary = opened.circles.summary(circle_id)
        page = exported_html(templates(), summary, opened.circles.load(summary.id))
    with written_whole(file) as target:
        target.write(page)
    if as_json:
        print_json({"file": file, "circle": summary.id})
    else:
        where = "" if file == "-" else f" to {printable_line(file)}"
        print(f"circle {summary.id} written{where}", file=sys.stderr if file == "-" else sys.stdout)
    return 0
