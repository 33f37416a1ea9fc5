"""Revela: in-batch attention against the formula written out, and a retriever that learns by it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError, InputError
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.revela.attention import InBatch, attend_in_batch, in_batch_logits, similarity
from realmctl.lab.language_models.revela.revela_init import RevelaInit
from stages.chunk import Chunk
from tests.fixtures.chain import Stopped, stop_at
from tests.fixtures.language_models import make_gpt2, make_llama, make_t5

SMALL = {
    "batch_size": 6,
    "blocks_each": 2,
    "steps": 4,
    "warmup": 1,
    "length": 40,
    "checkpoint_every": 2,
    "precision": "fp32",
}


def written_out(query, key, value, mask, similar, scale):
    """The second part of a text's output, one token, head and other text at a time."""
    found = torch.zeros_like(query)
    texts, heads, tokens, _ = query.shape
    for text in range(texts):
        for head in range(heads):
            for token in range(tokens):
                for other in range(texts):
                    seen = [place for place in range(tokens) if mask[other, place]]
                    weights = [
                        math.exp(float(query[text, head, token] @ key[other, head, place]) * scale) for place in seen
                    ]
                    weights = [weight / sum(weights) for weight in weights]
                    values = [value[other, head, place] for place in seen]
                    length = sum(weight * float(each.norm()) for weight, each in zip(weights, values, strict=True))
                    read = sum(weight * each for weight, each in zip(weights, values, strict=True))
                    found[text, head, token] += similar[text, other] * read / (length + 1e-6)
    return found


def test_it_is_the_formula_written_out():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4, 5, 8), torch.randn(3, 2, 5, 8), torch.randn(3, 2, 5, 8)
    mask = torch.ones(3, 5, dtype=torch.long)
    mask[1, 3:] = 0
    similar = similarity(torch.randn(3, 6), torch.randn(3, 6), 0.5)
    assert torch.allclose(similar.sum(1), torch.ones(3)) and not similar.diagonal().any()
    found = attend_in_batch(query, key, value, InBatch(mask, similar), 8**-0.5)
    wide = [each.repeat_interleave(2, dim=1) for each in (key, value)]
    assert torch.allclose(found, written_out(query, *wide, mask, similar, 8**-0.5), atol=1e-5)


def test_the_softmax_leaves_out_the_text_itself():
    torch.manual_seed(0)
    query, block = torch.randn(4, 6), torch.randn(4, 6)
    cosine = torch.nn.functional.cosine_similarity(query[:, None], block[None], dim=-1)
    expected = [[math.exp(float(cosine[i, j]) / 0.1) * (i != j) for j in range(4)] for i in range(4)]
    found = similarity(query, block, 0.1)
    assert torch.allclose(found, torch.tensor([[each / sum(row) for each in row] for row in expected]), atol=1e-6)


