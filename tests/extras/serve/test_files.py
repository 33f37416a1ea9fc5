"""Addresses of documents' files: those in one folder, and of nothing outside it, whatever an id says."""

from __future__ import annotations

from urllib.parse import unquote, urlparse

import pytest

from realmctl.errors import InputError
from realmctl.extras.serve.files import Files
from realmctl.extras.serve.messages import Search


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs" / "in" / "deep").mkdir(parents=True)
    (tmp_path / "docs-beside").mkdir()
    for name in ("docs/a b#1.md", "docs/in/deep/ü.html", "secret", "docs-beside/c.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / "docs" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "docs" / "up").symlink_to(tmp_path)
    (tmp_path / "docs" / "circle").symlink_to(tmp_path / "docs" / "circle")
    return tmp_path / "docs"


@pytest.mark.parametrize("document", ["a b#1.md", "in/deep/ü.html", "in/../a b#1.md"])
def test_a_file_in_the_folder_has_an_address(folder, document):
    address = urlparse(Files(folder).address(document))
    assert address.scheme == "file" and not address.netloc and not address.fragment
    assert unquote(address.path) == str((folder / document).resolve())


@pytest.mark.parametrize(
    "document",
    [
        "../secret",
        "out",
        "up/secret",
        "../docs-beside/c.md",
        "in",
        "",
        None,
        "gone.md",
        "circle",
        "a\0b",
        "x" * 5000,
        "javascript:alert(1)",
    ],
)
def test_nothing_else_has_one(folder, document):
    assert Files(folder).address(document) is None


def test_an_absolute_name_is_of_the_folder_or_none(folder):
    assert Files(folder).address(str(folder.parent / "secret")) is None
    assert Files(folder).address(str(folder / "a b#1.md"))


def test_a_folder_that_is_none_is_refused(folder):
    with pytest.raises(InputError, match="--files"):
        Files(folder / "a b#1.md")


def test_hits_and_documents_tell_it_only_when_asked_for(open_service, tmp_path):
    plain = open_service()
    [first, *_] = plain.search(Search(query="Ada", method="bm25")).result().hits
    assert first.file is None and plain.document(first.block).file is None
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / first.document).write_text("text")
    service = open_service(files=Files(tmp_path / "read"))
    hits = service.search(Search(query="Ada", method="bm25")).result().hits
    assert {hit.document: hit.file for hit in hits}[first.document] == (tmp_path / "read" / first.document).as_uri()
    assert all(hit.file is None for hit in hits if hit.document != first.document)
    assert service.document(first.block).file == (tmp_path / "read" / first.document).as_uri()
