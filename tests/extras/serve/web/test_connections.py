"""Clients that connect and send nothing, or half a request: neither the log grows, nor does the server wait for them."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest
import uvicorn

from realmctl.extras.serve.web import connections
from realmctl.extras.serve.web.application import create_app
from realmctl.extras.serve.web.connections import Connection, ListeningSocket
from tests.fixtures.waiting import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).parents[4]
FEW_HANDLES = """
import os, resource, socket, sys, uvicorn
from realmctl.extras.serve.web.connections import Connection, ListeningSocket
held = []
async def app(scope, receive, send):
    if scope["path"] == "/fill":
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            held.append(os.close(held.pop()))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
with ListeningSocket(socket.AF_INET, "127.0.0.1", 0) as listening:
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    listening.leave_handles()
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, http=Connection, lifespan="off", log_level="warning")).run(sockets=[listening])
"""


@pytest.fixture
def few_handles(tmp_path) -> Iterator[tuple[int, Path]]:
    """Port and log of a server with 60 file handles."""
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", FEW_HANDLES], cwd=ROOT, stdout=subprocess.PIPE, stderr=file, text=True
        )
        try:
            yield int(process.stdout.readline()), log
        finally:
            process.kill()
            process.communicate()


def answer(port: int, path: str = "/") -> bytes:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as reply:
        found: bytes = reply.read()
        return found


def answers(port: int) -> bool:
    try:
        return answer(port) == b"ok"
    except OSError:
        return False


@pytest.mark.parametrize("path", ["/", "/fill"], ids=["idle connections", "handles used by the process too"])
def test_more_connections_than_handles(few_handles, path):
    port, log = few_handles
    assert answer(port, path) == b"ok"
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(150)]
    wait_until(log.read_text)
    time.sleep(1.2)  # asyncio would try again each second
    assert "Traceback" not in log.read_text() and log.read_text().count("\n") == 1
    for one in idle:
        one.close()
    if path == "/":
        wait_until(lambda: answers(port))
    assert log.read_text().count("\n") == 1


@pytest.fixture
def patience() -> int:
    """Seconds that the server gives at its end to requests that it has."""
    return 600


@pytest.fixture
def served(patience: int) -> Iterator[tuple[int, uvicorn.Server, threading.Thread]]:
    """A server whose requests are never answered."""
    service = SimpleNamespace(stop=lambda: None, ask=lambda message: asyncio.Future())
    listening = ListeningSocket(socket.AF_INET, "127.0.0.1", 0)
    app = create_app(service, ["127.0.0.1"], None)
    server = uvicorn.Server(
        uvicorn.Config(app, http=Connection, log_level="warning", timeout_graceful_shutdown=patience)
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield listening.getsockname()[1], server, thread
    server.should_exit = server.force_exit = True  # a request that is computed is not waited for
    thread.join(20)


def sent(port: int, body: bytes, length: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
    head = f"POST /api/v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


def requests_at(server: uvicorn.Server) -> list[Any]:
    """The requests whose heads have come."""
    return [each.cycle for each in server.server_state.connections if each.cycle]


@pytest.mark.parametrize("body", [None, b"", b'{"quest'], ids=["nothing", "no body", "half a body"])
def test_a_client_that_sends_half_a_request_does_not_delay_the_end(served, caplog, body):
    port, server, thread = served
    with caplog.at_level(logging.WARNING):
        client = socket.create_connection(("127.0.0.1", port)) if body is None else sent(port, body, 100)
        wait_until(lambda: (body is None and server.server_state.connections) or requests_at(server))
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive() and caplog.text == ""
    client.close()


@pytest.mark.parametrize("patience", [1])
def test_a_request_that_takes_too_long_at_the_end_gets_a_reply_and_no_traceback(served, caplog):
    port, server, thread = served
    body = json.dumps({"question": "Who?"}).encode()
    client = sent(port, body, len(body))
    wait_until(lambda: [request for request in requests_at(server) if not request.more_body])
    server.should_exit = True
    thread.join(PATIENCE_SECONDS)
    assert client.recv(1000).startswith(b"HTTP/1.1 503") and "Traceback" not in caplog.text
    client.close()


@pytest.mark.parametrize("patience", [1])
def test_a_client_that_takes_too_long_is_left(monkeypatch, served):
    monkeypatch.setattr(connections, "SECONDS_TO_SEND", 0.3)
    port, *_ = served
    for client in (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS),
        sent(port, b'{"quest', 100),
    ):
        assert b"200" not in client.recv(1000)
        client.close()
    body = json.dumps({"question": "Who?"}).encode()
    waiting = sent(port, body, len(body))  # a request that is computed
    waiting.settimeout(1)
    with pytest.raises(TimeoutError):
        waiting.recv(1000)
    waiting.close()


def test_a_client_that_takes_nothing_of_its_replies_is_left(monkeypatch, served):
    """It keeps a file handle, and the end of the server would wait for it."""
    monkeypatch.setattr(connections, "SECONDS_TO_SEND", 0.3)
    port, server, _ = served
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", port))
        client.setblocking(False)
        with suppress(BlockingIOError, ConnectionError):
            for _ in range(3000):
                client.send(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_until(lambda: requests_at(server))
        wait_until(lambda: not server.server_state.connections)
