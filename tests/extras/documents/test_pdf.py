"""PDF files: lines become paragraphs, what pages repeat is left out, and no file takes the process or the machine down."""

from __future__ import annotations

import gzip
import os
import signal
import sys
import threading

import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError, ResourceError
from realmctl.extras.documents import apart, pdf
from stages.chunk import Chunk
from tests.fixtures.pdfs import write_pdf, write_raw_pdf
from tests.fixtures.waiting import wait_until

pytest.importorskip("pypdfium2")

PAGE = [
    (72, 750, 20, "Islands of fire"),
    (72, 720, 10, "Volcanoes rise here from the floor of the ocean, and every one of the"),
    (72, 708, 10, "mountains is older than the one that lies to the south-east of it, as geolo-"),
    (72, 696, 10, "gists found by its rocks. (The \\youngest) erupts"),
    (72, 684, 10, "today."),
    (84, 672, 10, "Further north the mountains are lower, because rain and wind wear them"),
    (72, 660, 10, "down."),
    (72, 630, 14, "Where they are"),
    (72, 610, 10, "\u2022 One in the west, where the wind blows for most of the year from the"),
    (82, 598, 10, "northern ocean, and rain falls."),
    (72, 586, 10, "\u2022 One in the east."),
    (72, 560, 10, "!In short"),
    (72, 548, 10, "All are islands."),
]


def read(path) -> Document:
    (file,) = (CorpusFile(path, CorpusSettings(), path.name),)
    (found,) = format_of(file).read(file)
    assert isinstance(found, Document)
    return found


def test_lines_become_paragraphs_headings_and_items(tmp_path):
    found = read(write_pdf(tmp_path / "a.pdf", [PAGE]))
    assert found.title == "Islands of fire" and found.has_lines
    assert found.text.split("\n") == [
        "Volcanoes rise here from the floor of the ocean, and every one of the mountains is older than the one that lies to the "
        "south-east of it, as geologists found by its rocks. (The \\youngest) erupts",
        "today.",
        "Further north the mountains are lower, because rain and wind wear them down.",
        "Where they are",
        "- One in the west, where the wind blows for most of the year from the northern ocean, and rain falls.",
        "- One in the east.",
        "In short",
        "All are islands.",
    ]
    assert {found.text[:end].rpartition("\n")[2] for _, end, *_ in found.leads} == {"Where they are", "In short"}


def test_what_pages_repeat_is_left_out_and_a_paragraph_goes_on(tmp_path):
    bodies = [
        "The first page ends in the middle of a sentence that is long enough to",
        "continue on the second page, where it ends. Another sentence fills it up",
        "completely, and this is all.",
    ]
    pages = [
        [(72, 770, 9, f"Annual report {number}"), (72, 500, 10, body), (290, 40, 10, f"- {number} of 3 -")]
        for number, body in enumerate(bodies, 1)
    ]
    assert read(write_pdf(tmp_path / "a.pdf", pages)).text == " ".join(bodies)


def test_numbers_that_do_not_count_pages_stay(tmp_path):
    """The last cells of a table, for instance, or the number on a single page."""
    pages = [[(72, 500, 10, "A table of sums."), (72, 40, 10, sums)] for sums in ("17", "42", "40")]
    found = read(write_pdf(tmp_path / "a.pdf", pages)).text.split()
    assert {"17", "42", "40"} <= {*found}
    assert read(write_pdf(tmp_path / "b.pdf", [[(72, 500, 10, "A sum."), (72, 40, 10, "1")]])).text.split()[-1] == "1"


def test_roman_numbers_of_pages_are_left_out(tmp_path):
    pages = [[(72, 500, 10, f"Preface {name}."), (72, 40, 10, name)] for name in ("iii", "iv", "v")]
    assert read(write_pdf(tmp_path / "a.pdf", pages)).text == "Preface iii.\nPreface iv.\nPreface v."


def test_a_page_that_has_nothing_else_keeps_what_it_repeats(tmp_path):
    assert read(write_pdf(tmp_path / "a.pdf", [[(72, 770, 10, "A slide")]] * 3)).text.count("A slide") == 3


