from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from realmctl.corpus.languages import variants_of
from realmctl.corpus.wiki import dump
from realmctl.corpus.wiki.arguments import arguments
from realmctl.corpus.wiki.namespaces import Namespaces, namespaces
from realmctl.corpus.wiki.template_rules import rules
from realmctl.corpus.wiki.wikitext import prose
from realmctl.data import table
from realmctl.execution.deadline import deadline


def text(wikitext: str) -> str:
    return prose(wikitext)[0]


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("'''Bold''' and ''italic'' and '''''both'''''.", "Bold and italic and both."),
        ("''The Times'''s owner. The '''cat'''s.", "The Times's owner. The cats."),
        ("A [[link]], [[Page (x)|label]], [[bus]]es, [[Paris (city)|]].", "A link, label, buses, Paris."),
        ("a [[#Section|below]] b", "a below b"),
        ("x [[File:a.jpg|thumb|A [[cat]] on a [http://x.org mat]]] y", "x y"),
        ("x [[Image:a.jpg|left|50px|Caption [[a|b]] with {{nowrap|x}}]]\n\ny", "x\ny"),
        ("x [[Category:Birds|Key]]", "x"),
        ("x [[:Category:Birds|birds]] and [[:Category:Birds]]", "x birds and Category:Birds"),
        ("x [[fr:Chat]] [[de:Katze]] y [[wikt:cat|cat]] [[s:Book]]", "x y cat s:Book"),
        ("see [http://x.org the site] and [http://x.org] and [//x.org it].", "see the site and and it."),
        ("x<ref>note {{cite|a}}</ref> y<ref name=a/> z<ref name='b' group=c />.", "x y z."),
        ("a<!-- hidden [[ {{ --> b", "a b"),
        ("a <nowiki>[[not]] ''a'' {{link}}</nowiki> b", "a [[not]] ''a'' {{link}} b"),
        ("E <math>E=mc^2</math> and <math>x</math>.", "E and x."),
        ("10<sup>6</sup> m<sup>2</sup> H<sub>2</sub>O 2<sup>nd</sup>", "10^6 m2 H2O 2nd"),
        ("a<br>b<br/>c <span style='x'>d</span> <small>e</small>", "a b c d e"),
        ("a&nbsp;b &ndash; c &amp; d &#233;&shy;", "a b – c & d é"),
        ("1 &lt; 2 and a < b", "1 < 2 and a < b"),
        ("__NOTOC__ a __FORCETOC__", "a"),
        (
            "A ({{IPA|x}}) b ({{lang-xx}}, born 1900) c (; ) d (e, {{IPA|f}}) g [ ] .",
            "A b (born 1900) c d (e) g [ ].",
        ),
        ("word {{citation needed}}, next {{cn}}.", "word, next."),
        ("{{Infobox person\n| name = X\n| birth = {{birth date|1879|3|14}}\n}}\nHe lived.", "He lived."),
        ("before\n{| class='x'\n! h || i\n|-\n| a || [[b]]\n{|\n| inner\n|}\n|}\nafter", "before\nafter"),
        ("* one\n* two.\n** three\n# four\n; term : meaning", "one.\ntwo.\nthree.\nfour.\nterm: meaning."),
        ("soft\nwrapped line\n\nnext", "soft wrapped line\nnext"),
        ("== Life ==\nHe.\n=== Early ===\nShe.", "He.\nShe."),
        ("a\n== References ==\n* r\n=== Notes ===\n* n\n== Works ==\nb", "a\nb"),
        ("a\n==External links==\n* l\n[[Category:x]]", "a"),
        ("<blockquote>Quote.</blockquote><p>Para.</p><ul><li>item</li></ul>", "Quote.\nPara.\nitem."),
        ("<gallery>\nFile:a.jpg|cap\n</gallery>text", "text"),
        ("One.<ref>a</ref>Two.<ref name=b/> Three", "One. Two. Three"),
        ("<math>\\frac{a}</math>, which is\n\n<math>\\sum</math>.\n* [[H. Jr.]]", "which is\nH. Jr."),
        ("It has {{plainlist|\n* one\n* two\n}} and more.", "It has\none.\ntwo and more."),
        ("語<ref>x</ref>だけ<ref name=a />で、a<ref>b</ref>c", "語だけで、a c"),
        ("See [http://x.org the [[cat|tame]] cat] and [//y.org [[dog]]].", "See the tame cat and dog."),
        ("a\u200bb\u00a0c\u2009d\ue000", "ab c d"),
    ],
)
def test_what_a_reader_sees(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{convert|5|km|mi}}", "5 km"),
        ("{{convert|5|to|10|km}}", "5 to 10 km"),
        ("{{cvt|3|-|4|ft}}", "3–4 ft"),
        ("{{lang|fr|mot [[juste]]}}", "mot juste"),
        ("{{lang-de|Wort}}", "Wort"),
        ("{{transl|ja|kana}}", "kana"),
        ("{{nowrap|a {{nobr|b}}}}", "a b"),
        ("{{birth date|1879|3|14|df=yes}}", "14 March 1879"),
        ("{{death date and age|1955|4|18|1879|3|14}}", "April 18, 1955"),
        ("{{start date|1999|12}}", "December 1999"),
        ("{{as of|2010|5}}", "As of May 2010"),
        ("{{as of|2010|lc=y}}", "as of 2010"),
        ("{{circa|1900}}", "c. 1900"),
        ("{{frac|1|2}}", "1/2"),
        ("{{frac|2|1|2}}", "2 1/2"),
        ("{{val|1.5|e=3|u=m}}", "1.5×10^3 m"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{nihongo|Tokyo|東京|Tōkyō}}", "Tokyo (東京, Tōkyō)"),
        ("{{HMS|Beagle}}", "HMS Beagle"),
        ("{{ill|Some One|de}}", "Some One"),
        ("{{small|a=b}}", ""),
        ("{{small|1=a=b}}", "a=b"),
        ("{{formatnum:1234}}", "1,234"),
        ("{{formatnum:-7654321.25}}", "-7,654,321.25"),
        ("{{formatnum:12 men}}", "12 men"),
        ("{{{1|words}}}", "words"),
        ("{{quote|To be.|Shakespeare}}", "To be."),
        ("a{{snd}}b", "a – b"),
        ("it{{'s}}", "it's"),
        ("{{Main|Other page}}", ""),
        ("{{unknown|words}}", ""),
        ("{{flag|France}}", "France"),
        ("{{hlist|a|b}}", "a, b"),
    ],
)
def test_templates_that_carry_words(template, expected):
    assert text(template) == expected


