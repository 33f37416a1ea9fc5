"""Data-parallel training under torchrun: every process takes the same steps on its share of the batch.

Gradients are all-reduced to their mean after the backward pass, as DistributedDataParallel does, so an objective may be any
function of its modules. Every function here does nothing, or returns its input, when there is one process.
Legend: B rows of this process, C rows of all processes (in order of rank), D projection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from realmctl.errors import InputError
from realmctl.execution import processes


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Within the block the processes can exchange tensors, through gloo on CPUs and nccl on GPUs. Waits for all of them."""
    if processes.world_size() == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def all_gather(rows_BD: Tensor) -> Tensor:
    """Return the rows of all processes in order of rank, [C, D], with gradient. Every process must have B rows."""
    return _AllGather.apply(rows_BD) if dist.is_initialized() else rows_BD  # type: ignore[no-untyped-call]


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows_BD: Tensor) -> Tensor:
        parts = [torch.empty_like(rows_BD) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows_BD.contiguous())
        ctx.rows = len(rows_BD)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient_CD: Tensor) -> Tensor:
        """The sum over all processes of their gradients with respect to the rows of this process, [B, D]."""
        summed_CD = gradient_CD.contiguous().clone()
        dist.all_reduce(summed_CD)
        return summed_CD.narrow(0, dist.get_rank() * ctx.rows, ctx.rows)


def all_reduce_gradients(modules: nn.Module) -> None:
    """Replace each gradient by its mean over the processes, which is the gradient of the mean loss."""
    if not dist.is_initialized():
        return
    gradients = [parameter.grad for parameter in modules.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    parts = torch.split(flat, [each.numel() for each in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def all_reduce_sums(numbers: MutableMapping[str, float], device: torch.device) -> None:
    """Replace each number by its sum over the processes, which must all have the same names."""
    if dist.is_initialized():
        names = sorted(numbers)
        total = torch.tensor([numbers[name] for name in names], dtype=torch.float64, device=device)
        dist.all_reduce(total)
        numbers.update(zip(names, total.tolist(), strict=True))


def all_reduce_mean(value: float, device: torch.device) -> float:
    """Return the mean of the value over the processes."""
    numbers = {"": value}
    all_reduce_sums(numbers, device)
    return numbers[""] / processes.world_size() if dist.is_initialized() else value


def all_reduce_any(flag: bool, device: torch.device) -> bool:
    """Return whether the flag is set in any process."""
    numbers = {"": float(flag)}
    all_reduce_sums(numbers, device)
    return numbers[""] > 0


def broadcast_number(value: int, device: torch.device) -> int:
    """Return the value of the process of rank 0."""
    numbers = {"": float(value if processes.is_first() else 0)}
    all_reduce_sums(numbers, device)
    return int(numbers[""])


def broadcast_weights(modules: nn.Module, step: int, device: torch.device) -> None:
    """Give all processes the weights of rank 0.

    Raises:
        InputError: The processes have checkpoints of different steps.
    """
    if not dist.is_initialized():
        return
    steps = {"all": float(step)}
    all_reduce_sums(steps, device)
    if steps["all"] != step * processes.world_size():
        raise InputError(
            f"process {processes.rank()} of {processes.world_size()} has the checkpoint of step {step}, and others have "
            "another. All of them must see the folder of the run; put it on a disk that they share."
        )
    for tensor in _tensors(modules):
        dist.broadcast(tensor, 0)


def _tensors(modules: nn.Module) -> Iterable[Tensor]:
    return (tensor.detach() for tensor in (*modules.parameters(), *modules.buffers()))
