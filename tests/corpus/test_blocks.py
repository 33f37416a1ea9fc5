from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.corpus import sentences
from realmctl.corpus.blocks import BlockPacker
from realmctl.corpus.document import Document
from realmctl.corpus.settings import ChunkSettings
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.training import train

WORDS = [
    "river",
    "stone",
    "lamp",
    "cloud",
    "horse",
    "bread",
    "music",
    "winter",
    "garden",
    "letter",
    "Öland",
    "東京",
    "can't",
    "3.5",
    "non-stop",
]
WORDPIECE = train([" ".join(WORDS), "unhorsed cloudless lamps"] * 3, TokenizerRecipe("wordpiece", 220))


def packer(limit: int = 40, long_sentences: str = "split", **settings) -> BlockPacker:
    return BlockPacker(WORDPIECE, ChunkSettings(max_wordpieces=limit, long_sentences=long_sentences, **settings))


def count(text: str) -> int:
    return len(WORDPIECE.ids(text))


def reference(title: str, sentence_list: list[str], limit: int) -> list[list[str]]:
    """The greedy rule as ORQA states it, over sentences that all fit."""
    blocks, current = [], []
    for sentence in sentence_list:
        if current and 3 + count(title) + sum(map(count, current)) + count(sentence) > limit:
            blocks.append(current)
            current = []
        current.append(sentence)
    return [*blocks, current] if current else blocks


def made_up(seed: int, number: int = 60) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))).capitalize() + "." for _ in range(number)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [40, 64, 288])
def test_the_greedy_rule(seed, limit):
    sentence_list = made_up(seed)
    blocks = list(packer(limit).blocks(Document("d", "Stone garden", " ".join(sentence_list))))
    found = [[block.text[a:b] for a, b in block.sentences] for block in blocks]
    split_again = [" ".join(sentence_list)[a:b] for a, b in sentences.split(" ".join(sentence_list))]
    assert found == reference("Stone garden", split_again, limit)
    assert [block.id for block in blocks] == [f"d-{k}" for k in range(len(blocks))]


TEXT = st.lists(
    st.sampled_from([*WORDS, ".", ".", "!", "\n", "x" * 130, "e\u0301" * 20, "\u200b", "[SEP]"]), max_size=120
).map(" ".join)


