"""Vectors that exist already: a start that training kept is embedded once."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.retrieval.embedding import embedding
from realmctl.retrieval.embedding.reused import made_before, matching_rows, same_retriever
from realmctl.training.evaluation.cloze_recall import ClozePassages
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.eval_cloze import EvalCloze
from stages.ict_init import IctInit
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain
from tests.fixtures.cloze import scripted
from tests.fixtures.retriever import make_retriever


class EmbeddedAgain(Exception):
    pass


@pytest.fixture
def kept(chain: Chain, tmp_path, monkeypatch):
    """(start, what a training made that kept it, embeddings of the start); from here on nothing is embedded again."""
    start = make_retriever(tmp_path / "retriever", chain.blocks, seed=3)
    with monkeypatch.context() as patch:
        scripted(patch, 5, 6)
        training = IctInit(
            blocks=chain.blocks, retriever=start, steps=1, batch_size=8, lr=1e-2, cloze_recall=12, keep="gain"
        )
        made = training.make(tmp_path / "retriever")
    assert made.content != start.content and made.metrics["kept_step"] == 0
    embeddings = Embed(blocks=chain.blocks, retriever=start).make(tmp_path / "embeddings")

    def again(*given: object, **more: object) -> None:
        raise EmbeddedAgain

    monkeypatch.setattr(embedding, "embed_blocks", again)
    return start, made, embeddings


def test_a_start_that_training_kept_is_not_embedded_again(chain: Chain, tmp_path, kept):
    start, made, embeddings = kept
    assert same_retriever(start, made)
    taken = Embed(blocks=chain.blocks, retriever=made).make(tmp_path / "embeddings")
    vectors = taken.file("embeddings.npy")
    assert taken.path.name == "v2" and vectors.samefile(embeddings.file("embeddings.npy"))
    assert taken.lineage["retriever"] == made.content != embeddings.lineage["retriever"]
    assert (taken.metrics["taken_over"], taken.metrics["embedded"]) == (40, 0)
    index = BuildIndex(embeddings=taken, type="exact").make(tmp_path / "index")
    assert np.array_equal(np.load(index.file("vectors.npy")), np.load(vectors))


def test_what_could_have_other_vectors_is_embedded(chain: Chain, tmp_path, kept):
    start, made, embeddings = kept
    other = make_retriever(tmp_path / "retriever", chain.blocks, seed=4)
    shorter = make_retriever(tmp_path / "retriever", chain.blocks, seed=3, block_length=40)
    assert not same_retriever(start, other) and not same_retriever(start, shorter)

    def found(retriever: Artifact = made, dtype: str = "float32", precision: str = "auto") -> Artifact | None:
        return made_before(chain.blocks, retriever, tmp_path / "embeddings", dtype, precision)

    assert found() == embeddings
    assert found(other) is found(shorter) is found(dtype="float16") is found(precision="fp32") is None
    path = embeddings.file("embeddings.npy")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(EmbeddedAgain):
        Embed(blocks=chain.blocks, retriever=made).make(tmp_path / "embeddings")


def test_a_baseline_of_the_same_weights_is_measured_once(chain: Chain, tmp_path, kept, monkeypatch):
    start, made, _ = kept
    monkeypatch.setattr(ClozePassages, "ranks", None)  # the baseline's
    found = EvalCloze(blocks=chain.blocks, retriever=made, start=start, sentences=12).make(tmp_path / "cloze").metrics
    assert found["gain"] == found["gain_low"] == found["gain_high"] == 0
    assert found["start"]["cloze_rr"] == found["cloze_rr"]


@pytest.mark.parametrize("same", [slice(0, 3), slice(0, 2), slice(1, 3)])
def test_a_block_of_the_same_uid_and_other_wordpieces_is_embedded(tmp_path, same):
    """A title that is cut in one of two sets of blocks, or two texts with one hash. Here blocks are given the uid of another."""
    texts = {"One": [["Ada was born."], ["Ben was born."]], "Two": [["Ben was born."]]}
    corpus = Corpus(make_blocks(tmp_path / "blocks", texts))
    former = Corpus(corpus.artifact)
    forged = np.array(former.uid)
    forged[same] = np.roll(forged[same], 1)
    former.uid = forged
    assert matching_rows(former, corpus).tolist() == [row if forged[row] == corpus.uid[row] else -1 for row in range(3)]
