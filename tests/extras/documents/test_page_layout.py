"""Lines of printed pages, placed by hand: which belong together, which are headings, and which every page repeats."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.extras.documents.page_layout import LaidOutPage, Line, body_size, joined, paragraphs, title_of

HEIGHT = 800
FULL = "words that fill a line of this page from its left edge to its right one"  # 355 points in size 10


def line(text: str, base: float, left: float = 72, size: float = 10, is_bold: bool = False) -> Line:
    """A line whose characters are half as wide as high, those of Chinese as wide."""
    width = size / 2 if text.isascii() else size
    return Line(text, left, left + width * len(text), base, size, width * len(text.split()[0]), is_bold)


def texts(*pages: Sequence[Line]) -> list[str]:
    return [each.text for each in paragraphs([LaidOutPage(lines, HEIGHT) for lines in pages])]


def counts(*pages: Sequence[Line]) -> list[int]:
    """How many full lines each paragraph has."""
    return [text.count(FULL) for text in texts(*pages)]


def full(base: float, end: str = "", left: float = 72) -> Line:
    """A line that fills the page, and ends with these characters."""
    return line(FULL[: len(FULL) - len(end)] + end, base, left)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("\u65e5\u672c\u8a9e\u306e", "\u6587\u7ae0"), "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0"),
        (("\ud55c\uad6d\uc5b4", "\ubb38\uc7a5"), "\ud55c\uad6d\uc5b4 \ubb38\uc7a5"),
        (("one", "two"), "one two"),
        (("geolo\u00ad", "gist"), "geologist"),
        (("ends\u00ad",), "ends"),
        (("state-of-the\u00ad", "art tool"), "state-of-the-art tool"),
        (("COVID\u00ad", "19 spread"), "COVID-19 spread"),
        (("COVID\u00ad", "related"), "COVID-related"),
        (("INTER\u00ad", "NATIONAL"), "INTERNATIONAL"),
        (("Jean\u00ad", "Paul said"), "Jean-Paul said"),
        (("an X\u00ad", "ray"), "an X-ray"),
        (("Wasser\u00ad", "kraft"), "Wasserkraft"),
    ],
)
def test_lines_are_joined_as_their_script_is_written(lines, text):
    assert joined(lines) == text


def test_a_compound_keeps_the_hyphen_that_it_has_elsewhere_in_the_document():
    lines = [
        full(700),
        full(686, " long\u00ad"),
        line("term plans and long-term goals of geolo\u00ad", 672),
        line("gists", 658),
    ]
    found = " ".join(each.text for each in paragraphs([LaidOutPage(lines, 800)]))
    assert "long-term plans and long-term goals of geologists" in found


words = st.text(st.characters(categories=["Lu", "Ll", "Nd", "Po"], exclude_characters="#\u2022\u00b7*"), min_size=1)
placed = st.builds(
    Line,
    text=words.map(lambda text: f"a{text}"),
    left=st.floats(0, 500),
    right=st.floats(0, 600),
    base=st.floats(0, HEIGHT),
    size=st.floats(1, 40),
    word=st.floats(0, 100),
    is_bold=st.booleans(),
)


@given(st.lists(placed, max_size=30))
def test_no_layout_loses_or_moves_a_character(lines):
    assert "".join(texts(lines)).replace(" ", "") == "".join(each.text for each in lines)


# Distances.


def test_the_usual_distance_of_lines_is_that_of_most():
    double = [full(700), full(680), full(660), full(648), full(628), full(608)]
    assert counts(double) == [6]
    assert counts([full(700), full(688), full(676), full(652), full(640)]) == [3, 2]
    assert counts([full(700), full(688), full(675), full(663)]) == [4]


def test_lines_that_mostly_stand_far_apart_are_paragraphs():
    assert counts([full(700), full(670), full(640), full(610), full(598)]) == [1, 1, 1, 2]
    assert counts([full(700), full(670)]) == [1, 1]


def test_signs_above_a_line_belong_to_it_and_do_not_change_the_usual_distance():
    lines = []
    for base in (700, 688, 676):
        left = 72.0
        for word in ("one", "two", "three"):
            lines += [line(word, base, left), line("2", base + 3, left + 5 * len(word) - 1, size=6)]
            left += 40
        lines.append(line("four", base, left))
    assert texts(lines) == [" ".join(["one 2 two 2 three 2 four"] * 3)]


def test_a_footnote_mark_at_the_end_of_a_line_ends_no_paragraph():
    mark = line("7", 703, left=72 + 355 - 1, size=6)
    assert texts([full(700), mark, full(688), line("the end.", 676)]) == [f"{FULL} 7 {FULL} the end."]
    divided = [line("x", 700, size=6), line(FULL[:-4] + "sus\u00ad", 697, left=76), line("pend the rest.", 685)]
    assert texts(divided) == [f"x {FULL[:-4]}suspend the rest."]
    assert texts([full(700, end="end."), mark, full(688)]) == [f"{FULL[:-4]}end. 7 {FULL}"]


def test_a_paragraph_goes_on_below_a_figure_and_on_the_next_page_until_a_sentence_ends():
    for below in ([full(700), full(400)], [full(700, "."), full(400)]):
        assert len(texts(below)) == (1 if below[0].text[-1] != "." else 2)
    for base in (300, 400, 700):
        assert counts([full(400)], [full(base)]) == [2]
        assert len(texts([full(400, ".")], [full(base)])) == 2
    assert counts([full(700), full(688), full(700, left=440), full(688, left=440)]) == [4]


# The right edge.


@pytest.mark.parametrize(("room", "number"), [(34, 1), (36, 2)])
def test_a_line_ends_a_paragraph_if_the_next_word_would_have_fitted(room, number):
    """The next word is 30 points wide, and a space half a size."""
    before = line(FULL[:-7], 688)
    before = Line(before.text, 72, full(700).right - room, 688, 10, before.word)
    assert len(texts([full(700), before, line("sixish " + FULL[7:], 676)])) == number


def test_in_chinese_a_character_would_have_fitted():
    of_40 = "\u6587" * 40
    lines = [line(of_40, 700), line(of_40, 688), line("\u6587" * 35, 676), line(of_40, 664), line("\u6587" * 39, 652)]
    assert [len(text) for text in texts([*lines, line(of_40, 640)])] == [115, 119]


def test_short_lines_below_a_paragraph_stand_alone():
    lines = [
        full(700),
        full(688),
        line("and an end", 676),
        line("A name", 664),
        line("A street", 652),
        line("A city", 640),
    ]
    assert texts(lines)[-3:] == ["A name", "A street", "A city"]


def test_the_right_edge_is_that_of_the_column_and_of_the_lines_nearby():
    left = [line("a column that is narrow", base) for base in (700, 688, 676)]
    right = [full(base, left=320) for base in (700, 688, 676)]
    assert len(texts([*left, *right])) == 1
    assert len(texts([line(FULL, 730, size=20), *left])) == 2
    wide = [full(700 - 12 * row) for row in range(10)]
    narrow = [line("a column that is narrow", 580 - 12 * row) for row in range(20)]
    assert texts([*wide, *narrow])[-1].count("narrow") >= 12


def test_an_indented_line_is_as_long_as_those_below():
    lines = [line("It is short", 700, left=84), full(688), full(676)]
    assert counts(lines) == [0, 2]


# Size, weight and marks.


def test_an_indented_line_begins_a_paragraph_after_the_end_of_a_sentence():
    assert len(texts([full(700, "."), full(688, left=84)])) == 2
    assert len(texts([full(700), full(688, left=84)])) == 1
    assert len(texts([full(700, "."), full(688, left=78)])) == 1
    assert len(texts([line(f"1. {FULL[:60]}.", 700), line(FULL[:60], 688, left=84)])) == 1


def test_lines_of_another_size_or_weight_are_another_paragraph():
    body = [full(700), full(688)]
    for other in (line(FULL, 676, size=8), line(FULL[:60], 676, size=12), line(FULL, 676, is_bold=True)):
        assert len(texts([*body, other])) == 2
    assert len(texts([*body, line(FULL, 676, size=9.5)])) == 1
    assert len(texts([line("To", 700, size=8), line("A reader", 688, left=86)])) == 2


@pytest.mark.parametrize(
    ("lines", "is_heading"),
    [
        ([line("A heading", 730, size=11.5)], True),
        ([line("No heading:", 730, size=11)], False),
        ([line("Bold words", 742 - 12 * row, left=150, is_bold=True) for row in range(2)], True),
        ([line("Bold words", 742 - 12 * row, left=150, is_bold=True) for row in range(3)], False),
        ([line("A sentence.", 730, is_bold=True)], False),
        ([line("2.4", 730, size=14)], False),
        ([line("Th", 730, size=14), line("is begins a chapter", 730, left=86)], False),
    ],
)
def test_a_heading_is_larger_than_the_body_or_bold_and_short(lines, is_heading):
    first, *_ = paragraphs([LaidOutPage([*lines, *(full(600 - 12 * row) for row in range(9))], HEIGHT)])
    assert first.text == " ".join(each.text for each in lines) and (first.heading > 0) is is_heading


def test_the_title_is_all_lines_of_about_the_largest_size():
    lines = [
        line("A journal", 760, size=15),
        line("Islands", 740, size=19.6),
        line("of", 718, size=20),
        line("fire", 696, size=19.6),
    ]
    page = LaidOutPage([*lines, line("Authors", 680, size=15), full(660), full(648)], HEIGHT)
    assert title_of(page, body_size([page])) == "Islands of fire"
    assert title_of(LaidOutPage([line("A note", 700, size=11), full(680)], HEIGHT), 10) == ""


# What pages repeat.


def test_left_and_right_pages_may_have_heads_of_their_own():
    heads = ["Islands of fire", "The second chapter"] * 2
    assert counts(*([line(head, 770), full(500)] for head in heads)) == [4]


def test_what_pages_far_from_each_other_share_stays():
    tops = ["Note", "Once more", "On islands", "Note"]
    assert " ".join(texts(*([line(top, 770), full(500)] for top in tops))).count("Note") == 2


def test_a_head_has_at_most_two_lines_near_the_edge():
    def found(*bases: float) -> list[str]:
        pages = ([*(line(f"Line {base}", base) for base in bases), full(300, f"{page}.")] for page in "abc")
        return [text for text in texts(*pages) if "Line" in text]

    assert found(770, 758) == []
    assert found(600) != []
    assert found(770, 758, 746) == ["Line 746"] * 3
