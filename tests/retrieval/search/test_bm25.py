"""BM25 against its formula, block by block; what is saved; what is refused."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.index.protocol import best_rows
from realmctl.retrieval.search import postings
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.postings import K1, B, Postings
from realmctl.tokens.tokenizer import Tokenizer
from stages.chunk import Chunk
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import baseline, documents

QUESTIONS = ["Where was Ada Lorn born?", "Which firm did Ben Mott, that Mott, work for in 1905?", ""]


@pytest.fixture(scope="module")
def searcher(chain):
    return BM25Searcher(chain.blocks, "cpu")


@pytest.fixture(scope="module")
def saved(chain):
    return baseline(chain, "bm25", steps=3).make(chain.folder / "qa-bm25")


def formula(corpus, question):
    """Robertson's BM25 with Lucene's idf, one block and one wordpiece at a time."""
    texts = [Counter([*corpus.title(row).tolist(), *corpus.tokens(row).tolist()]) for row in range(len(corpus))]
    lengths = [text.total() for text in texts]
    mean, scores = sum(lengths) / len(texts), []
    for text, length in zip(texts, lengths, strict=True):
        score = 0.0
        for word in question:
            holding = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            score += idf * text[word] / (text[word] + K1 * (1 - B + B * length / mean))
        scores.append(score)
    return np.array(scores)


@pytest.mark.parametrize("at_once", [7, 4096])
def test_it_is_bm25s_s(chain, monkeypatch, at_once):
    bm25s = pytest.importorskip("bm25s")
    monkeypatch.setattr(postings, "AT_ONCE", at_once)
    corpus, words = Corpus(chain.blocks), Tokenizer.load(chain.blocks.path)
    texts = [[*corpus.title(row).tolist(), *corpus.tokens(row).tolist()] for row in range(len(corpus))]
    theirs = bm25s.BM25(k1=K1, b=B, method="lucene").build_index_from_ids(range(words.rows), texts, show_progress=False)
    ours = Postings.of_text(corpus, words, None).arrays
    assert ours["data"].dtype == np.float32 and ours["indices"].dtype == np.int32
    for name in ("indices", "indptr"):
        assert np.array_equal(ours[name], theirs[name])
    np.testing.assert_allclose(ours["data"], theirs["data"], rtol=1e-6)


class Texts(list):
    """Passages of these wordpieces, without titles."""

    def title(self, row):
        return np.zeros(0, np.int64)

    def tokens(self, row):
        return np.array(self[row], dtype=np.int64)


def test_empty_passages_and_wordpieces_of_another_vocabulary(chain):
    words = Tokenizer.load(chain.blocks.path)
    assert Postings.of_text(Texts([[], []]), words, None).score(np.array([1])).tolist() == [0, 0]
    assert not len(Postings.of_text(Texts(), words, None).score(np.array([1])))
    alone = Postings.of_text(Texts([[], [words.rows - 1]]), words, None).score(np.array([words.rows - 1]))
    assert alone[0] == 0 < alone[1]
    with pytest.raises(InputError, match="vocabulary"):
        Postings.of_text(Texts([[words.rows]]), words, None)


def test_scores_are_the_formulas(searcher):
    for question in searcher.tokens(QUESTIONS):
        expected = formula(searcher.corpus, question.tolist())
        np.testing.assert_allclose(searcher.postings.score(question), expected, rtol=1e-5, atol=1e-6)


def test_the_nearest_are_the_best_and_their_live_scores_the_same(searcher):
    searcher.scale.log_scale.data.fill_(math.log(2.5))
    tokens = searcher.tokens(QUESTIONS)
    scores_BK, rows_BK = searcher.nearest(tokens, 9)
    for question, scores, rows in zip(tokens, scores_BK, rows_BK, strict=True):
        expected = 2.5 * searcher.postings.score(question)
        order = np.argsort(-expected, kind="stable")[:9]
        assert rows.tolist() == order.tolist()
        np.testing.assert_allclose(scores, expected[order], rtol=1e-6)
    live_QK = searcher.scores(tokens, rows_BK)
    assert live_QK.requires_grad
    np.testing.assert_allclose(live_QK.detach().numpy(), scores_BK, rtol=1e-6)
    searcher.scale.log_scale.data.fill_(0.0)


def test_a_name_in_the_question_finds_its_blocks(searcher):
    [hits] = searcher.search(searcher.tokens(["Where was Cora Nash born?"]), 2)
    assert {searcher.corpus.block(hit.row).title for hit in hits} == {"Cora Nash"}
    assert sum(hit.probability for hit in hits) == pytest.approx(1)


@pytest.mark.parametrize("stemmer", [None, "english"])
def test_words_that_the_tokenizer_does_not_know_find_no_others_like_them(chain, tmp_path, stemmer):
    texts = {"Ada": "Ada saw ☃ and ☃.", "Ben": "Ben saw Ada."}
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in texts.items()))
    tokenizer = str(chain.blocks.path / "tokenizer")
    blocks = Chunk(corpus=(corpus,), tokenizer=tokenizer, workers=1).make(tmp_path / "blocks")
    searcher = BM25Searcher(blocks, "cpu", stemmer=stemmer)
    unknown, [*known] = searcher.tokens(["☂", "☂ Ada"])[0], searcher.tokens(["☂ Ada", "Ada"])
    assert unknown.tolist() == [searcher.wordpiece.unk] and searcher.wordpiece.unk in searcher.corpus.tokens(0)
    assert [len(rows) for _, rows in searcher.ranked([unknown], 2)] == [0]
    (scores, _), (plain, _) = searcher.ranked(known, 2)
    assert scores.tolist() == plain.tolist()


@pytest.mark.parametrize("k", [1, 3, 6])
def test_of_equal_scores_the_lower_rows(k):
    scores = np.array([1, 2, 0, 2, 1, 2], dtype=np.float32)
    best, rows = best_rows(scores, k)
    assert rows.tolist() == [1, 3, 5, 0, 4, 2][:k] and best.tolist() == scores[rows].tolist()


def test_more_than_there_are(searcher):
    assert searcher.nearest(searcher.tokens(QUESTIONS), 5000)[1].shape == (3, 40)


def test_what_is_saved_searches_alike(chain, saved, searcher):
    again = BM25Searcher(chain.blocks, "cpu", saved.part("bm25"))
    assert again.scale.value != 1.0
    described = json.loads(saved.part("bm25").file("bm25.json").read_text())
    assert described["scale"] == pytest.approx(again.scale.value)
    tokens = searcher.tokens(QUESTIONS)
    (scores, rows), (fresh, same) = again.nearest(tokens, 40), searcher.nearest(tokens, 40)
    assert np.array_equal(rows, same)
    np.testing.assert_allclose(scores, fresh * again.scale.value, rtol=1e-5)


def test_other_blocks_are_refused(saved, tmp_path):
    pages = {**documents(), "More": [["More was born in [[Milton]].", "The end."]]}
    with pytest.raises(MismatchError, match="does not belong"):
        BM25Searcher(make_blocks(tmp_path / "blocks", pages), "cpu", saved.part("bm25"))


def test_revised_blocks_get_postings_of_their_own(saved, searcher, tmp_path, capfd):
    blocks = make_blocks(tmp_path / "blocks", {**documents(), "Ada": documents()["Ada Lorn"]})  # no new word
    reopened = BM25Searcher.reopen(saved, SearchInputs(blocks=blocks, device="cpu"))
    assert "is computed now" in capfd.readouterr().err
    learnt = BM25Searcher(searcher.corpus.artifact, "cpu", saved.part("bm25"))
    moved = learnt.over(blocks, None)
    for question in reopened.tokens(QUESTIONS):
        expected = formula(reopened.corpus, question.tolist())
        for found in (reopened, moved):
            np.testing.assert_allclose(found.postings.score(question), expected, rtol=1e-5, atol=1e-6)
            assert found.scale.value == learnt.scale.value != 1


def test_blocks_of_another_vocabulary_are_refused(saved, searcher, tmp_path):
    blocks = make_blocks(tmp_path / "blocks", {"Other": [["Quite different words are here."]]})
    with pytest.raises(MismatchError, match="vocabular"):
        BM25Searcher.reopen(saved, SearchInputs(blocks=blocks, device="cpu"))
    with pytest.raises(MismatchError, match="vocabular"):
        searcher.over(blocks, None)


@pytest.mark.parametrize("content", ["{}", "no json", '{"scale": -1.0}', '{"scale": NaN}'])
def test_a_scale_that_is_none(chain, tmp_path, content):
    part = baseline(chain, "bm25", steps=1).make(tmp_path / "qa").path / "bm25"
    path = part / "bm25.json"
    path.chmod(0o644)
    path.write_text(content.ljust(path.stat().st_size))
    with pytest.raises(InputError, match="scale"):
        BM25Searcher(chain.blocks, "cpu", open_artifact(part))


def test_arrays_that_do_not_fit(chain, tmp_path):
    part = baseline(chain, "bm25", steps=1).make(tmp_path / "qa").path / "bm25"
    path = part / "indices.npy"
    rows = np.load(path) + 1
    path.chmod(0o644)
    np.save(path, rows)
    searcher = BM25Searcher(chain.blocks, "cpu", open_artifact(part))
    with pytest.raises(InputError, match="40 blocks"):  # they are read when they are searched
        for word in range(searcher.wordpiece.rows):
            searcher.postings.score(np.array([word]))
