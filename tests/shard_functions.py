"""Functions for worker processes: importable, as `map_units` wants them."""

from __future__ import annotations

import os
import time

_offset = 0


def start(offset: int) -> None:
    global _offset
    _offset = offset


def failing_start(offset: int) -> None:
    raise ValueError(f"start {offset}")


def square(unit: int) -> int:
    time.sleep((unit * 7 % 5) / 500)
    return unit * unit + _offset


def die_at_seven(unit: int) -> int:
    if unit == 7:
        os._exit(9)
    return unit


def fail_at_seven(unit: int) -> int:
    if unit == 7:
        raise LookupError("seven")
    return unit


def process(unit: int) -> int:
    return os.getpid()


def sleep(unit: int) -> int:
    time.sleep(0 if unit == 0 else 60)
    return os.getpid()
