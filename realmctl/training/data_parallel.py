"""The processes that torchrun starts: their group, and what they exchange.

Tensors with gradient are exchanged on the device of training, through nccl on GPUs and gloo on CPUs. Everything else is
exchanged on the CPU, as numbers or as JSON. Nothing is pickled.

Every function here does nothing, or returns its input, when there is one process.
Legend: B rows of this process, C rows of all processes (in order of rank), D projection.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from realmctl.errors import InputError, ResourceError, StoppedBySignal, as_realmctl_error, error_of
from realmctl.execution import processes
from realmctl.models.precision import pick_device

LONGEST_WAIT = timedelta(days=2)
"""Processes may wait for each other as long as the first one takes to verify inputs and to refresh an index."""
FAILURE = "realmctl/failure"
CONNECTION_MESSAGES = ("gloo", "nccl", "connection", "broken pipe", "socket", "timed out")


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Within the block the processes can exchange tensors. Within another such block this does nothing.

    Raises:
        RealmctlError: Another process failed. The error has its exit code, and names it where it left a message.
    """
    if processes.world_size() == 1 or dist.is_initialized():
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    shared, rank, world_size = next(iter(rendezvous("env://", timeout=LONGEST_WAIT)))
    store = PrefixStore(_name_of_this_start(shared, rank, world_size), shared)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=LONGEST_WAIT)
    try:
        yield
    except (Exception, StoppedBySignal) as error:
        if _is_lost_connection(error):
            raise _failure_of_another(store) from error
        known = error if isinstance(error, StoppedBySignal) else as_realmctl_error(error)
        report = {"rank": rank, "code": known.exit_code if known else 1, "message": str(known or repr(error))}
        store.compare_set(FAILURE, "", json.dumps(report))
        raise
    finally:  # after a failure too: PyTorch 2.13 aborts a process that ends with a broken group of gloo
        dist.destroy_process_group()


@contextmanager
def together(device: str) -> Iterator[Callable[[Any], list[Any]]]:
    """Yield `exchange`, within the group of the processes that train on this device (`pick_device`)."""
    with process_group(pick_device(device)):
        yield exchange


def _name_of_this_start(store: Store, rank: int, world_size: int) -> str:
    """Return one new name, the same in all processes.

    torchrun keeps its store when it starts processes again, with the addresses of the dead ones. Under a new name nobody reads
    those. A process may read an old greeting here, so the first one answers until every new greeting has been heard.
    """
    own = secrets.token_hex(8)
    if rank:
        store.set(f"hello/{rank}", own)
        name = str(store.get(f"answer/{own}").decode())
        store.set(f"heard/{name}/{rank}", "yes")
        return name
    waiting = set(range(1, world_size))
    while waiting:
        for other in sorted(waiting):
            if store.check([f"heard/{own}/{other}"]):
                waiting.discard(other)
            elif store.check([f"hello/{other}"]):
                store.set(f"answer/{store.get(f'hello/{other}').decode()}", own)
        time.sleep(0.01)
    return own


def _is_lost_connection(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(message in text for message in CONNECTION_MESSAGES)


def _failure_of_another(store: Any) -> Exception:
    try:
        report = json.loads(store.get(FAILURE)) if store.check([FAILURE]) else None
    except RuntimeError:  # the store has gone too
        report = None
    if report is None:
        return ResourceError(
            f"{processes.name()} lost the connection to another one, which ended without a message: it was killed, memory "
            "ran out, or its host is gone. Run the same command again; it continues from the last checkpoint."
        )
    return error_of(report["code"], f"process {report['rank']} of {processes.world_size()} failed: {report['message']}")


def exchange(value: object) -> list[Any]:
    """Return the JSON values of all processes in order of rank."""
    if not dist.is_initialized():
        return [value]
    data = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
    return [json.loads(each.tobytes()) for each in gather_rows(data)]


def from_first(value: object) -> Any:
    """Return the JSON value of the first process. The others may pass anything."""
    return exchange(value if processes.is_first() else None)[0]


def anyone(flag: bool) -> bool:
    """Return whether the flag is set in any process."""
    return total(int(flag)) > 0


def total(count: int) -> int:
    """Return the sum of a number over the processes."""
    if not dist.is_initialized():
        return count
    number = torch.tensor(count, dtype=torch.int64)
    dist.all_reduce(number)
    return int(number)


def gather_rows(rows: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the arrays of all processes in order of rank. They may differ in the number of rows, which may be 0."""
    if not dist.is_initialized():
        return [rows]
    counts = [torch.zeros((), dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, torch.tensor(len(rows)))
    longest = max(int(count) for count in counts)
    padded = np.zeros((longest, *rows.shape[1:]), dtype=rows.dtype)
    padded[: len(rows)] = rows
    parts = [torch.empty(padded.shape, dtype=torch.from_numpy(padded).dtype) for _ in counts]
    if padded.size:
        dist.all_gather(parts, torch.from_numpy(padded))
    return [part.numpy()[: int(count)] for part, count in zip(parts, counts, strict=True)]


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


def broadcast_weights(modules: nn.Module, step: int) -> None:
    """Give all processes the weights of rank 0.

    Raises:
        InputError: The processes have checkpoints of different steps.
    """
    if not dist.is_initialized():
        return
    steps = exchange(step)
    if len(set(steps)) > 1:
        found = ", ".join(f"process {rank} that of step {step}" for rank, step in enumerate(steps))
        raise InputError(
            f"The processes loaded different checkpoints: {found}. All of them must see the folder of the run. Put it on a "
            "disk that they share."
        )
    for tensor in _tensors(modules):
        dist.broadcast(tensor, 0)


def _tensors(modules: nn.Module) -> Iterable[Tensor]:
    return (tensor.detach() for tensor in (*modules.parameters(), *modules.buffers()))
