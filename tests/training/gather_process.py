"""One of several processes of test_data_parallel.py: its part of an in-batch softmax, and what the exchange made of it.

Usage: python -m tests.training.gather_process FILE, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set
"""

from __future__ import annotations

import sys

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from realmctl.execution import processes
from realmctl.models.in_batch import in_batch_scores, in_batch_softmax
from realmctl.training import data_parallel
from realmctl.training.gradient_buckets import GradientBuckets

ROWS, WIDTH = 6, 5


def towers() -> nn.ModuleDict:
    torch.manual_seed(0)
    towers = {"query": nn.Linear(WIDTH, 4), "block": nn.Linear(WIDTH, 4, bias=False)}
    return nn.ModuleDict({**towers, "last": nn.Linear(WIDTH, 1, bias=False), "idle": nn.Linear(WIDTH, 1)})


def inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, WIDTH, generator=generator), torch.randn(ROWS, WIDTH, generator=generator)


def step() -> dict[str, Tensor]:
    """Loss, accuracy and gradients of this process's rows, once they are exchanged.

    The last process alone computes with one of the modules, and none with another.
    """
    modules, (queries, blocks), share = towers(), inputs(), ROWS // processes.world_size()
    mine = slice(processes.rank() * share, (processes.rank() + 1) * share)
    block_CD = data_parallel.all_gather(modules["block"](blocks[mine]))
    score_BC = in_batch_scores(modules["query"](queries[mine]), block_CD)
    loss, accuracy = in_batch_softmax(score_BC, torch.arange(ROWS)[mine])
    part = loss / 2 / processes.world_size()
    if processes.rank() == processes.world_size() - 1:
        part = part + modules["last"](queries).sum()
    buckets = GradientBuckets(modules, bucket_bytes=64)
    for factor in (1, 2, 3):  # from the second step on the buckets are those that the first one ordered
        modules.zero_grad()
        for last in (False, True):  # two micro-batches, which are summed once
            buckets.start(last)
            (factor * part).backward(retain_graph=True)
        buckets.finish()
    rows = data_parallel.exchange([loss.item(), accuracy.item()])
    means = {name: sum(row[place] for row in rows) / len(rows) for place, name in enumerate(("loss", "accuracy"))}
    anyone = data_parallel.anyone(processes.is_first())
    found = {name: torch.tensor(value) for name, value in {**means, "anyone": float(anyone)}.items()}
    gradients = ((name, parameter.grad) for name, parameter in modules.named_parameters())
    return {**found, **{name: gradient for name, gradient in gradients if gradient is not None}}


if __name__ == "__main__":
    with data_parallel.process_group(torch.device("cpu")):
        save_file(step(), sys.argv[1])
