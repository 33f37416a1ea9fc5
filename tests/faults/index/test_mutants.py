"""Mutants of an index, opened in a child process: none ends the process, and none without its hash answers otherwise."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from realmctl.errors import RealmctlError
from realmctl.index.index_type import open_index
from tests.faults.children import ended, forked
from tests.faults.counting import count, rounds, share
from tests.faults.index import mutants
from tests.fixtures.index import built, clustered

SEED = 22
DESCRIPTIONS, SEALED, GRAPHS, HASHED = 350, 100, 250, 300
"""Mutants of a round: of the description, also with a new seal, of the graph file, also with its hash computed again."""
MATRIX, QUERIES = clustered(160, 8), clustered(50, 8, seed=1)

Mutate = Callable[[random.Random], None]
"""Changes the files of the copy."""


def answers(folder: Path) -> np.ndarray:
    return open_index(folder).search(QUERIES, 5)[1]


@pytest.fixture(params=["hnsw", "exact"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return built(tmp_path / "index", MATRIX, type=request.param, m=4, ef=16, min_recall=0.0)


@pytest.fixture
def hnsw(tmp_path: Path) -> Path:
    return built(tmp_path / "index", MATRIX, m=4, ef=16, min_recall=0.0)


def outcomes(folder: Path, number: int, mutate: Mutate, told: Path) -> Counter[str]:
    """Open so many mutants in a child process: how many were refused, answered as the whole index, or otherwise."""
    right, whole = answers(folder), {path: path.read_bytes() for path in folder.iterdir()}

    def act() -> None:
        found: Counter[str] = Counter()
        for each in range(number):
            mutate(random.Random(f"{SEED}-{each}"))
            (told / "mutant").write_text(str(each))
            try:
                found["as before" if np.array_equal(answers(folder), right) else "otherwise"] += 1
            except RealmctlError as error:
                assert "\n" not in str(error) and len(str(error)) < 1000
                found["refused"] += 1
            for path, data in whole.items():
                path.write_bytes(data)
        (told / "outcomes").write_text(json.dumps(found))

    code = ended(forked(act, told / "log"))
    assert code == 0, (
        f"mutant {(told / 'mutant').read_text()} ended the process with {code}: {(told / 'log').read_text()}"
    )
    found = Counter(json.loads((told / "outcomes").read_text()))
    assert found.total() == number
    return found


def test_no_mutant_of_a_description_gives_another_answer(index, tmp_path):
    text, number = (index / "index.json").read_text(), DESCRIPTIONS * rounds() // 2

    def mutate(draw: random.Random) -> None:
        (index / "index.json").write_text(mutants.description(text, draw), encoding="latin-1", errors="replace")

    found = outcomes(index, number, mutate, tmp_path)
    assert found["otherwise"] == 0 and found["refused"] > number // 2
    count("mutants of index.json", number, seed=SEED)


def test_no_mutant_of_a_graph_gives_another_answer(hnsw, tmp_path):
    data, before = (hnsw / "hnsw.bin").read_bytes(), mutants.described(hnsw)
    found = outcomes(hnsw, share(GRAPHS), lambda draw: _write(hnsw, mutants.graph(data, before, draw)), tmp_path)
    assert found["otherwise"] == 0
    count("mutants of an hnsw file", found.total(), seed=SEED)


def test_no_mutant_of_a_graph_with_a_new_hash_ends_the_process(hnsw, tmp_path):
    data, before = (hnsw / "hnsw.bin").read_bytes(), mutants.described(hnsw)

    def mutate(draw: random.Random) -> None:
        _write(hnsw, mutants.graph(data, before, draw))
        mutants.reseal(hnsw, before)

    found = outcomes(hnsw, share(HASHED), mutate, tmp_path)
    require_most_refused(found)
    otherwise = found["otherwise"]
    count("mutants of an hnsw file, its hash computed again", found.total(), answered_otherwise=otherwise, seed=SEED)


def test_no_mutant_of_a_description_with_a_new_seal_ends_the_process(hnsw, tmp_path):
    text = (hnsw / "index.json").read_text()
    found = outcomes(
        hnsw,
        share(SEALED),
        lambda draw: (hnsw / "index.json").write_text(mutants.sealed_description(text, draw)) and None,
        tmp_path,
    )
    require_most_refused(found)
    otherwise = found["otherwise"]
    count("mutants of index.json, its seal computed again", found.total(), answered_otherwise=otherwise, seed=SEED)


def _write(folder: Path, data: bytes) -> None:
    (folder / "hnsw.bin").write_bytes(data)


def require_most_refused(found: Counter[str]) -> None:
    """Who computes the hashes again may change some neighbours: how often the canaries let it pass is counted."""
    assert found["refused"] > found.total() // 3 and found["otherwise"] < found.total() // 5
