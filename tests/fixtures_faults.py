"""Faults on purpose: a process that dies, or a disk that fails, at the k-th call that touches the file system."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CALLS = [
    (os, "fsync"),
    (os, "link"),
    (os, "ftruncate"),
    (os, "pwrite"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "unlink"),
    (Path, "chmod"),
    (Path, "write_text"),
    (Path, "write_bytes"),
    (shutil, "rmtree"),
]


class Died(BaseException):
    """The process was killed: nothing that would clean up afterwards runs."""


class Faults:
    """Counts the calls, and from the k-th on (or at the k-th alone) raises instead."""

    def __init__(self, at: int, error: Callable[[], BaseException], lasting: bool) -> None:
        self.at, self.error, self.lasting, self.calls = at, error, lasting, 0

    @property
    def struck(self) -> bool:
        return self.calls > self.at

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number == self.at or (self.lasting and number > self.at):
                raise self.error()
            return function(*args, **kwargs)

        return counted


@contextmanager
def faults(at: int, error: Callable[[], BaseException], *, lasting: bool) -> Iterator[Faults]:
    """Within the block, the call numbered `at` (and, if `lasting`, all later ones) raises `error()`."""
    injected = Faults(at, error, lasting)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in CALLS:
            patch.setattr(owner, name, injected.wrap(getattr(owner, name)))
        yield injected
