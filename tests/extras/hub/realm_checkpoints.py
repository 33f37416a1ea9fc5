"""Checkpoints as transformers 4.57.6 writes its REALM classes: the weights of realm_case.py under the names there.

Names and shapes follow modeling_realm.py; `make` takes them apart again so that tests can leave out, add or bend.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, BertModel

from realmctl.artifacts import Artifact
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.models.retriever import Tower
from realmctl.models.span_head import SpanReader
from tests.extras.hub import realm_case as case

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
LETTERS = list("abcdefghijklmnopqrstuvwxyz.")
VOCABULARY = [*WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS), "the"]
CONFIG = {
    **case.CONFIG,
    "model_type": "realm",
    "retriever_proj_size": case.PROJECTION,
    "max_span_width": case.SPAN_WIDTH,
    "reader_beam_size": 2,
    "searcher_beam_size": 4,
    "span_hidden_size": 256,
    "reader_layer_norm_eps": 1e-3,
    "reader_seq_len": 24,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
RECORDS = [b"The cat. The dog.", "caf\u00e9 x".encode(), b"a bc d", b"zz top", b"hello. the end.", b"xyz"]
TITLES = ["cats", "cats", "letters", "band", "", "end"]
TOWER = {
    "norm.": "projection.LayerNorm.",
    "projection.weight": "projection.dense.weight",
    "projection.bias": "projection.dense.bias",
}


def bert_config() -> BertConfig:
    return BertConfig(**case.CONFIG)


def tower() -> Tower:
    built = Tower(BertModel(bert_config()), case.PROJECTION, "pooler").eval()
    case.fill(built, TOWER)
    return built


def mlm() -> BertForMaskedLM:
    built = BertForMaskedLM(bert_config()).eval()
    case.fill(built, {})
    return built


def span_reader() -> SpanReader:
    built = SpanReader(BertModel(bert_config())).eval()
    case.fill(built, {})
    return built


def _named(module: nn.Module, *renames: tuple[str, str]) -> dict[str, Tensor]:
    found = {}
    for name, tensor in module.state_dict().items():
        for old, new in renames:
            name = new + name.removeprefix(old) if name.startswith(old) else name
        found[name] = tensor.clone()
    return found


def _head() -> dict[str, Tensor]:
    """The vocabulary head that embedders and readers carry unused; its decoder is tied to nothing."""
    torch.manual_seed(7)
    found = {name: tensor for name, tensor in _named(mlm()).items() if name.startswith("cls.")}
    return {**found, "cls.predictions.decoder.weight": torch.randn(60, 32)}


def embedder() -> dict[str, Tensor]:
    names = ("bert.", "realm."), ("projection.", "cls.dense."), ("norm.", "cls.LayerNorm.")
    return {**_named(tower(), *names), **_head()}


def scorer() -> dict[str, Tensor]:
    return {
        side + name: tensor.clone() for side in ("embedder.", "query_embedder.") for name, tensor in embedder().items()
    }


def encoder() -> dict[str, Tensor]:
    pooler = {name: tensor for name, tensor in embedder().items() if "pooler" in name}
    return {**_named(mlm(), ("bert.", "realm.")), **pooler}


def reader() -> dict[str, Tensor]:
    names = {
        "head.dense.": "dense_intermediate.",
        "head.norm.": "layer_normalization.",
        "head.output.": "dense_output.",
    }
    renames = [("bert.", "realm."), *((old, "qa_outputs." + new) for old, new in names.items())]
    pooler = {name: torch.zeros_like(tensor) for name, tensor in embedder().items() if "pooler" in name}
    return {**_named(span_reader(), *renames), **_head(), **pooler}


def openqa(rows: Tensor) -> dict[str, Tensor]:
    parts = {"embedder.": embedder(), "reader.": reader()}
    return {"block_emb": rows} | {side + name: tensor for side, part in parts.items() for name, tensor in part.items()}


def write(
    folder: Path,
    tensors: Mapping[str, Tensor],
    *,
    pickled: bool = False,
    vocabulary: list[str] | None = None,
    **config: Any,
) -> Path:
    folder.mkdir(parents=True)
    if pickled:
        torch.save(dict(tensors), folder / "pytorch_model.bin")
    else:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    words = VOCABULARY if vocabulary is None else vocabulary
    if words:
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return folder


def write_records(path: Path, records: list[Any]) -> Path:
    np.save(path, np.array(records, dtype=object), allow_pickle=True)
    return path


def open_qa(folder: Path, rows: np.ndarray, **options: Any) -> Path:
    """An open-QA checkpoint whose index is `rows`, with RECORDS."""
    write(folder, openqa(torch.from_numpy(rows)), **{"pickled": True, **options})
    write_records(folder / "block_records.npy", RECORDS)
    return folder


def titles(folder: Path) -> Path:
    (folder / "titles.txt").write_text("".join(f"{title}\n" for title in TITLES))
    return folder / "titles.txt"


def imported(folder: Path, out: Path, **extras: Any) -> dict[str, Artifact]:
    return import_checkpoint(str(folder), out, ImportExtras(**extras), workers=1)
