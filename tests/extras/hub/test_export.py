"""An exported folder is loaded by the other library itself, and gives our numbers there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.models.bert.files import load_masked_lm, scratch_config
from realmctl.models.bert.modules import BertModel
from realmctl.models.encoder import hidden_states
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.models.weights import load_tensors
from realmctl.pipeline import Stage, reads, setting
from realmctl.tokens.tokenizer import Tokenizer
from stages.ict_init import IctInit
from tests.fixtures import realm_checkpoints as published
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents
from tests.fixtures.retriever import make_retriever
from tests.fixtures.transformers_bert import as_transformers

TEXTS = ["where was ada born", "Ada Lorn was born in Velford.", "a", "", "the b. x [z] it's 1900!", "Ada " * 400]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    torch.set_num_threads(1)
    return make_blocks(tmp_path_factory.mktemp("blocks") / "blocks", documents())


class RawCls(Stage):
    """A retriever that takes [CLS] as it is."""

    makes = "retriever"
    blocks: Artifact = reads("blocks", help="Whose vocabulary it has.")
    spread: float = setting("Of the projection's weights.", default=0.02)
    norm_eps: float = setting("Of the projection's norm.", default=1e-12)

    def run(self, out: Writer) -> Mapping[str, Any]:
        torch.manual_seed(1)
        words = Tokenizer.load(self.blocks.path)
        bert = BertModel(scratch_config("L1-H16", len(words)))
        retriever = Retriever.from_bert(
            bert, projection=8, query_length=24, block_length=48, pooling="cls", norm_eps=self.norm_eps
        )
        torch.nn.init.normal_(retriever.query_tower.projection.weight, std=self.spread)
        retriever.eval().save(out.path)
        words.save(out.path / "tokenizer")
        return {}


def rows_of(artifact: Artifact, side: str, texts: list[str]) -> np.ndarray:
    retriever, words = Retriever.load(artifact.path), Tokenizer.load(artifact.path)
    length = retriever.block_length if side == "block" else retriever.query_length
    packed = Collator.of(Tokenizer.load(artifact.path)).query([words.ids(text) for text in texts], length)
    tower = retriever.query_tower if side == "query" else retriever.block_tower
    assert tower is not None
    with torch.inference_mode():
        return np.asarray(tower.embed(packed))


def loaded(folder: Path):
    library = pytest.importorskip("sentence_transformers")
    return library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.mark.parametrize("towers", ["shared", "separate", "query-only"])
@pytest.mark.parametrize("side", ["query", "block"])
def test_sentence_transformers_gives_our_embeddings(tmp_path, blocks, towers: str, side: str):
    artifact = make_retriever(tmp_path / "r", blocks, towers=towers)
    if (towers, side) == ("query-only", "block"):
        with pytest.raises(ConfigError, match="query side"):
            export(artifact.path, tmp_path / "out", side)
        return
    said = export(artifact.path, tmp_path / "out", side)  # type: ignore[arg-type]
    assert said["side"] == side and not list(tmp_path.glob(".out*"))
    length = "block" if towers == "shared" else side
    found = loaded(tmp_path / "out").encode(TEXTS)
    np.testing.assert_allclose(found, rows_of(artifact, length, TEXTS), atol=1e-5, rtol=0)
    tower = Retriever.load(artifact.path).query_tower if side == "query" else Retriever.load(artifact.path).block_tower
    assert tower
    theirs = AutoModel.from_pretrained(tmp_path / "out").state_dict()
    assert all(torch.equal(theirs[name], tensor) for name, tensor in tower.bert.state_dict().items())


@pytest.mark.parametrize("spread", [0.02, 1e-4])
def test_raw_cls_and_nearly_constant_projections(tmp_path, blocks, spread: float):
    """Where sentence-transformers' own epsilon would show: a projection whose variance is small beside it."""
    artifact = RawCls(blocks=blocks, spread=spread).make(tmp_path / "r")
    export(artifact.path, tmp_path / "out")
    assert not list((tmp_path / "out").glob("4_*"))
    np.testing.assert_allclose(
        loaded(tmp_path / "out").encode(TEXTS), rows_of(artifact, "block", TEXTS), atol=1e-5 if spread > 1e-3 else 1e-3
    )


def test_mean_pooling_and_a_scale(tmp_path, blocks):
    """An untrained start: mean pooling, a projection by PCA, products of 20 cosines."""
    made = IctInit(
        blocks=blocks, bert="scratch:L1-H16", steps=0, pooling="mean", projection_init="pca", projection=8, scale=20.0
    ).make(tmp_path / "r")
    export(made.path, tmp_path / "out")
    found = loaded(tmp_path / "out").encode(TEXTS)
    np.testing.assert_allclose(found, rows_of(made, "block", TEXTS), atol=1e-5, rtol=0)
    np.testing.assert_allclose((found**2).sum(1), 20.0, rtol=1e-3)


