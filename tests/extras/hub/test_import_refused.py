"""A checkpoint that is not right in any way is refused in one paragraph and leaves nothing behind."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from realmctl.errors import ConfigError, InputError, MismatchError, RealmctlError
from tests.fixtures import realm_checkpoints as published
from tests.fixtures.realm_checkpoints import RECORDS, imported, open_qa


def refused(folder: Path, tmp_path: Path, error: type[RealmctlError], match: str, **extras: Any) -> None:
    with pytest.raises(error, match=match) as caught:
        imported(folder, tmp_path / "out", **extras)
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


KINDS = {
    "embedder": ("cls.dense.weight", "realm.encoder.layer.1.output.dense.bias"),
    "scorer": ("embedder.cls.LayerNorm.bias", "query_embedder.realm.pooler.dense.weight"),
    "encoder": ("cls.predictions.transform.dense.weight", "realm.embeddings.LayerNorm.weight"),
    "reader": ("qa_outputs.dense_output.weight", "realm.encoder.layer.0.attention.self.key.bias"),
    "openqa": (
        "reader.qa_outputs.dense_intermediate.bias",
        "embedder.realm.embeddings.word_embeddings.weight",
        "block_emb",
    ),
}


def tensors_of(kind: str) -> dict[str, Tensor]:
    return published.openqa(torch.ones(6, 16)) if kind == "openqa" else getattr(published, kind)()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_a_tensor_that_is_missing_misshapen_or_too_many_is_named(tmp_path, kind: str, name: str):
    whole = tensors_of(kind)
    for number, change in enumerate(("missing", "misshapen", "integers", "extra")):
        tensors = dict(whole)
        if change == "missing":
            del tensors[name]
        elif change == "extra":
            name = name.rpartition(".")[0] + ".gamma" if "." in name else "block_emb2"
            tensors[name] = torch.zeros(3)
        else:
            tensors[name] = torch.zeros(7, 7, 7) if change == "misshapen" else whole[name].long()
        folder = published.write(tmp_path / str(number), tensors)
        published.write_records(folder / "block_records.npy", RECORDS)
        refused(folder, tmp_path, InputError, f"'{name}'")


@pytest.mark.parametrize("kind", KINDS)
def test_unused_tensors_are_checked_too(tmp_path, kind: str):
    prefix = {"scorer": "embedder.", "openqa": "reader."}.get(kind, "")
    tensors = tensors_of(kind) | {prefix + "cls.predictions.decoder.weight": torch.zeros(2, 2)}
    refused(published.write(tmp_path / "c", tensors), tmp_path, InputError, "cls.predictions.decoder.weight")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "openqa"])
def test_a_tensor_that_is_not_finite_is_named(tmp_path, kind: str):
    for number, name in enumerate(KINDS[kind]):
        tensors = tensors_of(kind)
        tensors[name].flatten()[-1] = torch.nan
        refused(published.write(tmp_path / f"c{number}", tensors), tmp_path, InputError, f"{name}.*not finite")


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"model_type": "gpt2"}, "type 'gpt2'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"hidden_size": 64}, "word_embeddings"),
        ({"hidden_size": 10**12}, "not a size"),
        ({"num_hidden_layers": 3}, "layer.2"),
        ({"num_hidden_layers": 1}, "does not have"),
        ({"vocab_size": "60"}, "not a size"),
        ({"layer_norm_eps": 1e-3}, "layer_norm_eps"),
        ({"hidden_act": "sinh"}, "hidden_act"),
        ({"hidden_act": ["x"]}, "hidden_act"),
        ({"num_attention_heads": 5}, "hidden_size"),
        ({"hidden_dropout_prob": "x"}, "hidden_dropout_prob"),
        ({"retriever_proj_size": 8}, "cls.dense.weight"),
        ({"intermediate_size": True}, "not a size"),
        ({"intermediate_size": 2**20, "num_hidden_layers": 500}, "intermediate.dense.weight"),
    ],
)
def test_a_config_that_does_not_describe_the_weights(tmp_path, config: dict[str, Any], match: str):
    refused(published.write(tmp_path / "c", published.embedder(), **config), tmp_path, InputError, match)


def test_other_span_heads_and_wrong_numbers_of_blocks(tmp_path):
    for name, config in (("a", {"span_hidden_size": 128}), ("b", {"reader_layer_norm_eps": 1e-12})):
        refused(published.write(tmp_path / name, published.reader(), **config), tmp_path, InputError, "span head")
    tensors = tensors_of("openqa")
    refused(published.write(tmp_path / "c", tensors, num_block_records=13353718), tmp_path, InputError, "13353718")
    folder = published.write(tmp_path / "d", tensors)
    refused(folder, tmp_path, InputError, "block records")
    published.write_records(folder / "block_records.npy", RECORDS[:5])
    refused(folder, tmp_path, MismatchError, "6 .* 5")


@pytest.mark.parametrize("lines", [5, 7])
def test_titles_that_do_not_pair_with_the_blocks(tmp_path, lines: int, embedded):
    folder = open_qa(tmp_path / "qa", embedded[1])
    (tmp_path / "t.txt").write_text("title\n" * lines)
    with pytest.raises(MismatchError, match=r"t.txt"):
        imported(folder, tmp_path / "out", titles=tmp_path / "t.txt")
    assert not list((tmp_path / "out").glob("*/v*"))


def test_other_vocabularies(tmp_path):
    words = published.VOCABULARY
    for name, vocabulary in (
        ("short", words[:-1]),
        ("long", [*words, "more"]),
        ("moved", [words[5], *words[1:5], "[PAD]", *words[6:]]),
    ):
        folder = published.write(tmp_path / name, published.embedder(), vocabulary=vocabulary)
        refused(folder, tmp_path, MismatchError, "tokenizer")
    folder = published.write(tmp_path / "none", published.embedder(), vocabulary=[])
    refused(folder, tmp_path, InputError, "tokenizer")
    refused(folder, tmp_path, MismatchError, "tokenizer", tokenizer=str(tmp_path / "short"))
    other = published.write(tmp_path / "other", published.embedder())
    assert imported(folder, tmp_path / "w", tokenizer=str(other))["retriever"]


def test_extras_that_a_checkpoint_has_no_use_for(tmp_path):
    folder = published.write(tmp_path / "c", published.embedder())
    refused(folder, tmp_path, ConfigError, "--titles", titles=tmp_path / "t")


class Attack:
    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.canary}",)


def test_weights_that_are_an_attack(tmp_path):
    canary = tmp_path / "canary"
    folder = published.write(tmp_path / "c", {**published.embedder(), "x": Attack(canary)}, pickled=True)  # type: ignore[dict-item]
    refused(folder, tmp_path, InputError, r"asks for \w+\.system")
    for content in ([1, 2], {"a": 1}, {1: torch.ones(1)}, torch.ones(2)):
        torch.save(content, folder / "pytorch_model.bin")
        refused(folder, tmp_path, InputError, "pytorch_model")
    assert not canary.exists()


@pytest.mark.parametrize("pickled", [False, True])
def test_weights_that_are_cut(tmp_path, pickled: bool):
    folder = published.write(tmp_path / "c", published.embedder(), pickled=pickled)
    path = folder / ("pytorch_model.bin" if pickled else "model.safetensors")
    whole = path.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(folder, tmp_path, InputError, path.name)
    path.unlink()
    refused(folder, tmp_path, InputError, "weights")
    for text in ("", "[]", "{", "[" * 100_000):
        (folder / "config.json").write_text(text)
        refused(folder, tmp_path, InputError, "config")
    refused(tmp_path / "nowhere", tmp_path, InputError, "SOURCE")


def test_other_models_are_no_realm(tmp_path):
    refused(
        published.write(tmp_path / "c", {"bert.x": torch.ones(1)}),
        tmp_path,
        InputError,
        "REALM",
    )
    with zipfile.ZipFile(published.write(tmp_path / "d", {}, pickled=True) / "pytorch_model.bin", "w") as archive:
        archive.writestr("evil.txt", "x")
    refused(tmp_path / "d", tmp_path, InputError, "is refused")


def test_malicious_records_write_nothing(tmp_path, embedded):
    folder, canary = open_qa(tmp_path / "qa", embedded[1]), tmp_path / "canary"
    published.write_records(folder / "block_records.npy", [Attack(canary)] * 6)
    refused(folder, tmp_path, InputError, "system")
    published.write_records(folder / "block_records.npy", [*RECORDS[:5], Attack(canary)])
    with pytest.raises(InputError, match="system"):
        imported(folder, tmp_path / "late")
    assert not canary.exists() and not list((tmp_path / "late").glob("*/v*"))
