"""Rank and world size of this process, as torchrun sets them. A process that runs alone has rank 0 of 1."""

from __future__ import annotations

import os

from realmctl.errors import ConfigError


def world_size() -> int:
    """Return the number of processes that train together."""
    return int(os.environ["WORLD_SIZE"]) if "RANK" in os.environ and "WORLD_SIZE" in os.environ else 1


def rank() -> int:
    """Return the number of this process among all of them, from 0."""
    return int(os.environ["RANK"]) if world_size() > 1 else 0


def local_rank() -> int:
    """Return the number of this process on its machine, from 0. It decides which of the machine's GPUs it uses."""
    return int(os.environ.get("LOCAL_RANK", "0")) if world_size() > 1 else 0


def is_first() -> bool:
    """Return whether this process has rank 0, which writes artifacts, checkpoints and logs."""
    return rank() == 0


def name() -> str:
    """Return the name of this process in messages: "process 1 of 4"."""
    return f"process {rank()} of {world_size()}"


def share(count: int, what: str) -> slice:
    """Return the places in a batch of `count` that this process computes.

    Args:
        count: Number of examples in the batch.
        what: Name of the examples, for the message.

    Raises:
        ConfigError: The batch cannot be divided among the processes.
    """
    size, left_over = divmod(count, world_size())
    if left_over or not size:
        raise ConfigError(
            f"{count} {what} cannot be divided among {world_size()} processes. Use another --batch-size, a multiple of "
            f"{world_size()}."
        )
    return slice(rank() * size, (rank() + 1) * size)
