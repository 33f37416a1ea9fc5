"""Run one function over work units on a Ray cluster, with results in order.

Workers are Ray actors. Each one prepares itself once and then takes units. When a worker or its node dies, another worker
does its units again, so a function must give the same result each time. `RAY_ADDRESS` names the cluster; without it, Ray
starts on this machine and ends with the call.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic
from urllib.parse import urlsplit

from realmctl.errors import InputError, MismatchError, ResourceError, require_package
from realmctl.execution.shards import AHEAD_PER_WORKER, Cluster, Result, Unit
from realmctl.log import warn
from realmctl.version import __version__

UNITS_PER_WORKER = 2
"""Units that a worker holds at once, so that it need not wait for the next one."""
ATTEMPTS_PER_UNIT = 3
FAILED_STARTS = 3
CONNECT_SECONDS = 5.0
START_SECONDS = 180.0
OBJECT_STORE_BYTES = 2**28
"""Shared memory of a Ray that starts on this machine. Units and results are small."""
ADDRESS = "RAY_ADDRESS"


class Ray(Cluster):
    """A Ray cluster.

    Raises, beside what every cluster raises:
        ResourceError: Ray is not installed, the cluster does not answer, it has no room for a worker within three minutes, a node
            cannot import realmctl, or a unit's worker died three times.
        MismatchError: A node has another version of realmctl.
        InputError: A node does not see the current folder.
    """

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
        require_package("ray", "ray", "--executor ray")
        with _connected(workers) as ray:
            resources = ray.cluster_resources()
            gpus_each = int(gpus and resources.get("GPU", 0) >= 1)
            count = workers or int(resources.get("GPU" if gpus_each else "CPU", 0))
            if not count:
                raise ResourceError("the Ray cluster has no core for a worker. Add a node, or use --executor local.")
            pool: _Pool[Unit, Result] = _Pool(ray, function, count, gpus_each, initializer, initargs)
            try:
                yield from pool.results(units)
            finally:
                pool.close()


class _Worker(Generic[Unit, Result]):
    """What runs in an actor."""

    def arrive(self) -> None:
        """Answer that this process has a place in the cluster. Preparing it may take long."""

    def prepare(self, folder: str, initializer: Callable[..., None] | None, initargs: tuple[Any, ...]) -> str:
        """Enter the folder of the command and prepare this process. Return the version of realmctl."""
        if not Path(folder).is_dir():
            raise InputError(
                f"the Ray node {socket.gethostname()} does not see the folder {folder}. Work on a disk that all nodes share."
            )
        os.chdir(folder)
        if initializer:
            initializer(*initargs)
        return __version__

    def call(self, function: Callable[[Unit], Result], unit: Unit) -> Result:
        """Return the result of one unit."""
        return function(unit)


@dataclass(eq=False)
class _Actor(Generic[Unit]):
    """A worker as the calling process sees it."""

    handle: Any
    arriving: Any  # reference to the result of `arrive`; None when it has come
    preparing: Any  # reference to the result of `prepare`; None when it has come
    running: dict[Any, tuple[int, Unit]] = field(default_factory=dict)  # reference -> number of the unit, unit


class _Pool(Generic[Unit, Result]):
    """The workers, the units at work, and the results that wait for their turn."""

    def __init__(
        self,
        ray: Any,
        function: Callable[[Unit], Result],
        count: int,
        gpus: int,
        initializer: Callable[..., None] | None,
        initargs: tuple[Any, ...],
    ) -> None:
        self.ray, self.function, self.count = ray, function, count
        self.remote = ray.remote(_Worker).options(num_cpus=1, num_gpus=gpus)
        self.preparation = (str(Path.cwd()), initializer, initargs)
        self.todo: deque[tuple[int, Unit]] = deque()
        self.done: dict[int, Result] = {}
        self.attempts: dict[int, int] = {}
        self.failed_starts = 0
        self.actors: list[_Actor[Unit]] = []

    def results(self, units: Iterable[Unit]) -> Iterator[Result]:
        for _ in range(self.count):
            self._start()
        numbered, taken, given, more = enumerate(units), 0, 0, True
        while True:
            while more and taken - given < AHEAD_PER_WORKER * self.count:
                unit = next(numbered, None)
                if unit is None:
                    more = False
                else:
                    self.todo.append(unit)
                    taken += 1
            self._assign()
            if given in self.done:
                yield self.done.pop(given)
                given += 1
            elif not more and given == taken:
                return
            else:
                self._wait()

    def close(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor.handle)

    def _start(self) -> None:
        handle = self.remote.remote()
        self.actors.append(_Actor(handle, handle.arrive.remote(), handle.prepare.remote(*self.preparation)))

    def _assign(self) -> None:
        ready = [actor for actor in self.actors if actor.preparing is None]
        while self.todo and ready:
            actor = min(ready, key=lambda one: len(one.running))
            if len(actor.running) >= UNITS_PER_WORKER:
                return
            number, unit = self.todo.popleft()
            actor.running[actor.handle.call.remote(self.function, unit)] = (number, unit)

    def _wait(self) -> None:
        """Wait for one event: a worker is prepared, a unit is done, or a worker died."""
        owners = {reference: actor for actor in self.actors for reference in actor.running}
        for actor in self.actors:
            owners |= {reference: actor for reference in (actor.arriving, actor.preparing) if reference is not None}
        found, _ = self.ray.wait(list(owners), num_returns=1, timeout=START_SECONDS)
        if not found:
            if all(actor.arriving is not None for actor in self.actors):
                raise ResourceError(
                    f"the Ray cluster had no room for a worker within {START_SECONDS:.0f} seconds. End other jobs, use fewer "
                    "--workers, or use --executor local."
                )
            return
        (reference,) = found
        actor = owners[reference]
        try:
            value = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            self._replace(actor, str(error))
            return
        if reference == actor.arriving:
            actor.arriving = None
        elif reference == actor.preparing:
            _require_version(value)
            actor.preparing = None
        else:
            self.done[actor.running.pop(reference)[0]] = value

    def _replace(self, actor: _Actor[Unit], why: str) -> None:
        """Give the units of a dead worker back, and start another worker."""
        self.actors.remove(actor)
        self.ray.kill(actor.handle)
        if actor.preparing is not None:
            self.failed_starts += 1
            if "ModuleNotFoundError" in why or "No module named" in why:
                raise ResourceError(
                    f"a node of the Ray cluster cannot import realmctl {__version__}. Install it on every node. Ray says: "
                    f"{_last_line(why)}"
                )
            if self.failed_starts > FAILED_STARTS * self.count:
                raise ResourceError(f"workers of the Ray cluster die as they start. Ray says: {_last_line(why)}")
        else:
            warn(f"a Ray worker died; retrying {len(actor.running)} units")
        for number, unit in reversed(actor.running.values()):
            self.todo.appendleft((number, unit))
        if actor.running:
            at_work = next(iter(actor.running.values()))[0]
            self.attempts[at_work] = self.attempts.get(at_work, 0) + 1
            if self.attempts[at_work] == ATTEMPTS_PER_UNIT:
                raise ResourceError(
                    f"a worker process died {ATTEMPTS_PER_UNIT} times at the same unit of work, most likely because memory ran "
                    f"out. Give the workers more memory. Ray says: {_last_line(why)}"
                )
        self._start()


@contextmanager
def _connected(workers: int) -> Iterator[Any]:
    """Connect to the cluster, or start Ray on this machine. A connection that exists is used and left open."""
    import ray

    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get(ADDRESS, "")
    _require_answer(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    where: dict[str, Any] = {"address": address}
    if not address:
        where = {
            "address": "local",
            "num_cpus": workers or None,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
        }
    try:
        ray.init(**where, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ResourceError(_unreachable(address, _last_line(str(error)))) from None
    finally:
        for number, handler in handlers.items():  # Ray replaces the one of SIGTERM
            signal.signal(number, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    """Check that something listens at `host:port` or `ray://host:port`, because Ray itself tries for a minute."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ResourceError(_unreachable(address, "it is not an address of the form host:port")) from None
    if host and port:
        try:
            socket.create_connection((host, port), CONNECT_SECONDS).close()
        except OSError as error:
            raise ResourceError(_unreachable(address, str(error))) from None


def _unreachable(address: str, why: str) -> str:
    if not address:
        return f"Ray did not start on this machine ({why}). Use --executor local."
    return f"no Ray cluster answers at {ADDRESS}={address} ({why}). Start it with `ray start --head`, or correct {ADDRESS}."


def _require_version(version: str) -> None:
    if version != __version__:
        raise MismatchError(
            f"a node of the Ray cluster has realmctl {version}, and this machine has {__version__}. Install the same version on "
            "every node."
        )


def _last_line(text: str) -> str:
    return ([line.strip() for line in text.splitlines() if line.strip()] or ["nothing"])[-1][:300]
