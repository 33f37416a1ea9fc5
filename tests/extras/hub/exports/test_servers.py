"""An exported folder as each server reads it: its own list of modules, its own arithmetic after the pooling."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from realmctl.errors import ConfigError
from realmctl.extras.hub.exports.hub_export import export
from realmctl.models.weights import load_tensors
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain

TEXTS = ["where was ada born", "Ada Lorn was born in Velford.", "a", "the town of the firm"]
KNOWN_TO_TEI = {f"sentence_transformers.models.{name}" for name in ("Dense", "Normalize", "Pooling", "Transformer")}
ACTIVATIONS = {"Identity": lambda x: x, "Tanh": torch.tanh, "GELU": torch.nn.functional.gelu, "ReLU": torch.relu}


@pytest.fixture(scope="module")
def trained(chain: Chain, tmp_path_factory: pytest.TempPathFactory):
    """Retrievers with each head, after two steps, so that a layer norm has a gain of its own."""
    folder = tmp_path_factory.mktemp("trained")
    shape = {"bert": "scratch:L1-H16", "batch_size": 4, "lr": 0.1, "warmup": 0, "pooling": "cls"}
    return {
        head: IctInit(blocks=chain.blocks, projection_head=head, steps=2, **shape, **more).make(folder / head)
        for head, more in (("layer-norm", {"projection": 8}), ("plain", {"projection": 8}), ("none", {}))
    }


def listed(folder: Path) -> list[tuple[str, Path]]:
    return [(entry["type"], folder / entry["path"]) for entry in json.loads((folder / "modules.json").read_text())]


@torch.inference_mode()
def pooled(folder: Path) -> Tensor:
    tokens = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    states = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state
    config = json.loads((folder / "1_Pooling/config.json").read_text())
    mask = tokens["attention_mask"][:, :, None]
    return states[:, 0] if config["pooling_mode_cls_token"] else (states * mask).sum(1) / mask.sum(1)


def by_tei(folder: Path, normalize: bool) -> np.ndarray:
    """text-embeddings-inference: an unknown module drops every Dense module; Normalize is the request's, and last."""
    vector = pooled(folder)
    if {kind for kind, _ in listed(folder)} <= KNOWN_TO_TEI:
        for kind, path in listed(folder):
            if kind.endswith("Dense"):
                tensors, config = (
                    load_tensors(path / "model.safetensors"),
                    json.loads((path / "config.json").read_text()),
                )
                activation = ACTIVATIONS[config["activation_function"].rpartition(".")[2]]
                vector = activation(
                    torch.nn.functional.linear(vector, tensors["linear.weight"], tensors.get("linear.bias"))
                )
    return (torch.nn.functional.normalize(vector, dim=-1) if normalize else vector).numpy()


def by_sentence_transformers(folder: Path) -> np.ndarray:
    library = pytest.importorskip("sentence_transformers")
    return library.SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(TEXTS)


def same_scores(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether all inner products are the same but for one factor."""
    ours, theirs = found @ found.T, wanted @ wanted.T
    return bool(np.allclose(ours / ours[0, 0], theirs / theirs[0, 0], atol=1e-3))


@pytest.mark.parametrize("head", ["layer-norm", "plain", "none"])
def test_what_the_export_says_of_each_server_is_so(trained, tmp_path, head):
    said = export(trained[head].path, tmp_path / "out")["served_by"]
    wanted = by_sentence_transformers(tmp_path / "out")
    assert said[0] == "sentence-transformers"
    assert (
        same_scores(by_tei(tmp_path / "out", False), wanted)
        == ("text-embeddings-inference" in said)
        == (head != "layer-norm")
    )
    assert (
        same_scores(pooled(tmp_path / "out").numpy(), wanted)
        == ("servers that pool and do no more" in said)
        == (head == "none")
    )


def test_fold_gives_every_server_the_same_rankings_where_it_can(trained, chain, tmp_path):
    with pytest.raises(ConfigError, match="--projection-head"):
        export(trained["layer-norm"].path, tmp_path / "no", projection="fold")
    untrained = IctInit(blocks=chain.blocks, bert="scratch:L1-H16", steps=0, projection=8, scale=20.0).make(
        tmp_path / "r"
    )
    assert "text-embeddings-inference" not in export(untrained.path, tmp_path / "exact")["served_by"]
    said = export(untrained.path, tmp_path / "fold", projection="fold")["served_by"]
    assert "text-embeddings-inference" in said
    kinds = [kind.rpartition(".")[2] for kind, _ in listed(tmp_path / "fold")]
    assert kinds == ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    wanted = by_sentence_transformers(tmp_path / "exact")
    assert same_scores(by_tei(tmp_path / "fold", True), wanted)
    assert same_scores(by_sentence_transformers(tmp_path / "fold"), wanted)


def test_none_writes_pooling_alone_and_loses_no_weights(trained, tmp_path):
    export(trained["none"].path, tmp_path / "out", projection="none")
    assert [kind.rpartition(".")[2] for kind, _ in listed(tmp_path / "out")] == ["Transformer", "Pooling"]
    for head in ("layer-norm", "plain"):
        with pytest.raises(ConfigError, match="--projection"):
            export(trained[head].path, tmp_path / head, projection="none")


@pytest.mark.parametrize("head", ["layer-norm", pytest.param("none", marks=pytest.mark.slow)])
def test_onnx_with_the_head_inside_is_what_sentence_transformers_computes(trained, tmp_path, head):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from realmctl.extras.hub.exports.onnx_export import embed

    made = export(trained[head].path, tmp_path / "out", onnx=True)
    tokens = AutoTokenizer.from_pretrained(tmp_path / "out")(TEXTS, padding=True, return_tensors="np")
    inputs = {name: tokens[name].astype(np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    found = embed(tmp_path / "out/onnx/embedding.onnx", inputs)
    np.testing.assert_allclose(found, by_sentence_transformers(tmp_path / "out"), atol=1e-4)
    small = embed(tmp_path / "out/onnx/embedding_int8.onnx", inputs)
    cosine = (found * small).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(small, axis=1)
    assert cosine.min() > 0.97 and 0.97 < made["int8_cosine"] <= 1.0001
