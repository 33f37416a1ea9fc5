"""Messages to the user on stderr: plain lines, warnings, and progress for a terminal or a log file."""

from __future__ import annotations

import math
import os
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress

from realmctl.amounts import duration_text

SECONDS_BETWEEN_LINES = 30.0
"""How often progress is printed where there is no terminal."""
SECONDS_BETWEEN_DRAWINGS = 0.1
"""How often a live bar is drawn, at most."""
MEASURED_SECONDS = 120.0
"""How long the speed is measured at least."""
BOLD, PLAIN = "\x1b[1;32m", "\x1b[0m"
"""What marks an answer on a terminal, in bold green. It is all that is printed unescaped; in a title it does no harm."""
UNPRINTABLE = re.compile(
    f"(?!{re.escape(BOLD)}|{re.escape(PLAIN)})[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
"""Characters that a terminal obeys: control characters but tab and line break, and what turns the direction of writing."""
_quiet = False
_label = ""
_untold = ContextVar("untold", default=False)
_silent = ContextVar("silent", default=False)


class Progress(Protocol):
    """The interface of a progress display for the code that does the work."""

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count `n` more units as done. `note`: current values to show beside the rate, such as a loss."""

    def skip(self, n: int) -> None:
        """Count `n` more units as done, which an earlier run has done. They tell nothing about the speed."""


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


@contextmanager
def silent() -> Iterator[None]:
    """Leave out the warnings too: what is done within is thrown away, such as a trial."""
    before = _silent.set(True)
    try:
        with untold():
            yield
    finally:
        _silent.reset(before)


def printable(text: str) -> str:
    """Return a text for a terminal. Titles, ids and names may come from anyone, so what a terminal obeys is escaped."""
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(message: str) -> None:
    """Print one line of information."""
    if not _untold.get():
        _print(message)


def _print(message: str) -> None:
    if not _quiet:
        sys.stderr.write(printable(f"{_label}{message}") + "\n")  # at once, because processes share one stderr
        sys.stderr.flush()


def warn(message: str) -> None:
    """Print one line that the user should not miss."""
    if not _silent.get():
        _print(f"warning: {message}")


class Pace:
    """How fast work goes and how long the rest takes, from the units that this run has done.

    The first units do not count, because they also pay for loading and warming up; nor does what an earlier run has done.
    The speed is that of the last two minutes, and of the last half of a longer run. Where units take different times, as with
    index refreshes between steps, both are long enough for a mean.

    later: What follows, and takes a time that is not known yet. It is named, so that nobody takes the time left for that of all.
    """

    def __init__(self, total: int | None, later: Sequence[str] = ()) -> None:
        self.total, self.done, self.later = total, 0, later
        self._worked = 0
        self._marks: deque[tuple[float, int]] = deque()
        """Times, in seconds, and the units that were done by then; at most a few hundred, the first after the first units."""

    def advance(self, n: int) -> None:
        """Count n more units as done now."""
        if not n:
            return
        self.done, self._worked = self.done + n, self._worked + n
        now = time.monotonic()
        recent = max(MEASURED_SECONDS, (now - self._marks[0][0]) / 2 if self._marks else 0.0)
        if len(self._marks) > 1 and self._marks[-1][0] - self._marks[-2][0] < recent / 100:
            self._marks.pop()
        self._marks.append((now, self._worked))
        while len(self._marks) > 2 and now - self._marks[1][0] >= recent:
            self._marks.popleft()

    def skip(self, n: int) -> None:
        """Count n more units as done, which an earlier run has done."""
        self.done += n

    @property
    def rate(self) -> float | None:
        """Units per second; None until there is something to measure."""
        if len(self._marks) < 2:
            return None
        (start, before), (end, after) = self._marks[0], self._marks[-1]
        return (after - before) / (end - start) if end > start else None

    def __str__(self) -> str:
        """The speed and the time left, as far as they are known, such as `20.1/s, about 59 s left`, or `... left, then embeddings`."""
        if not self.rate:
            return ""
        speed = f"{self.rate:.1f}/s" if self.rate >= 1 else f"{1 / self.rate:.1f} s each"
        then = f", then {', '.join(self.later)}" if self.later else ""
        if self.total is None:
            return f"{speed}{then}"
        left = (self.total - self.done) / self.rate
        return f"{speed}, about {f'{left:.0f} s' if left < 60 else duration_text(left)} left{then}"


class _NoDisplay:
    def advance(self, n: int = 1, note: str = "") -> None:
        pass

    def skip(self, n: int) -> None:
        pass


class _Lines:
    """A line every 30 seconds, for log files and CI."""

    def __init__(self, total: int | None, what: str, unit: str, later: Sequence[str] = ()) -> None:
        self.pace, self.what, self.unit = Pace(total, later), what, unit
        self.last_line = time.monotonic()

    def advance(self, n: int = 1, note: str = "") -> None:
        self.pace.advance(n)
        now = time.monotonic()
        if now - self.last_line < SECONDS_BETWEEN_LINES:
            return
        self.last_line = now
        of_total = f"/{self.pace.total}" if self.pace.total else ""
        values = "".join(f", {value}" for value in (note, str(self.pace)) if value)
        _print(f"{self.what}: {self.pace.done}{of_total} {self.unit}{values}")

    def skip(self, n: int) -> None:
        self.pace.skip(n)


class _Bar:
    """A task of a live bar on a terminal."""

    def __init__(
        self, display: RichProgress, task: TaskID, total: int | None, what: str, unit: str, later: Sequence[str] = ()
    ) -> None:
        self.display, self.task, self.pace = display, task, Pace(total, later)
        self.drawn = -math.inf
        display.reset(task, total=total, description=what, unit=unit, note="", pace="")

    def advance(self, n: int = 1, note: str = "") -> None:
        self.pace.advance(n)
        is_due = (now := time.monotonic()) - self.drawn > SECONDS_BETWEEN_DRAWINGS
        self.drawn = now if is_due else self.drawn
        self.display.update(self.task, completed=self.pace.done, note=note, pace=str(self.pace), refresh=is_due)

    def skip(self, n: int) -> None:
        self.pace.skip(n)
        self.display.update(self.task, completed=self.pace.done)


class _OneBar:
    """One line for several steps, of which each has its own progress."""

    def __init__(self, what: str, display: RichProgress | None) -> None:
        self.what, self.step, self.later, self.display = what, "", tuple[str, ...](), display
        self.task = display.add_task(what, total=None, unit="", note="", pace="") if display else None

    def part(self, total: int | None, what: str, unit: str) -> Progress:
        named = ", ".join(part for part in (f"{self.what} {self.step}".rstrip(), what) if part)
        if self.display is None or self.task is None:
            return _Lines(total, named, unit, self.later)
        return _Bar(self.display, self.task, total, named, unit, self.later)


_one_bar = ContextVar[_OneBar | None]("one_bar", default=None)


class ProgressObserver(Protocol):
    """Sees the progress of all that is done, whether it is shown or not."""

    def begin(self, total: int | None, unit: str) -> Progress:
        """Return what is told the progress of a piece of work. For the arguments see `progress`."""


_observer = ContextVar[ProgressObserver | None]("observer", default=None)


@contextmanager
def observed(observer: ProgressObserver) -> Iterator[None]:
    """Let an observer see the progress of what is done within. It may raise an exception to end it. Nothing is printed meanwhile."""
    before = _observer.set(observer)
    try:
        with silent():
            yield
    finally:
        _observer.reset(before)


class _Observed:
    """Progress that is shown, and told to an observer."""

    def __init__(self, shown: Progress, seen: Progress) -> None:
        self.shown, self.seen = shown, seen

    def advance(self, n: int = 1, note: str = "") -> None:
        self.shown.advance(n, note)
        self.seen.advance(n, note)

    def skip(self, n: int) -> None:
        self.shown.skip(n)
        self.seen.skip(n)


@contextmanager
def progress(total: int | None, what: str, unit: str) -> Iterator[Progress]:
    """Show progress: a live bar on a terminal, a line every 30 seconds elsewhere, and nothing with `--quiet`.

    Args:
        total: Number of units, or None if it is not known beforehand.
        what: What is being done, such as `embedding`.
        unit: What is counted, such as `blocks`.
    """
    observer = _observer.get()
    with _shown(total, what, unit) as shown:
        yield shown if observer is None else _Observed(shown, observer.begin(total, unit))


@contextmanager
def _shown(total: int | None, what: str, unit: str) -> Iterator[Progress]:
    if not _quiet and (whole := _one_bar.get()):
        yield whole.part(total, what, unit)
    elif _quiet or _untold.get():
        yield _NoDisplay()
    elif _is_live():
        with _live() as display:
            yield _Bar(display, display.add_task(what, unit="", note="", pace=""), total, what, unit)
    else:
        yield _Lines(total, what, unit)


@contextmanager
def one_bar(what: str) -> Iterator[None]:
    """Show the progress of all that is done in one line. Of information, only warnings are printed; the caller tells what came of it."""
    with untold(), _live() if _is_live() and not _quiet else nullcontext() as display:
        before = _one_bar.set(_OneBar(what, display))
        try:
            yield
        finally:
            _one_bar.reset(before)


def name_step(step: str, later: Sequence[str] = ()) -> None:
    """Name the step that begins, such as `2/3 embeddings`, in the one bar, if there is one.

    later: the steps after it, but for those that are brief. The time left is that of the step, and without such steps that of all.
    """
    if whole := _one_bar.get():
        whole.step, whole.later = step, tuple(later)


def _is_live() -> bool:
    return sys.stderr.isatty() and not _label


def _live() -> RichProgress:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}", markup=False),
        TextColumn("{task.fields[note]}", markup=False),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    # without a thread that draws: a process that has one cannot be forked (execution/shards.py)
    return RichProgress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
