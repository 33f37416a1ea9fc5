"""A row of `make bench`: one piece of work, done by realmctl and by its peers on the same input, and the check that both did it.

A file of `benchmarks/rows` has one `ROW` or several in `ROWS`. Its top imports nothing but the standard library, numpy and this file,
because a side may run in an environment without realmctl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Result = NDArray[Any]
Work = Callable[[], Result]


class DisagreementError(Exception):
    """The sides did not do the same work."""


class MissingInputError(Exception):
    """The input of a row is not on this machine, so the row is left out."""


@dataclass(frozen=True)
class Side:
    """One way of doing the work.

    start: Loads what the work needs, which is not timed. The work returns what `Row.agree` compares.
    needs: Packages without which this side is left out.
    realm: It runs in the environment of transformers 4.57.6, the last release with REALM.
    precision: float32 or bfloat16, or empty where there is no choice. Sides of different precisions are not compared.
    autocast: `side.py` runs the work under PyTorch's autocast to bfloat16.
    """

    name: str
    start: Callable[[Path], Work]
    needs: tuple[str, ...] = ()
    realm: bool = False
    precision: str = ""
    autocast: bool = False

    def beside(self, other: Side) -> bool:
        """Whether the two are compared."""
        return self.precision == other.precision or not (self.precision and other.precision)

    def missing(self) -> list[str]:
        """Packages that are not installed here."""
        return [] if self.realm else [name for name in self.needs if find_spec(name) is None]


def precisions(work: Callable[[str, Path], Work]) -> tuple[Side, Side]:
    """Our work in both precisions."""
    return tuple(
        Side(name, partial(work, short), precision=name) for name, short in (("float32", "fp32"), ("bfloat16", "bf16"))
    )  # type: ignore[return-value]


def under_autocast(name: str, start: Callable[[Path], Work], **more: Any) -> tuple[Side, Side]:
    """A peer's work in float32, and under autocast to bfloat16."""
    return (
        Side(f"{name}, float32", start, precision="float32", **more),
        Side(f"{name}, bfloat16", start, precision="bfloat16", autocast=True, **more),
    )


@dataclass(frozen=True)
class Row:
    """A line of the page.

    name: What `bench.py NAME` runs.
    prepare: Writes the input of all sides into a folder. `quick` asks for a small one. Returns what it is, for the page. Raises MissingInputError.
    ours, peers: The sides. A row without peers shows our times alone.
    agree: Compares a result of ours with one of a peer. Returns what it found, and raises DisagreementError.
    needs: Packages without which the row is left out.
    wall: Wall seconds count on one thread too, because other processes do the work.
    """

    name: str
    stage: str
    prepare: Callable[[Path, bool], str]
    ours: tuple[Side, ...]
    peers: tuple[Side, ...]
    agree: Callable[[Result, Result], str]
    needs: tuple[str, ...] = ()
    wall: bool = False


def equal_losses(tolerance: float) -> Callable[[Result, Result], str]:
    """The check of a training step."""

    def agree(ours: Result, theirs: Result) -> str:
        apart = float(np.abs(ours / theirs - 1).max())
        if not apart <= tolerance:
            raise DisagreementError(f"the losses are {apart:.1e} apart: {ours} and {theirs}")
        return f"losses {apart:.0e} apart"

    return agree


def least_cosine(least: float) -> Callable[[Result, Result], str]:
    """The check of vectors."""

    def agree(ours: Result, theirs: Result) -> str:
        cosine = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
        if not cosine.min() >= least:
            raise DisagreementError(f"a cosine is {cosine.min():.5f}")
        return f"least cosine {cosine.min():.6f}"

    return agree
