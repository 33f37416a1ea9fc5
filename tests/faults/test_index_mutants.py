"""Changed files of an index: each is refused in one paragraph, or answers as the whole index does."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from realmctl.errors import InputError, RealmctlError
from realmctl.index.hnsw_file import _HEADER
from realmctl.index.index_types import HnswIndexDescription
from realmctl.index.store import open_index, read_description
from realmctl.storage.hashing import digest_file
from tests.fixtures.index import built, clustered

SEED = 22
MUTANTS = 400
ODD: list[Any] = [
    0, 1, -1, 2**31, 2**63, 2**64, 10**30, 1.5, 1e308, True, None, "", "7", "hnsw", "exact", "\ud800", [], [[]], [[0]], [["x", 1]],
    [[0, 1], [0]], [[10**9, 1]], {}, {"a": 1}, "x" * 10_000,
]  # fmt: skip
MATRIX = clustered(160, 8)


def answers(folder: Path) -> np.ndarray:
    return open_index(folder).search(clustered(50, 8, seed=1), 5)[1]


@pytest.fixture(scope="module", params=["hnsw", "exact"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("index") / "whole", MATRIX, type=request.param, m=4, ef=16, min_recall=0.0)


def mutants(text: str) -> Iterator[str]:
    """Flipped bits, cuts, and fields that are odd, gone, exchanged or new."""
    draw, fields = random.Random(SEED), json.loads(text)
    for name in fields:
        yield from (json.dumps({**fields, name: value}) for value in ODD)
        yield json.dumps({key: value for key, value in fields.items() if key != name})
        yield json.dumps({**fields, name: fields[draw.choice(sorted(fields))]})
        if type(fields[name]) is int:
            yield from (json.dumps({**fields, name: fields[name] + step}) for step in (-1, 1, 8))
    yield from (
        "",
        "[]",
        "7",
        "null",
        "[" * 50_000,
        json.dumps({**fields, "more": 1}),
        '{"type": "nosuch"}',
        "9" * 5_000,
    )
    for _ in range(MUTANTS):
        data = bytearray(text.encode())
        place = draw.randrange(len(data))
        data[place] ^= 1 << draw.randrange(8)
        yield data.decode("latin-1")
        yield text[:place]


def test_no_mutant_of_a_description_gives_another_answer_or_an_uncaught_exception(whole, tmp_path):
    folder = Path(shutil.copytree(whole, tmp_path / "index"))
    right, text, refused = answers(whole), (whole / "index.json").read_text(), 0
    for number, mutant in enumerate(mutants(text)):
        (folder / "index.json").write_text(mutant, encoding="latin-1")
        try:
            assert (answers(folder) == right).all(), f"mutant {number} of seed {SEED}: {mutant[:300]}"
        except RealmctlError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000
            refused += 1
    assert number > MUTANTS and refused > number // 2


def rewired(data: bytes, description: HnswIndexDescription, nodes: list[int], draw: random.Random) -> bytes:
    """The graph file with other links of some nodes on the ground level: as many, all valid."""
    record = description.shape.record()
    changed = bytearray(data)
    table = np.frombuffer(changed, record, count=description.count, offset=_HEADER.size)
    for node in nodes:
        used = int(table["links"][node])
        table["ids"][node][:used] = [draw.randrange(description.count) for _ in range(used)]
    return bytes(changed)


def reseal(folder: Path) -> None:
    """Write the hash of the changed graph file into the description, and seal it again."""
    description = dataclasses.replace(_described(folder), sha256=digest_file(folder / "hnsw.bin"))
    sealed = dataclasses.replace(description, seal=description.computed_seal())
    (folder / "index.json").write_text(json.dumps(dataclasses.asdict(sealed)))


def _described(folder: Path) -> HnswIndexDescription:
    description = read_description(folder)
    assert isinstance(description, HnswIndexDescription)
    return description


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return built(tmp_path / "graph", MATRIX, m=4, ef=16, min_recall=0.0)


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_a_graph_with_other_valid_links_is_refused_although_its_hash_is_right(graph, share):
    draw, data = random.Random(SEED), (graph / "hnsw.bin").read_bytes()
    for _ in range(30):
        nodes = draw.sample(range(len(MATRIX)), int(share * len(MATRIX)))
        (graph / "hnsw.bin").write_bytes(rewired(data, _described(graph), nodes, draw))
        reseal(graph)
        with pytest.raises(InputError, match="canary queries find worse neighbours"):
            open_index(graph)


def test_an_index_of_an_older_version_without_canaries_opens(graph):
    right = answers(graph)
    fields = json.loads((graph / "index.json").read_text())
    del fields["canaries"], fields["seal"]
    (graph / "index.json").write_text(json.dumps(fields))
    assert (answers(graph) == right).all()


def test_canaries_without_a_seal_are_refused(graph):
    fields = json.loads((graph / "index.json").read_text())
    (graph / "index.json").write_text(json.dumps({**fields, "seal": ""}))
    with pytest.raises(InputError, match="hash in its seal"):
        open_index(graph)
