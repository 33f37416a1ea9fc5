"""Every mistake of a client has one status and one plain error, and changes nothing."""

from __future__ import annotations

import asyncio
import errno
import json
from urllib.parse import quote

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from realmctl.artifacts.series import locked
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.versions import Versions
from realmctl.extras.serve.web.guards import MOST_BYTES, MOST_DISCARDED, Guard
from tests.extras.serve.conftest import HEADERS, QUESTION, TOKEN, client_of

JSON = {"Content-Type": "application/json"}


def error_of(reply, status):
    assert reply.status_code == status, reply.text
    assert set(reply.json()) == {"error"}
    assert "Traceback" not in reply.text
    return reply.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("ask", {"question": "?!"}, "question: there is no word in it."),
        ("ask", {"question": "   "}, "no word"),
        ("ask", {}, "question: Field required"),
        ("ask", {"question": "Who?", "top": 0}, "top"),
        ("ask", {"question": "Who?", "top": 10**9}, "top"),
        ("ask", {"question": "Who?", "top": True}, "top"),
        ("search", {"query": "Who?", "top": True}, "top"),
        ("fill", {"sentence": "A [MASK].", "candidates": True}, "candidates"),
        ("without", {"question": "Who?", "without": ["d0"], "top": True}, "top"),
        ("ask", {"question": "Who?", "top": "3"}, "top"),
        ("ask", {"question": "Who?", "compare": 1}, "compare"),
        ("ask", {"question": "Who?", "compare": "yes"}, "compare"),
        ("ask", {"question": "x" * 5000}, "at most 4000"),
        ("ask", {"question": "Who?", "tpo": 3}, "Extra"),
        ("ask", {"question": ["Who?"]}, "string"),
        ("ask", [], "dictionary"),
        ("ask", {"question": "\ud800 who"}, "question"),
        ("fill", {"sentence": "No mask is here."}, "[MASK]"),
        ("fill", {"sentence": "word [MASK] " * 40}, "16 are filled"),
        ("fill", {"sentence": "word " * 700 + "[MASK]"}, "Use a shorter one"),
        ("fill", {"sentence": "A [MASK].", "candidates": 1}, "candidates"),
        ("without", {"question": "Who?", "without": []}, "without"),
        ("without", {"question": "Who?", "without": ["nobody"]}, "'nobody'"),
    ],
)
def test_a_body_that_cannot_be_answered(client, path, body, said):
    reply = client.post(f"/api/v1/{path}", content=json.dumps(body), headers=JSON)
    assert said in error_of(reply, 422)


@pytest.mark.parametrize("body", [b"", b"{", b'{"question": ', b"[" * 100_000, b"\xff\xfe", b'{"question": NaN}'])
def test_a_body_that_is_not_json(client, body):
    reply = client.post("/api/v1/ask", content=body, headers=JSON)
    said = error_of(reply, 422 if b"NaN" in body or not body else 400)  # which are read, as a number and as nothing
    assert "JSON" in said or reply.status_code == 422


