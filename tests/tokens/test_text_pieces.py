"""Long texts are tokenized in pieces: same wordpieces, bounded memory. A line of 15 MB once took 5.8 GB."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.tokens import text_pieces, wordpiece_cache
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.text_pieces import BERT_BORDER, WORD_BORDER, pieces
from realmctl.tokens.training import train

TEXTS = ["The quick brown foxes jump, e.g. over 1,913–14 lazy dogs.", "naïve café 日本 (Nippon) x.y.z"] * 5

CHUNK_A_LONG_LINE = """
import sys
from pathlib import Path
from realmctl.corpus.blocks import BlockPacker
from realmctl.corpus.document import Document
from realmctl.corpus.settings import ChunkSettings
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.training import train
text = sys.argv[1] * (2 * 2**20 // len(sys.argv[1].encode()))
packer = BlockPacker(train([text[:9999], "a word"], TokenizerRecipe("wordpiece", 200)), ChunkSettings())
print(sum(len(block.text) for block in packer.blocks(Document("1", "T", text))), len(text))
status = Path("/proc/self/status").read_text()  # the peak since exec; ru_maxrss holds the parent's peak too
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.fixture(scope="module")
def trained():
    return train(TEXTS, TokenizerRecipe("wordpiece", 300))


@pytest.fixture
def short_pieces(monkeypatch):
    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 5)
    monkeypatch.setattr(wordpiece_cache, "PIECE_CHARS", 5)


@given(text=st.text(alphabet="ab ,.日é\n"), border=st.sampled_from([WORD_BORDER, BERT_BORDER]))
def test_pieces_are_the_text(text, border):
    found = list(pieces(text, border))
    assert "".join(piece for _, piece in found) == text
    assert all(text.startswith(piece, offset) for offset, piece in found)


def test_a_piece_without_a_border_is_cut_at_the_limit(monkeypatch, short_pieces):
    monkeypatch.setattr(text_pieces, "MAX_PIECE_CHARS", 8)
    assert [piece for _, piece in pieces("a" * 20 + " b", BERT_BORDER)] == ["a" * 8, "a" * 8, "aaaa b"]


@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aé b,.-日ﬁß\u0301\u00ad\u3000\tΣ'İ½")))
def test_any_text_gives_the_wordpieces_that_the_library_gives(text):
    tokenizer = train(TEXTS, TokenizerRecipe("wordpiece", 300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_pieces, "PIECE_CHARS", 3)
        patch.setattr(wordpiece_cache, "PIECE_CHARS", 3)
        in_pieces, words = tokenizer.ids(text).tolist(), list(tokenizer.words(text))
    assert in_pieces == tokenizer.encode_batch([text])[0][0].tolist()
    assert words == list(tokenizer.words(text))


def test_training_from_pieces_learns_the_same_tokenizer(trained, short_pieces):
    assert train(TEXTS, TokenizerRecipe("wordpiece", 300)).tokenizer.to_str() == trained.tokenizer.to_str()


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["日本語", "word ", "é", ",a"])
def test_a_document_of_one_long_line_takes_bounded_memory(unit):
    """The measured peaks are 71 to 155 MB. In one piece they are 201 MB (é) to 1,351 MB (signs)."""
    one_arena = {**os.environ, "MALLOC_ARENA_MAX": "1", "RAYON_NUM_THREADS": "1"}  # no peaks by the luck of threads
    command = [sys.executable, "-c", CHUNK_A_LONG_LINE, unit]
    done = subprocess.run(command, env=one_arena, capture_output=True, text=True, check=True, timeout=300)
    lengths, peak = done.stdout.strip().split("\n")
    kept, given_ = map(int, lengths.split())
    assert kept >= 0.9 * given_ - 10
    assert int(peak) < 180
