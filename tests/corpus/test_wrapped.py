"""Plain text that is wrapped at a fixed width becomes paragraphs again; what looks otherwise stays."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.wrapped import unwrapped
from stages.chunk import Chunk

PARAGRAPHS = [
    "The harbour of Velford was dug by hand in the winter of 1820, when no ship could leave the river and all men of the "
    "town had nothing else to do. It took them until May, and two of them never came home again.",
    "Later the railway came, and with it the merchants of Ashby, who bought the wool of the whole valley before it was "
    "shorn. Nobody in the town has forgiven them, although most of what they built is still in use today.",
    "Since the bridge was opened, ten thousand people a year visit the mill above the town, which grinds no flour any more "
    "but shows how it was done. A ticket costs two crowns, and children pay nothing.",
]


@pytest.mark.parametrize("width", [50, 72, 100])
@pytest.mark.parametrize("indent", ["", "   "])
def test_wrapped_paragraphs_are_whole_again(width, indent):
    wrapped = "\n\n".join(
        textwrap.fill(each, width, initial_indent=indent, break_on_hyphens=False) for each in PARAGRAPHS * 3
    )
    assert unwrapped(wrapped) == "\n\n".join(indent + each for each in PARAGRAPHS * 3)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(" ".join(PARAGRAPHS).split()), min_size=30, max_size=80), min_size=2, max_size=4)
)
def test_no_word_is_lost_and_paragraphs_stay_apart(paragraphs):
    given_text = "\n\n".join(textwrap.fill(" ".join(words), 70, break_on_hyphens=False) for words in paragraphs)
    found = unwrapped(given_text)
    assert found.split() == given_text.split()
    assert [each.split() for each in found.split("\n\n")] == paragraphs


def test_a_word_that_was_broken_at_its_hyphen_is_one_word():
    text = " ".join(PARAGRAPHS).replace("railway came", "well-known railway came")
    for width in range(60, 90):
        assert "well-known" in unwrapped(textwrap.fill(text, width, break_on_hyphens=True)).replace("\n", " ")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(PARAGRAPHS),
        "\n".join(f"- {each}" for each in textwrap.wrap(" ".join(PARAGRAPHS), 70)),
        "\n".join(f"{n}. {each}" for n, each in enumerate(textwrap.wrap(" ".join(PARAGRAPHS), 70))),
        "\n".join(sentence for each in PARAGRAPHS * 3 for sentence in each.split(". ")),
        "\n".join(f"The town of Ashby has {n} mills and as many bridges over the river." for n in range(30)),
        "\n".join(f"{'name of a town':<30}{n:>8}{'founded long ago':>24}" for n in range(30)),
        "\n".join(["Shall I compare thee to a day", "Thou art more mild,", "Rough winds do shake the buds"] * 6),
        "\n".join(["def f(value):", "    return value + 1", "", "print(f(2), f(3), f(4))"] * 10),
        "港は1820年の冬に掘られた。\n船は川を出られず、町の男たちは他にすることがなかった。\n" * 10,
        "\n".join(
            f"2026-11-28 12:{n:02}:07 web-{n % 3} nginx[4711]: upstream timed out, while reading response {n}"
            for n in range(40)
        ),
        "\n".join(
            f"Nov 28 12:{n:02}:07 mail postfix/smtpd[4711]: disconnect from unknown host number {n % 7}"
            for n in range(40)
        ),
        "\n".join(
            f"[{n:06.2f}] usb 1-1: new high-speed device number {n % 7} using the driver of this host"
            for n in range(40)
        ),
        "> " + "\n> ".join(textwrap.wrap(" ".join(PARAGRAPHS), 70)),
        "\n".join(textwrap.wrap(PARAGRAPHS[0], 70)[:3]),
        "",
        "\n\n\n",
    ],
)
def test_lists_tables_verses_code_and_sentences_on_lines_stay(text):
    assert unwrapped(text) == text


def test_blocks_of_a_wrapped_text_have_its_sentences(tmp_path):
    """As they have of the same text with a paragraph on each line; a text with other line ends, too."""
    named = {"plain.txt": "\n\n".join(PARAGRAPHS)}
    named["wrapped.txt"] = "\n\n".join(textwrap.fill(each, 66) for each in PARAGRAPHS)
    named["dos.txt"] = named["wrapped.txt"].replace("\n", "\r\n")
    (tmp_path / "documents").mkdir()
    for name, text in named.items():
        (tmp_path / "documents" / name).write_bytes(text.encode())
    made = Chunk(corpus=(tmp_path / "documents",), tokenizer="train:300", workers=1).make(tmp_path / "blocks")
    blocks = {block.document: block for block in Corpus(made)}
    plain = blocks["plain.txt"]
    assert len(plain.sentences) == 6
    for name in ("wrapped.txt", "dos.txt"):
        assert (blocks[name].text, blocks[name].sentences) == (plain.text, plain.sentences)
