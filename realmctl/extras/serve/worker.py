"""One thread that computes all replies: requests wait in a queue, and those that wait together are computed together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from realmctl.errors import as_realmctl_error

Argument = TypeVar("Argument")
Reply = TypeVar("Reply")
AT_ONCE = 16
"""Most requests that are computed together."""


class QueueFull(Exception):
    """As many requests wait as may wait."""


@dataclass(frozen=True)
class _Call:
    kind: Hashable
    compute: Callable[[Sequence[Any]], Sequence[Any]]
    argument: object
    reply: Future[Any] = field(default_factory=Future)


class Worker:
    """A queue of at most `most_waiting` calls, and the thread that computes them.

    A model in memory is used by this thread alone, so its threads of arithmetic do not compete with each other.
    """

    def __init__(self, most_waiting: int) -> None:
        self.largest_batch = 0
        self._calls: queue.Queue[_Call | None] = queue.Queue(most_waiting)
        self._thread = threading.Thread(target=self._work, name="serve-worker", daemon=True)
        self._thread.start()

    def submit(
        self, kind: Hashable, compute: Callable[[Sequence[Argument]], Sequence[Reply]], argument: Argument
    ) -> Future[Reply]:
        """Queue a call.

        Args:
            kind: calls of one kind may be computed together, by the `compute` of any of them.
            compute: a function from a list of arguments to the list of their replies.
            argument: the argument of this call.

        Raises:
            QueueFull: too many calls wait.
        """
        call = _Call(kind, compute, argument)
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            raise QueueFull from None
        return call.reply

    @property
    def waiting(self) -> int:
        """Number of calls that wait."""
        return self._calls.qsize()

    @property
    def is_working(self) -> bool:
        """Whether the thread computes what is asked."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Compute what waits, then end the thread."""
        self._calls.put(None)
        self._thread.join()

    def _work(self) -> None:
        ending = False
        while not ending:
            calls = [self._calls.get()]
            while len(calls) < AT_ONCE and calls[-1] is not None:
                try:
                    calls.append(self._calls.get_nowait())
                except queue.Empty:
                    break
            ending = calls[-1] is None
            groups: dict[Hashable, list[_Call]] = {}
            for call in calls:
                if call is not None and call.reply.set_running_or_notify_cancel():
                    groups.setdefault(call.kind, []).append(call)
            for group in groups.values():
                self._compute(group)

    def _compute(self, group: list[_Call]) -> None:
        self.largest_batch = max(self.largest_batch, len(group))
        try:
            replies = group[0].compute([call.argument for call in group])
        except BaseException as error:  # a library in Rust raises what is no Exception
            if len(group) > 1:  # one argument may be bad; the others get their replies
                for call in group:
                    self._compute([call])
            else:
                group[0].reply.set_exception(as_realmctl_error(error) or error)
            return
        for call, reply in zip(group, replies, strict=True):
            call.reply.set_result(reply)
