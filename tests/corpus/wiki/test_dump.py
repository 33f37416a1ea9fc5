from __future__ import annotations

import bz2
import xml.sax.saxutils as sax

import pytest

from realmctl.corpus.wiki import dump
from realmctl.errors import InputError

SITE = """<siteinfo><sitename>W</sitename><namespaces>
<namespace key="-2" case="first-letter">Medium</namespace><namespace key="0" case="first-letter" />
<namespace key="6">Datei</namespace><namespace key="14">Kategorie</namespace>
</namespaces></siteinfo>"""


def page(number: int, title: str, text: str, ns: int = 0, redirect: bool = False) -> str:
    mark = '<redirect title="x" />' if redirect else ""
    head = f"<page><title>{sax.escape(title)}</title><ns>{ns}</ns><id>{number}</id>{mark}"
    older = "<revision><id>7</id><text>older</text></revision>"
    contributor = "<contributor><username>u</username><id>99</id></contributor>"
    body = f'<text xml:space="preserve">{sax.escape(text)}</text>'
    return f"{head}{older}<revision><id>8</id>{contributor}{body}</revision></page>"


def write(path, *pages: str, end: str = "</mediawiki>\n"):
    path.write_text(f'<mediawiki xml:lang="de">\n{SITE}\n' + "\n".join(pages) + end, encoding="utf-8")
    return path


def test_pages_come_with_their_own_id_the_last_revision_and_unescaped(tmp_path):
    path = write(tmp_path / "d.xml", page(12, "A & B", "x < y &amp; [[z]]\nüber"), page(13, "T", "talk", ns=1))
    site = dump.Site()
    found = list(dump.pages(path, site))
    assert found[0] == dump.Page("12", "A & B", 0, False, "x < y &amp; [[z]]\nüber", False)
    assert (found[1].namespace, found[1].text) == (1, "talk")
    assert site == dump.Site({"Medium": -2, "": 0, "Datei": 6, "Kategorie": 14}, "de")


@pytest.mark.parametrize(
    ("title", "text", "extra", "reason"),
    [
        ("A", "#REDIRECT [[B]]", {}, "redirect"),
        ("A", "text", {"redirect": True}, "redirect"),
        ("Talk:A", "text", {"ns": 1}, "namespace"),
        ("Mercury (disambiguation)", "text", {}, "disambiguation"),
        ("Mercury", "'''Mercury''' may be:\n{{disambiguation|geo}}", {}, "disambiguation"),
        ("Mercury", "x {{Disambig}}", {}, "disambiguation"),
        ("Mercury", "x {{ hndis |name=M}}", {}, "disambiguation"),
        ("Mercury", "x {{human name disambiguation}}", {}, "disambiguation"),
        ("List of kings", "text", {}, "list"),
        ("서울", "#넘겨주기 [[서울특별시]]", {}, "redirect"),
        ("東京", "#転送 [[東京都]]", {}, "redirect"),
        ("北京", "#重定向 [[北京市]]", {}, "redirect"),
        ("Wien", "#WEITERLEITUNG [[Wien (Stadt)]]", {}, "redirect"),
        ("Lyon", "#REDIRECTION [[Lyon]]", {}, "redirect"),
        ("Madrid", "#REDIRECCIÓN [[Madrid]]", {}, "redirect"),
        ("Москва", "#перенаправление [[Москва]]", {}, "redirect"),
        ("القاهرة", "#تحويل [[القاهرة]]", {}, "redirect"),
        ("חיפה", "#הפניה [[חיפה]]", {}, "redirect"),
        ("수성", "수성은 {{동음이의}}", {}, "disambiguation"),
        ("수성 (동음이의)", "x", {}, "disambiguation"),
        ("水星 (曖昧さ回避)", "x", {}, "disambiguation"),
        ("田中", "x {{人名の曖昧さ回避}}", {}, "disambiguation"),
        ("水星", "x {{Aimai}}", {}, "disambiguation"),
        ("水星", "x {{消歧義}}", {}, "disambiguation"),
        ("Merkur", "x {{Begriffsklärung}}", {}, "disambiguation"),
        ("Merkur", "x {{Begriffsklärungshinweis}}", {}, None),
        ("Mercure", "{{Homonymie}} x", {}, "disambiguation"),
        ("Mercure", "{{Voir homonymes|x}} x", {}, None),
        ("Mercurio", "x {{desambiguación}}", {}, "disambiguation"),
        ("Меркурий", "x {{неоднозначность}}", {}, "disambiguation"),
        ("Меркурий (значения)", "x", {}, "disambiguation"),
        ("عطارد", "x {{توضيح}}", {}, "disambiguation"),
        ("כוכב חמה", "x {{פירושונים}}", {}, "disambiguation"),
        ("대한민국의 산 목록", "x", {}, "list"),
        ("日本の山一覧", "x", {}, "list"),
        ("日本の川の一覧", "x", {}, "list"),
        ("中国山脉列表", "x", {}, "list"),
        ("Liste der Berge", "x", {}, "list"),
        ("Liste de montagnes", "x", {}, "list"),
        ("Lista de montañas", "x", {}, "list"),
        ("Список гор", "x", {}, "list"),
        ("قائمة الجبال", "x", {}, "list"),
        ("רשימת הרים", "x", {}, "list"),
        ("Listen to Me", "x", {}, None),
        ("Index of law articles", "text", {}, "list"),
        ("Outline of law", "text", {}, "list"),
        ("Empty", "  \n", {}, "empty"),
        ("Mercury", "x {{Place name disambiguation}}", {}, "disambiguation"),
        ("Mercury", "x {{disambiguation cleanup|date=May 2012}}", {}, "disambiguation"),
        ("Mercury", "x\n{{Template:Airport_disambiguation}}", {}, "disambiguation"),
        ("Listen", "{{About|disambiguation pages|x}} A list of things.", {}, None),
        ("Kept", "He played for [[Milton]]{{Disambiguation needed|date=May 2012}} in 1999.", {}, None),
        ("Kept", "He played for {{disambiguation needed span|Milton}} in 1999.", {}, None),
        ("Kept", "The mark is <nowiki>{{disambiguation}}</nowiki>.", {}, None),
        ("Kept", "Text. <!-- {{disambig}} is no longer needed -->", {}, None),
        ("Kept", "Text.<ref>See {{Disambiguation link|x}}.</ref> {{R to disambiguation page}}", {}, None),
        ("Kept", "#Redirecting a river was the first step.\n#Then came a dam.", {}, None),
    ],
)
def test_why_pages_are_dropped(tmp_path, title, text, extra, reason):
    (found,) = dump.pages(write(tmp_path / "d.xml", page(1, title, text, **extra)))
    assert (dump.skip_page(found) or dump.skip_title(found.title, keep_lists=False)) == reason