def test_anchors_are_offsets_into_the_clean_text():
    source = (
        "{{Infobox|x=[[No]]}}The ''[[Gare du Nord|'''North''' station]]'' in "
        "[[paris]]ian [[the  arrondissement#10th|10th]] ([[ ]]).\n* [[A_b]]"
    )
    text, links = prose(source)
    assert text == "The North station in parisian 10th.\nA_b."
    assert [(text[a:b], target) for a, b, target in links] == [
        ("North station", "Gare du Nord"),
        ("parisian", "Paris"),
        ("10th", "The  arrondissement"),
        ("A_b", "A b"),
    ]


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("He is {{convert|6|ft|2|in|cm}} tall.", "He is 6 ft 2 in tall."),
        ("It weighs {{convert|12|st|6|lb|kg|0}}.", "It weighs 12 st 6 lb."),
        ("A {{convert|2|x|3|x|4|m|ft}} box.", "A 2 x 3 x 4 m box."),
        ("It is {{convert|1|mi|440|yd|m}} long.", "It is 1 mi 440 yd long."),
        ("At {{convert|-27|°F}} or {{convert|1300|m|ft}}.", "At −27 °F or 1,300 m."),
        ("A {{convert|5+1/2|in|mm}} plank.", "A 5 1/2 in plank."),
        ("It has {{convert|87|e6acre}} and {{convert|1.2|PD/sqmi}}.", "It has 87 million acres and 1.2/sq mi."),
        ("A {{convert|40|acre|ha|adj=on}} farm of {{convert|40|acre}}.", "A 40 acre farm of 40 acres."),
        ("A {{convert|400000|oilbbl/d|m3/d}} field.", "A 400,000 bbl/d field."),
        ("Between {{convert|60|and(-)|80|kg}}.", "Between 60 and 80 kg."),
        ("6×10{{sup|23}} and 2{{sup|nd}}", "6×10^23 and 2nd"),
        ("5.98{{e|24}} kg, 10{{sup|−9}} m", "5.98×10^24 kg, 10^−9 m"),
        ("A 7{{frac|3|4}} inch gun, 1{{sfrac|1|2}}, {{frac|2|1|3}}.", "A 7 3/4 inch gun, 1 1/2, 2 1/3."),
        ("({{sfrac|3''n'' + 1|2}}) O", "((3n + 1)/2) O"),
        ("3<sup>1</sup>/<sub>2</sub> and 1010<sub>2</sub> and C<sub>6</sub>", "3 1/2 and 1010_2 and C6"),
        ("8{{±|2}} mm, 8{{±|2|3}} mm", "8±2 mm, 8+2−3 mm"),
        ("{{gaps|3.141|592}} and {{gaps|1|234|e=5|u=m}}", "3.141592 and 1234×10^5 m"),
        ("{{val|5|0.1|u=kg}}, {{val|1.2|+0.3|-0.4}}, {{val|12345|fmt=commas}}", "5±0.1 kg, 1.2+0.3−0.4, 12,345"),
        ("{{val|5|0.1|e=3|u=m|up=s}} {{val|-4}}", "(5±0.1)×10^3 m/s −4"),
        ("1914{{ndash}}1918, 1914{{spaced en dash}}1918", "1914–1918, 1914 – 1918"),
        ("1914{{en dash}}1918 {{em dash}} 1939{{spaced ndash}}1945{{snd}}x", "1914–1918 — 1939 – 1945 – x"),
        ("yes{{mdash}}no{{spaced em dash}}maybe", "yes—no — maybe"),
        ("{{track gauge|1435mm}} line", "1,435 mm line"),
        ("at {{coord|13|19|N|169|9|W|type:event}} and {{coord|43.5|-79.25}}", "at 13°19′N 169°9′W and 43.5°N 79.25°W"),
        ("is{{coord|1|N|2|E|display=title}} here", "is here"),
        ("the {{nth|21}} and {{ordinal|12}}", "the 21st and 12th"),
        ("A density of {{pop density|3645257|640081.87|km2|sqmi|prec=1}} in 2011.", "A density of 5.7/km2 in 2011."),
        ("A density of {{pop density|3645257|640081.87|km2}} in 2011.", "A density of in 2011."),
        ("About {{percentage|1|4}}, {{percentage|1|3|1}} of {{percentage|x|3}}all.", "About 25%, 33.3% of all."),
        ("Louis {{rn|14}} and {{Roman|1989}} and {{roman|5000}}", "Louis XIV and MCMLXXXIX and 5000"),
        ("At {{jct|state=CA|I|5|US|101}} turn.", "At I-5 / US 101 turn."),
        ("It is 1.5{{su|p=+0.1|b=−0.2}} and {{convert|26|mi|385|yd|km}}.", "It is 1.5+0.1−0.2 and 26 mi 385 yd."),
    ],
)
def test_numbers_stay_what_the_page_shows(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("Rome ({{langx|it|Roma}}) is", "Rome (Roma) is"),
        ("({{langx|ru|Москва|Moskva|lit=x}})", "(Москва, romanized: Moskva, lit. 'x')"),
        ("{{lang-grc-gre|Ἀθῆναι}} and {{transl|ar|ALA|''Allāh''}}", "Ἀθῆναι and Allāh"),
        ("{{zh|s=北京|p=Běijīng}} x", "simplified Chinese: 北京; pinyin: Běijīng x"),
        ("{{script/Arabic|ﷲ}} {{angbr|th}}", "ﷲ ⟨th⟩"),
        ("{{ill|de|Gymnasium|Schule}} {{ill|Ann Brook|fr|lt=Ann}}", "Gymnasium Ann"),
        ("Born {{OldStyleDate|4 May|1750|23 April}} in", "Born 4 May 1750 in"),
        ("Born {{OldStyleDate|February 2|1905|January 20}} in", "Born February 2, 1905 in"),
        (
            "{{circa|1400|1450}} ({{floruit|1400|1410}}; {{reign|1485|1509}})",
            "c. 1400 – c. 1450 (fl. 1400–1410; r. 1485–1509)",
        ),
        ("{{start date|1840|May|7|df=yes}} {{date|2010-05-03}}", "7 May 1840 3 May 2010"),
        ("{{as of|2013|June|8|df=US}} {{as of|2011|6|lc=y|post=,}} x", "As of June 8, 2013 as of June 2011, x"),
        ("aged {{age|1946|9|1|1990|2|3}}", "aged 43"),
        (
            "The {{SS|Normandie}}, {{SMS|Dresden||6}}, {{USS|Nautilus|SSN-571|2}}",
            "The SS Normandie, SMS Dresden, Nautilus",
        ),
        (
            "{{HMS|Hood|51}}, {{ship|Japanese cruiser|Chikuma|1938|2}} {{HSwMS|Visby}}",
            "HMS Hood (51), Chikuma HSwMS Visby",
        ),
        ("an {{sclass|Iowa|battleship}} and {{SMU|U-9}}", "an Iowa-class battleship and SM U-9"),
        ("{{CAD|5}} {{AUD|6}} {{GBP|7}} {{JPY|800}} {{INRConvert|9|c}} {{SEK|10}}", "C$5 A$6 £7 ¥800 ₹9 crore 10 kr"),
        ("A{{music|flat}} {{sic}} it{{'s}} a{{=}}b {{nowrap|c{{=}}d}}", "A♭ [sic] it's a=b c=d"),
        (
            "{{bibleverse|1|Corinthians|13:4|KJV}} {{harvtxt|Boolos|Jeffrey|1974}}",
            "1 Corinthians 13:4 Boolos & Jeffrey (1974)",
        ),
        ("{{bibleref2|John|3:16|NKJV}} ({{b.|1850}}; {{d.|1900}})", "John 3:16 (b. 1850; d. 1900)"),
        ("The {{abbrlink|UN|United Nations}} and {{US$|500,000}} or {{€|45}}", "The UN and US$500,000 or €45"),
        (
            "The {{MV|Wilhelm}}, {{HMAS|Sydney|1912}}, {{RMS|Queen Mary}}",
            "The MV Wilhelm, HMAS Sydney (1912), RMS Queen Mary",
        ),
        ("{{Template:HMS|Beagle}} {{nowrap_|2=b|1=a}}", "HMS Beagle a"),
    ],
)
def test_names_and_dates_stay_what_the_page_shows(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("It cost {{XYZ|145,000|year=2010}} then.", "It cost 145,000 then."),
        ("The {{unseen ship|Titanic}} sank.", "The Titanic sank."),
        ("about 5 {{unseen unit|km}} away", "about 5 km away"),
        ("he is {{unseen note|very unclear}} tall", "he is tall"),
        (
            "In 1990{{citation needed|reason=x}} and 1991{{clarify|Unclear}} it {{Unseen-inline|1992}} ended",
            "In 1990 and 1991 it ended",
        ),
        ("{{unseen hatnote|Ann Brook}}\n'''Ann''' lives.", "Ann lives."),
        ("{{Unseen box\n|Ann\n}}'''Ann''' lives.", "Ann lives."),
        ("5 {{unseen|y|200px|miles}} on, {{unseen|fr|Paris}}", "5 miles on, Paris"),
    ],
)
def test_an_unknown_template_beside_digits_or_capitals_leaves_its_text(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("own", "language", "wikitext"),
    [
        ({"Datei": 6, "Kategorie": 14}, "", "x [[Datei:a.jpg|mini|Ein [[Bild]]]] [[Kategorie:Y]]"),
        ({"Datei": 6}, "de", "x [[Bild:a.jpg|mini|links|200px|Alt]] [[Medium:b.ogg]]"),
        ({"Datei": 6}, "", "x [[Bild:a.jpg|mini|[[Haus]] und|y]]"),
        ({"Fichier": 6}, "fr", "x [[Image:a.jpg|vignette]] [[ fichier : b.jpg|c]] [[catégorie:Z]]"),
        ({}, "es", "x [[Imagen:a.jpg|thumb|y]] [[Archivo:b.jpg]] [[Categoría:Z]]"),
        ({}, "ja", "x [[画像:a.jpg|thumb|y]] [[ファイル:b.jpg]] [[カテゴリ:Z]]"),
        ({}, "ko", "x [[그림:a.jpg|섬네일|y]] [[파일:b.jpg]] [[분류:Z]]"),
        ({}, "vi", "x [[Tập tin:a.jpg|nhỏ|y]] [[Hình:b.jpg]] [[Thể_loại:Z]]"),
        ({"Plik": 6}, "pl", "x [[Grafika:a.jpg|mały|y]] [[Kategoria:Z]]"),
        ({"Fil": 6}, "sv", "x [[Bild:a.jpg|miniatyr|y]] [[Kategori:Z]]"),
        ({"Файл": 6}, "ru", "x [[Изображение:a.jpg|мини|y]] [[Категория:Z]]"),
        ({}, "fa", "x [[پرونده:a.jpg|y]] [[تصویر:b.jpg]] [[رده:Z]]"),
    ],
)
def test_files_and_categories_by_every_name_of_the_sites_language(own, language, wikitext):
    assert prose(wikitext, namespaces(own, language)) == ("x", ())


