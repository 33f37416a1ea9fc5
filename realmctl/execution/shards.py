"""Run one function over work units on worker processes of this machine or of a cluster, with results in order.

The result of a unit does not depend on which worker ran it or on the number of workers. Workers are spawned, because a fork after torch has
started threads hangs; only a process without threads that asks for it is forked (`here`). Workers leave Ctrl-C to their parent, and end with it even when it is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, TypeVar, cast

from realmctl.errors import FEWER_PROCESSES, ConfigError, ResourceError, as_realmctl_error, is_panic
from realmctl.execution import standard_streams
from realmctl.execution.cores import usable_cores
from realmctl.execution.signals import STOP_SIGNALS
from realmctl.registry import Registry

Unit = TypeVar("Unit")
Result = TypeVar("Result")
AHEAD_PER_WORKER = 3
"""Units read ahead of the results, times the number of workers."""
SWITCH_SECONDS = 5e-4
"""How long this process may compute before its thread that gives units to the workers has a turn. Python's 5 ms leave workers idle."""
ALONE_SECONDS = 1.0
"""A spawned worker takes about so long to start."""
LOCAL = "local"
EXECUTORS = Registry("executor", group="realmctl.executors", core={})
"""What runs units elsewhere than on this machine."""


class Cluster(ABC):
    """Machines that run units. A subclass has a name in the group `realmctl.executors`."""

    @abstractmethod
    def map(
        self,
        function: Callable[[Unit], Result],
        units: Iterable[Unit],
        workers: int,
        *,
        gpus: bool = False,
        initializer: Callable[..., None] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> Iterator[Result]:
        """Yield `function(unit)` in the order of `units`, in bounded memory however many there are.

        Args:
            function: importable function of one unit.
            units: read only a little ahead of the results.
            workers: number of workers; 0 means one for each core of the cluster, or for each GPU.
            gpus: whether each worker holds a GPU. Without GPUs in the cluster it holds a core.
            initializer: importable function that prepares a worker.
            initargs: its arguments.

        Raises:
            ResourceError: the cluster cannot be used, or a unit's worker died again and again.
            Exception: What `function` or `initializer` raises is raised here unchanged.
        """


def executor_names() -> list[str]:
    """Return the values of `--executor`."""
    return [LOCAL, *EXECUTORS.names()]


def cluster(name: str) -> Cluster:
    """Return the cluster with this name. Raises ConfigError where no room or package offers it."""
    return EXECUTORS.load(name, Cluster)()


def worker_count(workers: int) -> int:
    """Return the number of workers; 0 stands for every core that this process may use. Raises ConfigError if negative."""
    if workers < 0:
        raise ConfigError(f"--workers {workers}: use 1 or more, or 0 for all cores.")
    return workers or usable_cores()


def map_units(
    function: Callable[[Unit], Result],
    units: Iterable[Unit],
    workers: int,
    *,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[object, ...] = (),
    executor: str = LOCAL,
    here: bool = False,
) -> Iterator[Result]:
    """Yield `function(unit)` in the order of `units`, in bounded memory however many there are.

    `function` and `initializer` must be importable (top level). One local worker runs in this process. Raises ResourceError
    when a worker dies, which most often means that memory ran out. An exception inside `function` or `initializer` is
    raised here unchanged. With another executor than "local", the workers run on its cluster.

    here: whether this process may be one of the workers, and the others its forks, which have what `initializer` made of it. Where a
        fork is not safe, it does the units of the first ALONE_SECONDS by itself: small work is then over before workers would have started.
    """
    if executor != LOCAL:
        worker_count(workers)
        yield from cluster(executor).map(function, units, workers, initializer=initializer, initargs=initargs)
        return
    if worker_count(workers) == 1:
        if initializer:
            initializer(*initargs)
        yield from map(function, units)
        return
    units, forks = iter(units), here and _is_safe_to_fork()
    if here and initializer:
        initializer(*initargs)
    end, none = time.monotonic() + ALONE_SECONDS, object()
    while here and not forks and time.monotonic() < end:
        if (unit := next(units, none)) is none:
            return
        yield function(cast(Unit, unit))
    waiting: deque[tuple[Future[Result], Unit]] = deque()
    given = (None, ()) if forks else (initializer, initargs)
    context = multiprocessing.get_context("fork") if forks else _Spawn()
    with _pool(worker_count(workers) - forks, context, *given) as pool:
        for unit in units:
            waiting.append((pool.submit(_call, function, unit), unit))
            if len(waiting) >= AHEAD_PER_WORKER * worker_count(workers):
                yield _oldest(waiting, function, forks)
        while waiting:
            yield _oldest(waiting, function, forks)


def _oldest(waiting: deque[tuple[Future[Result], Unit]], function: Callable[[Unit], Result], here: bool) -> Result:
    """Return the oldest result. While it is not there, and if `here`, do units in this process that no worker has begun."""
    while here and not waiting[0][0].done():
        place = next((place for place, (future, _) in enumerate(waiting) if future.cancel()), None)
        if place is None:
            break
        waiting[place] = (_done(function, waiting[place][1]), waiting[place][1])
    return waiting.popleft()[0].result()


def _done(function: Callable[[Unit], Result], unit: Unit) -> Future[Result]:
    future: Future[Result] = Future()
    try:
        future.set_result(function(unit))
    except Exception as error:
        future.set_exception(error)  # it is raised in its turn
    return future


def _is_safe_to_fork() -> bool:
    """Whether this process has one thread, so that no lock is held by another one. Before a fork OpenBLAS ends its threads, hence the first one, which does nothing."""
    threads = Path("/proc/self/task")
    if sys.platform != "linux" or threading.active_count() > 1 or "torch" in sys.modules or not threads.is_dir():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return len([*threads.iterdir()]) == 1


@contextmanager
def _pool(
    workers: int, context: BaseContext, initializer: Callable[..., None] | None, initargs: tuple[object, ...]
) -> Iterator[ProcessPoolExecutor]:
    before, switch = set(multiprocessing.active_children()), sys.getswitchinterval()
    pool = ProcessPoolExecutor(workers, context, _start, (initializer, initargs))
    try:
        with _handlers_first(context):
            pool.submit(os.getpid)  # forks now, before `units` may start threads
        sys.setswitchinterval(SWITCH_SECONDS)
        yield pool
        pool.shutdown()
    except BrokenProcessPool:
        raise ResourceError(f"a worker process died, most likely because memory ran out. {FEWER_PROCESSES}") from None
    finally:
        sys.setswitchinterval(switch)
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _handlers_first(context: BaseContext) -> Iterator[None]:
    """Let signals to a fork wait until it has its own handlers. Its parent's would hear them and do nothing."""
    if context.get_start_method() != "fork":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker(SpawnProcess):
    """A spawned process that does not run the user's script, unless the script is written to be imported.

    A spawned process imports the script that it comes from. One that does its work at the import would begin it again there, and fail. What
    workers call is importable, so they do not need it.
    """

    def start(self) -> None:
        main = vars(sys.modules["__main__"])
        script = main.get("__file__")
        if main.get("__spec__") is not None or script is None or _is_guarded(Path(script)):
            super().start()
            return
        del main["__file__"]
        try:
            super().start()
        finally:
            main["__file__"] = script


def _is_guarded(script: Path) -> bool:
    """Whether a script looks at its name, as `if __name__ == "__main__":` does. One that cannot be read counts as guarded."""
    try:
        return b"__name__" in script.read_bytes()
    except OSError:
        return True


class _Spawn(SpawnContext):
    Process = _Worker


_failed_start: BaseException | None = None


def _start(initializer: Callable[..., None] | None, initargs: tuple[object, ...]) -> None:
    global _failed_start
    standard_streams.prepare()
    for number in STOP_SIGNALS:  # a fork has its parent's handlers
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)
        elif signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        if initializer:
            initializer(*initargs)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        _failed_start = _sendable(error)


def _call(function: Callable[[Unit], Result], unit: Unit) -> Result:
    if _failed_start:
        raise _failed_start
    try:
        return function(unit)
    except BaseException as error:
        if is_panic(error):
            raise _sendable(error) from None
        raise


def _sendable(error: BaseException) -> BaseException:
    """An error that another process can be told of: a library's panic has a class that no process can import."""
    return (as_realmctl_error(error) if is_panic(error) else None) or error


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
    os._exit(1)
