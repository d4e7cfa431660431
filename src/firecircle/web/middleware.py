"""The gate every request passes: who asks, which host, from where; every answer gets its safety headers."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firecircle.web.access import READING, Access, Caller, Right, bearer_in
from firecircle.web.problems import RequestError, problem_response, wants_problem
from firecircle.web.seats import SEATS

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
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
LOGIN = "/login"
_OPEN_TO_ALL = (LOGIN, "/static/", SEATS, f"/api/v1{SEATS}")
"""The token of a seat is in its path."""
_CALLER = "firecircle.caller"


def caller_of(request: Request) -> Caller:
    """Who asks."""
    caller = request.scope.get(_CALLER)
    return caller if isinstance(caller, Caller) else Caller(None)


class Gate:
    """The middleware that applies the rules of `Access`."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

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

        answer = self._answer(Request(scope))
        await (answer or self._app)(scope, receive, send_safely)

    def _answer(self, request: Request) -> Response | None:
        """The answer of the gate itself; None lets the request through."""
        headers, access = request.headers, self._access
        if not access.allows_host(headers.get("host")):
            return problem_response(RequestError(421, "this host name is not served here"))
        path = request.scope["path"]
        is_open = path.startswith(_OPEN_TO_ALL)
        offered = request.query_params.get("token") if request.method == "GET" and not is_open else None
        if (offered or bearer_in(headers)) and (refused := refused_guess(request, access)):
            return problem_response(refused)
        if offered and right_of_guess(request, access, offered):
            return self._welcomed(request, offered)
        if bearer := bearer_in(headers):
            right_of_guess(request, access, bearer)
        caller = access.caller(headers, request.cookies.get(COOKIE))
        request.scope[_CALLER] = caller
        if caller.right is None and not is_open:
            return self._turned_away(request)
        if request.method not in READING and not is_open:
            why = access.why_not_write(headers, caller)
            return problem_response(RequestError(403, why)) if why else None
        return None

    def _welcomed(self, request: Request, token: str) -> Response:
        """The token leaves the address bar as soon as it was read."""
        rest = [(name, value) for name, value in parse_qsl(request.url.query) if name != "token"]
        target = request.scope["path"] + (f"?{urlencode(rest)}" if rest else "")
        return with_cookie(
            RedirectResponse(_safe_path(target), status_code=303), request, self._access, token
        )

    def _turned_away(self, request: Request) -> Response:
        if wants_problem(request):
            detail = "this server needs its token: Authorization: Bearer …"
            return problem_response(RequestError(401, detail, {"www-authenticate": "Bearer"}))
        return RedirectResponse(LOGIN, status_code=303)


def client_of(request: Request, access: Access) -> str:
    """The address a request comes from: behind a proxy the one that the proxy saw, which it writes last."""
    seen = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    if access.behind_proxy and seen:
        return seen
    return request.client.host if request.client else ""


def refused_guess(request: Request, access: Access) -> RequestError | None:
    """The refusal for a client that offered too many wrong tokens lately."""
    seconds = access.guesses.seconds_to_wait(client_of(request, access))
    if not seconds:
        return None
    detail = f"too many wrong tokens; try again in {seconds} seconds"
    return RequestError(429, detail, {"retry-after": str(seconds)})


def right_of_guess(request: Request, access: Access, token: str) -> Right | None:
    """What an offered token allows; a wrong one is counted against its client."""
    right = access.right_of(token)
    if right is None and access.needs_token:
        access.guesses.add(client_of(request, access))
    return right


def with_cookie(response: Response, request: Request, access: Access, token: str) -> Response:
    """The response, with the cookie that stands for a token; over TLS it is sent over TLS only."""
    forwarded = request.headers.get("x-forwarded-proto") if access.behind_proxy else None
    secure = (forwarded or request.url.scheme) == "https"
    response.set_cookie(
        COOKIE, access.cookie_of(token), httponly=True, samesite="lax", secure=secure, path="/"
    )
    return response


def _safe_path(target: str) -> str:
    """A path on this server: two slashes at the beginning would name another one."""
    return "/" + target.lstrip("/\\")
