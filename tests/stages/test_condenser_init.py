"""`realmctl condenser-init`: what it makes, how runs follow each other, what it refuses."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from realmctl.artifacts import verify
from realmctl.errors import ConfigError, InputError, MismatchError
from stages.condenser_init import CondenserInit
from stages.ict_init import IctInit
from tests.fixtures.chain import Stopped, metrics_of, stop_at

SMALL = {"bert": "scratch:L2-H16", "steps": 3, "batch_size": 4, "length": 24, "checkpoint_every": 1, "lr": 1e-2}


@pytest.fixture(scope="module")
def condenser(chain):
    return CondenserInit(blocks=chain.blocks, **SMALL).make(chain.folder / "condenser")


def test_it_makes_an_encoder_with_its_head_beside_it(chain, condenser):
    verify(condenser)
    assert condenser.kind == "encoder"
    assert json.loads(condenser.file("encoder.json").read_text()) == {
        "pooling": "cls",
        "skip_from": 1,
        "head_layers": 2,
    }
    assert {name.split(".")[0] for name in load_file(condenser.file("condenser_head.safetensors"))} == {"c_head"}
    lines = metrics_of(condenser)
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert all(line["loss"] == pytest.approx(line["head_loss"] + line["late_loss"], abs=1e-5) for line in lines)


def test_later_stages_take_it_as_they_take_a_bert(chain, condenser):
    retriever = IctInit(
        blocks=chain.blocks, encoder=condenser, steps=1, batch_size=4, projection=8, pooling="cls"
    ).make(chain.folder / "condenser-retriever")
    assert retriever.lineage["encoder"] == condenser.content


def test_the_chain_of_the_authors_carries_the_head_along(chain, condenser, capsys):
    settings = {**SMALL, "bert": None, "steps": 1, "lr": 1e-9}
    co = CondenserInit(blocks=chain.blocks, encoder=condenser, contrastive=True, cache_chunk=3, **settings).make(
        chain.folder / "cocondenser"
    )
    assert "going on with the Condenser head" in capsys.readouterr().err
    before, after = (load_file(made.file("condenser_head.safetensors")) for made in (condenser, co))
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, atol=1e-6, rtol=1e-5)
    assert {"head_loss", "late_loss", "contrastive_loss", "accuracy"} <= metrics_of(co)[0].keys()


def test_a_fresh_head_on_a_trained_backbone_is_warned_about(chain, capsys):
    settings = {**SMALL, "bert": None, "steps": 1}
    CondenserInit(blocks=chain.blocks, encoder=chain.encoder, skip_from=0, **settings).make(chain.folder / "fresh-head")
    assert "no Condenser head" in capsys.readouterr().err


@pytest.mark.parametrize("contrastive", [False, True])
def test_a_killed_run_goes_on_to_the_same_bytes(chain, tmp_path, monkeypatch, one_thread, contrastive):
    stage = CondenserInit(blocks=chain.blocks, contrastive=contrastive, cache_chunk=2 if contrastive else 0, **SMALL)
    whole = stage.make(tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 2)
        with pytest.raises(Stopped):
            stage.make(tmp_path / "again")
    assert stage.make(tmp_path / "again").content == whole.content


def test_a_folder_of_the_public_code_brings_its_head(chain, condenser, tmp_path, capsys):
    folder = tmp_path / "public"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (folder / name).write_bytes(condenser.file(name).read_bytes())
    torch.save(load_file(condenser.file("condenser_head.safetensors")), folder / "model.pt")
    CondenserInit(blocks=chain.blocks, **{**SMALL, "bert": str(folder), "steps": 1}).make(tmp_path / "made")
    assert f"going on with the Condenser head of {folder}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0}, {"batch_size": 0}, {"batch_size": 1, "contrastive": True}, {"mask_rate": 1.0}, {"length": 2},
        {"cache_chunk": 2}, {"micro_batch": 2, "contrastive": True}, {"micro_batch": -1}, {"skip_from": 2}, {"head_layers": 0},
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(chain, tmp_path, wrong):
    with pytest.raises(ConfigError):
        CondenserInit(blocks=chain.blocks, **{**SMALL, **wrong}).make(tmp_path / "made")
    assert not list((tmp_path / "made").glob("v*[0-9]"))


def test_a_head_of_another_width_is_refused(chain, condenser, tmp_path):
    folder = tmp_path / "public"
    folder.mkdir()
    wide = CondenserInit(blocks=chain.blocks, **{**SMALL, "bert": "scratch:L2-H32", "steps": 1}).make(tmp_path / "wide")
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (folder / name).write_bytes(condenser.file(name).read_bytes())
    head = wide.file("condenser_head.safetensors").read_bytes()
    (folder / "condenser_head.safetensors").write_bytes(head)
    with pytest.raises(InputError, match="shape"):
        CondenserInit(blocks=chain.blocks, **{**SMALL, "bert": str(folder)}).make(tmp_path / "made")


def test_a_batch_that_the_processes_cannot_share(chain, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises((ConfigError, MismatchError), match="cannot be shared by 3 processes"):
        CondenserInit(blocks=chain.blocks, **SMALL).make(tmp_path / "made")
