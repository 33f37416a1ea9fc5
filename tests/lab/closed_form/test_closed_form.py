"""Starts without training, through the stages that offer them."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.lab.closed_form import closed_form
from realmctl.lab.closed_form.closed_form import Pca
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.encoder import hidden_states
from realmctl.models.families.known import mlm_logits
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.models.towers.pooled_bert import PooledBert
from realmctl.pipeline import planning
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.settings.retriever import RetrieverTrainingSettings
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from tests.fixtures.chain import metrics_of
from tests.fixtures.parabola import writer

START = {"bert": "scratch:L1-H16", "steps": 0, "pooling": "mean", "projection_init": "pca", "projection": 8}


def packed_blocks(chain, length=288):
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    rows = range(len(corpus))
    return collator.block([corpus.title(row) for row in rows], [corpus.tokens(row) for row in rows], length)


def test_the_projection_is_the_pca_of_the_pooled_blocks(chain, tmp_path):
    made = IctInit(blocks=chain.blocks, **START, scale=20.0, precision="fp32").make(tmp_path / "retriever")
    assert made.metrics["steps"] == 0 and not made.has("metrics.jsonl")
    retriever = Retriever.load(made.path)
    with torch.no_grad():
        pooled = retriever.query_tower.pool(packed_blocks(chain)).double().numpy()
    _, _, expected = np.linalg.svd(pooled - pooled.mean(0), full_matrices=False)
    weight = retriever.query_tower.projection.weight.detach().double().numpy()
    np.testing.assert_allclose(np.abs((weight * expected[:8]).sum(1)), 1.0, atol=1e-4)
    assert json.loads(made.file("retriever.json").read_text())["start"] == {"init": "pca", "scale": 20.0}


def test_embed_stores_these_vectors(chain, tmp_path):
    made = IctInit(blocks=chain.blocks, **START, scale=20.0).make(tmp_path / "retriever")
    vectors = np.load(
        Embed(blocks=chain.blocks, retriever=made, precision="fp32").make(tmp_path / "e").file("embeddings.npy")
    )
    np.testing.assert_allclose((vectors**2).sum(1), 20.0, rtol=1e-3)
    with torch.no_grad():
        expected = Retriever.load(made.path).embed_blocks(packed_blocks(chain))
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_the_same_seed_gives_the_same_start_and_a_sample_follows_the_seed(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(closed_form, "PCA_BLOCKS", 20)
    encoder = {"encoder": chain.encoder, "bert": None}
    first, again, other = (
        IctInit(blocks=chain.blocks, **{**START, **encoder, "seed": seed}).make(tmp_path / name)
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert first.content == again.content != other.content


def test_both_towers_get_it(chain, tmp_path):
    retriever = Retriever.load(
        IctInit(blocks=chain.blocks, **{**START, "towers": "separate"}).make(chain.folder / "separate").path
    )
    assert torch.equal(retriever.query_tower.projection.weight, retriever.block_tower.projection.weight)
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    before = retriever.query_tower.projection.weight.clone()
    settings = RetrieverTrainingSettings(blocks=chain.blocks, encoder=None, device="cpu")
    Pca().fit(retriever, corpus, collator, settings, writer(tmp_path))
    assert torch.equal(retriever.query_tower.projection.weight, before)


def test_an_interrupted_start_keeps_its_vectors(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(closed_form, "BATCH", 7)
    whole = IctInit(blocks=chain.blocks, **START).make(tmp_path / "whole")
    pool, pooled = PooledBert.pool, []

    def pool_until(tower, blocks):
        if len(pooled) == 3:
            raise KeyboardInterrupt
        pooled.append(len(blocks.ids_BL))
        return pool(tower, blocks)

    with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
        interrupted.setattr(PooledBert, "pool", pool_until)
        IctInit(blocks=chain.blocks, **START).make(tmp_path / "r")
    rest = []
    monkeypatch.setattr(
        PooledBert, "pool", lambda tower, blocks: rest.append(len(blocks.ids_BL)) or pool(tower, blocks)
    )
    assert IctInit(blocks=chain.blocks, **START).make(tmp_path / "r").content == whole.content
    assert sum(pooled) + sum(rest) == len(Corpus(chain.blocks))


@pytest.mark.parametrize("steps", [0, 5])
def test_a_dry_run_embeds_a_sample_and_says_how_long_all_take(chain, tmp_path, monkeypatch, steps):
    monkeypatch.setattr(closed_form, "BATCH", 4)
    monkeypatch.setattr(closed_form, "TRIAL_SECONDS", 0.0)
    pool, pooled = PooledBert.pool, []

    def slow(tower, blocks):
        pooled.append(len(blocks.ids_BL))
        clock[0] += 100.0
        return pool(tower, blocks)

    clock = [time.monotonic()]
    monkeypatch.setattr(closed_form.time, "monotonic", lambda: clock[0])
    with monkeypatch.context() as measuring:
        measuring.setattr(PooledBert, "pool", slow)
        stage = IctInit(blocks=chain.blocks, **{**START, "scale": 20.0, "steps": steps, "batch_size": 8})
        found = planning.plan(stage, tmp_path / "r", measure=True)["estimate"]
    batches = -(-len(Corpus(chain.blocks)) // 4)
    assert pooled[0] == 4 and found["seconds"] > 100 * batches - 99
    if not steps:
        assert pooled == [4] and found["seconds"] < 100 * batches + 99


def test_ict_goes_on_from_that_start(chain, tmp_path):
    settings = {**START, "scale": 20.0, "batch_size": 8, "lr": 1e-5, "precision": "fp32"}
    start = Retriever.load(IctInit(blocks=chain.blocks, **settings).make(tmp_path / "start").path)
    made = IctInit(blocks=chain.blocks, **{**settings, "steps": 2}).make(tmp_path / "trained")
    assert len(metrics_of(made)) == 2
    trained = Retriever.load(made.path)
    assert trained.start == start.start
    moved = (trained.query_tower.projection.weight - start.query_tower.projection.weight).abs().max()
    assert 0 < moved < 1e-4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"projection": 17}, "16.*17"),
        ({"scale": 0.0}, "--scale 0"),
        ({"scale": float("inf")}, "--scale: inf"),
        ({"steps": -1}, "--steps"),
        ({"seed": -1}, "--seed"),
    ],
)
def test_a_start_that_cannot_work_is_refused(chain, tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        IctInit(blocks=chain.blocks, **{**START, **settings}).make(tmp_path / "made")


def test_a_ridge_head_decodes_what_a_random_one_does_not(chain, tmp_path):
    made = MlmInit(
        blocks=chain.blocks, bert="scratch:L1-H32", head_init="ridge", steps=0, length=64, precision="fp32"
    ).make(tmp_path / "encoder")
    mlm, has_head = load_masked_lm(made.path)
    assert has_head and made.metrics["steps"] == 0
    packed = packed_blocks(chain)
    with torch.no_grad():
        right = (
            (mlm_logits(mlm, hidden_states(mlm.bert, packed)).argmax(2) == packed.ids_BL)[packed.mask_BL].float().mean()
        )
    commonest = packed.ids_BL[packed.mask_BL].bincount().max() / packed.mask_BL.sum()
    assert right > 1.5 * commonest and made.metrics["decoded_at_start"] > 1.5 * commonest


def test_training_goes_on_from_a_ridge_head(chain, tmp_path):
    settings = {"blocks": chain.blocks, "bert": str(chain.encoder.path), "head_init": "ridge", "length": 64}
    start = MlmInit(**settings, steps=0).make(tmp_path / "start")
    trained = MlmInit(**settings, steps=1, batch_size=4, lr=1e-6).make(tmp_path / "trained")
    before, after = (load_masked_lm(artifact.path)[0].cls.state_dict() for artifact in (start, trained))
    for name, tensor in before.items():
        assert_close(after[name], tensor, atol=1e-4, rtol=0)
    old = load_masked_lm(open_artifact(chain.encoder.path).path)[0].cls.state_dict()
    assert (old["predictions.bias"] - before["predictions.bias"]).abs().max() > 1


def test_no_steps_need_a_fitted_head(chain, tmp_path):
    with pytest.raises(ConfigError, match="--steps 0"):
        MlmInit(blocks=chain.blocks, steps=0).make(tmp_path / "encoder")
