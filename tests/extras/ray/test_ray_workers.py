"""Units on a Ray cluster: in order, in bounded memory, done again when a worker dies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realmctl.errors import InputError, MismatchError, ResourceError
from realmctl.execution.shards import map_units
from realmctl.extras.ray import ray_workers
from realmctl.extras.ray.ray_workers import AHEAD_PER_WORKER
from realmctl.version import __version__
from tests.fixtures import shard_functions as functions

ROOT = Path(__file__).resolve().parents[3]
ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray of two cores, as `map_units` would start it. It starts once, because a start takes seconds."""
    with ray_workers._connected(2):
        yield ray


@pytest.mark.slow
def test_results_come_in_the_order_of_the_units(cluster):
    made = map_units(functions.square, range(40), 2, initializer=functions.start, initargs=(5,), executor="ray")
    assert list(made) == [unit * unit + 5 for unit in range(40)]


@pytest.mark.slow
def test_an_endless_stream_of_units_is_read_only_so_far_ahead(cluster):
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    made = map_units(functions.process, endless(), 2, executor="ray")
    processes = {next(made) for _ in range(20)}
    made.close()
    assert taken <= 20 + AHEAD_PER_WORKER * 2 and len(processes) <= 2


@pytest.mark.slow
def test_what_a_unit_or_the_start_raises_is_raised_here(cluster):
    done = []
    with pytest.raises(LookupError, match="seven") as error:
        for unit in map_units(functions.fail_at_seven, range(40), 2, executor="ray"):
            done.append(unit)
    assert type(error.value) is LookupError and done == list(range(7))
    with pytest.raises(ValueError, match="start 3"):
        list(
            map_units(functions.square, range(9), 2, initializer=functions.failing_start, initargs=(3,), executor="ray")
        )


@pytest.mark.slow
def test_a_worker_that_dies_once_costs_nothing_and_one_that_always_dies_is_a_resource_error(cluster, tmp_path):
    made = map_units(functions.die_once_at_seven, [(unit, tmp_path) for unit in range(20)], 2, executor="ray")
    assert list(made) == list(range(20)) and (tmp_path / "died").exists()
    with pytest.raises(ResourceError, match="died 3 times"):
        list(map_units(functions.die_at_seven, range(40), 2, executor="ray"))


@pytest.mark.slow
def test_another_version_is_refused_by_number(cluster, monkeypatch):
    monkeypatch.setattr(ray_workers, "__version__", "9.9.9")
    with pytest.raises(MismatchError, match=r"9.9.9"):
        list(map_units(functions.square, range(3), 1, executor="ray"))


@pytest.mark.slow
def test_a_worker_may_prepare_for_long_but_must_find_room(cluster, monkeypatch):
    monkeypatch.setattr(ray_workers, "START_SECONDS", 60.0)
    made = map_units(functions.square, range(3), 1, initializer=functions.slow_start, initargs=(75,), executor="ray")
    assert list(made) == [0, 1, 4]
    holders = [cluster.remote(_Holder).options(num_cpus=1).remote() for _ in range(2)]
    cluster.get([holder.hold.remote() for holder in holders])
    with pytest.raises(ResourceError, match="60 seconds"):
        list(map_units(functions.square, range(3), 1, executor="ray"))
    for holder in holders:
        cluster.kill(holder)


class _Holder:
    """Another job that holds a core."""

    def hold(self) -> None:
        pass


def test_a_folder_that_a_node_does_not_see(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        ray_workers._Worker().prepare(str(tmp_path / "nowhere"), None, ())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:{free}",
        *(pytest.param(form, marks=pytest.mark.slow) for form in ("ray://127.0.0.1:{free}", "127.0.0.1:port")),
    ],
)
def test_an_address_that_nobody_answers_is_one_error(address, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", address.format(free=probe.getsockname()[1]))
        code = "from realmctl.execution.shards import map_units\nfor _ in map_units(abs, range(3), 1, executor='ray'): pass"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "ResourceError: no Ray cluster answers at RAY_ADDRESS=" in done.stderr and "ray start --head" in done.stderr


@pytest.mark.slow
def test_a_node_without_the_package_is_named_as_such(tmp_path):
    """The workers find another `realmctl` first, which cannot be imported, as if there were none."""
    absent = tmp_path / "nothing" / "realmctl"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'realmctl'\")\n")
    code = f"""
import ray
variables = {{"PYTHONPATH": {str(absent.parent)!r}}}
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=2**27, runtime_env={{"env_vars": variables}})
from realmctl.execution.shards import map_units
list(map_units(abs, range(3), 1, executor="ray"))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert f"ResourceError: a node of the Ray cluster cannot import realmctl {__version__}" in done.stderr, done.stderr


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"realmctl\[ray\]"):
        list(map_units(functions.square, range(3), 1, executor="ray"))
