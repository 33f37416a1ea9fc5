"""A filter in a request, a filter that a proxy sets before all, and the health that any host may ask for."""

from __future__ import annotations

import json
import threading

import pytest

import realmctl
from realmctl.corpus.columns import Columns
from realmctl.extras.serve.web.guards import FILTER_HEADER
from tests.extras.serve.conftest import HEADERS, QUESTION, client_of

ONLY = 'document in ["d1", "d2"]'


@pytest.fixture
def browser(open_service, workspace):
    return client_of(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))


@pytest.mark.parametrize("method", ["dense", "bm25", "hybrid", None])
def test_hits_are_those_of_python(browser, workspace, method):
    found = browser.post("/api/v1/search", json={"query": QUESTION, "top": 9, "method": method, "filter": ONLY}).json()
    expected = realmctl.load_search(workspace, method=method).search(QUESTION, 9, filter=ONLY)
    assert [hit["block"] for hit in found["hits"]] == [hit.block.id for hit in expected]
    assert {hit["document"] for hit in found["hits"]} <= {"d1", "d2"} and found["hits"]
    assert found["search"]["filter"] == ONLY and found["nothing_close"] is False


def test_a_filter_by_which_nothing_passes_finds_nothing(browser):
    reply = browser.post("/api/v1/search", json={"query": QUESTION, "filter": 'document == "none"'})
    assert reply.status_code == 200 and reply.json()["hits"] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sorce == 1", "names 'sorce', which the blocks do not have"),
        ("title == 3", "compares title, a text, with '3', a number"),
        ("title ==", "at character 9"),
        ("", "at character 1"),
        ("x" * 4001, "at most 4000 characters"),
        ("(" * 3000, "within each other"),
    ],
)
def test_what_is_no_filter_is_told(browser, text, told):
    reply = browser.post("/api/v1/search", json={"query": QUESTION, "filter": text})
    assert reply.status_code == 422 and told in reply.json()["error"]


def test_what_filters_may_name_is_said(browser):
    assert browser.get("/api/v1/status").json()["fields"] == {
        "document": "text",
        "title": "text",
        "section": "text",
        "page": "number",
    }


def test_a_filter_of_a_proxy_holds_for_all_that_can_be_read(browser, workspace):
    within = {FILTER_HEADER: ONLY}
    asked = {"query": QUESTION, "top": 32}
    inside = browser.post("/api/v1/search", json=asked, headers=within).json()["hits"]
    assert {hit["document"] for hit in inside} == {"d1", "d2"}
    evil = {**asked, "filter": 'title == "x") or (title != "x"'}
    assert browser.post("/api/v1/search", json=evil, headers=within).status_code == 422
    own = {**asked, "filter": 'document == "d2" or document == "d3"'}
    for headers in (within, [(FILTER_HEADER, ONLY), (FILTER_HEADER, 'document != "d1"')]):
        assert {h["document"] for h in browser.post("/api/v1/search", json=own, headers=headers).json()["hits"]} == {
            "d2"
        }
    other = next(block.id for block in realmctl.load_search(workspace).blocks if block.document == "d3")
    for address in ("blocks", "document"):
        assert browser.get(f"/api/v1/{address}?id={inside[0]['block']}", headers=within).status_code == 200
        assert browser.get(f"/api/v1/{address}?id={other}", headers=within).status_code == 404
        assert browser.get(f"/api/v1/{address}?id={other}").status_code == 200
    assert browser.get("/api/v1/status", headers=within).json()["examples"] == []
    assert browser.get("/", headers=within).status_code == 200
    assert browser.post("/api/v1/search", json=asked, headers={FILTER_HEADER: "sorce == 1"}).status_code == 422