def test_names_of_other_languages_are_titles():
    """English Wikipedia has an article "Imagine: John Lennon", and "Imagine" means File in Romanian."""
    text, links = prose("[[Imagine: John Lennon]] [[Bild:x]] [[Benutzer:A|b]]", namespaces({"File": 6}, "en"))
    assert text == "Imagine: John Lennon Bild:x b"
    assert [target for _, _, target in links] == ["Imagine: John Lennon", "Bild:x", "Benutzer:A"]
    assert prose("[[Benutzer:A|b]]", namespaces({"Benutzer": 2}, "de")) == ("b", ())


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("[[de:Haus]] [[zh-min-nan:X]] [[be-x-old:Y]] a", "a"),
        ("[[ABC:Murders]] [[Mob:Rule|the film]] [[xyz:abc]]", "ABC:Murders the film xyz:abc"),
        ("[[Re:Zero]] and [[Dr:X]]", "Re:Zero and Dr:X"),
    ],
)
def test_a_colon_makes_a_language_link_only_after_the_code_of_a_language(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("ක්\u200dෂ ന്\u200d.", "ක්\u200dෂ ന്\u200d."),
        ("می&zwnj;خواهم می{{zwnj}}خواهم", "می\u200cخواهم می\u200cخواهم"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("Auf\u200clage\u200d \u200ca\u200e\u200b", "Auflage a"),
    ],
)
def test_joiners_that_change_a_word_stay(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("{{Infobox\n| a = b\n| c = [[d]]\n\nProse goes on.", "Prose goes on."),
        ("{| class=x\n|-\n| cell\nProse goes on.", "Prose goes on."),
        ("a [[b c d\n\nProse [[goes]] on.", "a b c d\nProse goes on."),
        ("a [[B|b c d\n\nProse goes on.", "a b c d\nProse goes on."),
        ("[[File:x.jpg|thumb|caption\n\nProse goes on.", "Prose goes on."),
        ("a }} b ]] c |} d", "a b c d"),
        ("a<ref>note\n\nProse<ref>n</ref> goes on.", "anote\nProse goes on."),
        ("a<ref>note never closed", "anote never closed"),
        ("a <!-- comment never closed\nProse.", "a Prose."),
        ("{{quote|a {{nowrap|b}} c", ""),
    ],
)
def test_what_does_not_balance_does_not_spoil_the_rest(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("a\n\n----\n\nb", "a\nb"),
        ("----\na\n-----b\nc -- d\n--- e", "a\nb c -- d --- e"),
        ("a {{{1}}}b {{{2|}}}c {{{3|d}}} {{{4|{{{5|e [[f|g]]}}}}}}", "a b c d e g"),
        ("{{uc:ab}} {{LC:CD}} {{ucfirst:éf}} {{lcfirst:GH}}", "AB cd Éf gH"),
        ("{{#if: a |yes|no}} {{#if: |yes|no}} {{#if:|x}}{{#if:a|[[b|c=d]]}}", "yes no c=d"),
        ("{{#ifeq: a | a |same|other}} {{#ifeq:a|b|same|other}} {{#ifeq:a|b|same}}{{#ifeq:a}}", "same other"),
    ],
)
def test_rules_parameters_and_functions_as_mediawiki_shows_them(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ('a <span style="display:none">01</span>May b', "a May b"),
        ("<div class=x style='color:red; DISPLAY : none'>\nz [[y]]\n</div>\nWords.", "Words."),
        ('a <span style="visibility:hidden"><span>k</span> l<br/></span>b', "a b"),
        ('a <span style="display:none">k', "a k"),
        ('a <span style="display:none" />k', "a k"),
        ('a <span title="display:none">k</span> <span style="display:inline">l</span>', "a k l"),
        ('a {{b}} <p style="display:none">{{c|d}}</p> e', "a e"),
        ('<span style="display:none">a ' * 2000 + 'b <i style="display:none">c</i>', "a " * 2000 + "b"),
    ],
)
def test_what_a_style_hides_is_left_out(wikitext, expected):
    assert text(wikitext) == expected


