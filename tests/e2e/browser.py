"""What tests in a real browser share: how it is started, and that a checker finds nothing on a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is there. The shell is the same engine without a window: a fifth less processor time."""
WITHOUT = (
    # What belongs to the window around a page, which nobody sees, and a page kept ready for the next address: each
    # context of a test loaded three renderers for one page, two thirds of its processor time.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "SpareRendererForSitePerProcess",
    # Playwright's own list, which this one takes the place of.
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)


def browser_path() -> str:
    """Where the browser is; the test is skipped without one."""
    named = os.environ.get("FIRECIRCLE_TEST_BROWSER")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        pytest.skip(f"needs a browser: apt-get install {BROWSERS[0]}, or FIRECIRCLE_TEST_BROWSER=path")
    return found


@contextmanager
def started_browser() -> Iterator[Any]:
    """A browser without what only somebody in front of it would use."""
    from playwright.sync_api import sync_playwright

    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", f"--disable-features={','.join(WITHOUT)}"]
        )
        yield browser
        browser.close()


def assert_accessible(page: Any) -> None:
    """A page or a frame in which axe finds nothing."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    found = Axe().run(page).response["violations"]
    told = [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]
    assert told == [], told
