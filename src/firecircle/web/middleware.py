"""The gate every request passes: who asks, which host, from where; every answer gets its safety headers."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firecircle.errors import FireCircleError
from firecircle.names import Role
from firecircle.store.accounts import DAYS_OF_A_SESSION, AccountStore
from firecircle.web.access import READING, Access, Caller, bearer_in
from firecircle.web.problems import RequestError, problem_response, refusal_of, wants_problem

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "frame-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SAFETY = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
COOKIE = "firecircle"
SESSION = "firecircle-session"
LOGIN, LOGOUT = "/login", "/logout"
_OPEN_TO_ALL = (LOGIN, "/static/")
_CALLER = "firecircle.caller"


def caller_of(request: Request) -> Caller:
    """Who asks."""
    caller = request.scope.get(_CALLER)
    return caller if isinstance(caller, Caller) else Caller(role=None)


def require(request: Request, role: Role) -> None:
    """Refuse a caller whose role does not include this one."""
    caller = caller_of(request)
    if not caller.may(role):
        raise RequestError(
            403, f"this needs the role {role}; {caller.name or 'a stranger'} has {caller.role}"
        )


class Gate:
    """The middleware that applies the rules of `Access`."""

    def __init__(self, app: ASGIApp, access: Access, accounts: Callable[[], AccountStore]) -> None:
        self._app = app
        self._access = access
        self._accounts = accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFETY.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            answer = await self._answered(Request(scope))
        except FireCircleError as trouble:  # the store cannot say who asks
            answer = problem_response(refusal_of(trouble))
        await (answer or self._app)(scope, receive, send_safely)

    async def _answered(self, request: Request) -> Response | None:
        headers, access = request.headers, self._access
        if not access.allows_host(headers.get("host")):
            return problem_response(RequestError(421, "this host name is not served here"))
        path = request.scope["path"]
        is_open = path.startswith(_OPEN_TO_ALL)
        if not is_open and request.method == "GET" and access.knows(request.query_params.get("token")):
            return self._welcomed(request)
        caller = await self._caller(request)
        request.scope[_CALLER] = caller
        if caller.role is None and not is_open:
            return self._turned_away(request)
        if request.method not in READING and path not in (LOGIN, LOGOUT):
            why = access.may_write(headers, caller)
            return problem_response(RequestError(403, why)) if why else None
        return None

    async def _caller(self, request: Request) -> Caller:
        headers, access = request.headers, self._access
        if not access.accounts:
            known = access.admits(headers.get("authorization"), request.cookies.get(COOKIE))
            return Caller(write_token=access.write_token) if known else Caller(role=None)
        if request.scope["path"].startswith("/static/"):
            return Caller(role=None)
        if (token := bearer_in(headers)) is not None:
            account = await run_in_threadpool(self._accounts().with_token, token)
            return Caller(account.name, account.role) if account else Caller(role=None)
        if (session := request.cookies.get(session_cookie(request))) is not None:
            account = await run_in_threadpool(self._accounts().in_session, session)
            if account is not None:
                return access.caller_in(account.name, account.role, session)
        return Caller(role=None)

    def _welcomed(self, request: Request) -> Response:
        """The token leaves the address bar as soon as it was read."""
        rest = [(name, value) for name, value in parse_qsl(request.url.query) if name != "token"]
        target = request.scope["path"] + (f"?{urlencode(rest)}" if rest else "")
        return with_cookie(RedirectResponse(safe_path(target), status_code=303), self._access)

    def _turned_away(self, request: Request) -> Response:
        if wants_problem(request):
            whose = "a token of an account" if self._access.accounts else "its token"
            detail = f"this server needs {whose}: Authorization: Bearer …"
            return problem_response(RequestError(401, detail, {"www-authenticate": "Bearer"}))
        wanted = request.scope["path"] + (f"?{request.url.query}" if request.url.query else "")
        is_page = self._access.accounts and request.method == "GET" and wanted not in ("/", "/circles")
        return RedirectResponse(
            f"{LOGIN}?{urlencode({'next': wanted})}" if is_page else LOGIN, status_code=303
        )


def with_cookie(response: Response, access: Access) -> Response:
    """The response, with the cookie that stands for the token."""
    response.set_cookie(COOKIE, access.cookie, httponly=True, samesite="lax", path="/")
    return response


def is_encrypted(request: Request) -> bool:
    """Whether the browser speaks to us, or to the proxy before us, over TLS."""
    return bool(request.url.scheme == "https")


def session_cookie(request: Request) -> str:
    """The name of the cookie: over TLS one that no other host and no plain connection can set."""
    return f"__Host-{SESSION}" if is_encrypted(request) else SESSION


def with_session(response: Response, request: Request, secret: str) -> Response:
    """The response, with the cookie of a session; gone with the session or when it is over."""
    response.set_cookie(
        session_cookie(request),
        secret,
        max_age=DAYS_OF_A_SESSION * 86_400,
        httponly=True,
        samesite="lax",
        secure=is_encrypted(request),
        path="/",
    )
    return response


def without_session(response: Response, request: Request) -> Response:
    """The response, which lets the browser forget the session."""
    secure = is_encrypted(request)
    response.delete_cookie(session_cookie(request), httponly=True, samesite="lax", secure=secure, path="/")
    return response


def safe_path(target: str) -> str:
    """A path on this server: two slashes at the beginning would name another one."""
    return "/" + target.lstrip("/\\")
