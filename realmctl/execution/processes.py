"""Which of the processes that torchrun started this one is. Alone, it is the first of one."""

from __future__ import annotations

import os


def count() -> int:
    """How many train together."""
    return int(os.environ["WORLD_SIZE"]) if "RANK" in os.environ and "WORLD_SIZE" in os.environ else 1


def number() -> int:
    """This one's global number, from 0."""
    return int(os.environ["RANK"]) if count() > 1 else 0


def local() -> int:
    """Its number on this machine: which of the machine's devices it takes."""
    return int(os.environ.get("LOCAL_RANK", "0")) if count() > 1 else 0


def first() -> bool:
    """Whether it is the one that writes artifacts, checkpoints and logs."""
    return number() == 0
