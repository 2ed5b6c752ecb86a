"""Who may ask: requests for this address only, writes from our own pages only.

A page of another site can send requests to a server on this machine. The Host header tells pages
that reach us under another name (DNS rebinding); Origin and a cookie with SameSite=Strict tell
writes that do not come from our pages.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make browsers send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_READING = frozenset({"GET", "HEAD"})
TOKEN = "token"  # noqa: S105 - the name of a parameter


@dataclass(frozen=True)
class Guard:
    """The demands on a request; ``token`` is empty if nobody may change anything."""

    port: int
    allow_changes: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def hosts(self) -> frozenset[str]:
        """Return the Host headers that mean this server."""
        names = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        # Browsers leave out the port of http itself.
        return frozenset(
            [*names, *(["127.0.0.1", "localhost", "[::1]"] if self.port == 80 else [])]
        )

    @property
    def cookie(self) -> str:
        """Return the name of the cookie: cookies of one host are shared by all its ports."""
        return f"shelduck_ui_{self.port}"

    @property
    def address(self) -> str:
        """Return the address to open; with changes allowed it has the token."""
        base = f"http://127.0.0.1:{self.port}/"
        return f"{base}?{urlencode({TOKEN: self.token})}" if self.allow_changes else base

    def may_change(self, request: Request) -> bool:
        """Return whether a request comes from a browser that opened the address with the token."""
        return self.allow_changes and self._knows(request.cookies.get(self.cookie))

    def refusal(self, method: str, headers: Headers, request: Request) -> str | None:
        """Return why a request is refused, None if it may go on."""
        if headers.get("host", "").lower() not in self.hosts:
            return f"this server answers only to 127.0.0.1:{self.port} and localhost:{self.port}"
        if method in _READING:
            return None
        if not self.allow_changes:
            return "this server is read-only; start it with --allow-changes"
        origin = headers.get("origin", "").lower()
        if origin not in {f"http://{host}" for host in self.hosts}:
            return "the request comes from another site; use the buttons of this page"
        if not self.may_change(request):
            return "the token is missing; open the address that shelduck ui printed"
        return None

    def _knows(self, told: str | None) -> bool:
        return told is not None and secrets.compare_digest(told.encode(), self.token.encode())

    def welcome(self, request: Request) -> Response | None:
        """Return the response to an address with the token: a cookie, and the address without it.

        None for other requests. A wrong token gets no cookie.
        """
        told = request.query_params.get(TOKEN)
        if told is None or request.method not in _READING:
            return None
        left = [(k, v) for k, v in request.query_params.multi_items() if k != TOKEN]
        # A path that begins with two slashes would be another host.
        path = "/" + request.url.path.lstrip("/")
        response = RedirectResponse(f"{path}?{urlencode(left)}" if left else path, 303)
        if self.allow_changes and self._knows(told):
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        return response


class GuardMiddleware:
    """Refuses requests, answers those with the token, and adds headers to every response."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app = app
        self.guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        why = self.guard.refusal(request.method, request.headers, request)
        response = (
            self.guard.welcome(request)
            if why is None
            else PlainTextResponse(f"refused: {why}\n", 403)
        )
        await (response or self.app)(scope, receive, send_with_headers)
