"""Who may ask: hosts, origins and tokens, against a server that really runs."""

from __future__ import annotations

import httpx
import pytest

from firecircle.errors import ConfigError
from firecircle.store.opening import Store
from firecircle.web.access import WRITE_HEADER, Access
from firecircle.web.api.operations import OPERATIONS
from tests.web.serving import PATIENCE, Running, judged, running

TOKEN = "a token that is long enough"
READ_TOKEN = "a token for readers alone"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1@evil", ""]
)
def test_a_foreign_host_name_is_refused(client: httpx.Client, host: str) -> None:
    answer = client.get("/circles", headers={"host": host})
    assert answer.status_code in (400, 421)
    assert "circles" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:1234"])
def test_loopback_is_served_under_its_names_and_any_forwarded_port(client: httpx.Client, host: str) -> None:
    assert client.get("/circles", headers={"host": host}).status_code == 200


def test_every_answer_is_strict(client: httpx.Client) -> None:
    for path in ("/circles", "/api/v1/circles", "/static/viewer.css", "/nowhere", "/api/v1/circles/nothing"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {WRITE_HEADER: ""},
        {WRITE_HEADER: "guessed"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_change_needs_the_token_and_the_same_origin(
    client: httpx.Client, store: Store, headers: dict[str, str]
) -> None:
    kept = judged(store)
    answer = client.delete(f"/api/v1/circles/{kept.circle_id}", headers=headers)
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert store.circles.summary(kept.circle_id).id == kept.circle_id


def test_a_change_from_the_page_itself_passes(server: Running, store: Store) -> None:
    kept = judged(store)
    with server.client(origin=server.url, **{"sec-fetch-site": "same-origin"}) as client:
        assert client.delete(f"/api/v1/circles/{kept.circle_id}").status_code == 204


def test_with_a_token_nothing_is_read_without_it(store: Store) -> None:
    with (
        running(store, Access("127.0.0.1", TOKEN)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as stranger,
    ):
        refused = stranger.get("/api/v1/circles")
        assert refused.status_code == 401
        assert refused.json()["status"] == 401
        page = stranger.get("/circles")
        assert (page.status_code, page.headers["location"]) == (303, "/login")
        login = stranger.get("/login")
        assert server.access.write_token not in login.text
        assert stranger.get("/circles?token=wrong").headers["location"] == "/login"
        assert stranger.post("/login", data={"token": "wrong"}).status_code == 401

        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert stranger.get("/api/v1/circles", headers=bearer).status_code == 200
        assert stranger.post("/api/v1/estimate", json={"user": "hello"}, headers=bearer).status_code == 200

        welcomed = stranger.get(f"/circles?token={TOKEN}&mode=single")
        assert welcomed.headers["location"] == "/circles?mode=single"
        assert TOKEN not in welcomed.headers["set-cookie"]
        assert "httponly" in welcomed.headers["set-cookie"].lower()
        assert stranger.get("/circles").status_code == 200
        cookie_alone = stranger.post("/api/v1/estimate", json={"user": "hello"})
        assert cookie_alone.status_code == 403


CHANGES = (
    ("POST", "/evaluate"),
    ("POST", "/estimate"),
    ("POST", "/circles/{}/cancel"),
    ("PUT", "/circles/{}/label"),
    ("DELETE", "/circles/{}"),
)


def test_who_has_the_read_token_reads_everything_and_changes_nothing(store: Store) -> None:
    kept = judged(store).circle_id
    with (
        running(store, Access("127.0.0.1", TOKEN, read_token=READ_TOKEN)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as reader,
    ):
        assert reader.get(f"/circles?token={READ_TOKEN}").headers["location"] == "/circles"
        page = reader.get(f"/circles/{kept}")
        assert page.status_code == 200
        assert server.access.write_token not in page.text
        assert "/convene" not in page.text
        assert reader.get("/convene").status_code == 403
        bearer = {"authorization": f"Bearer {READ_TOKEN}"}
        guessing = {WRITE_HEADER: server.access.write_token}
        assert reader.get("/api/v1/circles", headers=bearer).status_code == 200
        for method, path in CHANGES:
            for headers in (bearer, guessing, bearer | guessing):
                refused = reader.request(method, f"/api/v1{path.format(kept)}", json={}, headers=headers)
                assert (refused.status_code, refused.json()["detail"]) == (403, "this token only reads")
        writing = {"authorization": f"Bearer {TOKEN}"}
        assert reader.delete(f"/api/v1/circles/{kept}", headers=writing).status_code == 204


def test_every_call_that_is_not_read_alone_is_tried_above() -> None:
    by_token_in_path = {("POST", "/seats/{token}")}  # tests/web/test_people.py
    every = {(each.method, each.path.replace("{circle_id}", "{}")) for each in OPERATIONS}
    assert {change for change in every if change[0] != "GET"} == set(CHANGES) | by_token_in_path


def test_with_a_read_token_alone_nothing_can_be_changed(store: Store) -> None:
    with (
        running(store, Access("0.0.0.0", read_token=READ_TOKEN)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as caller,
    ):
        assert caller.get("/api/v1/circles").status_code == 401
        headers = {"authorization": f"Bearer {READ_TOKEN}", WRITE_HEADER: server.access.write_token}
        assert caller.post("/api/v1/estimate", json={"user": "hello"}, headers=headers).status_code == 403


def test_over_tls_the_cookie_is_sent_over_tls_only(store: Store) -> None:
    with (
        running(store, Access("127.0.0.1", TOKEN, "circles.example.org", behind_proxy=True)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as reader,
    ):
        proxy = {"x-forwarded-proto": "https", "host": "circles.example.org"}
        assert "; Secure" in reader.get(f"/circles?token={TOKEN}", headers=proxy).headers["set-cookie"]
        assert "; Secure" not in reader.get(f"/circles?token={TOKEN}").headers["set-cookie"]


def test_a_proxy_is_believed_only_where_the_server_was_told_of_one(store: Store) -> None:
    with running(store, Access("127.0.0.1", TOKEN)) as server, httpx.Client(base_url=server.url) as reader:
        forged = {"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.7"}
        assert "; Secure" not in reader.get(f"/circles?token={TOKEN}", headers=forged).headers["set-cookie"]


@pytest.mark.parametrize("behind_proxy", [False, True])
def test_guesses_of_the_token_are_limited(store: Store, behind_proxy: bool) -> None:
    access = Access("127.0.0.1", TOKEN, behind_proxy=behind_proxy)
    with (
        running(store, access) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as guesser,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as reader,
    ):
        assert reader.post("/login", data={"token": TOKEN}).status_code == 303
        for number in range(4):
            forged = {"x-forwarded-for": f"203.0.113.{number}, 198.51.100.1"}
            assert guesser.post("/login", data={"token": "no"}, headers=forged).status_code == 401
            bearer = forged | {"authorization": "Bearer guessed"}
            assert guesser.get("/api/v1/circles", headers=bearer).status_code in (401, 429)
            assert guesser.get("/circles?token=guessed", headers=forged).status_code in (303, 429)
        late = {"x-forwarded-for": "203.0.113.9, 198.51.100.1"}
        refused = guesser.post("/login", data={"token": TOKEN}, headers=late)
        assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (429, True)
        right = late | {"authorization": f"Bearer {TOKEN}"}
        assert guesser.get("/api/v1/circles", headers=right).status_code == 429
        assert reader.get("/circles").status_code == 200, "a reader who is inside stays inside"
        elsewhere = guesser.post("/login", data={"token": TOKEN}, headers={"x-forwarded-for": "192.0.2.1"})
        assert elsewhere.status_code == (303 if behind_proxy else 429)


def test_the_login_form_sets_the_cookie(store: Store) -> None:
    with (
        running(store, Access("127.0.0.1", TOKEN)) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as reader,
    ):
        assert reader.post("/login", data={"token": TOKEN}).headers["location"] == "/circles"
        assert reader.get("/circles").status_code == 200


def test_another_address_needs_a_token_that_cannot_be_guessed() -> None:
    with pytest.raises(ConfigError, match=r"--token: 0\.0\.0\.0 can be reached from other machines"):
        Access("0.0.0.0")
    with pytest.raises(ConfigError, match="at least 16 characters"):
        Access("0.0.0.0", "short")
    with pytest.raises(ConfigError, match="--read-token: at least 16 characters"):
        Access("0.0.0.0", TOKEN, read_token="short")
    with pytest.raises(ConfigError, match="--read-token: it must differ from --token"):
        Access("0.0.0.0", TOKEN, read_token=TOKEN)
    access = Access("0.0.0.0", TOKEN)
    assert access.allows_host("192.0.2.7:8477")
    assert not access.allows_host("rebound.example:8477")


def test_a_path_cannot_send_a_reader_elsewhere(store: Store) -> None:
    with running(store, Access("127.0.0.1", TOKEN)) as server, httpx.Client(timeout=PATIENCE) as reader:
        answer = reader.get(f"{server.url}//evil.example/x?token={TOKEN}")
        assert answer.headers["location"].startswith("/evil.example")
