"""What every request must pass, and what every reply carries.

A page of another site can make a browser send requests to 127.0.0.1. The check of the Host header stops names that an
attacker's DNS points here (DNS rebinding); the check of the Origin header stops what other sites send.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from realmctl.errors import ConfigError

MOST_BYTES = 2**20
"""Largest body of a request."""
MOST_DISCARDED = 4 * MOST_BYTES
"""Bytes of a refused body that are read and thrown away."""
SECONDS_DISCARDING = 2.0
"""For so long a refused body is read."""
TOO_LONG = f"The body of a request may have at most {MOST_BYTES} bytes. Send less."
AMBIGUOUS = "It is not clear where the body of this request ends. Send one Content-Length, a whole number, or Transfer-Encoding: chunked, and not both."
UNKNOWN_HOST = (
    "This server is not reached by the name or address in the Host header. Use that of its start message, or start "
    "realmctl serve with --name NAME."
)
FOREIGN = (
    "This request comes from a page of another site. It is refused. A proxy before this server must pass on the Host header of "
    "the browser."
)
FILTER_HEADER = "X-Realmctl-Filter"
"""A header by which a proxy says which blocks its client may read."""
FILTERED = frozenset({"/api/v1/status", "/api/v1/search", "/api/v1/blocks", "/api/v1/document"})
"""What obeys it. Below these, what changes a block does not."""
COMPUTED = ("/api/", "/mcp", "/v1/")
"""Where requests are computed from blocks; other addresses are files of the page."""
UNFILTERED = f"This request has the header {FILTER_HEADER}, which only search and reading obey. It is refused."
HEALTH = "/healthz"
"""What says whether the server works. Probes of Kubernetes and of load balancers send the address of a pod as Host."""
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


NAME_AND_PORT = r"(?:\[([0-9a-f:.]+)\]|([^][:@/?#\s]+))(?::(\d{1,5}))?"
NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
HOST, ORIGIN = re.compile(NAME_AND_PORT), re.compile(rf"(https?)://{NAME_AND_PORT}")
DEFAULT_PORTS = {"http": 80, "https": 443}
STOPPING = "The server stops, and this request was not computed in time. Send it again when the server is back."


class Guard:
    """ASGI middleware that refuses requests, and adds the security headers to every reply.

    It refuses other names of the server but for `/healthz`, and bodies of an ambiguous length (400), what pages of other origins send (403), and long bodies (413).
    hosts: the names that a Host header may have, without port.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app, self.hosts = app, frozenset(name.lower() for name in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        taken = 0

        async def receive_at_most() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                await discard(receive)
                raise HTTPException(413, TOO_LONG)
            return message

        headers = Headers(scope=scope)
        app = self.app
        is_probe = scope["path"] == HEALTH and scope["method"] in SAFE_METHODS  # whose reply says nothing of the blocks
        if not is_probe and host_name(headers) not in self.hosts:
            app = JSONResponse({"error": UNKNOWN_HOST}, 400)
        elif FILTER_HEADER in headers and not is_filtered(scope["path"], scope["method"]):
            app = JSONResponse({"error": UNFILTERED}, 403)
        elif scope["method"] not in SAFE_METHODS and is_foreign(headers):
            app = JSONResponse({"error": FOREIGN}, 403)
        elif is_ambiguous(headers):
            await discard(receive)
            app = JSONResponse({"error": AMBIGUOUS}, 400, {"connection": "close"})
        elif says_too_long(headers):
            if "expect" not in headers:  # who expects "100 Continue" has sent nothing yet
                await discard(receive)
            app = JSONResponse({"error": TOO_LONG}, 413)
        try:
            await app(scope, receive_at_most, send_with_headers)
        except asyncio.CancelledError:  # by the server, which stops and waits no longer
            if not started:
                await JSONResponse({"error": STOPPING}, 503)(scope, receive, send_with_headers)


async def discard(receive: Receive) -> None:
    """Read what follows of a body that is refused, within limits, and forget it.

    A connection that is closed with bytes unread is reset, and a client that still sends would lose the reply.
    """
    taken = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_DISCARDING):
            while taken < MOST_DISCARDED:
                message = await receive()
                taken += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def host_name(headers: Headers) -> str | None:
    """The name or address in the Host header, without port and brackets; None if there is no valid one."""
    found = HOST.fullmatch(headers.get("host", "").lower())
    return found and (found[1] or found[2])


def require_name(name: str) -> None:
    """Raise ConfigError unless a browser may send this name or address in the Host header. Every request would be refused else."""
    sent = _as_sent(name)
    if sent is None or sent != name.lower():
        instead = (
            f"--name {sent}" if sent else "a name such as --name wiki.example, or an address such as --name 192.0.2.7"
        )
        raise ConfigError(
            f"--name {name}: no browser sends this as the name of this machine, so every request would be refused. It is a host name or "
            f"an address alone, without scheme, port, path and wildcards. Give {instead}."
        )


def _as_sent(text: str) -> str | None:
    """The name or address in the Host header of a browser that opens this name, address or URL; None if none can be."""
    with contextlib.suppress(ValueError):
        return _address(text)
    with contextlib.suppress(ValueError):  # of urlsplit, and of the encoding of names in other letters
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
        with contextlib.suppress(ValueError):
            return _address(host)
        name = host.encode("idna").decode()
        return name if NAME.fullmatch(name) else None
    return None


def _address(text: str) -> str:
    return str(ip_address(text.removeprefix("[").removesuffix("]").partition("%")[0]))


def is_filtered(path: str, method: str) -> bool:
    """Whether a request reads no more than blocks that pass the filter of a proxy."""
    if path in FILTERED:
        return method in SAFE_METHODS or (method == "POST" and path == "/api/v1/search")
    return not path.startswith(COMPUTED)


def is_ambiguous(headers: Headers) -> bool:
    """Whether a proxy and this server could find different ends of a request, so that the second one smuggles another request (RFC 9112, 6.3)."""
    lengths, encodings = headers.getlist("content-length"), headers.getlist("transfer-encoding")
    if len(lengths) + len(encodings) > 1:
        return True
    return not all(map(str.isdecimal, lengths)) or any(encoding.strip().lower() != "chunked" for encoding in encodings)


def says_too_long(headers: Headers) -> bool:
    """Whether a request announces too long a body, so that it is refused before it is read. `is_ambiguous` has seen its length."""
    return int(headers.get("content-length", "0")[:20]) > MOST_BYTES


def is_foreign(headers: Headers) -> bool:
    """Whether a browser says that a page of another origin sent the request. Programs send neither header."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    if (origin := headers.get("origin")) is None:
        return False
    theirs, ours = ORIGIN.fullmatch(origin.lower()), HOST.fullmatch(headers.get("host", "").lower())
    if theirs is None or ours is None:
        return True
    default = DEFAULT_PORTS[theirs[1]]  # a proxy that adds TLS may name the port of the scheme, or leave it out
    return (theirs[2], theirs[3], int(theirs[4] or default)) != (ours[1], ours[2], int(ours[3] or default))
