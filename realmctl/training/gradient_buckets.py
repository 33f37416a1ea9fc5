"""Sums gradients over the processes in buckets, while the backward pass still computes the others.

PyTorch calls a hook when the gradient of a parameter is complete. When all gradients of a bucket are, its sum is started.
No module is wrapped, so an objective stays a plain function of its modules. The loss of a process is its part of the loss of
the whole batch, so gradients are added and not averaged.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

from realmctl.models.precision import to_device

BUCKET_BYTES = 8 * 2**20
"""Buckets of this size give the network work early; benchmarks/processes.md has the measurement."""


class GradientBuckets:
    """The gradients of `modules`. With one process every method returns at once.

    After the first step the buckets follow the order in which its gradients became complete on the first process. All
    processes start the sums in the same order, whatever the order of their own backward pass.
    """

    def __init__(self, modules: nn.Module, bucket_bytes: int = BUCKET_BYTES) -> None:
        self._bytes, self._armed = bucket_bytes, False
        self._parameters = [parameter for parameter in modules.parameters() if parameter.requires_grad]
        self._group = dist.new_group() if dist.is_initialized() else None
        if self._group is None:
            return
        self._number: dict[Tensor, int] = {parameter: number for number, parameter in enumerate(self._parameters)}
        self._ready_order: list[int] | None = []
        self._divide(range(len(self._parameters) - 1, -1, -1))
        for parameter in self._parameters:
            parameter.register_post_accumulate_grad_hook(self._ready)  # type: ignore[no-untyped-call]

    def start(self, last: bool) -> None:
        """Call it before each backward pass. `last`: it is the last one of this step, so its gradients are sent."""
        self._armed = last and self._group is not None

    def finish(self) -> None:
        """Send what is left and wait. Every process must call it once a step, also without a backward pass.

        A parameter then has the sum of its gradients over all processes. It has none if no process has one.
        """
        if self._group is None:
            return
        self._armed = False
        while self._next < len(self._buckets):
            self._send()
        for numbers, flat, work in self._sent:
            work.wait()
            self._copy_back(numbers, flat)
        order, self._ready_order = self._ready_order, None
        if order is not None:
            self._divide(self._order_of_first(order))
        else:
            self._begin()

    def _divide(self, order: range | list[int]) -> None:
        """Make buckets of at most `bucket_bytes`, each of parameters of one dtype on one device."""
        self._buckets: list[list[int]] = []
        size = 0
        for number in order:
            parameter = self._parameters[number]
            before = self._parameters[self._buckets[-1][-1]] if self._buckets else None
            alike = before is not None and (before.dtype, before.device) == (parameter.dtype, parameter.device)
            size += parameter.numel() * parameter.element_size()
            if not alike or size > self._bytes:
                self._buckets.append([])
                size = parameter.numel() * parameter.element_size()
            self._buckets[-1].append(number)
        self._bucket_of = {number: place for place, bucket in enumerate(self._buckets) for number in bucket}
        self._begin()

    def _begin(self) -> None:
        self._missing, self._next = [len(bucket) for bucket in self._buckets], 0
        self._sent: list[tuple[list[int], Tensor, dist.Work]] = []

    def _order_of_first(self, ready: list[int]) -> list[int]:
        """The order of the first process. Parameters without a gradient come last, so that no bucket waits for them."""
        absent = [number for number in range(len(self._parameters)) if number not in set(ready)]
        device = self._parameters[0].device
        order = torch.tensor([*ready, *absent], dtype=torch.int64, device=device)
        dist.broadcast(order, 0, group=self._group)
        return [int(number) for number in order.tolist()]

    def _ready(self, parameter: Tensor) -> None:
        if not self._armed:
            return
        number = self._number[parameter]
        if self._ready_order is not None:
            self._ready_order.append(number)
        self._missing[self._bucket_of[number]] -= 1
        while self._next < len(self._buckets) and self._missing[self._next] == 0:
            self._send()

    def _send(self) -> None:
        """Start the sum of the next bucket: its gradients, then for each parameter the number of processes that have one."""
        numbers = self._buckets[self._next]
        self._next += 1
        parts, present = [], []
        for number in numbers:
            gradient = self._parameters[number].grad
            present.append(float(gradient is not None))
            parts.append(torch.zeros_like(self._parameters[number]) if gradient is None else gradient)
        counts = to_device(torch.tensor(present, dtype=parts[0].dtype), parts[0].device)
        flat = torch.cat([*(part.detach().flatten() for part in parts), counts])
        self._sent.append((numbers, flat, dist.all_reduce(flat, group=self._group, async_op=True)))

    def _copy_back(self, numbers: list[int], flat: Tensor) -> None:
        sizes = [self._parameters[number].numel() for number in numbers]
        *sums, counts = torch.split(flat, [*sizes, len(numbers)])
        for number, summed, count in zip(numbers, sums, counts.tolist(), strict=True):
            parameter = self._parameters[number]
            if not count:
                continue
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(summed.view_as(parameter))