@given(TEXT, st.sampled_from(["", "Stone", "garden " * 60]), st.sampled_from([32, 40, 100]))
@settings(max_examples=150, deadline=None)
def test_what_holds_for_every_block(text, title, limit):
    blocks = list(packer(limit).blocks(Document("d", title, text)))
    for block in blocks:
        ids = np.frombuffer(block.wordpieces.body, WORDPIECE.dtype)
        title_ids = np.frombuffer(block.wordpieces.title, WORDPIECE.dtype)
        assert 3 + len(title_ids) + len(ids) <= limit
        assert (
            ids.tolist()
            == WORDPIECE.ids(block.text).tolist()
            == WORDPIECE.tokenizer.encode(block.text.replace("[SEP]", "[ SEP ]"), add_special_tokens=False).ids
        )
        assert title_ids.tolist() == WORDPIECE.ids(title).tolist()[: (limit - 3) // 2]
        starts = [*block.wordpieces.sentence_starts, len(ids)]
        for (a, b), first, stop in zip(block.sentences, starts, starts[1:], strict=False):
            assert ids[first:stop].tolist() == WORDPIECE.ids(block.text[a:b]).tolist() != []
        assert " ".join(block.text[a:b] for a, b in block.sentences) == block.text
    kept = "".join("".join(block.text.split()) for block in blocks)
    assert kept.replace("\u200b", "") == "".join(text.split()).replace("\u200b", "")


def test_a_long_sentence_is_cut_at_words_and_counted():
    long = " ".join(WORDS[:10] * 12).capitalize() + "."
    text = f"Short one. {long} Short two."
    cutter = packer(40)
    blocks = list(cutter.blocks(Document("d", "t", text)))
    assert cutter.split_sentences == 1
    assert " ".join(block.text for block in blocks) == text
    whole = packer(40, "keep")
    kept = list(whole.blocks(Document("d", "t", text)))
    assert whole.split_sentences == 0
    assert [block.text for block in kept] == ["Short one.", long, "Short two."]
    assert len(np.frombuffer(kept[1].wordpieces.body, WORDPIECE.dtype)) > 40


def test_a_single_word_longer_than_the_room_is_cut_inside():
    text = "lamp" * 24 + "."
    assert count(text) > 16
    blocks = list(packer(32).blocks(Document("d", "garden " * 60, text)))
    assert "".join(block.text for block in blocks).replace(" ", "") == text


def test_anchors_move_with_their_sentences():
    text = "The river ran. A stone lamp stood. Bread and music."
    anchors = [(4, 9, "River"), (17, 27, "Stone lamp"), (12, 20, "Across"), (35, 40, "Bread")]
    document = Document("d", "t", text, tuple(sorted(anchors)))
    (whole,) = packer(288).blocks(document)
    assert [(whole.text[a:b], target) for a, b, target in whole.anchors] == [
        ("river", "River"),
        ("stone lamp", "Stone lamp"),
        ("Bread", "Bread"),
    ]
    for limit in (32, 36):
        found = [(block.text[a:b], t) for block in packer(limit).blocks(document) for a, b, t in block.anchors]
        assert found == [("river", "River"), ("stone lamp", "Stone lamp"), ("Bread", "Bread")]


def test_uid_is_the_official_hash_cut_to_eight_bytes():
    (block,) = packer(288).blocks(Document("d", "A title", "Some text."))
    assert block.uid == int.from_bytes(hashlib.sha1(b"A title <sep> Some text.").digest()[:8], "big")


def test_a_document_without_a_wordpiece_has_no_block():
    assert list(packer().blocks(Document("d", "t", " \n \u200b"))) == []


@pytest.mark.parametrize("words", [1, 10, 20, 60])
def test_a_title_that_is_kept_leaves_the_room_that_is_left(words):
    """The greedy rule with the whole title; one without room for a sentence leaves each of them to itself."""
    title, sentence_list = " ".join(["garden"] * words), made_up(3, 12)
    text = " ".join(sentence_list)
    blocks = list(packer(64, "keep", long_titles="keep").blocks(Document("d", title, text)))
    found = [[block.text[a:b] for a, b in block.sentences] for block in blocks]
    assert found == reference(title, [text[a:b] for a, b in sentences.split(text)], 64)
    assert all(block.wordpieces.title == WORDPIECE.packed(title) for block in blocks)
    assert (len(found) == 12) == (words == 60)


def test_no_part_of_a_split_sentence_starts_with_a_closing_mark():
    """A block began with the half-line ")."."""
    text = " ".join(f"word (of number {n}), and more;" for n in range(200))
    for size in range(32, 60):
        blocks = list(packer(size).blocks(Document("1", "T", text)))
        assert [block.text[0] for block in blocks if block.text[0] in "),;"] == []
        assert " ".join(block.text for block in blocks) == text
        assert all(3 + len(block.wordpieces.title) // 2 + len(block.wordpieces.body) // 2 <= size for block in blocks)


def test_a_passage_is_one_block_under_its_own_id():
    """With room for all but the last of its sentences it loses the last one; its anchors there go too."""
    kept_part = "The river. " + " ".join(["stone"] * 24) + "."
    text = f"{kept_part} The lamp."
    document = Document("doc-7", "T", text, ((4, 9, "River"), (len(text) - 5, len(text) - 1, "Lamp")))
    whole = packer(64, keep_passages=True)
    (block,) = whole.blocks(document)
    assert (block.id, block.document, block.text, len(block.anchors)) == ("doc-7", "doc-7", text, 2)
    (first, *rest) = packer(64).blocks(document)
    assert not rest and (block.wordpieces.body, block.uid) == (first.wordpieces.body, first.uid)
    room = 3 + len(WORDPIECE.ids("T")) + len(WORDPIECE.ids(kept_part))
    short = packer(room, keep_passages=True)
    (block,) = short.blocks(document)
    assert (block.text, block.anchors) == (kept_part, ((4, 9, "River"),))
    assert (whole.shortened_passages, short.shortened_passages) == (0, 1)
    kept = packer(room, "keep", keep_passages=True)
    assert [block.text for block in kept.blocks(document)] == [text] and kept.shortened_passages == 0
    (titled,) = kept.blocks(Document("d", "T", " "))
    assert (titled.id, titled.title, titled.text, titled.sentences, titled.wordpieces.body) == ("d", "T", "", (), b"")
    assert not list(kept.blocks(Document("d", "", " "))) and not list(packer(64).blocks(Document("d", "T", " ")))


def test_lines_of_code_are_indented_as_they_were():
    """A block keeps how far a line is indented more than all of its lines, and its sentences stand where it says."""
    text = "Run this\n    def f():\n        return 1\n    \n    print(f())\nIt prints one."
    (block,) = packer(200).blocks(Document("d", "t", text, has_lines=True))
    assert block.text == "Run this\n    def f():\n        return 1\n    print(f())\nIt prints one."
    assert block.sentence_texts() == ["Run this", "def f():", "return 1", "print(f())", "It prints one."]
    (block,) = packer(200).blocks(Document("d", "t", text[9 : text.index("\nIt")], has_lines=True))
    assert block.text == "def f():\n    return 1\nprint(f())", "the block is indented as a whole"
    (block,) = packer(200).blocks(Document("d", "t", "\t\tx\n\ty", has_lines=True))
    assert block.text == "\tx\ny" and block.sentence_texts() == ["x", "y"]
    (block,) = packer(200).blocks(Document("d", "t", text))
    assert block.text == "Run this def f(): return 1 print(f()) It prints one."
