"""A loaded model: its hits against brute force, and its filled masks against a computation by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import realmctl
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.transformers_bert import as_transformers

QUESTIONS = [f"Where was {name} born?" for name in ("Ada Lorn", "Ben Mott", "Cora Nash")] * 6
SENTENCE = "Ada Lorn was born in [MASK] and worked for [MASK]."


@pytest.fixture(scope="module")
def loaded(model):
    return realmctl.load_model(model, precision="fp32", device="cpu")


def test_hits_carry_score_text_and_probability(chain, model, loaded):
    hits = loaded.search(QUESTIONS[0], k=5)
    vectors = np.load(model.part("index").file("vectors.npy"))
    scores = loaded.retriever.encode_queries(QUESTIONS[:1])[0] @ vectors.T
    rows = np.argsort(-scores, kind="stable")[:5]
    weights = np.exp(scores[rows] - scores.max())
    assert [hit.row for hit in hits] == rows.tolist()
    assert [hit.score for hit in hits] == pytest.approx(scores[rows].tolist(), abs=1e-5)
    assert [hit.probability for hit in hits] == pytest.approx((weights / weights.sum()).tolist(), rel=1e-4)
    assert [hit.block for hit in hits] == [loaded.blocks[row] for row in rows.tolist()]


def test_a_batch_finds_what_single_questions_find(loaded):
    scores, rows = loaded.search_batch(QUESTIONS, k=4)
    assert scores.shape == rows.shape == (18, 4) and scores.dtype == np.float32 and rows.dtype == np.int64
    for question, row, score in zip(QUESTIONS, rows, scores, strict=True):
        hits = loaded.search(question, k=4)
        assert [hit.row for hit in hits] == row.tolist()
        assert [hit.score for hit in hits] == pytest.approx(score.tolist(), abs=1e-5)
    empty_scores, empty_rows = loaded.search_batch([], k=4)
    assert empty_scores.shape == empty_rows.shape == (0, 4)
    assert loaded.search_batch(QUESTIONS[:1], k=1000)[1].shape == (1, 40) == (1, len(loaded.search(QUESTIONS[0], 1000)))


@pytest.mark.parametrize(("question", "k"), [("", 5), ("  ", 5), ("Who?", 0)])
def test_what_search_refuses(loaded, question, k):
    with pytest.raises(ConfigError):
        loaded.search(question, k)
    with pytest.raises(ConfigError):
        loaded.search_batch([question], k)


def test_a_batch_is_no_string(loaded):
    with pytest.raises(ConfigError, match="Who wrote it"):
        loaded.search_batch("Who wrote it?")


def test_the_parts_belong_to_the_model(model, loaded):
    assert loaded.index.artifact.content == model.part("index").content and len(loaded.index) == 40
    assert loaded.retriever.artifact.content == model.part("retriever").content
    rows = loaded.index.search(loaded.retriever.encode_queries(QUESTIONS[:2]), k=3)[1]
    assert rows.tolist() == loaded.search_batch(QUESTIONS[:2], k=3)[1].tolist()
    assert not loaded.reader.training


def test_the_numbers_of_fill_mask(chain, model, loaded):
    value = loaded.fill_mask(SENTENCE, candidates=5)
    retriever, reader = Retriever.load(model.part("retriever").path), Reader.load(model.part("reader").path)
    corpus, words = Corpus(chain.blocks), Tokenizer.load(chain.blocks.path)
    pieces = [words.ids(part).tolist() for part in SENTENCE.split("[MASK]")]
    x = [*pieces[0], words.mask, *pieces[1], words.mask, *pieces[2]]
    tower = retriever.query_tower

    def embed(ids, segments):
        state = as_transformers(tower.bert)(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).pooler_output
        return tower.norm(tower.projection(state))[0]

    with torch.no_grad():
        query = embed([words.cls, *x, words.sep], [0] * (len(x) + 2))
        vectors = torch.from_numpy(np.load(model.part("index").file("vectors.npy")))
        rows = (vectors @ query).argsort(descending=True, stable=True)[:4].tolist()
        scores, fillings = [], []
        for row in [None, *rows]:
            title, body = ([], []) if row is None else (corpus.title(row).tolist(), corpus.tokens(row).tolist())
            scores.append(
                query
                @ embed(
                    [words.cls, *title, words.sep, *body, words.sep], [0] * (len(title) + 2) + [1] * (len(body) + 1)
                )
            )
            joint = [words.cls, *x, words.sep, *body, words.sep]
            logits = as_transformers(reader.mlm)(
                torch.tensor([joint]), token_type_ids=torch.tensor([[0] * (len(x) + 2) + [1] * (len(body) + 1)])
            ).logits[0]
            fillings.append(logits[[at + 1 for at, piece in enumerate(x) if piece == words.mask]].softmax(-1))
    prior, fillings = torch.stack(scores).softmax(0), torch.stack(fillings)

    def blanks(probability):
        return [
            (words.tokenizer.id_to_token(int(best)), pytest.approx(float(share), rel=1e-4))
            for share, best in zip(*probability.max(-1), strict=True)
        ]

    def told(found):
        return [(blank.wordpiece, blank.probability) for blank in found]

    assert told(value.without_retrieval) == blanks(fillings[0])
    assert told(value.with_retrieval) == blanks((prior[:, None, None] * fillings).sum(0))
    titles = ["(null document)", *(corpus[row].title for row in rows)]
    for found, title, share, filling in zip(value.candidates, titles, prior, fillings, strict=True):
        assert found.title == title and found.probability == pytest.approx(float(share), rel=1e-4)
        assert told(found.masks) == blanks(filling)
    assert [found.row for found in value.candidates] == [None, *rows]
    alone = loaded.fill_beside_null(SENTENCE, 5)
    assert told(alone.masks) == blanks(fillings[0]) and alone.probability == value.candidates[0].probability
    lines = str(value).splitlines()
    assert len(lines) == 3 + 5 and lines[0] == SENTENCE and "(null document)" in lines[3]


def test_no_special_token_fills_a_mask(chain, model):
    words, sure = Tokenizer.load(chain.blocks.path), realmctl.load_model(model, precision="fp32", device="cpu")
    sure.reader.mlm.cls.predictions.bias.data[words.specials] += 1e3
    found = sure.fill_mask(SENTENCE, candidates=3)
    filled = {blank.wordpiece for blank in (*found.with_retrieval, *found.candidates[1].masks)}
    assert filled and not filled & set(words.tokens_of(words.specials))


@pytest.mark.parametrize("sentence", ["[MASK]", "[MASK] was born in Velford", "born in [MASK]"])
def test_a_blank_may_stand_anywhere(loaded, sentence):
    assert len(loaded.fill_mask(sentence, 3).with_retrieval) == 1


def test_only_blanks_are_special(loaded):
    assert len(loaded.fill_mask("The [SEP] of [MASK] is [CLS].", 3).with_retrieval) == 1


def test_copies_of_a_block_are_read_once(model, monkeypatch):
    """All blocks but the last are given one uid, as copies have."""
    loaded = realmctl.load_model(model, precision="fp32", device="cpu")
    uid = np.array(loaded.dense.corpus.uid)
    uid[:-1] = uid[0]
    monkeypatch.setattr(loaded.dense.corpus, "uid", uid)
    rows = [found.row for found in loaded.fill_mask(SENTENCE, candidates=5).candidates]
    assert len(rows) == 3 and rows[0] is None and len(uid) - 1 in rows


def test_precision_governs_the_arithmetic(model):
    """bfloat16 keeps three digits, float32 seven."""
    exact, rounded = (realmctl.load_model(model, precision=name).fill_mask(SENTENCE) for name in ("fp32", "bf16"))
    shares = [[found.probability for found in filled.candidates] for filled in (exact, rounded)]
    assert shares[0] != shares[1] and shares[0] == pytest.approx(shares[1], abs=0.1)
    with pytest.raises(ConfigError, match="fp8"):
        realmctl.load_model(model, precision="fp8").search("Who?")


@pytest.mark.parametrize(
    ("sentence", "candidates"), [("No blank.", 8), ("A [MASK].", 1), ("word " * 600 + "[MASK]", 3)]
)
def test_what_fill_mask_refuses(loaded, sentence, candidates):
    with pytest.raises(ConfigError):
        loaded.fill_mask(sentence, candidates)