TOKENS = [
    "[[",
    "]]",
    "{{",
    "}}",
    "{|",
    "|}",
    "|",
    "'''",
    "''",
    "<ref>",
    "</ref>",
    "<!--",
    "-->",
    "\n",
    "\n\n",
    "==",
    "*",
    "[http://a b]",
    "[[File:",
    "<nowiki>",
    "</nowiki>",
    "<br>",
    "a",
    "B c",
    "&nbsp;",
    "&#xe8ff;",
    "\ue000",
    "{{lang|",
    "<math>",
    "(",
    ")",
    ",",
    " ",
    "http://x",
    "#",
]


@given(st.lists(st.sampled_from(TOKENS) | st.text(max_size=5), max_size=60).map("".join))
@example("{[[{")
@example("{''{ and }[[}")
@settings(max_examples=400, deadline=None)
def test_any_text_gives_clean_lines_and_anchors_that_fit(wikitext):
    text, links = prose(wikitext)
    last = 0
    for start, end, target in links:
        assert last <= start < end <= len(text)
        assert target and target == target.strip()
        assert "\n" not in text[start:end]
        last = end
    assert not re.search("[\ue000-\uf8ff]", text)
    assert "  " not in text and "\n\n" not in text
    if "<nowiki>" not in wikitext and "&" not in wikitext:
        assert not re.search(r"\{\{|''|<ref>", text)


