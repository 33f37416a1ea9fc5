"""A server behind a proxy that removes a path, buffers, and adds the headers that proxies add: nginx as the page on `serve` sets it up."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
import uvicorn

from realmctl.extras.serve.web.application import create_app
from realmctl.extras.serve.web.connections import Connection, ListeningSocket
from tests.extras.serve.conftest import HEADERS, QUESTION, TOKEN
from tests.fixtures.waiting import wait_until

PAGE = Path(__file__).parents[4] / "docs/how-to/serve.md"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade"}


class Reply(NamedTuple):
    """What a browser gets."""

    status: int
    headers: dict[str, str]
    body: bytes


class Small(BaseHTTPRequestHandler):
    """A proxy below /ask/ that reads a request and a reply whole before it sends them on."""

    def __init__(self, server: int, *rest: object) -> None:
        self.behind = server
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        added = {"Via": "1.1 small", "X-Forwarded-For": "192.0.2.7, 127.0.0.1", "X-Forwarded-Proto": "https"}
        added |= {
            "X-Forwarded-Host": "ask.example",
            "X-Forwarded-Prefix": "/ask",
            "Forwarded": "for=192.0.2.7;proto=https",
        }
        with closing(HTTPConnection("127.0.0.1", self.behind)) as connection:
            connection.request(
                self.command, self.path.removeprefix("/ask"), body, {**sent, **added, "Connection": "close"}
            )
            reply = connection.getresponse()
            self.send_response(reply.status)
            data = reply.read()
            for name, value in reply.getheaders():
                if name.lower() not in HOP_BY_HOP | {"content-length"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def small(folder: Path, server: int) -> Iterator[int]:
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), partial(Small, server))
    threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield proxy.server_port
    proxy.shutdown()
    proxy.server_close()


@contextmanager
def nginx(folder: Path, server: int) -> Iterator[int]:
    """nginx with the lines that the page shows."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    [location] = re.findall(r"location /ask/ \{.*?\n\}", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    places = " ".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; events {{ worker_connections 64; }}\n"
        f"http {{ access_log off; {places} server {{ listen 127.0.0.1:{port}; {location.replace(':8000', f':{server}')} }} }}"
    )
    process = subprocess.Popen(["nginx", "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"])
    try:
        wait_until(lambda: is_open(port))
        yield port
    finally:
        process.terminate()
        process.wait()


def is_open(port: int) -> bool:
    with closing(socket.socket()) as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def server(open_service) -> Iterator[int]:
    """The port of a server that accepts edits."""
    with ListeningSocket(socket.AF_INET, "127.0.0.1", 0) as listening:
        app = create_app(open_service(), ["127.0.0.1"], TOKEN)
        config = uvicorn.Config(app, http=Connection, log_level="warning", proxy_headers=False, lifespan="off")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        running.should_exit = True
        thread.join(20)


PROXIES: dict[str, Callable] = {"small": small, "nginx": nginx}
needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="needs the command nginx")


@pytest.mark.parametrize("name", ["small", pytest.param("nginx", marks=needs_nginx)])
def test_behind_a_proxy_that_removes_a_path(server, tmp_path, name):
    with PROXIES[name](tmp_path, server) as port:

        def send(path: str, body: object = None, method: str = "", **headers: str) -> Reply:
            with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
                sent = {} if body is None else {"Content-Type": "application/json"}
                text = None if body is None else json.dumps(body)
                connection.request(
                    method or ("GET" if body is None else "POST"), f"/ask/{path}", text, {**sent, **headers}
                )
                reply = connection.getresponse()
                return Reply(reply.status, dict(reply.getheaders()), reply.read())

        own = {"Origin": f"http://127.0.0.1:{port}"}
        page = send("")
        scripts = re.findall(rb'(?:src|href)="([\w.]+\.(?:js|css))"', page.body)
        assert page.status == 200 and scripts and "content-security-policy" in {each.lower() for each in page.headers}
        assert {send(script.decode()).status for script in scripts} == {200}
        answer = send("api/v1/ask", {"question": QUESTION}, **own)
        assert answer.status == 200 and json.loads(answer.body)["answers"]
        assert send("api/v1/ask", {"question": QUESTION}, Origin="http://evil.example").status == 403
        assert send("api/v1/ask", {"question": QUESTION}, **own, Host="evil.example").status in (400, 403)
        assert send("api/v1/ask", {"question": "x" * 2**20}, **own).status == 413
        name = "http://a/../b//c?d=%2F"
        document = {"id": name, "title": "New", "text": "Ada Lorn was born in Velford."}
        assert send("api/v1/documents", document, **own).status == 401
        assert send("api/v1/documents", document, **own, **HEADERS).status == 200
        address = f"api/v1/blocks?id={quote(f'{name}-0', safe='')}"
        assert json.loads(send(address).body)["document"] == name
        assert send(address, method="DELETE", **own, **HEADERS).status == 200
        assert send(address).status == 404
