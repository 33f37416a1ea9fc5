"""A Ray cluster of several nodes on this machine, one of which is killed in each stage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realmctl.errors import ResourceError
from tests.processes.commands import RunningCommand
from tests.processes.kills import worker_at_work

STORE_BYTES = 2**27
"""Shared memory of a node. Units and results are small."""


class Nodes:
    """The nodes that work, one core each, beside a head that does not."""

    def __init__(self, cluster: Any, count: int) -> None:
        self._cluster, self.count = cluster, count
        for _ in range(count):
            self._add()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def kill_one(self, run: RunningCommand, series: Path) -> str:
        """Kill the first node that computes, and start another for the next stage.

        Returns:
            That a node was killed. Empty if the command ended before.
        """
        raylets = [(node, node.all_processes["raylet"][0].process.pid) for node in self._cluster.worker_nodes]
        node = run.wait_for(lambda: worker_at_work(raylets))
        if node is None:
            return ""
        self._cluster.remove_node(node, allow_graceful=False)
        self._add()
        return "a node at work"

    def _add(self) -> None:
        with _explained():
            self._cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)


@contextmanager
def ray_nodes(count: int) -> Iterator[Nodes]:
    """Start a cluster of `count` nodes, and stop it at the end.

    Raises:
        ResourceError: Ray does not start a node, as on a machine that is too busy.
    """
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    with _explained():
        cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE_BYTES})
    try:
        yield Nodes(cluster, count)
    finally:
        cluster.shutdown()


@contextmanager
def _explained() -> Iterator[None]:
    """Ray raises a bare Exception when a node does not start within half a minute."""
    try:
        yield
    except Exception as error:
        raise ResourceError(
            f"Ray did not start a node on this machine ({str(error).splitlines()[0]}). End other programs, and start again."
        ) from None
