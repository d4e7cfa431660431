"""Accounts over HTTP: who asks, who there is, tokens for programs, who did what; and pruning, for admins."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.errors import ConfigError
from firecircle.store.accounts import new_password
from firecircle.store.finding import Filters
from firecircle.web.api.reading import body_as, query_as
from firecircle.web.api.shapes import (
    AccountChange,
    AccountIn,
    AccountLines,
    ActionLines,
    ActionQuery,
    Me,
    NewAccount,
    NewToken,
    PasswordIn,
    Pruned,
    PruneIn,
    TokenIn,
    TokenLines,
)
from firecircle.web.middleware import caller_of
from firecircle.web.problems import RequestError
from firecircle.web.viewer import viewer_of


def get_me(request: Request) -> Response:
    """Who asks, and what they may do."""
    caller = caller_of(request)
    assert caller.role is not None
    accounts = viewer_of(request).access.accounts
    return JSONResponse(Me(name=caller.name, role=caller.role, accounts=accounts).model_dump())


def list_accounts(request: Request) -> Response:
    """Every account."""
    lines = AccountLines(accounts=viewer_of(request).store.accounts.each())
    return JSONResponse(lines.model_dump())


async def add_account(request: Request) -> Response:
    """Make an account; without a password one is made up and told once."""
    form, by = await body_as(AccountIn, request), _account_asking(request)
    password = form.password or new_password()
    store = viewer_of(request).store
    account = await run_in_threadpool(store.accounts.add, form.name, form.role, password, by=by)
    made = NewAccount(account=account, password=None if form.password else password)
    return JSONResponse(made.model_dump(), status_code=201)


async def change_account(request: Request) -> Response:
    """Give an account another role or password."""
    form, by = await body_as(AccountChange, request), _account_asking(request)
    name = await run_in_threadpool(_account_asked_for, request)
    if name == by and form.role not in (None, "admin"):
        raise RequestError(
            409, f"{name}: nobody takes the role admin from themselves; let another admin do it"
        )
    password = new_password() if form.new_password else form.password
    accounts = viewer_of(request).store.accounts
    account = await run_in_threadpool(accounts.change, name, role=form.role, password=password, by=by)
    made = NewAccount(account=account, password=password if form.new_password else None)
    return JSONResponse(made.model_dump())


def remove_account(request: Request) -> Response:
    """Take an account out, with its sessions and tokens."""
    by = _account_asking(request)
    name = _account_asked_for(request)
    if name == by:
        raise RequestError(409, f"{name}: nobody removes themselves; let another admin do it")
    try:
        viewer_of(request).store.accounts.remove(name, by=by, keep_an_admin=True)
    except ConfigError as last:
        raise RequestError(409, str(last)) from None
    return Response(status_code=204)


async def change_password(request: Request) -> Response:
    """Give one's own account another password. All its sessions end, this one too."""
    form, name = await body_as(PasswordIn, request), _account_asking(request)
    viewer, address = viewer_of(request), _address_of(request)
    if wait := viewer.attempts.seconds_to_wait(name, address):
        raise too_often(wait)
    if not await run_in_threadpool(viewer.store.accounts.is_password, name, form.old):
        viewer.attempts.note_wrong(name, address)
        raise RequestError(403, "old: that is not the password")
    await run_in_threadpool(viewer.store.accounts.change, name, password=form.new, by=name)
    return Response(status_code=204)


def list_tokens(request: Request) -> Response:
    """One's own tokens, without their secrets."""
    kept = viewer_of(request).store.accounts.tokens(_account_asking(request))
    return JSONResponse(TokenLines(tokens=kept).model_dump())


async def add_token(request: Request) -> Response:
    """A token for a program, which has the role of the account; its secret is told once."""
    form, name = await body_as(TokenIn, request), _account_asking(request)
    made = await run_in_threadpool(viewer_of(request).store.accounts.add_token, name, form.note, by=name)
    return JSONResponse(NewToken(token=made.token, secret=made.secret).model_dump(), status_code=201)


def revoke_token(request: Request) -> Response:
    """Make one of one's own tokens useless."""
    name = _account_asking(request)
    try:
        viewer_of(request).store.accounts.revoke(request.path_params["token_id"], account=name, by=name)
    except ConfigError as unknown:
        raise RequestError(404, str(unknown)) from None
    return Response(status_code=204)


def list_actions(request: Request) -> Response:
    """Who labelled, deleted and changed what, the latest first."""
    query = query_as(ActionQuery, request)
    found = viewer_of(request).store.actions.each(
        subject=query.subject, before=query.before, limit=query.limit + 1
    )
    more = found[query.limit - 1].pk if len(found) > query.limit else None
    return JSONResponse(ActionLines(actions=found[: query.limit], next_before=more).model_dump())


async def prune_circles(request: Request) -> Response:
    """Take out every circle that matches, if as many match as expected; those that sit stay."""
    form = await body_as(PruneIn, request)
    filters = Filters(**form.model_dump(exclude={"expected"}))
    store, by = viewer_of(request).store, caller_of(request).name

    def prune() -> int:
        matching = store.circles.count(filters)
        if matching != form.expected:
            raise RequestError(409, f"expected: {matching} circles match, not {form.expected}; look again")
        return sum(store.circles.prune(filters, by=by))

    return JSONResponse(Pruned(deleted=await run_in_threadpool(prune)).model_dump())


def too_often(wait: int) -> RequestError:
    """The refusal after too many wrong passwords."""
    return RequestError(
        429, f"too many wrong passwords; try again in {wait} seconds", {"retry-after": str(wait)}
    )


def _address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def _account_asking(request: Request) -> str:
    """The account of the caller; where there are none, nothing about accounts can be done over HTTP."""
    name = caller_of(request).name
    if name is None:
        raise RequestError(
            409,
            "this viewer runs without accounts; `firecircle accounts add NAME --role admin` makes the first"
            " one, then start the viewer again",
        )
    return name


def _account_asked_for(request: Request) -> str:
    name = str(request.path_params["name"])
    try:
        return viewer_of(request).store.accounts.get(name).name
    except ConfigError as unknown:
        raise RequestError(404, str(unknown)) from None