@pytest.mark.parametrize(
    ("given", "first", "title"),
    [
        ("A book", 20, "A book"),
        ("Microsoft Word - draft.docx", 20, "Islands of fire"),
        ("untitled", 10, "my file"),
        ("", 20, "Islands of fire"),
    ],
)
def test_the_title_is_the_metadatas_the_largest_line_or_the_files(tmp_path, given, first, title):
    page = [(72, 750, first, "Islands of fire"), (72, 700, 10, "They burn, and nobody lives on them.")]
    assert read(write_pdf(tmp_path / "my_file.pdf", [page], title=given)).title == title


def test_characters_outside_the_basic_plane_and_bullets_of_symbol_fonts_are_read(tmp_path):
    meanings = {"x": "\U0001d465", "^": "\uf0b7"}
    page = [(72, 700, 10, "Let x be a number."), (72, 660, 10, "^ An item.")]
    found = read(write_pdf(tmp_path / "a.pdf", [page], meanings=meanings))
    assert found.text == "Let \U0001d465 be a number.\n- An item."


def test_glyphs_that_no_font_names_become_spaces_and_many_are_refused(tmp_path):
    page = [(72, 700, 10, "Words and more words, then an x and no other."), (72, 650, 10, "The end.")]
    assert read(write_pdf(tmp_path / "few.pdf", [page], meanings={"x": "\x03"})).text == (
        "Words and more words, then an and no other.\nThe end."
    )
    refused(write_pdf(tmp_path / "many.pdf", [page], meanings={"o": "\x03", "e": "\x04"}), "fonts do not say")


def test_a_file_of_that_ending_may_have_lines_before_the_header(tmp_path):
    plain = write_pdf(tmp_path / "a.pdf", [PAGE])
    (tmp_path / "b.pdf").write_bytes(b"From: mail\n\n" + plain.read_bytes())
    assert read(tmp_path / "b.pdf").text == read(plain).text


def test_columns_are_read_one_after_the_other(tmp_path):
    left = [(72, 700 - 12 * row, 10, f"left {row} words of some length here") for row in range(5)]
    right = [(320, 700 - 12 * row, 10, f"right {row} words of some length here") for row in range(5)]
    text = read(write_pdf(tmp_path / "a.pdf", [[*left, *right]])).text
    assert text.index("left 4") < text.index("right 0")


def test_a_compressed_pdf_is_told_by_its_content(tmp_path):
    plain = write_pdf(tmp_path / "a.pdf", [PAGE])
    (tmp_path / "b.bin").write_bytes(gzip.compress(plain.read_bytes()))
    assert read(tmp_path / "b.bin").text == read(plain).text


def test_a_folder_with_a_pdf_becomes_blocks_that_keep_headings(tmp_path):
    write_pdf(tmp_path / "docs/deep/a.pdf", [PAGE])
    (tmp_path / "docs/b.txt").write_text("A text beside it.")
    made = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", max_wordpieces=64, workers=2).make(tmp_path / "w")
    blocks = list(Corpus(made))
    assert {block.document for block in blocks} == {"deep/a.pdf", "b.txt"}
    (item,) = [block.text for block in blocks if "One in the east" in block.text]
    assert "\n- One in the east." in item
    assert not any(block.text.endswith(("Where they are", "In short")) for block in blocks)


def refused(path, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_what_cannot_be_read_is_named_with_its_remedy(tmp_path, monkeypatch):
    whole = write_pdf(tmp_path / "whole.pdf", [PAGE, PAGE])
    (tmp_path / "cut.pdf").write_bytes(whole.read_bytes()[:200])
    refused(tmp_path / "cut.pdf", "damaged")
    refused(write_pdf(tmp_path / "locked.pdf", [PAGE], locked=True), "password")
    refused(write_pdf(tmp_path / "scan.pdf", [[]]), "OCR")
    monkeypatch.setattr(pdf, "MAX_PDF_PAGES", 1)
    refused(whole, "2 pages")
    monkeypatch.setattr(pdf, "MAX_PDF_PAGES", 9)
    monkeypatch.setattr(pdf, "MAX_PDF_LINES", 3)
    refused(whole, "3 lines")
    monkeypatch.setattr(pdf, "MAX_PDF_BYTES", 99)
    refused(whole, "MiB")


def test_a_file_that_expands_ends_its_own_process(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "MAX_PARSE_MEMORY", 2**28)
    refused(write_raw_pdf(tmp_path / "bomb.pdf", [bytes(2**28)]), "memory")


def test_a_file_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "MAX_PARSE_SECONDS", 1)
    page = b"BT /F1 9 Tf 72 720 Td " + b"(some words) Tj " * 40_000 + b"ET"
    refused(write_raw_pdf(tmp_path / "slow.pdf", [page] * 9), "1 s of a core")