@pytest.fixture(params=[make_gpt2, make_llama])
def read(request, tmp_path):
    """The logits of three texts that read each other, for a matrix of similarities."""
    net = load_language_model(request.param(tmp_path / "lm")).net.eval()
    ids = torch.randint(5, 200, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0

    def logits(similar, ids=ids, mask=mask):
        return in_batch_logits(net, ids, mask, similar)

    return net, ids, mask, logits


def test_texts_that_read_nothing_of_each_other_are_read_alone(read):
    net, ids, mask, logits = read
    before = net.config._attn_implementation
    alone = net(input_ids=ids, attention_mask=mask).logits
    assert torch.allclose(logits(torch.zeros(3, 3)), alone, atol=1e-6)
    assert net.config._attn_implementation == before
    assert torch.allclose(net(input_ids=ids, attention_mask=mask).logits, alone, atol=1e-7)


def test_a_text_sees_all_of_another_and_nothing_that_follows_in_itself(read):
    _, ids, _, logits = read
    similar = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    plain = logits(similar)
    later, other, padded = (ids.clone() for _ in range(3))
    later[0, 6], other[2, 6], padded[1, 6] = 9, 9, 9
    assert torch.allclose(logits(similar, ids=later)[0, :6], plain[0, :6], atol=1e-6)
    assert not torch.allclose(logits(similar, ids=other)[0, 0], plain[0, 0], atol=1e-6)
    assert torch.allclose(logits(similar, ids=padded)[2], plain[2], atol=1e-6)


def test_the_gradient_reaches_the_similarities(read):
    *_, logits = read
    similar = torch.full((3, 3), 0.4, dtype=torch.float32, requires_grad=True)
    logits(similar)[0, 3, 7].backward()
    moved = similar.detach().clone()
    moved[0, 2] += 1e-2
    slope = (logits(moved)[0, 3, 7] - logits(2 * similar.detach() - moved)[0, 3, 7]).item() / 2e-2
    assert similar.grad is not None and similar.grad[0, 2].item() == pytest.approx(slope, rel=2e-2, abs=1e-5)
    assert similar.grad[0].any() and not similar.grad[1:].any()


def kept_bytes(net, texts):
    """What is kept until the gradient, where this many texts read each other."""
    ids, kept = torch.randint(5, 200, (texts, 40), generator=torch.Generator().manual_seed(0)), {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    similar = torch.full((texts, texts), 1 / texts, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        in_batch_logits(net, ids, torch.ones_like(ids), similar).sum().backward()
    return sum(kept.values())


def test_memory_grows_as_the_batch_and_not_as_its_square(tmp_path):
    """A batch of 16 blocks with a model of 135 million weights took more than 20 GB while every pair was kept in every layer."""
    net = load_language_model(make_gpt2(tmp_path / "lm")).net.eval()
    assert kept_bytes(net, 16) < 2.5 * kept_bytes(net, 8)


def stage(chain, lm, **more):
    return RevelaInit(**{"blocks": chain.blocks, "retriever": chain.retriever, "lm": str(lm), **SMALL, **more})


@pytest.mark.parametrize("frozen", [False, True])
def test_a_retriever_is_made_and_a_resumed_run_makes_the_same(chain, tmp_path, monkeypatch, frozen):
    given = stage(chain, make_gpt2(tmp_path / "lm"), freeze_lm=frozen)
    whole = given.make(tmp_path / "whole")
    assert whole.kind == "retriever" and whole.content != chain.retriever.content
    assert whole.metrics["documents"] > 1 and 0 <= whole.metrics["same_document"] <= 1
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            given.make(tmp_path / "stopped")
    assert given.make(tmp_path / "stopped").content == whole.content


def test_from_the_command_line(realmctl, chain, tmp_path):
    lm = make_llama(tmp_path / "lm")
    given = ("--blocks", chain.blocks.path, "--retriever", chain.retriever.path, "--lm", lm, "--steps", 1)
    code, out, err = realmctl("revela-init", *given, "--batch-size", 4, "--blocks-each", 2, "--out", "revela")
    assert code == 0, err
    made = open_artifact(out.strip())
    assert made.manifest.sources["lm"][0].name == "lm/" and "loss" in made.metrics
    assert json.loads((made.path / "manifest.json").read_text())["stage"] == "revela-init"


def test_what_cannot_work_is_refused(chain, tmp_path):
    lm = make_gpt2(tmp_path / "lm")
    with pytest.raises(ConfigError, match="read each other, so they are computed at once"):
        stage(chain, lm, micro_batch=2).make(tmp_path / "a")
    with pytest.raises(ConfigError, match="leaves no room for another document"):
        stage(chain, lm, blocks_each=6).make(tmp_path / "b")
    with pytest.raises(InputError, match="reads a source apart"):
        stage(chain, make_t5(tmp_path / "t5")).make(tmp_path / "c")


def test_passages_of_one_source_are_a_document(chain, tmp_path):
    """A corpus in BEIR's layout has a document for each passage, and Revela needs neighbours."""
    rows = [
        {"id": f"{page}#{k}", "title": f"T{page}", "text": f"Block {k} of {page}."}
        for page in range(4)
        for k in range(3)
    ]
    (tmp_path / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    passages = Chunk(
        corpus=(tmp_path / "passages.jsonl",), tokenizer=str(chain.blocks.path), keep_passages=True, workers=1
    ).make(tmp_path / "blocks")
    lm = make_gpt2(tmp_path / "lm")
    with pytest.raises(
        InputError, match=r"has 0 documents of two blocks or more.*use --group-by title or --group-by source"
    ):
        stage(chain, lm, blocks=passages).make(tmp_path / "a")
    for by in ("source", "title"):
        made = stage(chain, lm, blocks=passages, group_by=by, steps=1).make(tmp_path / by)
        assert made.metrics["documents"] == 4


@pytest.mark.slow
def test_it_learns_which_texts_belong_together(realmctl, tmp_path):
    """Documents of random words: a block is foretold by its neighbours alone, which share its words. A fresh retriever learns to read them."""
    rng = np.random.default_rng(0)
    names = ["".join(rng.choice(list("abcdefghij"), 5)) for _ in range(60)]
    with (tmp_path / "documents.jsonl").open("w") as file:
        for number in range(40):
            own = rng.choice(names, 4, replace=False)
            text = " ".join(" ".join(rng.choice(own, 6)).capitalize() + "." for _ in range(12))
            file.write(json.dumps({"id": str(number), "title": "", "text": text}) + "\n")
    lm = make_gpt2(tmp_path / "lm", dropout=0.0, width=64)
    for command in (
        ("chunk", tmp_path / "documents.jsonl", "--tokenizer", "train:200", "--max-wordpieces", 40, "--workers", 1),
        ("ict-init", "--bert", "scratch:L1-H32-A2", "--steps", 0, "--projection", 16, "--pooling", "mean"),
        ("revela-init", "--lm", lm, "--steps", 300, "--batch-size", 8, "--blocks-each", 2, "--lr", "2e-3", "--temperature", 0.1,
         "--length", 64, "--warmup", 20, "--precision", "fp32", "--out", "revela"),
    ):  # fmt: skip
        code, _, err = realmctl(*command)
        assert code == 0, err
    lines = [json.loads(line) for line in open_artifact("revela").file("metrics.jsonl").read_text().splitlines()]
    same = [line["same_document"] for line in lines if "same_document" in line]
    assert sum(same[:20]) / 20 < 0.25 and sum(same[-20:]) / 20 > 0.6
