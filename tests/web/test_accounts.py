"""Accounts: what each role may do over HTTP, log-in, sessions, tokens, and who is written down as having done it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from firecircle.errors import ConfigError
from firecircle.names import ROLES, Role
from firecircle.store.opening import Store, open_store
from firecircle.web.access import WRITE_HEADER, Access
from firecircle.web.attempts import MOST_OF_ONE
from tests.web.hostile import PAYLOADS
from tests.web.serving import PATIENCE, Running, judged, running

NAMES: dict[Role, str] = {"read": "reader", "convene": "convener", "admin": "adminer"}
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(Path(tmp_path_factory.mktemp("team")) / "circles.sqlite") as opened:
        for role in ROLES:
            opened.accounts.add(NAMES[role], role, PASSWORD)
        yield opened


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[Running]:
    with running(store, Access(accounts=True)) as started:
        yield started


@pytest.fixture(scope="module")
def secrets(store: Store) -> dict[Role, str]:
    """A token of an account of each role."""
    return {role: store.accounts.add_token(NAMES[role]).secret for role in ROLES}


def program(server: Running, secret: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {secret}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=20)


@contextmanager
def browser(server: Running, name: str, password: str = PASSWORD) -> Iterator[httpx.Client]:
    """What a browser does: it logs in, keeps the cookie, and sends what the page carries."""
    with httpx.Client(base_url=server.url, timeout=20) as client:
        answer = client.post("/login", data={"name": name, "password": password})
        assert (answer.status_code, answer.headers["location"]) == (303, "/circles")
        found = re.search(r'name="firecircle-token" content="(\w+)"', client.get("/circles").text)
        assert found
        client.headers[WRITE_HEADER] = found[1]
        yield client


def test_a_stranger_sees_nothing(server: Running) -> None:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as stranger:
        for path in ("/circles", "/convene", "/bank", "/runs", "/team", "/account", "/circles/x"):
            assert stranger.get(path).headers["location"].startswith("/login")
        assert (
            stranger.get("/circles/x?voice=a").headers["location"] == "/login?next=%2Fcircles%2Fx%3Fvoice%3Da"
        )
        for path in ("/circles", "/me", "/accounts", "/actions", "/openapi.json"):
            refused = stranger.get(f"/api/v1{path}")
            assert refused.status_code == 401
            assert refused.headers["content-type"] == "application/problem+json"
        assert server.access.write_token not in stranger.get("/login").text
        assert stranger.get("/static/viewer.css").status_code == 200
        for secret in ("fc_guessed", "x", server.access.write_token):
            guessing = {"authorization": f"Bearer {secret}", WRITE_HEADER: server.access.write_token}
            assert stranger.get("/api/v1/circles", headers=guessing).status_code == 401


ALLOWED: dict[tuple[str, str], tuple[Role, int]] = {
    ("GET", "/circles"): ("read", 200),
    ("GET", "/circles/ID"): ("read", 200),
    ("GET", "/me"): ("read", 200),
    ("GET", "/tokens"): ("read", 200),
    ("POST", "/estimate"): ("convene", 200),
    ("POST", "/evaluate"): ("convene", 200),
    ("PUT", "/circles/ID/label"): ("convene", 200),
    ("POST", "/circles/ID/cancel"): ("convene", 409),
    ("POST", "/prune"): ("admin", 409),
    ("GET", "/accounts"): ("admin", 200),
    ("POST", "/accounts"): ("admin", 422),
    ("PUT", "/accounts/reader"): ("admin", 200),
    ("DELETE", "/accounts/nobody"): ("admin", 404),
    ("GET", "/actions"): ("admin", 200),
    ("DELETE", "/circles/ID"): ("admin", 204),
}
BODIES = {
    "/estimate": {"user": "hello"},
    "/evaluate": {"user": "hello", "mode": "single"},
    "/circles/ID/label": {"label": "attack"},
    "/prune": {"until": 1.0, "expected": 7},
    "/accounts": {"name": "Not A Name", "role": "read"},
    "/accounts/reader": {},
}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_its_own(
    server: Running, store: Store, secrets: dict[Role, str], role: Role
) -> None:
    kept = judged(store).circle_id
    with program(server, secrets[role]) as client:
        for (method, path), (needed, good) in ALLOWED.items():
            answer = client.request(method, f"/api/v1{path.replace('ID', kept)}", json=BODIES.get(path))
            may = ROLES.index(role) >= ROLES.index(needed)
            assert answer.status_code == (good if may else 403), (method, path, answer.text)
            if not may:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["detail"] == f"this needs the role {needed}; {NAMES[role]} has {role}"
    assert _is_kept(store, kept) == (role != "admin")
    done = {(one.by, one.what) for one in store.actions.each(subject=kept)}
    assert (
        done
        == {
            "read": set(),
            "convene": {("convener", "labelled")},
            "admin": {("adminer", "labelled"), ("adminer", "deleted")},
        }[role]
    )


def _is_kept(store: Store, circle_id: str) -> bool:
    try:
        return bool(store.circles.summary(circle_id))
    except ConfigError:
        return False


def test_a_page_shows_what_its_reader_may_do(server: Running, store: Store) -> None:
    kept = judged(store).circle_id
    shown = {}
    for role in ROLES:
        with browser(server, NAMES[role]) as client:
            list_page, page = client.get("/circles").text, client.get(f"/circles/{kept}").text
            shown[role] = (
                'href="/convene"' in list_page,
                'id="label-form"' in page,
                'id="delete"' in page,
                'href="/team"' in list_page,
            )
            assert client.get("/convene").status_code == (403 if role == "read" else 200)
            assert client.get("/team").status_code == (200 if role == "admin" else 403)
            assert client.get("/account").status_code == 200
    assert shown == {
        "read": (False, False, False, False),
        "convene": (True, True, False, False),
        "admin": (True, True, True, True),
    }


def test_a_session_is_safe_and_ends(server: Running, store: Store) -> None:
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        answer = client.post(
            "/login", data={"name": "reader", "password": PASSWORD, "next": "//evil.example"}
        )
        assert answer.headers["location"] == "/evil.example"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        secret = client.cookies["firecircle-session"]
        with store.database.reading() as connection:
            assert secret not in str(connection.exec_driver_sql("SELECT * FROM sessions").all())
    with browser(server, "adminer") as client, browser(server, "adminer") as other:
        kept = judged(store).circle_id
        assert client.headers[WRITE_HEADER] != other.headers[WRITE_HEADER]
        for wrong in ("", other.headers[WRITE_HEADER], server.access.write_token):
            stolen = {WRITE_HEADER: wrong}
            assert client.delete(f"/api/v1/circles/{kept}", headers=stolen).status_code == 403
        foreign = {"sec-fetch-site": "cross-site"}
        assert client.delete(f"/api/v1/circles/{kept}", headers=foreign).status_code == 403
        assert client.post("/logout").status_code == 403
        assert (
            client.post("/logout", data={"token": client.headers[WRITE_HEADER]}).headers["location"]
            == "/login"
        )
        assert client.get("/circles").headers["location"] == "/login"
        assert other.delete(f"/api/v1/circles/{kept}").status_code == 204


def test_a_page_of_another_site_cannot_log_anybody_in(server: Running) -> None:
    given = {"name": "reader", "password": PASSWORD}
    answer = httpx.post(
        f"{server.url}/login", data=given, headers={"sec-fetch-site": "cross-site"}, timeout=PATIENCE
    )
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_guessing_passwords_is_slowed_down(store: Store) -> None:
    with (
        running(store, Access(accounts=True)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as guesser,
    ):
        for number in range(MOST_OF_ONE):
            answer = guesser.post("/login", data={"name": "reader", "password": f"guess {number}"})
            assert answer.status_code == 401
        refused = guesser.post("/login", data={"name": "reader", "password": PASSWORD})
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 300
        assert guesser.post("/login", data={"name": "adminer", "password": PASSWORD}).status_code == 303


def test_an_admin_manages_accounts(server: Running, store: Store) -> None:
    with browser(server, "adminer") as admin:
        made = admin.post("/api/v1/accounts", json={"name": "robin", "role": "read"})
        assert made.status_code == 201
        password = made.json()["password"]
        with browser(server, "robin", password) as robin:
            token = robin.post("/api/v1/tokens", json={"note": "nightly"}).json()
            assert admin.put("/api/v1/accounts/robin", json={"role": "convene"}).status_code == 200
            assert robin.get("/convene").status_code == 200
            assert robin.get("/api/v1/tokens").json() == {"tokens": [token["token"]]}
            page = robin.get("/account").text
            assert token["token"]["id"] in page
            assert token["secret"] not in page
            other = store.accounts.add_token("adminer").token.id
            assert robin.delete(f"/api/v1/tokens/{other}").status_code == 404
            wrong = {"old": "not the password", "new": "another password"}
            assert robin.put("/api/v1/password", json=wrong).status_code == 403
            assert robin.put("/api/v1/password", json={**wrong, "old": password}).status_code == 204
            assert robin.get("/circles").headers["location"] == "/login"
        with program(server, token["secret"]) as job:
            assert job.get("/api/v1/me").json() == {"name": "robin", "role": "convene", "accounts": True}
            assert admin.delete("/api/v1/accounts/robin").status_code == 204
            assert job.get("/api/v1/me").status_code == 401
        assert admin.delete("/api/v1/accounts/adminer").status_code == 409
        assert admin.put("/api/v1/accounts/adminer", json={"role": "read"}).status_code == 409
        actions = admin.get("/api/v1/actions", params={"subject": "robin"}).json()["actions"]
        assert [(one["by"], one["what"]) for one in reversed(actions)] == [
            ("adminer", "account added"),
            ("robin", "token made"),
            ("adminer", "role changed"),
            ("robin", "password changed"),
            ("adminer", "account removed"),
        ]


def test_an_admin_prunes_exactly_what_was_counted(server: Running, store: Store) -> None:
    kept = judged(store, label="stale")
    with browser(server, "adminer") as admin:
        wish = {"label": "stale", "until": kept.started_at + 1}
        refused = admin.post("/api/v1/prune", json={**wish, "expected": 2})
        assert (refused.status_code, refused.json()["detail"]) == (
            409,
            "expected: 1 circles match, not 2; look again",
        )
        assert admin.post("/api/v1/prune", json={"expected": 0}).status_code == 422
        assert admin.post("/api/v1/prune", json={**wish, "expected": 1}).json() == {"deleted": 1}
    (latest,) = store.actions.each(limit=1)
    assert (latest.by, latest.what, latest.subject) == ("adminer", "pruned", "1 circles")


def test_hostile_words_stay_words_on_the_team_s_pages(server: Running, store: Store) -> None:
    kept = judged(store).circle_id
    with browser(server, "adminer") as admin:
        for payload in PAYLOADS:
            if 0 < len(payload) <= 100 and "\0" not in payload:
                assert admin.post("/api/v1/tokens", json={"note": payload}).status_code in (201, 400, 422)
                admin.put(f"/api/v1/circles/{kept}/label", json={"label": payload})
        for path in ("/account", "/team"):
            page = admin.get(path)
            assert page.status_code == 200
            assert "<script>alert" not in page.text
            assert "unsafe" not in page.headers["content-security-policy"]


def test_without_accounts_nothing_about_them_changes(tmp_path: Path) -> None:
    with open_store(tmp_path / "own.sqlite") as own, running(own) as server, server.client() as client:
        assert client.get("/api/v1/me").json() == {"name": None, "role": "admin", "accounts": False}
        refused = client.post("/api/v1/accounts", json={"name": "ada", "role": "admin"})
        assert refused.status_code == 409
        assert "firecircle accounts add" in refused.json()["detail"]
        assert not own.accounts.exist()
        assert client.get("/account").status_code == 404
        page = client.get("/circles").text
        assert "Log out" not in page
        assert 'href="/team"' not in page
        assert client.get("/team").status_code == 200


def test_a_name_that_a_proxy_serves_needs_a_secret() -> None:
    with pytest.raises(ConfigError, match="--token: readers of this store log in"):
        Access(token="a token that is long enough", accounts=True)
    with pytest.raises(ConfigError, match=r"circles\.example\.org can be reached from other machines"):
        Access(name="circles.example.org")
    access = Access(accounts=True, name="circles.example.org")
    assert access.allows_host("circles.example.org")
    assert not access.allows_host("evil.example.org")
    assert Access("0.0.0.0", accounts=True).allows_host("192.0.2.7:8477")