# A form of another site can send these kinds without being asked.
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_said_to_be_json(client, kind):
    body = json.dumps({"question": QUESTION}).encode()
    reply = client.post("/api/v1/ask", content=body, headers={"Content-Type": kind} if kind else {})
    assert "Content-Type: application/json" in error_of(reply, 400)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", " a", "a\u2028b", "\x1b[31m", "a\tb", " "])
def test_an_id_that_has_no_line(client, workspace, name):
    reply = client.post("/api/v1/documents", json={"id": name, "text": "New."}, headers=HEADERS)
    assert error_of(reply, 422).startswith("id: ")
    assert not (workspace / "blocks" / "v2").exists()


@pytest.mark.parametrize("name", ["a\nb", "a/b", "a?b#c%d", "ä b", "..", "http://a/../b;c=+d&id=e"])
def test_whatever_the_id_of_a_block_is_it_can_be_read_and_removed(client, open_service, name):
    service = client.app.state.service
    edit = {"op": "add", "id": name, "title": "T", "text": "Zed Quill was born in Velford."}
    service.models = service.models.over(service.versions.edit(service.models.version, [edit]).version)
    address = f"/api/v1/blocks?id={quote(name + '-0', safe='')}"
    assert client.get(address).json()["document"] == name
    assert client.delete(address, headers=HEADERS).status_code == 200
    error_of(client.get(address), 404)


def test_a_bug_is_told_with_the_security_headers(client, monkeypatch):
    monkeypatch.setattr(Service, "status", lambda self: 1 / 0)
    reply = client.get("/api/v1/status")
    assert "bug" in error_of(reply, 500) and "content-security-policy" in reply.headers


def test_a_body_of_ten_megabytes(client):
    whole = json.dumps({"question": "x" * 10_000_000}).encode()
    error_of(client.post("/api/v1/ask", content=whole, headers=JSON), 413)
    chunked = (whole[start : start + 2**16] for start in range(0, len(whole), 2**16))  # without a Content-Length
    error_of(client.post("/api/v1/ask", content=chunked, headers=JSON), 413)
    assert client.get("/api/v1/status").json()["latency"] == {}  # no model saw it


def test_a_body_without_end_is_cut_off():
    taken = []

    async def receive():
        taken.append(2**16)
        return {"type": "http.request", "body": b"x" * 2**16, "more_body": True}

    async def read_all(scope, receive, send):
        while True:
            await receive()

    guard = Guard(read_all, ["here"])
    with pytest.raises(HTTPException, match="413"):
        asyncio.run(
            guard({"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"here")]}, receive, None)
        )
    assert sum(taken) <= MOST_BYTES + MOST_DISCARDED + 2 * 2**16


def test_a_body_that_stops_in_the_middle_is_waited_for_no_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr("realmctl.extras.serve.web.guards.SECONDS_DISCARDING", 0.01)
    sent = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"here"), (b"content-length", b"9999999")]
    asyncio.run(
        Guard(None, ["here"])({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive, send)
    )
    assert sent[0]["status"] == 413


@pytest.mark.parametrize(
    "value", ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_a_wrong_token(client, workspace, value):
    before = sorted(path.name for path in (workspace / "blocks").iterdir())
    headers = {"Authorization": value.encode("latin-1")}
    for reply in (
        client.put("/api/v1/blocks?id=d0-0", json={"text": "New."}, headers=headers),
        client.delete("/api/v1/blocks?id=d0-0", headers=headers),
        client.post("/api/v1/documents", json={"id": "new", "text": "New."}, headers=headers),
    ):
        assert "token" in error_of(reply, 401) and reply.headers["www-authenticate"] == "Bearer"
    assert sorted(path.name for path in (workspace / "blocks").iterdir()) == before


def test_no_edit_without_allow_edits(open_service):
    client = client_of(open_service(edits=False), edits=False)
    assert "--allow-edits" in error_of(client.delete("/api/v1/blocks?id=d0-0", headers=HEADERS), 403)
    assert client.get("/api/v1/status").json()["edits_allowed"] is False


@pytest.mark.parametrize("path", ["/api/v1/blocks?id=nobody", "/api/v1/nothing", "/nothing", "/api/v1/blocks/"])
def test_what_is_not_there(client, path):
    error_of(client.get(path), 404)


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fserver.py",
        "/%2e%2e/server.py",
        "/page/serve.js",
        "/serve.js/../../server.py",
        "/api/v1/blocks/../../../etc/passwd",
        "/api/v1/blocks?id=%2fetc%2fpasswd",
        "//etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(client, path):
    error_of(client.get(path), 404)


def test_edits_of_what_is_not_there(client):
    assert "'nobody'" in error_of(client.put("/api/v1/blocks?id=nobody", json={"text": "New."}, headers=HEADERS), 404)
    error_of(client.delete("/api/v1/blocks?id=nobody", headers=HEADERS), 404)
    taken = client.post("/api/v1/documents", json={"id": "d0", "text": "New."}, headers=HEADERS)
    said = error_of(taken, 422)
    assert said.startswith("There is a document 'd0' already")
    error_of(client.put("/api/v1/blocks?id=d0-0", json={"text": " ... "}, headers=HEADERS), 422)


def test_two_writers(client, workspace):
    stale = client.put("/api/v1/blocks?id=d0-0", json={"text": "New.", "version": "v9-other"}, headers=HEADERS)
    assert "v9-other" in error_of(stale, 409)
    with locked(workspace / "blocks"):  # as `realmctl revise` in another process
        error_of(client.delete("/api/v1/blocks?id=d0-0", headers=HEADERS), 409)
    status = client.get("/api/v1/status").json()
    assert status["version"].startswith("v1-") and not status["editing"]


@pytest.mark.parametrize(
    "host", ["evil.example", "testserver.evil.example", "127.0.0.1.evil.example", "", "testserver@evil"]
)
def test_a_foreign_host(client, host):
    assert "--name" in error_of(client.get("/api/v1/status", headers={"Host": host}), 400)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Origin": "http://testserver:81"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site(client, headers):
    error_of(client.post("/api/v1/ask", json={"question": QUESTION}, headers=headers), 403)
    error_of(client.delete("/api/v1/blocks?id=d0-0", headers={**HEADERS, **headers}), 403)


def test_the_own_page_may_ask(client):
    headers = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/ask", json={"question": QUESTION}, headers=headers).status_code == 200


def test_no_reply_allows_another_origin(client: TestClient):
    reply = client.options(
        "/api/v1/ask", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert reply.status_code == 405 and "access-control-allow-origin" not in reply.headers


def test_no_error_names_a_folder_of_the_server(client, workspace, monkeypatch):
    """Neither one that this server raises itself nor one that the system raises."""
    body = {"question": "Who?", "without": ["nobody"]}
    told = error_of(client.post("/api/v1/without", json=body), 422)
    assert "no block and no document named 'nobody'" in told and str(workspace.parent) not in told

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(workspace / "blocks" / "v2" / "records.zst"))

    monkeypatch.setattr(Versions, "edit", full)
    told = error_of(client.post("/api/v1/documents", json={"id": "new", "text": "New."}, headers=HEADERS), 507)
    assert told.startswith("Blocks/v2/records.zst: No space left")
    monkeypatch.undo()
    with locked(workspace / "blocks"):
        told = error_of(client.post("/api/v1/documents", json={"id": "new", "text": "New."}, headers=HEADERS), 409)
    assert str(workspace.parent) not in told


def test_a_bug_shows_nothing_of_the_server(client, monkeypatch):
    from realmctl.extras.serve.models import Models

    monkeypatch.setattr(Models, "ask", lambda models, asked: 1 / 0)
    reply = client.post("/api/v1/ask", json={"question": QUESTION})
    assert "bug" in error_of(reply, 500) and "division" not in reply.text
    monkeypatch.undo()
    assert client.post("/api/v1/ask", json={"question": QUESTION}).status_code == 200
