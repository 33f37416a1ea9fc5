"""Archives that are no documents, or too much of one."""

from __future__ import annotations

import io
import zipfile

import pytest

from realmctl.extras.documents.containers import archive
from realmctl.extras.documents.containers.program import read
from tests.extras.documents.elements.office_files import slides_file, word_file


def test_more_xml_than_the_limit_is_not_unpacked(tmp_path, monkeypatch):
    data = word_file(tmp_path / "a.docx", "<w:p/>" * 100).read_bytes()
    assert "archive" in read({"kind": "docx"}, data)
    monkeypatch.setattr(archive, "MAX_XML_BYTES", 999)
    assert "its XML has more than" in read({"kind": "docx"}, data)["why"]


@pytest.mark.parametrize("kind", ["docx", "pptx", "odt", "odp", "epub", "xlsx"])
def test_what_is_no_document_says_why(tmp_path, kind):
    assert "damaged" in read({"kind": kind}, b"no archive")["why"]
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as other:
        other.writestr("a.txt", "text")
    assert read({"kind": kind}, empty.getvalue())["why"]


def test_elements_that_are_nested_too_deeply_are_told(tmp_path):
    deep = "<p:grpSp>" * 5000 + "</p:grpSp>" * 5000
    assert "nested" in read({"kind": "pptx"}, slides_file(tmp_path / "a.pptx", [deep]).read_bytes())["why"]


def test_a_part_that_is_cut_is_damaged(tmp_path):
    data = slides_file(tmp_path / "a.pptx", ["<p:sp>"]).read_bytes()
    assert "damaged" in read({"kind": "pptx"}, data)["why"]
