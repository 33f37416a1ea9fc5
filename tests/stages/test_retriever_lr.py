"""`--retriever-lr` of `pretrain` and `finetune`: the retriever has a rate of its own, and the reader's does not change."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from realmctl.artifacts import open_artifact
from realmctl.cli.app import build

PROJECTION = "*/projection.safetensors"


def commands(chain):
    """{stage: command line} of the stages that train a retriever beside a reader, one or two steps long."""
    common = (
        "--blocks",
        chain.blocks.path,
        "--encoder",
        chain.encoder.path,
        "--retriever",
        chain.retriever.path,
        "--index",
        chain.index.path,
        "--batch-size",
        "2",
        "--lr",
        "1e-4",
    )
    asked = ("--questions", chain.questions, "--reader-length", "40", "--retriever-beam", "8", "--reader-beam", "2")
    return {
        "pretrain": (
            "pretrain",
            *common,
            "--spans",
            chain.spans.path,
            "--refresh",
            "never",
            "--candidates",
            "3",
            "--steps",
            "2",
            "--warmup",
            "1",
        ),
        "finetune": ("finetune", *common, *asked, "--steps", "1", "--warmup", "0"),
    }


def run(command, *more):
    return CliRunner().invoke(build(command[0]), [str(word) for word in (*command, *more)])


@pytest.mark.parametrize("name", ["pretrain", "finetune"])
def test_the_retriever_moves_by_its_own_rate_and_the_reader_as_before(chain, tmp_path, name):
    before = load_file(next(chain.retriever.path.glob(PROJECTION)))
    readers, moved = [], []
    for rate in ("1e-4", "1e-3"):
        result = run(commands(chain)[name], "--retriever-lr", rate, "--out", tmp_path / rate)
        assert result.exit_code == 0, result.output
        model = open_artifact(result.stdout.strip())
        readers.append(load_file(model.part("reader").path / "model.safetensors"))
        after = load_file(next(model.part("retriever").path.glob(PROJECTION)))
        moved.append(max((after[key] - before[key]).abs().max() for key in before))
    assert all(torch.allclose(readers[0][key], readers[1][key], atol=1e-6) for key in readers[0])
    assert moved[1] > 5 * moved[0] > 0


def test_without_the_option_fine_tuning_has_one_rate(chain, tmp_path):
    ends = []
    for more in ((), ("--retriever-lr", "1e-4")):
        result = run(commands(chain)["finetune"], *more, "--out", tmp_path / f"qa{len(more)}")
        assert result.exit_code == 0, result.output
        ends.append(load_file(next(open_artifact(result.stdout.strip()).part("retriever").path.glob(PROJECTION))))
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--retriever-lr", "0"), "above 0"),
        (("--retriever-lr", "1e-4", "--freeze-retriever"), "that is trained"),
    ],
)
def test_a_rate_that_cannot_be_is_refused(chain, tmp_path, more, said):
    result = run(commands(chain)["finetune"], *more, "--out", tmp_path / "qa")
    assert result.exit_code == 2 and "--retriever-lr" in result.stderr and said in result.stderr


def test_a_closed_book_has_no_retriever_to_train(chain, tmp_path):
    closed = (
        "finetune",
        "--blocks",
        chain.blocks.path,
        "--encoder",
        chain.encoder.path,
        "--questions",
        chain.questions,
    )
    result = run(closed, "--retrieval", "none", "--retriever-lr", "1e-4", "--out", tmp_path / "qa")
    assert result.exit_code == 2 and "--retriever-lr" in result.stderr
