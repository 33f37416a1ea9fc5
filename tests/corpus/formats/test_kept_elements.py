"""TREC's elements and WikiExtractor's attributes are fields where `--keep-fields` names them."""

from __future__ import annotations

import pytest

from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings

TREC = (
    "<DOC>\n<DOCNO> A-1 </DOCNO>\n<DATE>May 1, <B>1990</B></DATE>\n<LEN>9</LEN>\n<TEXT>Ada &amp; Ben.</TEXT>\n</DOC>\n"
)
WIKI = '<doc id="7" url="https://e.org/?a=1&amp;b=2" title="Rome">\nRome\n\nRome is in Italy.\n</doc>\n'


@pytest.mark.parametrize(
    ("text", "names", "wanted"),
    [
        (TREC, "date,len,none", {"date": "May 1, 1990", "len": "9"}),
        (TREC, "", {}),
        (TREC, "d.te,(", {}),
        (WIKI, "url", {"url": "https://e.org/?a=1&b=2"}),
        (WIKI, "", {}),
    ],
)
def test_what_is_named_is_kept(tmp_path, text, names, wanted):
    (tmp_path / "x").write_text(text)
    [found] = documents([tmp_path / "x"], CorpusSettings(keep_fields=names))
    assert found.fields == wanted
