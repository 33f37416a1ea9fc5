"""What every request must pass, and what every reply carries.

A page of another site can make a browser send requests to 127.0.0.1. The check of the Host header stops names that an
attacker's DNS points here (DNS rebinding); the check of the Origin header stops what other sites send.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 2**20
"""Largest body of a request."""
TOO_LONG = f"The body of a request may have at most {MOST_BYTES} bytes. Send less."
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware: refuse what pages of other origins send (403) and long bodies (413), and add the security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        taken = 0

        async def receive_at_most() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, TOO_LONG)
            return message

        headers = Headers(scope=scope)
        app = self.app
        if scope["method"] not in SAFE_METHODS and is_foreign(headers):
            app = JSONResponse({"error": "This request comes from a page of another site. It is refused."}, 403)
        elif says_too_long(headers):
            app = JSONResponse({"error": TOO_LONG}, 413)
        await app(scope, receive_at_most, send_with_headers)


def says_too_long(headers: Headers) -> bool:
    """Whether a request announces too long a body, so that it is refused before it is read."""
    length = headers.get("content-length", "0")
    return not length.isdecimal() or int(length[:20]) > MOST_BYTES


def is_foreign(headers: Headers) -> bool:
    """Whether a browser says that a page of another origin sent the request. Programs send neither header."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin"):
        return True
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
