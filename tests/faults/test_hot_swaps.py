"""The index is replaced again and again while queries are asked: none fails, and each is answered by one whole index."""

from __future__ import annotations

import threading
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest

from realmctl.artifacts import Artifact
from realmctl.index.index_type import open_index
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.refresh.kinds import Refresh
from stages.build_index import BuildIndex
from stages.embed import Embed
from tests.faults.counting import count, rounds
from tests.fixtures.retriever import make_retriever

SEED, SWAPS, ASKERS = 22, 20, 2


@pytest.fixture(scope="module")
def indexes(chain, tmp_path_factory) -> list[Artifact]:
    """Graphs and an exact index, of three retrievers."""
    folder = tmp_path_factory.mktemp("indexes")
    made = []
    for number, kind in enumerate(("hnsw", "hnsw", "exact")):
        retriever = make_retriever(folder / f"retriever{number}", chain.blocks, seed=number)
        embeddings = Embed(blocks=chain.blocks, retriever=retriever).make(folder / f"embeddings{number}")
        made.append(BuildIndex(embeddings=embeddings, type=kind, min_recall=0.0).make(folder / f"index{number}"))
    return made


class Fresh(Refresh):
    """A refresh that has another index at every step."""

    def __init__(self, indexes: list[Artifact]) -> None:
        self.indexes = cycle(indexes)

    def take(self, step: int, in_use: int) -> tuple[int, Artifact]:
        return in_use + 1, next(self.indexes)


@pytest.mark.timeout(3600)
def test_no_query_fails_during_a_thousand_swaps(indexes):
    right = [open_index(index.path) for index in indexes]
    queries = np.random.default_rng(SEED).standard_normal((8, right[0].dimension), dtype=np.float32)
    answers = [index.search(queries, 5)[1].tolist() for index in right]
    assert len({str(each) for each in answers}) == len(indexes)
    current = IndexInUse(indexes[0], "cpu", Fresh([*indexes[1:], indexes[0]]))
    faults, asked, over = list[str](), [0] * ASKERS, threading.Event()

    def ask(number: int) -> None:
        while not over.is_set():
            try:
                found = current.index.search(queries, 5)[1].tolist()
            except Exception as error:
                faults.append(repr(error))
            else:
                if found not in answers:
                    faults.append(str(found))
            asked[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(ASKERS)]
    for thread in threads:
        thread.start()
    swaps, before = SWAPS * rounds(), 0
    for step in range(swaps):
        current.renew(step, SimpleNamespace())
        while step % 10 == 0 and sum(asked) == before:  # queries are asked between the swaps
            pass
        before = sum(asked)
    over.set()
    for thread in threads:
        thread.join()
    assert faults == [] and all(asked) and current.step == swaps
    count("hot swaps of the index under constant queries", swaps, queries=sum(asked), seed=SEED)
