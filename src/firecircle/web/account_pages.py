"""Where readers log in and out, what an account may change of itself, and what admins see of the team."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from firecircle.names import ROLES
from firecircle.store.accounts import SHORTEST_PASSWORD
from firecircle.web.access import is_same
from firecircle.web.api.accounts import too_often
from firecircle.web.middleware import (
    LOGIN,
    caller_of,
    safe_path,
    with_cookie,
    with_session,
    without_session,
)
from firecircle.web.pages import page_response
from firecircle.web.problems import RequestError
from firecircle.web.viewer import viewer_of

LARGEST_FORM = 10_000
ACTIONS_SHOWN = 50


async def login(request: Request) -> Response:
    """Where a reader gives the token of the server, or the name and password of an account."""
    viewer = viewer_of(request)
    if not viewer.access.accounts:
        return await _login_by_token(request)
    wanted = safe_path(request.query_params.get("next", "/circles"))
    if request.method != "POST":
        return page_response(request, "login.html", trouble="", action=LOGIN, wanted=wanted, name="")
    # A page of another site must not log a reader in to an account of its own choice.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise RequestError(403, "the request comes from another site")
    fields = await _form(request)
    name, wanted = fields.get("name", "").strip(), safe_path(fields.get("next", "/circles"))
    address = request.client.host if request.client else ""
    if wait := viewer.attempts.seconds_to_wait(name, address):
        raise too_often(wait)
    secret = await run_in_threadpool(viewer.store.accounts.log_in, name, fields.get("password", ""))
    if secret is None:
        viewer.attempts.note_wrong(name, address)
        trouble = "There is no such account, or the password is wrong."
        return page_response(
            request, "login.html", status=401, trouble=trouble, action=LOGIN, wanted=wanted, name=name
        )
    viewer.attempts.forget(name, address)
    return with_session(RedirectResponse(wanted, status_code=303), request, secret)


async def _login_by_token(request: Request) -> Response:
    access = viewer_of(request).access
    trouble = ""
    if request.method == "POST":
        if access.knows((await _form(request)).get("token", "")):
            return with_cookie(RedirectResponse("/circles", status_code=303), access)
        trouble = "That is not the token."
    status = 401 if trouble else 200
    return page_response(
        request, "login.html", status=status, trouble=trouble, action=LOGIN, wanted=None, name=""
    )


async def logout(request: Request) -> Response:
    """End the session of this browser."""
    caller = caller_of(request)
    if caller.session is None:
        raise RequestError(409, "nobody is logged in here")
    if not is_same((await _form(request)).get("token"), caller.write_token):
        raise RequestError(403, "the form is old; reload the page")
    await run_in_threadpool(viewer_of(request).store.accounts.log_out, caller.session)
    return without_session(RedirectResponse(LOGIN, status_code=303), request)


def account_page(request: Request) -> Response:
    """What an account can change of itself: its password and its tokens."""
    name = caller_of(request).name
    if name is None:
        raise RequestError(404, "this viewer runs without accounts")
    tokens = viewer_of(request).store.accounts.tokens(name)
    return page_response(request, "account.html", tokens=tokens, shortest=SHORTEST_PASSWORD)


def team_page(request: Request) -> Response:
    """The accounts, who did what, and taking out what is old."""
    viewer = viewer_of(request)
    return page_response(
        request,
        "team.html",
        accounts=viewer.store.accounts.each(),
        has_accounts=viewer.access.accounts,
        actions=viewer.store.actions.each(limit=ACTIONS_SHOWN),
        roles=ROLES,
        shortest=SHORTEST_PASSWORD,
    )


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise RequestError(413, "the form is too long")
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}
