"""Two towers from warm start to search: the official export shipped the block tower under the query tower's name."""

from __future__ import annotations

import numpy as np
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.index.index_type import open_index
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import embed_blocks
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.tokens.tokenizer import Tokenizer
from stages.pretrain import Pretrain
from tests.fixtures.chain import finetune, make_index
from tests.fixtures.retriever import make_retriever


def weights_of(tower):
    return torch.cat([parameter.flatten() for parameter in tower.parameters()])


def test_both_towers_learn_and_each_serves_its_side(chain, tmp_path):
    start = make_retriever(tmp_path / "retriever", chain.blocks, towers="separate")
    index = make_index(tmp_path, chain.blocks, start)
    settings = {name: getattr(chain, name) for name in ("blocks", "spans", "encoder")}
    model = Pretrain(
        **settings,
        retriever=start,
        index=index,
        steps=3,
        batch_size=4,
        lr=1e-2,
        warmup=1,
        candidates=4,
        refresh="never",
        precision="fp32",
    ).make(tmp_path / "model")
    before, after = Retriever.load(start.path), Retriever.load(model.part("retriever").path)
    assert after.towers == "separate" and after.block_tower is not None
    for name in ("query_tower", "block_tower"):
        assert not torch.equal(weights_of(getattr(before, name)), weights_of(getattr(after, name)))
    assert not torch.equal(weights_of(after.query_tower), weights_of(after.block_tower))
    rows, corpus, collator = list(range(6)), Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    made = open_index(model.part("index").path).vectors(np.array(rows))
    np.testing.assert_allclose(made, embed_blocks(after, collator, corpus, rows, precision="fp32"), atol=1e-5)

    frozen = finetune(chain, model, steps=1, freeze_retriever=True, precision="fp32").make(tmp_path / "frozen")
    assert torch.equal(weights_of(Retriever.load(frozen.part("retriever").path)), weights_of(after.query_tower))

    tuned = finetune(chain, model, steps=3, precision="fp32").make(tmp_path / "qa-model")
    query_side = Retriever.load(tuned.part("retriever").path)
    assert query_side.towers == "query-only" and query_side.block_encoder_hash() == after.block_encoder_hash()
    searcher = DenseSearcher(tuned.part("retriever"), tuned.part("index"), chain.blocks, "cpu", "fp32")
    tokens = searcher.tokens(["Where was Ada Lorn born?"])
    with torch.no_grad():
        query_1D = query_side.query_tower.embed(collator.query(tokens, 64)).numpy()
    scores, _ = searcher.nearest(tokens, 3)
    everything = open_index(model.part("index").path).vectors(np.arange(len(corpus))) @ query_1D[0]
    np.testing.assert_allclose(scores[0], np.sort(everything)[::-1][:3], rtol=1e-5)
