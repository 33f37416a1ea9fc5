"""Characters that show nothing leave a text, and links and headings stay at their words."""

from __future__ import annotations

import unicodedata

import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.document import Document, Lead, cleaned
from stages.chunk import Chunk

HY, ZWSP, ZWNJ, ZWJ, BOM = "\u00ad", "\u200b", "\u200c", "\u200d", "\ufeff"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Donau{HY}dampf{HY}schiff", "Donaudampfschiff"),
        (f"long{ZWSP}word{BOM}", "longword"),
        ("\u202aleft\u202c \u2066to\u2069 right\u200e", "left to right"),
        (f"auf{ZWNJ}lage", "auflage"),
        (
            f"\u0645\u06cc{ZWNJ}\u062e\u0648\u0627\u0647\u0645",
            f"\u0645\u06cc{ZWNJ}\u062e\u0648\u0627\u0647\u0645",
        ),  # Persian
        (f"\u0915\u094d{ZWJ}\u0937", f"\u0915\u094d{ZWJ}\u0937"),  # Devanagari
        (f"\U0001f469{ZWJ}\U0001f4bb", f"\U0001f469{ZWJ}\U0001f4bb"),  # an emoji
        ("\u1820\u180e", "\u1820\u180e"),  # Mongolian
        ("\u06dd12", "\u06dd12"),  # the Arabic end of a verse
        ("\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4\U000e0067\U000e007f"),  # a flag
    ],
)
def test_a_character_that_shows_nothing_is_taken_out_and_one_that_a_script_needs_stays(text, shown):
    found = cleaned(Document("1", f"{text} 1", f"{text}\nand {text}"))
    assert isinstance(found, Document)
    assert (found.title, found.text) == (f"{shown} 1", f"{shown}\nand {shown}")


def test_links_headings_and_passages_keep_their_words():
    text = f"He{HY}ad{HY}\na Do{HY}nau link"
    document = Document(
        "1",
        "",
        text,
        ((text.index("Do"), text.index(" link"), "Donau"),),
        leads=(Lead(0, 6, len(text)),),
        passages=(text,),
    )
    found = cleaned(document)
    assert isinstance(found, Document)
    ((start, end, target),) = found.links
    assert (found.text[start:end], target) == ("Donau", "Donau")
    assert [found.text[:end] for _, end, *_ in found.leads] == ["Head"]
    assert found.passages == (found.text,)


def test_a_word_with_a_soft_hyphen_has_the_wordpieces_of_the_word_for_every_tokenizer(tmp_path):
    for kind in ("train:300", "train:bpe:300", "train:unigram:300"):
        made = list[Corpus]()
        for name, word in (("plain", "Donaudampfschiff"), ("marked", f"Donau{HY}dampf{ZWSP}schiff")):
            folder = tmp_path / kind.replace(":", "-") / name
            folder.mkdir(parents=True)
            (folder / "a.txt").write_text(f"Das {word} fuhr auf der Donau. " * 20)
            made.append(Corpus(Chunk(corpus=(folder,), tokenizer=kind, workers=1).make(folder / "w")))
        plain, marked = ([(block.text, bytes(block.wordpieces.body)) for block in corpus] for corpus in made)
        assert plain == marked


def test_what_is_taken_out_is_of_the_category_of_format_characters():
    from realmctl.corpus.signs import UNSEEN

    taken = [chr(code) for code in range(0x110000) if UNSEEN.fullmatch(chr(code))]
    assert taken and all(unicodedata.category(each) in ("Cf", "Cn") for each in taken)
