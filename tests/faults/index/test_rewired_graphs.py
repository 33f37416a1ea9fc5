"""Graphs with other valid links: the canaries refuse them even though the hash is right."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from realmctl.errors import InputError
from realmctl.index.index_type import open_index
from tests.faults.counting import count
from tests.faults.index.mutants import described, reseal, rewired
from tests.fixtures.index import built, clustered

SEED = 22
MATRIX = clustered(160, 8)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return built(tmp_path / "graph", MATRIX, m=4, ef=16, min_recall=0.0)


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_a_graph_with_other_valid_links_is_refused_although_its_hash_is_right(graph, share):
    draw, data, before = random.Random(SEED), (graph / "hnsw.bin").read_bytes(), described(graph)
    for _ in range(30):
        nodes = draw.sample(range(len(MATRIX)), int(share * len(MATRIX)))
        (graph / "hnsw.bin").write_bytes(rewired(data, before, nodes, draw))
        reseal(graph, before)
        with pytest.raises(InputError, match="canary"):
            open_index(graph)
    count("rewired graphs with a right hash", 30, seed=SEED)


def test_canaries_without_a_seal_are_refused(graph):
    fields = json.loads((graph / "index.json").read_text())
    (graph / "index.json").write_text(json.dumps({**fields, "seal": ""}))
    with pytest.raises(InputError, match="seal"):
        open_index(graph)