HOSTILE = {
    "links": "[[" * 100_000,
    "files": "[[File:" * 60_000,
    "files and links": "[[File:a|[[b" * 40_000,
    "templates": "{{" * 100_000,
    "named templates": "{{nowrap|" * 50_000 + "x" * 50_000 + "}}" * 50_000,
    "tables": "\n{|" * 60_000,
    "mixed": "{{\n{|" * 50_000 + "}}" * 50_000,
    "refs": "<ref>" * 60_000,
    "refs in paragraphs": "<ref>\n\n" * 40_000 + "</ref>",
    "comments": "<!--" * 60_000,
    "nowiki": "<nowiki>" * 40_000,
    "tags": "<" * 200_000,
    "open tag": "<span " * 60_000,
    "quotes": "'" * 200_001,
    "quote runs": "a'''s " * 50_000,
    "equals": "=" * 200_000,
    "headings": "==a\n" * 60_000,
    "parentheses": "(" * 200_000,
    "commas": "( , " * 60_000,
    "commas only": "," * 200_000,
    "spaces": " " * 300_000,
    "lines": "\n" * 300_000,
    "bars": "{{nowrap|" + "|" * 200_000 + "}}",
    "linked bars": "{{nowrap|[[" + "|" * 200_000 + "}}",
    "entities": "&" * 200_000,
    "switches": "_" * 200_000,
    "urls": "[http://" * 50_000,
    "url": "[http://a" + " " * 200_000,
    "link bars": "[[a|" * 60_000,
    "semicolons": "(;" * 100_000,
    "pipes in a line": "\n! a" + " b" * 100_000,
    "blank table lines": "\n" + " \t" * 100_000 + "x",
    "powers": "1<sup>" * 50_000,
    "colons": ": " * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name):
    """Anything worse than linear would take minutes on these."""
    with deadline(20):
        prose(HOSTILE[name])


