"""Rank and world size of this process, as torchrun sets them. A process that runs alone has rank 0 of 1."""

from __future__ import annotations

import os


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
