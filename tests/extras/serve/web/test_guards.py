"""What is refused before the application sees it, and what every reply carries."""

from __future__ import annotations

import asyncio
import re

import pytest
from starlette.datastructures import Headers

from realmctl.errors import ConfigError
from realmctl.extras.serve.web.guards import (
    MOST_BYTES,
    Guard,
    host_name,
    is_ambiguous,
    is_foreign,
    require_name,
    says_too_long,
)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost:8000", "localhost"),
        ("[::1]", "::1"),
        ("[::1]:8000", "::1"),
        ("Wiki.Example:1", "wiki.example"),
        ("", None),
        ("a b", None),
        ("evil@localhost", None),
        ("localhost:", None),
        ("localhost:80:80", None),
        ("::1", None),
        ("[::1", None),
        ("localhost/x", None),
        ("localhost#x", None),
    ],
)
def test_the_name_in_a_host_header(host, name):
    assert host_name(Headers({"host": host})) == name


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("wiki.example", ""),
        ("Wiki", ""),
        ("my_machine.local", ""),
        ("192.0.2.7", ""),
        ("2001:db8::1", ""),
        ("xn--bcher-kva.example", ""),
        ("https://x", "x"),
        ("http://x:80/y", "x"),
        ("//x", "x"),
        ("x:8000", "x"),
        ("x/", "x"),
        ("me@x", "x"),
        ("[::1]", "::1"),
        ("[::1]:80", "::1"),
        ("http://[::1]:80", "::1"),
        ("2001:db8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("", "wiki.example"),
        ("*.example", "wiki.example"),
        ("a b", "wiki.example"),
        ("https://", "wiki.example"),
        ("http://[", "wiki.example"),
        ("a..b", "wiki.example"),
    ],
)
def test_a_name_that_no_request_can_have_is_refused(name, instead):
    """What is accepted is what `host_name` finds in the Host header of a browser that is sent there."""
    if instead:
        with pytest.raises(ConfigError, match=f"--name {re.escape(instead)}[.,]"):
            require_name(name)
        require_name(instead)
    else:
        require_name(name)
        assert host_name(Headers({"host": f"[{name}]:80" if ":" in name else f"{name}:80"})) == name.lower()


def test_a_request_without_a_host_has_no_name():
    assert host_name(Headers({})) is None


@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        ({}, False),
        ({"origin": "http://here:1"}, False),
        ({"origin": "https://HERE:1"}, False),
        ({"origin": "http://here"}, True),
        ({"origin": "http://here:1.evil.example"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "http://here:1"}, True),
    ],
)
def test_a_request_of_another_site(headers, foreign):
    assert is_foreign(Headers({"host": "here:1", **headers})) is foreign


@pytest.mark.parametrize(
    ("host", "origin", "foreign"),
    [
        ("ask.example.org:443", "https://ask.example.org", False),  # behind a proxy that adds TLS
        ("ask.example.org", "https://ask.example.org:443", False),
        ("ask.example.org", "https://ask.example.org", False),
        ("ask.example.org:80", "http://ask.example.org", False),
        ("ask.example.org", "http://ask.example.org:80", False),
        ("[::1]:80", "http://[::1]", False),
        ("ask.example.org:443", "http://ask.example.org", True),
        ("ask.example.org:80", "https://ask.example.org", True),
        ("ask.example.org", "https://ask.example.org:8443", True),
        ("ask.example.org", "https://ask.example.org.evil.example", True),
        ("ask.example.org", "https://ask.example.org@evil.example", True),
        ("ask.example.org", "https://ask.example.org:443:443", True),
        ("ask.example.org", "ftp://ask.example.org", True),
        ("ask.example.org", "ask.example.org", True),
        ("ask.example.org", "", True),
        ("[::1]", "http://[::1", True),
        ("[::1]", "http://::1", True),
        ("", "http://", True),
    ],
)
def test_default_ports_are_equal(host, origin, foreign):
    assert is_foreign(Headers({"host": host, "origin": origin})) is foreign


@pytest.mark.parametrize(
    ("length", "refused"),
    [
        ("0", False),
        (str(MOST_BYTES), False),
        (str(MOST_BYTES + 1), True),
        ("9" * 5000, True),
    ],
)
def test_a_length_that_is_announced(length, refused):
    assert says_too_long(Headers({"content-length": length})) is refused


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        ({"content-length": "5"}, False),
        ({"transfer-encoding": "chunked"}, False),
        ({"transfer-encoding": "Chunked"}, False),
        ({"content-length": "5", "transfer-encoding": "chunked"}, True),
        ({"content-length": "-1"}, True),
        ({"content-length": "x"}, True),
        ({"content-length": ""}, True),
        ({"content-length": "5, 5"}, True),
        ({"content-length": "0x5"}, True),
        ({"content-length": "+5"}, True),
        ({"content-length": "\u00b2"}, True),
        ({"transfer-encoding": "gzip, chunked"}, True),
        ({"transfer-encoding": "chunked, identity"}, True),
        ({"transfer-encoding": "xchunked"}, True),
        ({"transfer-encoding": ""}, True),
    ],
)
def test_where_a_body_ends_must_be_clear(headers, refused):
    """Whatever the server library makes of it: the application is asked as it would be by another server."""
    assert is_ambiguous(Headers(headers)) is refused
    raw = [(b"host", b"here"), *((name.encode(), value.encode("latin-1")) for name, value in headers.items())]
    if refused:
        assert sent_by_guard(raw) == (400, b"close")


@pytest.mark.parametrize("name", [b"content-length", b"transfer-encoding"])
def test_a_header_of_the_length_that_comes_twice_is_refused(name):
    value = b"0" if name == b"content-length" else b"chunked"
    assert sent_by_guard([(b"host", b"here"), (name, value), (name, value)]) == (400, b"close")


def sent_by_guard(headers: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """Status and `Connection` of the guard's own reply to a request with these headers. The application must not see it."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(
        Guard(None, ["here"])({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive, send)
    )
    return sent[0]["status"], dict(sent[0]["headers"]).get(b"connection", b"")


@pytest.mark.parametrize("path", ["/", "/serve.js", "/api/v1/status", "/api/v1/nothing", "/openapi.json"])
@pytest.mark.parametrize("host", ["testserver", "evil.example"])
def test_every_reply_has_the_security_headers(client, path, host):
    headers = client.get(path, headers={"Host": host}).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}  # nothing inline, no eval, no other origin
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
    assert "server" not in headers and "access-control-allow-origin" not in headers