def test_the_excerpt_is_clean(shared_data):
    path = shared_data / "enwiki-excerpt-pages-articles.xml.bz2"
    found = [prose(page.text) for page in dump.pages(path) if page.namespace == 0 and not page.redirect]
    whole = "\n".join(text for text, _ in found)
    residue = {
        mark: whole.count(mark)
        for mark in (
            "[[",
            "]]",
            "{{",
            "}}",
            "''",
            "<ref",
            "</",
            "Category:",
            "File:",
            "thumb|",
            "__",
            "&nbsp;",
            "  ",
        )
    }
    assert {mark: count for mark, count in residue.items() if count} == {}
    assert not re.findall(r"\(\s*[,;)]|\w ,\s|^[*#:;|!=]", whole, re.MULTILINE)
    assert len(re.findall(r"\|", whole)) <= 5
    assert len(whole.split()) > 435_000
    assert sum(len(links) for _, links in found) > 20_000


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("First (see\n\n{{table}}\n\n). Then more.", "First (see\n\nThen more."),
        (":<math>\\frac{a}{b}</math>.\nThen.", "Then."),
        ("*{{cite book}}. First of a series.", "First of a series."),
        ("...and so on.", "...and so on."),
        (".NET is a framework.", ".NET is a framework."),
    ],
)
def test_marks_that_dropped_markup_left_at_the_start_of_a_line_go_too(source, expected):
    """A block began with the half-line ")."."""
    found = [line for line in prose(source)[0].split("\n") if line]
    assert found == [line for line in expected.split("\n") if line]


OWN = {
    "ko": {"파일": 6, "분류": 14, "사용자": 2},
    "zh": {"File": 6, "Category": 14, "User": 2},
    "ja": {"ファイル": 6, "カテゴリ": 14, "利用者": 2},
    "de": {"Datei": 6, "Kategorie": 14, "Benutzer": 2},
    "fr": {"Fichier": 6, "Catégorie": 14, "Utilisateur": 2},
    "es": {"Archivo": 6, "Categoría": 14, "Usuario": 2},
    "ru": {"Файл": 6, "Категория": 14, "Участник": 2},
    "ar": {"ملف": 6, "تصنيف": 14, "مستخدم": 2},
    "he": {"קובץ": 6, "קטגוריה": 14, "משתמש": 2},
}