def test_an_interrupted_read_leaves_no_process(tmp_path):
    """The program would wait for a minute; the deadline interrupts realmctl."""
    waiting = [
        sys.executable,
        "-c",
        f"import os, pathlib, time; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); time.sleep(60)",
    ]

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    threading.Thread(
        target=lambda: (wait_until((tmp_path / "pid").exists), os.kill(os.getpid(), signal.SIGALRM))
    ).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            apart.parse(waiting, b"")
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_without_the_extra_its_name_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"realmctl\[documents\]"):
        read(write_pdf(tmp_path / "a.pdf", [PAGE]))


def field(box: str, rest: str, kind: str = "Widget") -> bytes:
    return f"<</Type/Annot/Subtype/{kind}/Rect[{box}]{rest}>>".encode()


FORM = [(72, 750, 10, "Name of the tenant:"), (72, 720, 10, "Town:"), (72, 690, 10, "Signed in March.")]


def test_what_was_filled_into_a_form_stands_behind_its_label(tmp_path):
    fields = [
        field("72 640 300 680", "/FT/Tx/Ff 4096/T(note)/V(First line\\rSecond line)"),
        field("180 745 300 760", "/FT/Tx/T(name)/V<FEFF0041006E006E0020006F0066002001100069>"),
        field("120 715 300 730", "/FT/Ch/Ff 131072/T(town)/Opt[[(b)(Bath)][(w)(Wells)]]/V(w)"),
        field("400 745 500 760", "/FT/Tx/Ff 8192/T(pin)/V(secret)"),
        field("400 715 500 730", "/FT/Tx/F 2/T(gone)/V(hidden)"),
        field("400 690 500 700", "/FT/Btn/Ff 65536/T(send)/MK<</CA(Send)>>"),
        field("400 690 500 700", "/FT/Btn/T(box)/V/Yes/AS/Yes"),
        field("72 600 300 620", "/Contents(Paid in full)", "FreeText"),
    ]
    text = read(write_pdf(tmp_path / "a.pdf", [FORM], fields=fields)).text
    assert text.split("\n") == [
        "Name of the tenant: Ann of \u0110i",
        "Town: Wells",
        "Signed in March.",
        "First line",
        "Second line",
        "Paid in full",
    ]


def test_an_empty_form_is_its_page(tmp_path):
    text = read(write_pdf(tmp_path / "a.pdf", [FORM], fields=[field("180 745 300 760", "/FT/Tx/T(name)")])).text
    assert text.split("\n") == [line for *_, line in FORM]


def test_a_block_of_a_pdf_knows_its_page_and_the_file_its_author_and_date(tmp_path):
    words = iter("abcdefghijklmnopqrst")
    pages = [[(50, 500 - 30 * k, 10, f"Page {n} is {3 * next(words)}.") for k in range(5)] for n in (1, 2, 3)]
    said = "Guide)/Author(Ada Lorn)/CreationDate(D:20240501103000+02'00'"
    path = write_pdf(tmp_path / "guide.pdf", pages, title=said)
    made = Chunk(corpus=(path,), tokenizer="train:200", max_wordpieces=32, workers=1).make(tmp_path / "blocks")
    blocks = [*Corpus(made)]
    assert len(blocks) > 3 and {block.page for block in blocks} == {1, 2, 3}
    for block in blocks:
        assert block.text.startswith(f"Page {block.page} "), (block.page, block.text)
        assert block.fields == {"author": "Ada Lorn", "date": "2024-05-01"}


