"""Stages on a Ray cluster make the artifacts that they make on this machine, byte for byte."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError
from realmctl.execution.shards import map_units
from realmctl.extras.ray import ray_workers
from realmctl.pipeline.discovery import own_stages
from tests.fixtures import shard_functions as functions
from tests.fixtures.chain import Chain
from tests.fixtures.waiting import wait_until

ray = pytest.importorskip("ray")


def documents(folder: Path, count: int) -> Path:
    """A corpus with dates, which `tag` finds by its rules."""
    path = folder / "documents.jsonl"
    texts = (f"Ada {n} met Ben on 4 May {1700 + n % 300}. They liked it there." for n in range(count))
    lines = (json.dumps({"id": n, "title": f"Page {n}", "text": text}) + "\n" for n, text in enumerate(texts))
    path.write_text("".join(lines))
    return path


def blocks_of(folder: Path, chain: Chain, corpus: Path, executor: str) -> Artifact:
    """Blocks, made by two workers."""
    chunk = own_stages()["chunk"](corpus=(corpus,), tokenizer=str(chain.blocks.path), executor=executor, workers=2)
    return chunk.make(folder / "blocks")


def contents(folder: Path, chain: Chain, corpus: Path, executor: str) -> dict[str, str]:
    """Content hashes of the stages that map over units."""
    stages = own_stages()
    knob = {"executor": executor, "workers": 2}
    blocks = blocks_of(folder, chain, corpus, executor)
    spans = stages["tag"](blocks=blocks, **knob).make(folder / "spans")
    embedding = knob if executor == "ray" else {}
    embeddings = stages["embed"](
        blocks=chain.blocks, retriever=chain.retriever, device="cpu", precision="fp32", **embedding
    ).make(folder / "embeddings")
    return {name: open_artifact(made.path).content for name, made in (("b", blocks), ("s", spans), ("e", embeddings))}


@pytest.mark.slow
def test_units_and_blocks_are_the_same_as_without_ray(chain, tmp_path):
    """Both in one start of Ray, because a start takes seconds."""
    corpus = documents(tmp_path, 60)
    with ray_workers._connected(2):
        squares = map_units(functions.square, range(40), 2, initializer=functions.start, initargs=(5,), executor="ray")
        assert list(squares) == [unit * unit + 5 for unit in range(40)]
        found = blocks_of(tmp_path / "ray", chain, corpus, "ray")
    assert found.content == blocks_of(tmp_path / "local", chain, corpus, "local").content


@pytest.mark.slow
def test_artifacts_are_the_same_as_without_ray(chain, tmp_path):
    corpus = documents(tmp_path, 60)
    with ray_workers._connected(2):
        found = contents(tmp_path / "ray", chain, corpus, "ray")
    assert found == contents(tmp_path / "local", chain, corpus, "local")


def test_embed_refuses_flags_that_ray_alone_or_this_machine_alone_knows(chain, tmp_path):
    embed = own_stages()["embed"]
    for flags, message in [
        ({"workers": 2}, "--workers"),
        ({"executor": "ray", "device": "cuda:1"}, "cuda:1"),
    ]:
        with pytest.raises(ConfigError, match=message):
            embed(blocks=chain.blocks, retriever=chain.retriever, **flags).make(tmp_path / "e")


@pytest.fixture
def three_nodes() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 2**27})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=2**27)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_node_that_is_killed_costs_nothing(chain, tmp_path, three_nodes, monkeypatch):
    """Two of three nodes remain, and their workers do the lost units again."""
    corpus = documents(tmp_path, 20_000)
    expected = contents(tmp_path / "local", chain, corpus, "local")
    monkeypatch.setenv("RAY_ADDRESS", three_nodes.address)
    victim = list(three_nodes.worker_nodes)[-1]

    def kill() -> None:
        wait_until(lambda: list((tmp_path / "ray").glob("blocks/v1.partial/*")))
        three_nodes.remove_node(victim, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    found = contents(tmp_path / "ray", chain, corpus, "ray")
    killer.join()
    assert found == expected
