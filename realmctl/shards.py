"""Run one function over work units, in order, on local processes.

A unit's result never depends on which worker ran it or how many there were; the stages that use this know nothing of
processes. Workers are spawned, never forked: forking after torch has started threads hangs (RELIABILITY of OpenMP).
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from realmctl.errors import ResourceError

Unit = TypeVar("Unit")
Result = TypeVar("Result")
AHEAD_PER_WORKER = 3


def worker_count(workers: int) -> int:
    """0 means every core this process may use."""
    return workers or len(os.sched_getaffinity(0))


def map_units(
    function: Callable[[Unit], Result],
    units: Iterable[Unit],
    workers: int,
    *,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """Yield `function(unit)` in the order of `units`, in bounded memory however many there are.

    `function` and `initializer` must be importable (top level). One worker runs in this process. Raises ResourceError
    when a worker dies (out of memory, most often); an exception inside `function` is raised here as it is.
    """
    if worker_count(workers) == 1:
        if initializer:
            initializer(*initargs)
        yield from map(function, units)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(worker_count(workers), context, initializer, initargs) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for unit in units:
                waiting.append(pool.submit(function, unit))
                if len(waiting) >= AHEAD_PER_WORKER * worker_count(workers):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise ResourceError("a worker process died, most likely for want of memory. Use fewer --workers or free some memory.") from None
        finally:
            for future in waiting:
                future.cancel()
