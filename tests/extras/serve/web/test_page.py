"""The page's files: nothing inline, nothing from elsewhere, and no text that becomes HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import resources
from urllib.parse import urljoin

import pytest

from realmctl.extras.serve.web.page import FILES

PAGES = [name for name, _ in FILES.values() if name.endswith(".html")]
SCRIPTS = [name for name, _ in FILES.values() if name.endswith(".js")]
FOLDER = resources.files("realmctl.extras.serve.web") / "page"
MAKES_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|DOMParser|\beval\b|new Function|\.href\s*="
)


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.inside, self.inline = [], "", []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data):
        if self.inside in ("script", "style") and data.strip():
            self.inline.append(data)

    def handle_endtag(self, tag):
        self.inside = ""


def read(name):
    elements = Elements()
    elements.feed((FOLDER / name).read_text(encoding="utf-8"))
    return elements


@pytest.mark.parametrize("path", FILES)
def test_every_file_is_served_as_what_it_is(client, path):
    name, media_type = FILES[path]
    reply = client.get(path)
    assert reply.status_code == 200 and reply.content == (FOLDER / name).read_bytes()
    assert reply.headers["content-type"] == media_type
    assert client.head(path).status_code == 200 and client.post(path).status_code == 405


def test_no_file_is_forgotten():
    assert {file.name for file in FOLDER.iterdir()} == {name for name, _ in FILES.values()}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(name):
    page = read(name)
    assert page.inline == []
    for tag, attributes in page.found:
        assert not [key for key in attributes if key.startswith("on") or key == "style"], (tag, attributes)
        for key in ("src", "href"):
            if tag != "base" and key in attributes:
                assert urljoin("/", attributes[key]) in {*FILES, "/openapi.json"}, (tag, attributes)
                assert not attributes[key].startswith("/"), (tag, attributes)


@pytest.mark.parametrize("name", PAGES)
def test_every_field_has_a_label(name):
    page = read(name)
    labelled = {attributes["for"] for tag, attributes in page.found if tag == "label"}
    assert {attributes["id"] for tag, attributes in page.found if tag in ("input", "textarea")} == labelled


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_html_from_text(name):
    assert MAKES_HTML.findall((FOLDER / name).read_text(encoding="utf-8")) == []


def test_the_api_is_documented(client):
    document = client.get("/openapi.json").json()
    operations = {(method, path) for path, methods in document["paths"].items() for method in methods}
    name = "/api/v1/blocks"
    assert operations == {
        ("get", "/healthz"),
        ("get", "/v1/models"),
        ("post", "/v1/embeddings"),
        ("post", "/v1/rerank"),
        ("get", "/api/v1/status"),
        ("post", "/api/v1/ask"),
        ("post", "/api/v1/search"),
        ("post", "/api/v1/fill"),
        ("get", "/api/v1/document"),
        ("post", "/api/v1/without"),
        ("get", name),
        ("put", name),
        ("delete", name),
        ("post", "/api/v1/documents"),
    }
    assert "HTTPValidationError" not in document["components"]["schemas"]  # every error is an ErrorReply
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            assert about["description"], (method, path)
            edits = method in ("put", "delete") or path.endswith("/documents")
            assert ("401" in about["responses"]) is ("security" in about) is edits


BASE = "/ask/"
REFERENCES = re.compile(r"""(?:href|src)="([^"]+)"|from "([^"]+)"|fetch\(["`]([^"`$]+)""")


def test_the_pages_work_below_any_path(client):
    """A proxy that serves `/ask/` removes it. So every address in a page begins where the page is."""
    found = set()
    for path, (name, _) in FILES.items():
        for groups in REFERENCES.findall((FOLDER / name).read_text(encoding="utf-8")):
            found.add(urljoin(BASE + path.removeprefix("/"), "".join(groups)))
    assert found >= {
        f"{BASE}{name}" for name in ("", "serve.js", "dom.js", "docs.js", "serve.css", "openapi.json", "api/v1/")
    }
    assert all(path.startswith(BASE) for path in found)
    served = {"/" + path.removeprefix(BASE) for path in found} - {"/api/v1/"}
    assert {client.get(path).status_code for path in served} == {200}


def test_what_a_proxy_adds_to_a_request_changes_nothing(client):
    added = {
        "Forwarded": "for=1.2.3.4;host=evil.example;proto=https",
        "X-Forwarded-For": "1.2.3.4",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/ask",
        "X-Real-IP": "::1",
        "Via": "1.1 proxy",
    }
    assert client.get("/", headers=added).content == client.get("/").content
    assert client.get("/", headers={**added, "Host": "evil.example"}).status_code == 400
    body, origin = {"question": "Who?"}, {"Origin": "https://ask.example"}
    refused = client.post("/api/v1/ask", json=body, headers={**added, **origin, "X-Forwarded-Host": "ask.example"})
    assert refused.status_code == 403 and "Host header" in refused.json()["error"]  # a proxy that does not pass it on
