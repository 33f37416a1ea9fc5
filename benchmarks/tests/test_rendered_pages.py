"""The comparison with rendered pages takes out what it says, and counts words and marks."""

from __future__ import annotations

import io
import json
import urllib.request

import pytest

pytest.importorskip("selectolax")
from benchmarks import rendered_pages


def test_templates_formulas_and_empty_references_are_taken_out():
    text = "A {{b|{{c}}}}{{{d|e}}} <!-- f --><math>g_{h}</math>i<ref name=j>{{k}}</ref> {| l |}<ref>m</ref>"
    assert rendered_pages.without_templates(text) == "A  i {| l |}<ref>m</ref>"


def test_words_that_are_lost_and_added_are_counted(tmp_path, monkeypatch, capsys):
    """A wiki that shows the words of the page and one more."""
    page = "<page><title>T</title><ns>0</ns><id>1</id><revision><model>wikitext</model><text>'''One''' [[two]] three.</text></revision></page>"
    (tmp_path / "d.xml").write_text(
        f'<mediawiki xml:lang="en"><siteinfo></siteinfo>{page}</mediawiki>', encoding="utf-8"
    )
    html = "<p><b>One</b> <a>two</a> three four.</p><table><tr><td>five</td></tr></table>"
    reply = json.dumps({"parse": {"text": html}}).encode()
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO(reply))
    monkeypatch.setattr(rendered_pages, "_peers", lambda: iter([("raw", lambda _, text: text)]))
    monkeypatch.setattr("sys.argv", ["x", "http://127.0.0.1/api.php", str(tmp_path / "d.xml")])
    rendered_pages.main()
    said = capsys.readouterr().out
    assert "1 articles, 4 words rendered, language en" in said
    assert "| realmctl | 25.00% | 0.00% | 0.00 |" in said and "| raw | 25.00% | 0.00% | 1333.33 |" in said