def test_lists_can_be_kept():
    assert dump.skip_title("List of kings", keep_lists=True) is None
    assert dump.skip_title("A (disambiguation)", keep_lists=True) == "disambiguation"


def test_a_cut_dump_is_an_error_even_on_a_page_border(tmp_path):
    path = write(tmp_path / "d.xml", page(1, "A", "text"), page(2, "B", "text"), end="\n")
    with pytest.raises(InputError, match=r"d\.xml:\d+: .*byte \d+"):
        list(dump.pages(path))
    whole = write(tmp_path / "e.xml", page(1, "A", "text")).read_bytes()
    for size in range(12, len(whole) - 1, 37):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            list(dump.pages(path))


@pytest.mark.parametrize("damage", ["<page><title>A</page>", "<page>\x01</page>", "</page>", "<page>&nothing;</page>"])
def test_broken_xml_names_file_and_line(tmp_path, damage):
    path = write(tmp_path / "d.xml", page(1, "A", "text"), damage)
    with pytest.raises(InputError, match=r"d\.xml:\d+: "):
        list(dump.pages(path))


def test_invalid_utf8_is_broken_xml(tmp_path):
    path = write(tmp_path / "d.xml", page(1, "A", "text"))
    path.write_bytes(path.read_bytes().replace(b">text<", b">t\xe9xt<"))
    with pytest.raises(InputError, match=r"d\.xml:\d+: "):
        list(dump.pages(path))


def test_entity_bombs_are_refused_at_the_document_type(tmp_path):
    path = tmp_path / "bomb.xml"
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    path.write_text(f'<?xml version="1.0"?><!DOCTYPE m [<!ENTITY l0 "lol">{lol}]><mediawiki>&l9;</mediawiki>')
    with pytest.raises(InputError, match="document type"):
        list(dump.pages(path))


def test_other_xml_and_deep_xml_are_refused(tmp_path):
    (tmp_path / "rss.xml").write_text("<?xml version='1.0'?><rss></rss>")
    with pytest.raises(InputError, match="<rss>"):
        list(dump.pages(tmp_path / "rss.xml"))
    write(tmp_path / "deep.xml", "<a>" * 50 + "</a>" * 50)
    with pytest.raises(InputError, match="nested"):
        list(dump.pages(tmp_path / "deep.xml"))


def test_a_tag_without_end_is_refused_in_bounded_memory(tmp_path):
    path = tmp_path / "tag.xml.bz2"
    path.write_bytes(bz2.compress(b"<mediawiki><page a='" + b"x" * 30_000_000))
    with pytest.raises(InputError):
        list(dump.pages(path))


def test_a_text_too_long_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(dump, "MAX_PAGE_BYTES", 1000)
    found = list(dump.pages(write(tmp_path / "d.xml", page(1, "Long", "x" * 1001), page(2, "Short", "x" * 1000))))
    assert [(p.title, p.oversized, len(p.text)) for p in found] == [("Long", True, 0), ("Short", False, 1000)]
    assert dump.skip_page(found[0]) is None


def test_pages_of_older_dumps_have_the_namespace_that_their_title_begins_with(tmp_path):
    """Before version 0.6 of the format pages had no <ns>. A colon in the title of an article stays."""
    titles = {"Kategorie:Flüsse": 14, "Datei:Elbe.jpg": 6, "Elbe": 0, "Alien: Covenant": 0, "Kategorie": 0, ":x": 0}
    path = write(tmp_path / "d.xml", *(page(5, title, "words").replace("<ns>0</ns>", "") for title in titles))
    assert {each.title: each.namespace for each in dump.pages(path)} == titles
    stated = write(tmp_path / "e.xml", page(5, "Kategorie:Flüsse", "words"))
    assert [each.namespace for each in dump.pages(stated)] == [0]  # what the dump says counts


def test_pages_whose_text_is_no_wikitext_are_dropped(tmp_path):
    models = ("wikitext", "json", "Scribunto", "css")
    mark = '<text xml:space="preserve">'
    pages = [
        page(n, f"P{n}", "{}").replace(
            f"</contributor>{mark}", f"</contributor><model>{model}</model><format>text/x</format>{mark}"
        )
        for n, model in enumerate(models)
    ]
    found = list(dump.pages(write(tmp_path / "d.xml", *pages)))
    assert [each.model for each in found] == list(models)
    assert [dump.skip_page(each) for each in found] == [None, "model", "model", "model"]
