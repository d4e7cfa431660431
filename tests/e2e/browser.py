"""What tests in a real browser share: where it is, and that a checker finds nothing on a page."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest


def browser_path() -> str:
    """Where the browser is; the test is skipped without one."""
    found = (
        os.environ.get("FIRECIRCLE_TEST_BROWSER")
        or shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if not found:
        pytest.skip("needs a browser: apt-get install chromium, or FIRECIRCLE_TEST_BROWSER=path")
    return found


def assert_accessible(page: Any) -> None:
    """A page or a frame in which axe finds nothing."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    found = Axe().run(page).response["violations"]
    told = [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]
    assert told == []
