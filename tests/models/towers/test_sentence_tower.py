"""The tower of imported encoders: saved and loaded, and refused where its files were changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from realmctl.errors import InputError
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.inputs import TokenBatch
from realmctl.models.retriever import Retriever
from realmctl.models.towers.head_steps import HeadStep, steps_of
from realmctl.models.towers.layout import InputLayout
from realmctl.models.towers.sentence_tower import SentenceTower

STEPS = (HeadStep("dense", 6, False, "gelu"), HeadStep("layer-norm", 6), HeadStep("dense", 4), HeadStep("normalize", 4))


def saved(mlm: BertForMaskedLM, folder: Path, **values: Any) -> Retriever:
    tower = SentenceTower(mlm.bert, values.pop("pooling", "mean"), STEPS, 9.0).eval()
    retriever = Retriever(tower, tower, query_length=12, block_length=24, pooling=tower.pooling, **values)
    retriever.save(folder)
    return retriever


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_a_saved_tower_is_loaded_with_its_vectors(mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path, pooling):
    retriever = saved(mlm, tmp_path, pooling=pooling, layout=InputLayout("joined"))
    loaded = Retriever.load(tmp_path)
    assert torch.equal(loaded.embed_blocks(batch), retriever.embed_blocks(batch))
    assert loaded.embed_queries(batch).norm(dim=1).tolist() == pytest.approx([3.0] * len(batch), abs=1e-5)
    assert (loaded.projection, loaded.layout, loaded.towers) == (4, InputLayout("joined"), "shared")


def test_gradients_reach_the_head_and_the_encoder_and_not_the_scale(
    mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path
):
    tower = saved(mlm, tmp_path).query_tower
    tower.embed(batch)[:, 0].sum().backward()
    without = {name for name, parameter in tower.named_parameters() if parameter.grad is None}
    assert not without and "scale" not in dict(tower.named_parameters()) and "scale" in tower.state_dict()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"head": [{"kind": "normalize", "width": 3}]}, "width"),
        ({"head": [{"kind": "dense", "width": 5}]}, "tensor"),
        ({"head": [{"kind": "code", "width": 4}]}, "unknown"),
        ({"head": [{"kind": "dense", "width": 10**12}]}, "width"),
        ({"head": "normalize"}, "head"),
        ({"head": [{"kind": "dense"}]}, "malformed"),
        ({"layout": {"blocks": "pair"}}, "layout"),
    ],
)
def test_a_changed_description_is_refused(mlm: BertForMaskedLM, tmp_path: Path, change: dict[str, Any], says: str):
    saved(mlm, tmp_path)
    path = tmp_path / "retriever.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=says):
        Retriever.load(tmp_path)


def test_a_changed_scale_is_noticed(mlm: BertForMaskedLM, tmp_path: Path):
    saved(mlm, tmp_path)
    from safetensors.torch import load_file, save_file

    path = tmp_path / "block" / "projection.safetensors"
    save_file({**load_file(path), "scale": torch.tensor(2.0)}, path)
    with pytest.raises(InputError, match="changed after they were saved"):
        Retriever.load(tmp_path)


def test_steps_are_read_back():
    assert steps_of([vars(step) for step in STEPS], 16) == STEPS
