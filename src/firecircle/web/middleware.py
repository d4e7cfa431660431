"""The gate every request passes: host, token and origin are checked, every answer gets its safety headers."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firecircle.web.access import READING, Access
from firecircle.web.problems import RequestError, problem_response, wants_problem

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
LOGIN = "/login"
_OPEN_TO_ALL = (LOGIN, "/static/")


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

        answer = self._answered(Request(scope))
        await (answer or self._app)(scope, receive, send_safely)

    def _answered(self, request: Request) -> Response | None:
        headers, access = request.headers, self._access
        if not access.allows_host(headers.get("host")):
            refusal = RequestError(421, "this host name is not served here")
            return problem_response(refusal)
        path = request.scope["path"]
        if access.token is not None and not path.startswith(_OPEN_TO_ALL):
            if access.knows(request.query_params.get("token")) and request.method == "GET":
                return self._welcomed(request)
            if not access.admits(headers.get("authorization"), request.cookies.get(COOKIE)):
                return self._turned_away(request)
        if request.method not in READING and path != LOGIN:
            return self._refused(headers)
        return None

    def _refused(self, headers: Headers) -> Response | None:
        why = self._access.may_write(headers)
        return problem_response(RequestError(403, why)) if why else None

    def _welcomed(self, request: Request) -> Response:
        """The token leaves the address bar as soon as it was read."""
        rest = [(name, value) for name, value in parse_qsl(request.url.query) if name != "token"]
        target = request.scope["path"] + (f"?{urlencode(rest)}" if rest else "")
        return with_cookie(RedirectResponse(safe_path(target), status_code=303), self._access)

    def _turned_away(self, request: Request) -> Response:
        if wants_problem(request):
            detail = "this server needs its token: Authorization: Bearer …"
            return problem_response(RequestError(401, detail, {"www-authenticate": "Bearer"}))
        return RedirectResponse(LOGIN, status_code=303)


def with_cookie(response: Response, access: Access) -> Response:
    """The response, with the cookie that stands for the token."""
    response.set_cookie(COOKIE, access.cookie, httponly=True, samesite="lax", path="/")
    return response


def safe_path(target: str) -> str:
    """A path on this server: two slashes at the beginning would name another one."""
    return "/" + target.lstrip("/\\")
