"""Messages to the user on stderr: plain lines, warnings, and progress for a terminal or a log file."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

SECONDS_BETWEEN_LINES = 30.0
"""How often progress is printed where there is no terminal."""
BOLD, PLAIN = "\x1b[1;32m", "\x1b[0m"
"""What marks an answer on a terminal, in bold green. It is all that is printed unescaped; in a title it does no harm."""
UNPRINTABLE = re.compile(
    f"(?!{re.escape(BOLD)}|{re.escape(PLAIN)})[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
"""Characters that a terminal obeys: control characters but tab and line break, and what turns the direction of writing."""
_quiet = False
_label = ""
_untold = ContextVar("untold", default=False)


class Progress(Protocol):
    """The interface of a progress display for the code that does the work."""

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count `n` more units as done. `note`: current values to show beside the rate, such as a loss."""


def duration_text(seconds: float) -> str:
    """Format seconds in one or two suitable units: 3 d 4 h, 2 h 05 min, 4 min 10 s, 3.2 s."""
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if days >= 1:
        return f"{int(days)} d {int(hours % 24)} h"
    if hours >= 1:
        return f"{int(hours)} h {int(minutes % 60):02} min"
    return f"{int(minutes)} min {int(seconds % 60):02} s" if minutes >= 1 else f"{seconds:.1f} s"


def set_quiet(quiet: bool) -> None:
    """Turn `--quiet` on or off. When on, only errors reach stderr; warnings of libraries are silenced too."""
    global _quiet
    _quiet = quiet
    if quiet:
        warnings.simplefilter("ignore")
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def is_quiet() -> bool:
    """Return whether `--quiet` is on in this process."""
    return _quiet


def set_label(name: str) -> None:
    """Begin every line with `[name]`. Several processes write to one stderr, so a live bar is not shown either."""
    global _label
    _label = f"[{name}] " if name else ""


@contextmanager
def untold() -> Iterator[None]:
    """Leave out the information, not the warnings, that this thread would print: the caller tells what came of it."""
    before = _untold.set(True)
    try:
        yield
    finally:
        _untold.reset(before)


def printable(text: str) -> str:
    """Return a text for a terminal. Titles, ids and names may come from anyone, so what a terminal obeys is escaped."""
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(message: str) -> None:
    """Print one line of information."""
    if not _untold.get():
        _print(message)


def _print(message: str) -> None:
    if not _quiet:
        print(printable(f"{_label}{message}"), file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Print one line that the user should not miss."""
    _print(f"warning: {message}")


class _NoDisplay:
    def advance(self, n: int = 1, note: str = "") -> None:
        pass


class _Lines:
    """A line every 30 seconds, for log files and CI."""

    def __init__(self, total: int | None, what: str, unit: str) -> None:
        self.total, self.what, self.unit = total, what, unit
        self.done, self.start = 0, time.monotonic()
        self.last_line = self.start

    def advance(self, n: int = 1, note: str = "") -> None:
        self.done += n
        now = time.monotonic()
        if now - self.last_line < SECONDS_BETWEEN_LINES:
            return
        self.last_line = now
        rate = self.done / (now - self.start)
        values = "".join(f", {value}" for value in (note, _rate_text(rate) if rate else "") if value)
        if self.total:
            left = (self.total - self.done) / rate if rate else 0.0
            say(
                f"{self.what}: {self.done}/{self.total} {self.unit}{values}, about {f'{left:.0f} s' if left < 60 else duration_text(left)} left"
            )
        else:
            say(f"{self.what}: {self.done} {self.unit}{values}")


def _rate_text(rate: float) -> str:
    return f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each"


@contextmanager
def progress(total: int | None, what: str, unit: str) -> Iterator[Progress]:
    """Show progress: a live bar on a terminal, a line every 30 seconds elsewhere, and nothing with `--quiet`.

    Args:
        total: Number of units, or None if it is not known beforehand.
        what: What is being done, such as `embedding`.
        unit: What is counted, such as `blocks`.
    """
    if _quiet or _untold.get():
        yield _NoDisplay()
    elif sys.stderr.isatty() and not _label:
        with _bar(total, what, unit) as bar:
            yield bar
    else:
        yield _Lines(total, what, unit)


@contextmanager
def _bar(total: int | None, what: str, unit: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_rate_text(task.speed) if task.speed else "")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit, markup=False),
        TextColumn("{task.fields[note]}", markup=False),
        Rate(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(what, total=total, note="")

        class Bar:
            def advance(self, n: int = 1, note: str = "") -> None:
                display.update(task, advance=n, note=note)

        yield Bar()
