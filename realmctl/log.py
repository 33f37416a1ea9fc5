"""What the user reads on stderr: plain lines, warnings, and progress that suits a terminal or a log file."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PLAIN_EVERY_SECONDS = 30.0
_quiet = False
_label = ""


class Progress(Protocol):
    """What a worker sees of a progress display."""

    def advance(self, n: int = 1) -> None: ...


def set_quiet(quiet: bool) -> None:
    """Silence everything but errors (`-q`), what libraries warn about too."""
    global _quiet
    _quiet = quiet
    if quiet:
        warnings.simplefilter("ignore")
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def is_quiet() -> bool:
    """Whether `set_quiet` silenced this process."""
    return _quiet


def set_label(name: str) -> None:
    """Head every line with a name: of one of several processes that write to one stderr, where no live bar has a place."""
    global _label
    _label = f"[{name}] " if name else ""


def say(message: str) -> None:
    """One line of information."""
    if not _quiet:
        print(f"{_label}{message}", file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """One line the user should not miss."""
    say(f"warning: {message}")


class _Silent:
    def advance(self, n: int = 1) -> None:
        pass


class _Plain:
    """One line every 30 seconds, for log files and CI."""

    def __init__(self, total: int | None, what: str, unit: str) -> None:
        self.total, self.what, self.unit = total, what, unit
        self.done, self.start = 0, time.monotonic()
        self.said = self.start

    def advance(self, n: int = 1) -> None:
        self.done += n
        now = time.monotonic()
        if now - self.said < PLAIN_EVERY_SECONDS:
            return
        self.said = now
        rate = self.done / (now - self.start)
        if self.total:
            left = (self.total - self.done) / rate if rate else 0.0
            say(f"{self.what}: {self.done}/{self.total} {self.unit}, {rate:.1f}/s, about {left:.0f} s left")
        else:
            say(f"{self.what}: {self.done} {self.unit}, {rate:.1f}/s")


@contextmanager
def progress(total: int | None, what: str, unit: str) -> Iterator[Progress]:
    """Show progress: a live bar on a terminal, a plain line every 30 s elsewhere, nothing when quiet.

    `total` may be None when it is not known beforehand.
    """
    if _quiet:
        yield _Silent()
    elif sys.stderr.isatty() and not _label:
        with _bar(total, what, unit) as bar:
            yield bar
    else:
        yield _Plain(total, what, unit)


@contextmanager
def _bar(total: int | None, what: str, unit: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    what_column, unit_column = (
        TextColumn("{task.description}", markup=False),
        TextColumn(unit, markup=False),
    )
    columns = (what_column, BarColumn(), MofNCompleteColumn(), unit_column, TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(what, total=total)

        class Bar:
            def advance(self, n: int = 1) -> None:
                display.advance(task, n)

        yield Bar()