@pytest.mark.parametrize(
    ("language", "source", "expected", "targets"),
    [
        ("ko", "'''서울'''({{llang|en|Seoul}})은 [[대한민국]]의 수도이다.<ref>a</ref>\n[[파일:a.jpg|섬네일|글]]\n== 같이 보기 ==\n* x\n[[분류:도시]]", "서울(Seoul)은 대한민국의 수도이다.", ["대한민국"]),
        ("ja", "'''東京'''（とうきょう、{{lang-en-short|Tokyo}}）は[[日本]]の首都。\n[[画像:a.jpg|thumb|図]]\n* 項目\n== 脚注 ==\n{{reflist}}\n[[カテゴリ:都市]]", "東京（とうきょう、Tokyo）は日本の首都。\n項目。", ["日本"]),
        ("zh", "'''-{zh-hans:计算机;zh-hant:電腦}-'''（{{lang-en|computer}}）是[[机器]]。-{H|zh-cn:软件;zh-tw:軟體}-\n== 参考文献 ==\nx", "计算机（computer）是机器。", ["机器"]),
        ("de", "'''Wien''' ({{enS|Vienna}}) ist die [[Hauptstadt]].\n[[Datei:a.jpg|mini|Bild]]\n== Einzelnachweise ==\nx\n[[Kategorie:Ort]]", "Wien (Vienna) ist die Hauptstadt.", ["Hauptstadt"]),
        ("fr", "'''Lyon''' est une [[Ville|ville]] de {{unité|500000|habitants}}.\n[[Fichier:a.jpg|vignette|x]]\n== Notes et références ==\nx", "Lyon est une ville de 500000 habitants.", ["Ville"]),
        ("es", "'''Madrid''' es la [[capital]] de [[España]].\n[[Archivo:a.jpg|miniatura|x]]\n== Véase también ==\nx", "Madrid es la capital de España.", ["Capital", "España"]),
        ("ru", "'''Москва''' ({{lang-en|Moscow}}) — [[столица]].\n[[Файл:a.jpg|мини|x]]\n== Примечания ==\nx", "Москва (Moscow) — столица.", ["Столица"]),
        ("ar", "'''القاهرة''' (، {{lang-en|Cairo}}) عاصمة \u200f[[مصر]].\u061c\n[[ملف:a.jpg|تصغير|x]]\n== مراجع ==\nx", "القاهرة (Cairo) عاصمة مصر.", ["مصر"]),
        ("he", "'''חיפה''' היא [[עיר]].\n[[קובץ:a.jpg|ממוזער|x]]\n== קישורים חיצוניים ==\nx", "חיפה היא עיר.", ["עיר"]),
    ],
)  # fmt: skip
def test_pages_of_nine_languages(language, source, expected, targets):
    text, links = prose(source, namespaces(OWN[language], language, variants_of("auto", language)))
    assert text == expected
    assert [target for _, _, target in links] == targets
    assert all(text[start:end] for start, end, _ in links)


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [("zh", "计算机 甲"), ("zh-hant", "電腦 甲"), ("zh-hk", "電腦HK 甲"), ("zh-tw", "電腦 甲"), ("zh-cn", "计算机 甲")],
)
def test_a_variant_of_chinese_is_chosen(wanted, shown):
    source = "-{zh-hans:计算机; zh-hant:電腦; zh-hk:電腦HK;}- -{甲}--{T|zh:乙}-"
    assert prose(source, namespaces({}, "zh", variants_of(wanted, "zh")))[0] == shown
    assert prose("-{甲}-", namespaces({}, "en", variants_of(wanted, "en")))[0] == "-{甲}-"


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("fr", "À {{unité|3797|m}}, sur {{unité|9381|km|2}}, {{nombre|71|sièges}}.", "À 3797 m, sur 9381 km2, 71 sièges."),
        ("fr", "Né le {{date|1|1|1900|en politique}}, le {{date-|29 9 2019}} ou le {{date|3|octobre|1990}}.", "Né le 1er janvier 1900, le 29 septembre 2019 ou le 3 octobre 1990."),
        ("fr", "Au {{s-|XXI}}, au {{s|I}}, au {{-s|V|e}} et aux {{s2-|XIX|e|XX|e}}.", "Au XXIe siècle, au Ier siècle, au Ve siècle av. J.-C. et aux XIXe et XXe siècles."),
        ("fr", "Othon {{Ier}} au {{XXe siècle}}, le {{84e|congrès}} à {{heure|4|30}} par {{tmp|-26|°C}}.", "Othon Ier au XXe siècle, le 84e congrès à 4 h 30 par -26 °C."),
        ("fr", "Le ''{{langue|de|Land}}'', {{incise|notamment ici|stop}}. Une {{citation|sanction}}{{,}} de {{Lien|langue=en|trad=Asfinag company|fr=ASFINAG|texte=l'ASFINAG}}{{note|x}}.", "Le Land, — notamment ici. Une « sanction » de l'ASFINAG."),
        ("fr", "Le {{référence nécessaire|plus grand pays|date=mai 2020}} du monde.", "Le plus grand pays du monde."),
        ("de", "Der Berg ({{Höhe|115|DE-NHN}}) ist {{Bruch|1|2}} so hoch, {{Bibel|Mt|5|3}}.{{Absatz|links}}", "Der Berg (115 m) ist 1/2 so hoch, Mt 5,3."),
        ("es", "En el {{siglo|V|a}} y el {{siglo|XX||s}}, a {{unidad|45|km}} el {{fecha|3|5|2010}}, {{bandera|España}} dijo.", "En el siglo V a. C. y el siglo XX, a 45 km el 3 de mayo de 2010, dijo."),
        ("ru", "{{нп5|Квартал|Баварский квартал|de|Bayerisches}} {{Флаг|Китай}} у {{iw|Институт Гана|||Institute}}{{нет АИ|3|01|2018}}.", "Баварский квартал у Институт Гана."),
        ("ru", "{{OldStyleDate|12|2|1809|31|1}} и {{число|1000|км}}", "31 января (12 февраля) 1809 и 1000 км"),
        ("he", "העיר{{הערה|שם=x|מקור ארוך 1}} גדולה{{כ}} {{אנ|Berlin}}.", "העיר גדולה."),
        ("ar", "في {{وإو|تر=X|عر=شارع|لغ=en|نص=الشارع}} 1990{{بحاجة لمصدر|1990}}.", "في الشارع 1990."),
        ("zh", "{{link-de|边境总督|Markgraf}}和{{tsl|en|Berlin Wall|柏林牆|牆}}、{{le|甲|A|乙}}{{来源请求|1990}}{{bd|1900年|1月1日|1980年|2月2日}}。", "边境总督和牆、乙（1900年1月1日－1980年2月2日）。"),
        ("ja", "{{仮リンク|放送局|en|Station|label=局}}と{{読み仮名|伯林|ベルリン}}{{要出典|date=2020年}}。", "局と伯林（ベルリン）。"),
        ("ko", "{{루비|仁川|인천}}{{소리|de-Berlin.ogg}}은 도시이다.{{출처|1990}}", "仁川(인천)은 도시이다."),
    ],
)  # fmt: skip
def test_templates_of_other_languages(language, source, expected):
    assert prose(source, namespaces({}, language))[0] == expected


