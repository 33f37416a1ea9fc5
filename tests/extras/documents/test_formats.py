"""The formats of documents are compared with a file in the order in which the room offers them."""

from __future__ import annotations

from realmctl.extras.documents import office
from realmctl.extras.documents.formats import FORMATS
from realmctl.registry import offered


def test_the_order_of_the_offers_is_that_of_the_formats_and_binary_ones_are_told_before_text_is_asked_for():
    assert list(offered("realmctl.formats")) == list(FORMATS)
    assert {name for name, each in FORMATS.items() if each.is_binary} == {
        "pdf",
        "rtf",
        "warc",
        *office.READ,
    }
    assert all(each.looks for each in FORMATS.values())
