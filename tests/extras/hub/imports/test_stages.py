"""An imported retriever goes through the stages as one of `ict-init` does, and keeps its head, its scale and its prefixes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import realmctl
from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.extras.ir.rank import Rank
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.eval_em import EvalEm
from stages.pretrain import Pretrain
from tests.fixtures import encoder_folders as folders
from tests.fixtures.chain import Chain, finetune, pretrain
from tests.fixtures.transformers_bert import as_transformers

TEXTS = ["Where was Ada Lorn born?", "The firm of Ben Mott."]


@pytest.fixture(scope="module")
def own(chain: Chain, tmp_path_factory) -> Artifact:
    """Two towers, a dense layer, unit vectors, a scale and prefixes."""
    folder = tmp_path_factory.mktemp("own")
    query, block = (
        folders.folder_for(chain.blocks, folder / name, seed) for seed, name in enumerate(("query", "block"))
    )
    settings = {"scale": 20.0, "query_prefix": "question: ", "block_prefix": "town. ", "block_length": 48}
    return import_checkpoint(
        str(query), folder, ImportExtras(block_encoder=str(block), encoder=EncoderSettings(**settings))
    )["retriever"]


@pytest.fixture(scope="module")
def index(chain: Chain, own: Artifact) -> Artifact:
    folder = own.path.parents[1]
    embeddings = Embed(blocks=chain.blocks, retriever=own, precision="fp32").make(folder / "embeddings")
    return BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")


def test_blocks_are_embedded_and_searched_with_prefixes(chain: Chain, own: Artifact, index: Artifact, tmp_path):
    module, words, corpus = Retriever.load(own.path), Tokenizer.load(own.path), Corpus(chain.blocks)
    bert = as_transformers(module.block_tower.bert)
    stored = np.load(index.file("vectors.npy"))
    ids = [words.cls, *words.ids("town.").tolist(), *corpus.title(3).tolist(), *corpus.tokens(3).tolist()]
    ids = [*ids[:47], words.sep]
    state = bert(torch.tensor([ids])).last_hidden_state[0].mean(0)
    expected = torch.nn.functional.normalize(module.block_tower.head[0](state), dim=0) * 20**0.5
    np.testing.assert_allclose(stored[3], expected.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1) ** 2, 20, rtol=1e-5)
    loaded = realmctl.load(own, precision="fp32")
    scores = loaded.encode_queries(TEXTS) @ stored.T
    found = loaded.with_index(index, blocks=chain.blocks).search_batch(TEXTS, 5)[1]
    assert found.tolist() == np.argsort(-scores, kind="stable")[:, :5].tolist()
    ranking = Rank(blocks=chain.blocks, retriever=own, index=index, queries=chain.questions).make(tmp_path / "r")
    assert ranking.metrics["hits"] == 20 * 40


def test_pre_training_trains_the_head_and_not_the_scale(chain: Chain, own: Artifact, index: Artifact, tmp_path):
    model = Pretrain(**vars(pretrain(chain, steps=3, refresh_every=2)) | {"retriever": own, "index": index}).make(
        tmp_path / "model"
    )
    before, after = Retriever.load(own.path), Retriever.load(model.part("retriever").path)
    changed = {
        name for name, tensor in after.state_dict().items() if not torch.equal(tensor, before.state_dict()[name])
    }
    towers = ("query_tower.", "block_tower.")
    assert {tower + name for tower in towers for name in ("head.0.0.weight", "head.0.0.bias")} <= changed
    assert not {name for name in changed if name.endswith("scale")} and float(after.query_tower.scale) == 20
    assert after.layout == before.layout and after.layout.query_prefix.text == "question: "
    qa_model = finetune(chain, model, steps=1).make(tmp_path / "qa-model")
    query_side = Retriever.load(qa_model.part("retriever").path)
    assert query_side.towers == "query-only" and query_side.layout == before.layout
    scores = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions).make(tmp_path / "scores")
    assert "recall@5" in scores.metrics
    filled = realmctl.load(model, blocks=chain.blocks).fill_mask("Ada Lorn was born in [MASK].", 4)
    assert filled.with_retrieval
    export(model.path, tmp_path / "exported", "query")
    assert (tmp_path / "exported" / "4_Dense").is_dir()


def test_fine_tuning_straight_from_the_import(chain: Chain, own: Artifact, index: Artifact, tmp_path):
    stage = finetune(chain)
    parts = {
        name: getattr(stage, name)
        for name in ("blocks", "questions", "encoder", "steps", "batch_size", "retriever_beam")
    }
    lengths = {"reader_beam": 3, "reader_length": 40, "warmup": 1, "lr": 1e-2}
    qa_model = type(stage)(retriever=own, index=index, **parts, **lengths).make(tmp_path / "qa-model")
    after, before = Retriever.load(qa_model.part("retriever").path), Retriever.load(own.path)
    assert not torch.equal(after.query_tower.head[0][0].weight, before.query_tower.head[0][0].weight)
    assert after.block_encoder_hash() == before.block_encoder_hash()