def test_a_template_means_what_its_own_language_says():
    source = "Au {{s|XX}}."
    assert [prose(source, namespaces({}, language))[0] for language in ("fr", "ru", "en")] == [
        "Au XXe siècle.",
        "Au XX.",
        "Au XX.",
    ]


@pytest.mark.parametrize("language", sorted(table("templates")))
def test_every_rule_of_a_language_takes_any_arguments(language):
    for name, rule in rules(language).by_name.items():
        assert name == name.strip().lower()
        for text in ("", "|", "x", "1|2|3|4|5|6", "a=b|c=d", "X|[[a|b]]|date=2"):
            assert isinstance(rule(arguments(text)), str)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Il lut l'''Odyssée'' hier.", "Il lut l'Odyssée hier."),
        ("Un verso dell'''Odissea'' qui.", "Un verso dell'Odissea qui."),
        ("On ''The Globe''' stage.", "On The Globe' stage."),
        ("Both l'''A'' and l'''B'' end.", "Both lA and lB end."),  # two of each: bold
        ("The '''cat''' sat on ''mats''.", "The cat sat on mats."),
        ("'''D'''' and '''''five''''' marks.", "D' and five marks."),
        ("''The Globe'''s stage.", "The Globe's stage."),
    ],
)
def test_marks_of_a_line_are_counted_as_mediawiki_counts_them(written, shown):
    assert prose(written)[0] == shown


@pytest.mark.parametrize(
    "written",
    [
        "It stood in <pre-1800> times. It fell in 1901.",
        "A <code-word> is here. It is old.",
        "See <math.h> for it. The next sentence stays.",
        "Read <ref[4] there. The next sentence stays.",
        "Look at <gallery[2]> there. It is a list.",
    ],
)
def test_a_name_in_angle_brackets_that_is_no_element_is_text(written):
    assert prose(written)[0] == written


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("en simple ko zh ja he th ms ur sw", "1,234,567.891 1,234.5 12,345 123"),
        ("de nl tr vi id da ro el hr sr sl ca eu gl az is", "1.234.567,891 1.234,5 12.345 123"),
        ("fr it pt sv cs no nb fi hu sk ka lt lv eo nn af be", "1 234 567,891 1 234,5 12 345 123"),
        ("es ru pl uk bg hy et kk", "1 234 567,891 1234,5 12 345 123"),
    ],
)
def test_a_number_is_grouped_as_mediawiki_does(languages, expected):
    """The numbers are those that `Language::formatNum` of MediaWiki 1.39.17 gives."""
    written = " ".join(f"{{{{formatnum:{number}}}}}" for number in ("1234567.891", "1234.5", "12345", "123"))
    for language in languages.split():
        assert prose(f"x {written} x", Namespaces(language=language))[0] == f"x {expected} x", language
