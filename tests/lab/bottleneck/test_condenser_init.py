"""`realmctl condenser-init`: what it makes, how runs follow each other, what it refuses."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from realmctl.artifacts import verify
from realmctl.artifacts.description import describe_encoder
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.lab.bottleneck.condenser_init import CondenserInit
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from tests.fixtures.chain import Stopped, metrics_of, stop_at

SMALL = {"bert": "scratch:L2-H16", "steps": 3, "batch_size": 4, "length": 24, "checkpoint_every": 1, "lr": 1e-2}


def copy_of(artifact, folder):
    """The BERT and the head of an artifact as a plain folder."""
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt", "condenser_head.safetensors"):
        (folder / name).write_bytes(artifact.file(name).read_bytes())
    return folder


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


def ict(chain, **others):
    return IctInit(blocks=chain.blocks, **{"steps": 1, "batch_size": 4, "projection": 8, **others})


def test_later_stages_take_it_as_they_take_a_bert(chain, condenser):
    retriever = ict(chain, encoder=condenser).make(chain.folder / "condenser-retriever")
    assert retriever.lineage["encoder"] == condenser.content
    assert json.loads(retriever.file("retriever.json").read_text())["pooling"] == "cls"
    assert retriever.settings["pooling"] == "cls"


def test_the_pooling_comes_from_the_encoder_unless_it_is_given(chain, condenser, capsys):
    assert ict(chain, encoder=condenser).pooling == ict(chain, bert=str(condenser.path)).pooling == "cls"
    assert ict(chain, encoder=chain.encoder).pooling == ict(chain, bert=str(chain.encoder.path)).pooling == "pooler"
    assert ict(chain).pooling == ict(chain, bert="scratch:L1-H16").pooling == "pooler"
    for pooling, warned in (("pooler", True), ("mean", True), ("cls", False), (None, False)):
        ict(chain, encoder=condenser, pooling=pooling).check()
        assert ("was trained for --pooling cls" in capsys.readouterr().err) is warned
    ict(chain, encoder=chain.encoder, pooling="mean").check()
    assert capsys.readouterr().err == ""


def test_reading_practice_keeps_the_pooling_and_drops_the_head(chain, condenser, tmp_path):
    settings = {"steps": 1, "batch_size": 2, "length": 24}
    practised = MlmInit(blocks=chain.blocks, bert=str(condenser.path), **settings).make(tmp_path / "practised")
    assert ict(chain, encoder=practised).pooling == "cls" and not practised.has("condenser_head.safetensors")
    assert not chain.encoder.has("encoder.json")


def test_a_recipe_without_a_description_is_that_of_a_given_pooler(chain):
    left_out, given = (ict(chain, encoder=chain.encoder, **more).origin() for more in ({}, {"pooling": "pooler"}))
    assert left_out.settings["pooling"] == "pooler" and left_out.recipe == given.recipe


def test_an_id_of_the_hub_is_fetched_before_its_pooling_is_read(chain, condenser, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: str(condenser.path))
    stage = ict(chain, bert="someone/condenser")
    assert stage.pooling is None
    with stage.localised() as local:
        assert local.pooling == "cls" and local.origin().settings["pooling"] == "cls"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"pooling": "max"}', '{"pooling": null}', '{"pooling": []}'])
def test_a_damaged_description_is_refused(chain, condenser, tmp_path, text):
    folder = copy_of(condenser, tmp_path / "folder")
    (folder / "encoder.json").write_text(text)
    with pytest.raises(InputError, match=r"encoder\.json"):
        ict(chain, bert=str(folder))


def test_an_exported_condenser_loads_in_transformers_and_continues_with_its_head(chain, condenser, tmp_path, capsys):
    export = pytest.importorskip("realmctl.extras.hub.exports.hub_export").export
    folder = tmp_path / "exported"
    export(condenser.path, folder)
    backbone = AutoModel.from_pretrained(folder)
    saved = load_file(condenser.file("model.safetensors"))
    torch.testing.assert_close(
        backbone.embeddings.word_embeddings.weight, saved["bert.embeddings.word_embeddings.weight"]
    )
    head = load_file(folder / "condenser_head.safetensors")
    assert "c_head.0.attention.self.query.weight" in head and ict(chain, bert=str(folder)).pooling == "cls"
    settings = {**SMALL, "steps": 1, "contrastive": True}
    from_folder = CondenserInit(blocks=chain.blocks, **{**settings, "bert": str(folder)}).make(tmp_path / "folder")
    assert f"continuing with the Condenser head of {folder}" in capsys.readouterr().err
    from_artifact = CondenserInit(blocks=chain.blocks, encoder=condenser, **{**settings, "bert": None}).make(
        tmp_path / "artifact"
    )
    for name in ("model.safetensors", "condenser_head.safetensors", "encoder.json"):
        assert from_folder.file(name).read_bytes() == from_artifact.file(name).read_bytes()


def test_the_heads_shape_is_that_of_the_encoder_unless_it_is_given(chain, tmp_path):
    settings = {**SMALL, "steps": 1}
    fresh = CondenserInit(blocks=chain.blocks, **{**settings, "bert": "scratch:L6-H16"}).make(tmp_path / "fresh")
    described = describe_encoder(fresh.path)
    assert (described.skip_from, described.head_layers) == (3, 2)  # the middle layer
    first = CondenserInit(blocks=chain.blocks, skip_from=0, head_layers=1, **settings).make(tmp_path / "first")
    settings["bert"] = None
    then = CondenserInit(blocks=chain.blocks, encoder=first, **settings).make(tmp_path / "then")
    assert then.file("encoder.json").read_bytes() == first.file("encoder.json").read_bytes()
    with pytest.raises(InputError, match="lack the tensor"):
        CondenserInit(blocks=chain.blocks, encoder=first, head_layers=2, **settings).make(tmp_path / "deeper")


def test_the_chain_of_the_authors_carries_the_head_along(chain, condenser, capsys):
    settings = {**SMALL, "bert": None, "steps": 1, "lr": 1e-9}
    co = CondenserInit(blocks=chain.blocks, encoder=condenser, contrastive=True, micro_batch=3, **settings).make(
        chain.folder / "cocondenser"
    )
    assert "continuing with the Condenser head" in capsys.readouterr().err
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
    stage = CondenserInit(blocks=chain.blocks, contrastive=contrastive, micro_batch=2 if contrastive else 0, **SMALL)
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
    assert f"continuing with the Condenser head of {folder}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"batch_size": 0},
        {"batch_size": 1, "contrastive": True},
        {"mask_rate": 1.0},
        {"length": 2},
        {"micro_batch": -1},
        {"skip_from": 2},
        {"head_layers": 0},
    ],
)
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
    with pytest.raises((ConfigError, MismatchError), match=r"4 .* 3 "):
        CondenserInit(blocks=chain.blocks, **SMALL).make(tmp_path / "made")