@pytest.mark.parametrize("norm_eps", [1e-12, 1e-3])
def test_their_epsilon_on_what_is_written_is_ours(tmp_path, blocks, norm_eps: float):
    artifact = RawCls(blocks=blocks, spread=0.01, norm_eps=norm_eps).make(tmp_path / "r")
    export(artifact.path, tmp_path / "out")
    retriever = Retriever.load(artifact.path)
    dense = load_tensors(tmp_path / "out/2_Dense/model.safetensors")
    state = torch.randn(5, 16)
    projected = torch.nn.functional.linear(state, dense["linear.weight"], dense["linear.bias"])
    tower = retriever.query_tower
    assert_close(
        torch.nn.functional.layer_norm(projected, (8,)), tower.norm(tower.projection(state)), atol=1e-4, rtol=1e-4
    )


def test_a_title_and_a_body_are_a_pair(tmp_path, blocks):
    artifact = make_retriever(tmp_path / "r", blocks)
    export(artifact.path, tmp_path / "out")
    words, retriever = Tokenizer.load(artifact.path), Retriever.load(artifact.path)
    pairs = [("Ada Lorn", "She was born in Velford."), ("Ben", "The family was poor.")]
    packed = Collator.of(Tokenizer.load(artifact.path)).block(
        [words.ids(t) for t, _ in pairs], [words.ids(b) for _, b in pairs], 48
    )
    with torch.inference_mode():
        ours = retriever.embed_blocks(packed).numpy()
    np.testing.assert_allclose(loaded(tmp_path / "out").encode(pairs), ours, atol=1e-5, rtol=0)


def test_an_encoder_loads_in_transformers_with_its_head(tmp_path):
    source = published.write(tmp_path / "c", published.encoder())
    artifact = import_checkpoint(str(source), tmp_path / "w", ImportExtras())["encoder"]
    assert export(artifact.path, tmp_path / "deep" / "er" / "out")["loads_in"] == ["transformers"]
    folder = tmp_path / "deep" / "er" / "out"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(["the cat [MASK]", "a"], padding=True, return_tensors="pt")
    assert inputs["input_ids"][0, :2].tolist() == [1, published.VOCABULARY.index("the")]
    mlm = load_masked_lm(artifact.path)[0]
    with torch.inference_mode():
        assert_close(
            AutoModelForMaskedLM.from_pretrained(folder)(**inputs).logits, as_transformers(mlm)(**inputs).logits
        )
        auto = AutoModel.from_pretrained(folder)(**inputs).last_hidden_state
        packed = Collator.of(Tokenizer.load(artifact.path)).query([inputs["input_ids"][0, 1:-1].numpy()], 64)
        assert_close(auto[0], hidden_states(mlm.bert, packed)[0], atol=1e-5, rtol=1e-5)
    with pytest.raises(ConfigError, match="no sides"):
        export(artifact.path, tmp_path / "out2", "query")


def test_what_cannot_be_exported(tmp_path, blocks):
    artifact = make_retriever(tmp_path / "r", blocks, towers="separate")
    with pytest.raises(ConfigError, match="Say which"):
        export(artifact.path, tmp_path / "out")
    with pytest.raises(MismatchError, match="blocks"):
        export(blocks.path, tmp_path / "out")
    with pytest.raises(InputError, match="does not exist"):
        export(tmp_path / "nothing", tmp_path / "out")
    with pytest.raises(ConfigError, match="never changes"):
        export(artifact.path, artifact.path / "out", "query")
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "own.txt").write_text("own")
    for taken in ("file", "full"):
        with pytest.raises(ConfigError, match="exists"):
            export(artifact.path, tmp_path / taken, "query")
    (tmp_path / "empty").mkdir()
    export(artifact.path, tmp_path / "empty", "query")
    weights = artifact.path / "query" / "model.safetensors"
    weights.chmod(0o644)
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        export(artifact.path, tmp_path / "out", "query")
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out*"))


def test_modules_are_named_as_sentence_transformers_names_them(tmp_path, blocks):
    export(make_retriever(tmp_path / "r", blocks).path, tmp_path / "out")
    listed = json.loads((tmp_path / "out" / "modules.json").read_text())
    names = [entry["type"].rpartition(".")[2] for entry in listed]
    assert names == ["Transformer", "Pooling", "Dense", "Dense", "LayerNorm"]
    assert all((tmp_path / "out" / entry["path"]).is_dir() for entry in listed)
