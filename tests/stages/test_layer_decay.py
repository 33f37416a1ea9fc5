"""`--layer-decay` of `pretrain` and `finetune`: the reader's lower layers move less, its upper parts as much as without."""

from __future__ import annotations

import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from realmctl.artifacts import open_artifact
from realmctl.cli.app import build

FAST = ("--steps", "3", "--batch-size", "2", "--warmup", "0", "--lr", "1e-3")
LOWEST, HIGHEST = "bert.embeddings.position_embeddings.weight", "bert.encoder.layer.{last}.output.dense.weight"


def commands(chain):
    """{name: command line} of a stage that trains a reader from `chain.encoder`."""
    dense = ("--retriever", chain.retriever.path, "--index", chain.index.path)
    start = ("--blocks", chain.blocks.path, "--encoder", chain.encoder.path)
    asked = ("--questions", chain.questions, "--reader-length", "40")
    beams = ("--retriever-beam", "8", "--reader-beam", "2")
    return {
        "pretrain": (
            "pretrain",
            *start,
            *dense,
            "--spans",
            chain.spans.path,
            "--refresh",
            "never",
            "--candidates",
            "3",
        ),
        "finetune": ("finetune", *start, *dense, *asked, *beams),
        "closed-book": ("finetune", *start, *asked, "--retrieval", "none"),
    }


def weights(path):
    """Weights of a reader or encoder, whose names do not start with the same prefix."""
    return {
        name if name.startswith("bert.") else f"bert.{name}": value
        for name, value in load_file(path / "model.safetensors").items()
    }


@pytest.mark.parametrize("name", ["pretrain", "finetune", "closed-book"])
def test_the_embeddings_move_less_and_the_last_layer_as_much(chain, tmp_path, name):
    before = weights(chain.encoder.path)
    last = max(int(key.split(".")[3]) for key in before if key.startswith("bert.encoder.layer."))
    names = LOWEST, HIGHEST.format(last=last)
    moved = {}
    for decay in ("1", "0.1"):
        command = [
            str(word) for word in (*commands(chain)[name], *FAST, "--layer-decay", decay, "--out", tmp_path / decay)
        ]
        result = CliRunner().invoke(build(command[0]), command)
        assert result.exit_code == 0, result.output
        after = weights(open_artifact(result.stdout.strip()).part("reader").path)
        moved[decay] = [abs(after[key] - before[key]).max() for key in names]
    assert 0 < moved["0.1"][0] < 0.2 * moved["1"][0]
    assert moved["0.1"][1] > 0.8 * moved["1"][1]


@pytest.mark.parametrize("name", ["pretrain", "finetune"])
@pytest.mark.parametrize("wrong", ["0", "1.5"])
def test_a_factor_that_is_none_is_refused(chain, tmp_path, name, wrong):
    command = [str(word) for word in (*commands(chain)[name], "--layer-decay", wrong, "--out", tmp_path / "wrong")]
    result = CliRunner().invoke(build(command[0]), command)
    assert result.exit_code == 2 and "--layer-decay" in result.stderr and "above 0 and at most 1" in result.stderr
