"""Pictures of the viewer for the documentation: real circles of embedded voices, in a real browser.

`python docs/viewer_pictures.py` writes six files to `docs/_static/viewer/`; with `--all FOLDER` every page at
three widths in both themes, to look at.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firecircle import EvaluationConfig, FireCircleConfig, PromptGuard
from firecircle.examples import load_examples
from firecircle.names import ModeName
from firecircle.store.opening import Store, open_store
from firecircle.web.app import build_site
from firecircle.web.serving import address_of, listening_socket, server_of

KEPT = Path(__file__).parent / "_static" / "viewer"
WIDTHS = {1440: 900, 820: 1180, 390: 844}
THEMES = ("light", "dark")


async def fill(store: Store) -> str:
    """Every example judged once; the id of the circle that is shown."""
    guard = PromptGuard(EvaluationConfig(models=("embedded:generalist",)), store=store)
    shown = ""
    for number, example in enumerate(load_examples()[:24]):
        mode: ModeName = "fire_circle" if number % 8 != 3 else "single"
        metrics = await guard.evaluate_prompt(
            example.prompt,
            mode,
            FireCircleConfig.embedded() if mode == "fire_circle" else None,
            label=example.label,
        )
        if example.id == "temporal_inconsistency-01-attack" and metrics.kept_as:
            shown = metrics.kept_as
    return shown


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """A server for this store; its address."""
    bound, ready = listening_socket("127.0.0.1", 0), threading.Event()
    server = server_of(build_site(store), ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        ready.wait(20)
        yield address_of(bound, "127.0.0.1")
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()


def take(browser: Any, address: str, path: str, width: int, theme: str, to: Path, *, whole: bool) -> None:
    """One picture of a page."""
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": WIDTHS[width]}, color_scheme=theme
    )
    page = context.new_page()
    page.goto(path)
    page.wait_for_timeout(400)
    page.screenshot(path=to, full_page=whole)
    context.close()


def main() -> None:
    """Fill a store, look at it, write the pictures."""
    from playwright.sync_api import sync_playwright

    everything = Path(sys.argv[2]) if sys.argv[1:2] == ["--all"] else None
    folder = everything or KEPT
    folder.mkdir(parents=True, exist_ok=True)
    named = os.environ.get("FIRECIRCLE_TEST_BROWSER")
    chromium = named or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as place, open_store(Path(place) / "circles.sqlite") as store:
        circle = asyncio.run(fill(store))
        paths = {"circles": "/circles", "circle": f"/circles/{circle}", "convene": f"/convene?from={circle}"}
        with serving(store) as address, sync_playwright() as started:
            browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            wanted = (
                [(name, width, theme) for name in paths for width in WIDTHS for theme in THEMES]
                if everything
                else [
                    ("circles", 1440, "light"),
                    ("circle", 1440, "light"),
                    ("circle", 1440, "dark"),
                    ("convene", 1440, "light"),
                    ("circle", 820, "light"),
                    ("circles", 390, "dark"),
                ]
            )
            for name, width, theme in wanted:
                to = folder / f"{name}-{width}-{theme}.png"
                take(browser, address, paths[name], width, theme, to, whole=everything is not None)
            browser.close()


if __name__ == "__main__":
    main()
