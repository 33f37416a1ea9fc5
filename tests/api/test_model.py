"""A loaded model: its hits against brute force, and its filled masks against the command's."""

from __future__ import annotations

import numpy as np
import pytest

import realmctl
from realmctl.errors import ConfigError
from realmctl.retrieval.answering.asking import fill_masks

QUESTIONS = [f"Where was {name} born?" for name in ("Ada Lorn", "Ben Mott", "Cora Nash")] * 6
SENTENCE = "Ada Lorn was born in [MASK] and worked for [MASK]."


@pytest.fixture(scope="module")
def loaded(model):
    return realmctl.load(model, precision="fp32", device="cpu")


def test_hits_carry_score_text_and_probability(chain, model, loaded):
    hits = loaded.search(QUESTIONS[0], k=5)
    vectors = np.load(model.part("index").file("vectors.npy"))
    scores = loaded.retriever.encode_queries(QUESTIONS[:1])[0] @ vectors.T
    rows = np.argsort(-scores, kind="stable")[:5]
    weights = np.exp(scores[rows] - scores.max())
    assert [hit.row for hit in hits] == rows.tolist()
    assert [hit.score for hit in hits] == pytest.approx(scores[rows].tolist(), abs=1e-5)
    assert [hit.probability for hit in hits] == pytest.approx((weights / weights.sum()).tolist(), rel=1e-4)
    for hit in hits:
        block = loaded.blocks[hit.row]
        assert (hit.id, hit.title, hit.text) == (block.id, block.title, block.text)


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
    with pytest.raises(ConfigError, match="list of questions"):
        loaded.search_batch("Who wrote it?")


def test_the_parts_belong_to_the_model(model, loaded):
    assert loaded.index.artifact.content == model.part("index").content and len(loaded.index) == 40
    assert loaded.retriever.artifact.content == model.part("retriever").content
    rows = loaded.index.search(loaded.retriever.encode_queries(QUESTIONS[:2]), k=3)[1]
    assert rows.tolist() == loaded.search_batch(QUESTIONS[:2], k=3)[1].tolist()
    assert not loaded.reader.training


def test_masks_are_filled_as_by_the_command(chain, model, loaded):
    filled, told = (
        loaded.fill_mask(SENTENCE, candidates=5),
        fill_masks(SENTENCE, model.path, chain.blocks.path, 5, "fp32"),
    )

    def plain(masks):
        return [{"wordpiece": mask.wordpiece, "probability": mask.probability} for mask in masks]

    assert plain(filled.without_retrieval) == told["without_retrieval"] and len(filled.without_retrieval) == 2
    assert plain(filled.with_retrieval) == told["with_retrieval"]
    assert [plain(found.masks) for found in filled.candidates] == [found["masks"] for found in told["candidates"]]
    assert sum(found.probability for found in filled.candidates) == pytest.approx(1)
    null, *others = filled.candidates
    assert null.row is None and null.title == "(null document)"
    assert [loaded.blocks[found.row].title for found in others] == [found.title for found in others]


def test_precision_governs_the_arithmetic(model):
    """bfloat16 keeps three digits, float32 seven."""
    exact, rounded = (realmctl.load(model, precision=name).fill_mask(SENTENCE) for name in ("fp32", "bf16"))
    shares = [[found.probability for found in filled.candidates] for filled in (exact, rounded)]
    assert shares[0] != shares[1] and shares[0] == pytest.approx(shares[1], abs=0.1)
    with pytest.raises(ConfigError, match="not a precision"):
        realmctl.load(model, precision="fp8").search("Who?")


@pytest.mark.parametrize(("sentence", "candidates"), [("No blank.", 8), ("A [MASK].", 1)])
def test_what_fill_mask_refuses(loaded, sentence, candidates):
    with pytest.raises(ConfigError):
        loaded.fill_mask(sentence, candidates)
