"""Dense search without PyTorch beside the searcher: vectors, hits, and what is left to the searcher."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.extras.quick_search import dense
from realmctl.extras.quick_search.bert import ACTIVATIONS, OtherTower, QuickTower
from realmctl.extras.quick_search.dense import QuickDense
from realmctl.models.bert.activations import ACTIVATIONS as TORCHS
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.models.towers.head_steps import HeadStep
from realmctl.models.towers.layout import InputLayout, Prefix
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.methods import start_method
from realmctl.retrieval.search.profile import SearchProfile
from realmctl.tokens.tokenizer import Tokenizer
from stages.build_index import BuildIndex
from tests.fixtures.chain import Chain

QUESTIONS = ["Where was Ada born?", "Ben", "Who met whom in Velford? " * 30]
STEPS = [
    HeadStep("dense", 12, activation="gelu"),
    HeadStep("layer-norm", 12),
    HeadStep("dense", 8, bias=False, activation="tanh"),
    HeadStep("truncate", 6),
    HeadStep("normalize", 6),
]


def bert(activation: str = "gelu") -> BertForMaskedLM:
    torch.manual_seed(3)
    model = BertForMaskedLM(scratch_config("L2-H16", 400, hidden_act=activation, init_std=0.4, positions=40)).eval()
    for part in model.modules():
        if isinstance(part, torch.nn.LayerNorm | torch.nn.Linear):
            torch.nn.init.normal_(part.bias, std=0.3)
    return model


def expected(retriever: Retriever, words: Tokenizer, question: str) -> np.ndarray:
    tokens = [*words.tokens([question])]
    packed = retriever.pack_queries(Collator.of(words), tokens, retriever.longest_question)
    with torch.inference_mode():
        return retriever.embed_queries(packed)[0].numpy()


def found(folder: Path, words: Tokenizer, question: str) -> np.ndarray:
    quick = QuickDense.__new__(QuickDense)
    quick.tower, quick.wordpiece = QuickTower(folder), words
    return quick.tower.embed(quick._ids(next(iter(words.tokens([question])))))


@pytest.mark.parametrize("pooling", ["pooler", "cls", "mean"])
@pytest.mark.parametrize("kind", ["shared", "separate", "query-only", "imported", "no head"])
def test_vectors_are_the_towers(chain: Chain, tmp_path, pooling, kind):
    words = Tokenizer.load(chain.blocks.path)
    if kind == "imported":
        tower = SentenceTower(bert().base_model, pooling, STEPS, scale=20.0)
        prefix = Prefix("ask ", tuple(int(each) for each in next(iter(words.tokens(["ask"])))))
        retriever = Retriever(
            tower.eval(), tower, query_length=24, block_length=32, pooling=pooling, layout=InputLayout("joined", prefix)
        )
    else:
        head = "none" if kind == "no head" else "layer-norm"
        towers = "separate" if kind == "separate" else "shared"
        retriever = Retriever.from_bert(
            bert().base_model, projection=8, query_length=24, block_length=32, pooling=pooling, towers=towers, head=head
        ).eval()
        retriever = retriever.query_only().eval() if kind == "query-only" else retriever
    retriever.save(tmp_path)
    for question in QUESTIONS:
        np.testing.assert_allclose(found(tmp_path, words, question), expected(retriever, words, question), atol=1e-5)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS.keys() & TORCHS.keys()))
def test_activations_are_those_of_torch(name):
    x = np.linspace(-6, 6, 4001, dtype=np.float32)
    np.testing.assert_allclose(ACTIVATIONS[name](x), TORCHS[name](torch.from_numpy(x)).numpy(), atol=1e-6)


def inputs_of(chain: Chain, **changes) -> SearchInputs:
    given = SearchInputs(blocks=chain.blocks, retriever=chain.retriever, index=chain.index, device="cpu", few=True)
    return dataclasses.replace(given, **changes)


def require_same_hits(chain: Chain, quick: QuickDense, index) -> None:
    searcher = DenseSearcher.start(inputs_of(chain, index=index, precision="fp32"))
    tokens = searcher.tokens(QUESTIONS)
    for (scores, rows), (its_scores, its_rows) in zip(quick.ranked(tokens, 7), searcher.ranked(tokens, 7), strict=True):
        np.testing.assert_allclose(scores, its_scores, rtol=1e-5)
        assert rows.tolist() == its_rows.tolist()


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_hits_are_the_searchers(chain: Chain, tmp_path, kind):
    index = chain.index
    if kind == "hnsw":
        embeddings = open_artifact(chain.folder / "embeddings")
        index = BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0, ef=200).make(tmp_path / "index")
    quick = QuickDense.start(inputs_of(chain, index=index))
    assert isinstance(quick, QuickDense)
    require_same_hits(chain, quick, index)
    require_same_hits(chain, quick.over(chain.blocks, index), index)


def test_what_is_left_to_the_searcher(chain: Chain, monkeypatch, tmp_path):
    assert isinstance(start_method(SearchProfile(method="dense"), inputs_of(chain)), QuickDense)
    for changes in ({"few": False}, {"precision": "bf16"}, {"opener": lambda *_: None}):
        assert QuickDense.start(inputs_of(chain, **changes)) is None
    monkeypatch.setattr(dense, "SCANNED", 1)
    embeddings = open_artifact(chain.folder / "embeddings")
    graph = BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0).make(tmp_path / "index")
    assert isinstance(start_method(SearchProfile(method="dense"), inputs_of(chain, index=graph)), DenseSearcher)
    monkeypatch.setattr(dense, "GPUS", (str(tmp_path),))
    assert QuickDense.start(inputs_of(chain)) and QuickDense.start(inputs_of(chain, device="auto")) is None


@pytest.mark.parametrize("change", ["a weight", "the activation", "the family", "the type"])
def test_other_towers_and_damaged_ones(tmp_path, change):
    model = bert("silu" if change == "the activation" else "gelu")
    retriever = Retriever.from_bert(model.base_model, projection=8, query_length=24, block_length=32)
    if change == "the type":
        retriever.half()
    retriever.save(tmp_path)
    if change == "a weight":
        path = tmp_path / "block/model.safetensors"
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    if change == "the family":
        path = tmp_path / "block/config.json"
        path.write_text(path.read_text().replace('"bert"', '"roberta"'))
    with pytest.raises(OtherTower):
        QuickTower(tmp_path)