LEFT = [
    "The committee read the annual",
    "report of the mill and found",
    "that the wheel had turned for",
    "three hundred days.",
]
RIGHT = [
    "Approval was given on 4 May to",
    "the budget of the coming year",
    "which holds forty crowns for a",
    "new sluice and nine for paint.",
]


def test_columns_that_a_file_holds_row_by_row_are_read_one_after_the_other(tmp_path):
    rows = [(x, 700 - 14 * row, 11, text) for row in range(4) for x, text in ((60, LEFT[row]), (330, RIGHT[row]))]
    found = read(
        write_pdf(
            tmp_path / "a.pdf",
            [[(60, 740, 11, "Minutes."), *rows, (60, 600, 11, "The end of it.")]],
        )
    )
    assert found.text.split("\n") == [
        "Minutes.", " ".join(LEFT), " ".join(RIGHT), "The end of it."
    ]  # fmt: skip


def test_a_table_stays_row_by_row(tmp_path):
    cells = [
        ("Name of the thing", "Cost"),
        ("Pump of the mill", "340 crowns"),
        ("Valve of the pump", "12 crowns"),
        ("Wheel", "9,000 crowns"),
    ]
    rows = [
        (x, 700 - 14 * row, 11, text) for row, pair in enumerate(cells) for x, text in zip((60, 330), pair, strict=True)
    ]
    text = read(write_pdf(tmp_path / "a.pdf", [rows])).text
    assert "Pump of the mill 340 crowns" in text and "Wheel 9,000 crowns" in text


def test_the_text_of_a_turned_page_is_read_as_it_runs(tmp_path):
    upright = [(60, 700 - 14 * row, 11, text) for row, text in enumerate(LEFT)]
    plain = write_pdf(tmp_path / "a.pdf", [upright])
    for rotation in (b"90", b"180", b"270"):
        (tmp_path / "b.pdf").write_bytes(plain.read_bytes().replace(b"/MediaBox[", b"/Rotate %s/MediaBox[" % rotation))
        assert read(tmp_path / "b.pdf").text == " ".join(LEFT)
    # lines that run from below to above, on a page that the flag turns upright
    content = b"\n".join(
        b"BT /F1 11 Tf 0 1 -1 0 %d 60 Tm (%s) Tj ET" % (100 + 14 * row, text.encode()) for row, text in enumerate(LEFT)
    )
    turned = write_raw_pdf(tmp_path / "c.pdf", [content])
    assert read(turned).text == " ".join(LEFT), "without the flag"
    (tmp_path / "d.pdf").write_bytes(turned.read_bytes().replace(b"/MediaBox[", b"/Rotate 90/MediaBox["))
    assert read(tmp_path / "d.pdf").text == " ".join(LEFT)


def test_what_is_off_the_page_is_not_read(tmp_path):
    off = [
        (700, 500, 11, "right of it"),
        (60, 900, 11, "above it"),
        (60, -50, 11, "below it"),
        (-300, 400, 11, "left of it"),
    ]
    assert read(write_pdf(tmp_path / "a.pdf", [[(60, 700, 11, "All that is seen."), *off]])).text == "All that is seen."
    # a page with all of its text off it has a wrong size, as one that is declared landscape and was drawn upright
    assert read(write_pdf(tmp_path / "b.pdf", [[(60, 900, 11, "Above it.")]])).text == "Above it."


def test_pages_that_are_pictures_and_characters_without_names_are_told(tmp_path, capsys):
    text = b"BT /F1 11 Tf 60 700 Td (Words are here, and more of them.) Tj ET"
    picture = b"q 100 0 0 100 60 400 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x00 EI Q"
    found = read(write_raw_pdf(tmp_path / "a.pdf", [text, picture, b""]))
    assert found.lost == "1 of its 3 pages, being pictures (the first is page 2)"
    page = [(72, 700, 10, "Words and more words, then an x and no other."), (72, 650, 10, "The end.")]
    assert (
        read(write_pdf(tmp_path / "few.pdf", [page], meanings={"x": "\x03"})).lost
        == "1 of its 52 characters, which its fonts do not name"
    )
    assert not read(write_pdf(tmp_path / "b.pdf", [page])).lost