@pytest.mark.parametrize("address", ["ask", "fill", "without", "documents", "blocks?id=d1-0", "/mcp", "/v1/embeddings"])
def test_what_does_not_obey_a_proxys_filter_is_refused_with_it(client, address):
    path = address if address.startswith("/") else f"/api/v1/{address}"
    send = client.put if "blocks" in address else client.post
    reply = send(path, json={"question": QUESTION}, headers={FILTER_HEADER: ONLY, **HEADERS})
    assert reply.status_code == 403 and FILTER_HEADER in reply.json()["error"]


@pytest.mark.parametrize("host", ["10.1.2.3:8000", "pod-7", "", "testserver"])
def test_any_host_may_ask_for_the_health_and_for_nothing_else(open_service, host):
    service = open_service()
    browser = client_of(service)
    reply = browser.get("/healthz", headers={"Host": host})
    assert (reply.status_code, reply.json()) == (200, {"status": "ok"}) and "content-security-policy" in reply.headers
    if host != "testserver":
        for path in ("/", "/api/v1/status", "/openapi.json", "/healthz/", "/healthz/../api/v1/status"):
            assert browser.get(path, headers={"Host": host}).status_code == 400
        assert browser.post("/healthz", headers={"Host": host}).status_code == 400
    service.stop()
    assert browser.get("/healthz", headers={"Host": host}).status_code == 503


def test_the_tools_filter_and_name_the_fields(open_service, workspace):
    pytest.importorskip("mcp")
    from realmctl.extras.serve.tools import mcp_server
    from tests.extras.serve.test_tools import call

    server = mcp_server(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))
    assert "title (text)" in server.instructions
    found = call(server, "search", query=QUESTION, filter=ONLY).structured_content
    assert {hit["document"] for hit in found["hits"]} == {"d1", "d2"}
    told = call(server, "search", query=QUESTION, filter="sorce == 1")
    assert told.is_error and "sorce" in told.content[0].text


def test_fields_are_shown_by_every_way_in(tmp_path):
    from realmctl.extras.serve.models import open_models
    from realmctl.extras.serve.service import Service
    from stages.chunk import Chunk
    from tests.extras.serve.conftest import series

    row = {"id": "a", "text": "The lamp of Ada is old.", "date": "2024-05-01", "tags": ["x"]}
    (tmp_path / "c.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"id": "b", "text": "Ada is new."}) + "\n")
    made = Chunk(corpus=(tmp_path / "c.jsonl",), tokenizer="train:200", workers=1, keep_fields="date,tags")
    made.make(tmp_path / "own/blocks")
    service = Service(*open_models(qa_model=None, model=None, closed_book=None, **series(tmp_path / "own")), False, 4)
    try:
        browser = client_of(service, False)
        asked = {"query": "Ada", "filter": "date >= 2024-05 and tags contains 'x'"}
        [hit] = browser.post("/api/v1/search", json=asked).json()["hits"]
        wanted = {"date": "2024-05-01", "tags": ["x"]}
        assert hit["fields"] == wanted == browser.get("/api/v1/blocks?id=a-0").json()["fields"]
        assert browser.get("/api/v1/document?id=a-0").json()["blocks"][0]["fields"] == wanted
        [found] = realmctl.load_search(tmp_path / "own").search("Ada", filter=asked["filter"])
        assert found.block.fields == wanted
    finally:
        service.stop()


def test_others_are_answered_while_fields_are_read(browser, monkeypatch):
    """A million documents take seconds, and the worker is one."""
    started, go, read = threading.Event(), threading.Event(), Columns._of

    def slow(self, names):
        started.set()
        assert go.wait(20)
        return read(self, names)

    monkeypatch.setattr(Columns, "_of", slow)
    asked, replies = {"query": QUESTION, "top": 3}, list[int]()
    first = threading.Thread(
        target=lambda: replies.append(browser.post("/api/v1/search", json={**asked, "filter": ONLY}).status_code)
    )
    first.start()
    assert started.wait(20) and browser.post("/api/v1/search", json=asked).status_code == 200 and not replies
    go.set()
    first.join(20)
    assert replies == [200]
