"""Several processes that train one model, as torchrun starts them: the same steps at the same time, gradients averaged.

Gradients are averaged after the backward pass, as DistributedDataParallel does, so that an objective may be any function of
its modules. Everything here does nothing in a process that is alone.
Legend: B rows of this process, C rows of all processes, D projection.
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
def joined(device: torch.device) -> Iterator[None]:
    """Within the block the processes can exchange tensors: by gloo on CPUs, by nccl on GPUs. Waits for all of them."""
    if processes.count() == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def gathered(rows_BD: Tensor) -> Tensor:
    """The rows of all processes in order of their global numbers, [C, D], with gradient; each must have as many."""
    return _Gather.apply(rows_BD) if dist.is_initialized() else rows_BD  # type: ignore[no-untyped-call]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows_BD: Tensor) -> Tensor:
        parts = [torch.empty_like(rows_BD) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows_BD.contiguous())
        ctx.rows = len(rows_BD)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient_CD: Tensor) -> Tensor:
        """What the losses of all processes ask of this one's rows."""
        summed_CD = gradient_CD.contiguous().clone()
        dist.all_reduce(summed_CD)
        return summed_CD.narrow(0, dist.get_rank() * ctx.rows, ctx.rows)


def average_gradients(modules: nn.Module) -> None:
    """Each gradient becomes the mean over the processes: that of the mean of their losses."""
    if not dist.is_initialized():
        return
    gradients = [parameter.grad for parameter in modules.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    parts = torch.split(flat, [each.numel() for each in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def add_up(numbers: MutableMapping[str, float], device: torch.device) -> None:
    """Each number becomes the sum over the processes, which must have the same names."""
    if dist.is_initialized():
        names = sorted(numbers)
        total = torch.tensor([numbers[name] for name in names], dtype=torch.float64, device=device)
        dist.all_reduce(total)
        numbers.update(zip(names, total.tolist(), strict=True))


def mean_of(value: float, device: torch.device) -> float:
    """The mean over the processes."""
    said = {"": value}
    add_up(said, device)
    return said[""] / processes.count() if dist.is_initialized() else value


def any_of(flag: bool, device: torch.device) -> bool:
    """Whether any process says so."""
    said = {"": float(flag)}
    add_up(said, device)
    return said[""] > 0


def start_alike(modules: nn.Module, step: int, device: torch.device) -> None:
    """Give all processes the first one's weights. Raises InputError unless all stand at the same step."""
    if not dist.is_initialized():
        return
    steps = {"all": float(step)}
    add_up(steps, device)
    if steps["all"] != step * processes.count():
        raise InputError(
            f"process {processes.number()} of {processes.count()} has the checkpoint of step {step}, and others have "
            "another. All of them must see the folder of the run; put it on a disk that they share."
        )
    for tensor in _tensors(modules):
        dist.broadcast(tensor, 0)


def _tensors(modules: nn.Module) -> Iterable[Tensor]:
    return (tensor.detach() for tensor in (*modules.parameters(), *modules.buffers()))
