"""Accounts in a real browser: logging in and out, and what each role is offered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from firecircle.names import ROLES, Role
from firecircle.store.opening import Store, open_store
from firecircle.web.access import Access
from tests.e2e.browser import assert_accessible, started_browser
from tests.web.serving import Running, judged, running

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (the dev dependencies)")
Page = Any
PASSWORD = "correct horse battery"
SHOTS = os.environ.get("FIRECIRCLE_SHOTS")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("team") / "circles.sqlite") as opened:
        for role in ROLES:
            opened.accounts.add(role, role, PASSWORD)
        yield opened


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Running]:
    with running(store, Access(accounts=True)) as started:
        yield started


@pytest.fixture
def page(browser: Any, server: Running) -> Iterator[Page]:
    """A fresh browser that nobody is logged in to, whose console must stay clean."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=server.url)
    made = context.new_page()
    made.set_default_timeout(60_000)  # a busy machine is no failure
    trouble: list[str] = []
    made.on("pageerror", lambda error: trouble.append(str(error)))
    made.on("console", lambda said: trouble.append(said.text) if _is_trouble(said) else None)
    yield made
    context.close()
    assert trouble == []


def _is_trouble(said: Any) -> bool:
    """A refused log-in is written into the console by the browser; the page shows it."""
    return said.type in ("error", "warning") and "status of 401" not in said.text


def _log_in(page: Page, role: Role, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(role)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def _look(page: Page, name: str) -> None:
    """Nothing inaccessible in either theme; pictures in every width where somebody wants to look at them."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert_accessible(page)
    for width in (1440, 820, 390) if SHOTS else ():
        for theme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=f"{SHOTS}/{name}-{width}-{theme}.png")
    if SHOTS:
        page.set_viewport_size({"width": 1280, "height": 900})


def _accessible(page: Page) -> None:
    """A page in which axe finds nothing."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found] == []


@pytest.mark.parametrize("role", ROLES)
def test_each_role_sees_what_it_may_do(page: Page, store: Store, role: Role) -> None:
    kept = judged(store, label="benign").circle_id
    page.goto(f"/circles/{kept}")
    if role == "read":
        _look(page, "login")
        _accessible(page)
        _log_in(page, role, "a wrong password")
        playwright.expect(page.get_by_role("alert")).to_contain_text("the password is wrong")
    _log_in(page, role)
    page.wait_for_url(f"**/circles/{kept}")
    may_convene, may_delete = int(role != "read"), int(role == "admin")
    playwright.expect(page.get_by_role("button", name="Save")).to_have_count(may_convene)
    playwright.expect(page.get_by_role("button", name="Delete")).to_have_count(may_delete)
    playwright.expect(page.get_by_role("link", name="Convene", exact=True)).to_have_count(may_convene)
    playwright.expect(page.get_by_role("link", name="Team", exact=True)).to_have_count(may_delete)
    _look(page, f"circle-{role}")
    if may_convene:
        page.get_by_label("Label").fill("attack")
        page.get_by_role("button", name="Save").click()
        playwright.expect(page.get_by_text("Label saved.")).to_be_visible()
        assert {one.by for one in store.actions.each(subject=kept)} == {role}
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto("/circles")
    playwright.expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_an_admin_adds_somebody_who_then_logs_in(page: Page, store: Store) -> None:
    page.goto("/team")
    _log_in(page, "admin")
    page.wait_for_url("**/team")
    page.get_by_label("Name").fill("robin")
    page.get_by_role("button", name="Add, with a password made up").click()
    password = page.locator("#secret code").inner_text()
    playwright.expect(page.locator("tr[data-account=robin]")).to_be_visible()
    page.get_by_label("role of robin").select_option("convene")
    playwright.expect(page.get_by_text("robin has the role convene now.")).to_be_visible()
    _look(page, "team")
    _accessible(page)
    page.get_by_role("button", name="Log out").click()
    page.goto("/account")
    page.get_by_label("Name").fill("robin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_label("For what?").fill("nightly job")
    page.get_by_role("button", name="Make a token").click()
    secret = page.locator("#secret code").inner_text()
    playwright.expect(page.locator("#tokens")).to_contain_text("nightly job")
    account = store.accounts.with_token(secret)
    assert account is not None
    assert (account.name, account.role) == ("robin", "convene")
    _look(page, "account")
    _accessible(page)
