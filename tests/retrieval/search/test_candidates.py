"""Which blocks a query gets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.corpus.corpus import Corpus
from realmctl.index.exact import ExactIndex
from realmctl.retrieval.search.candidates import ABSENT, NULL, candidates, doubled, in_index, titles_and_bodies
from tests.fixtures.blocks import make_blocks


def brute_force(vectors, query, own, uid, count, null=True):
    ranked = np.argsort(-(vectors @ query), kind="stable")
    kept, seen = [NULL] if null else [], set() if own is None else {int(own)}
    for row in ranked.tolist():
        if int(uid[row]) not in seen and len(kept) < count:
            seen.add(int(uid[row]))
            kept.append(row)
    return kept + [ABSENT] * (count - len(kept))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 60), st.integers(2, 9), *[st.booleans()] * 2)
def test_against_brute_force(seed, blocks, names, count, null, exclude_own):
    """Few names mean that most blocks are copies, more of them than are fetched at first."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-8, 9, (blocks, 3)).astype(np.float32)
    queries = rng.integers(-8, 9, (4, 3)).astype(np.float32)
    uid, own = rng.integers(0, names, blocks).astype(np.uint64), rng.integers(0, names, 4).astype(np.uint64)
    found = candidates(
        in_index(ExactIndex(vectors), queries),
        len(queries),
        [*own[:, None]] if exclude_own else None,
        uid,
        count,
        null=null,
    )
    assert found.tolist() == [
        brute_force(vectors, query, name if exclude_own else None, uid, count, null)
        for query, name in zip(queries, own, strict=True)
    ]


def test_a_query_from_another_corpus_gets_all_its_real_candidates():
    vectors = np.eye(8, dtype=np.float32)
    found = candidates(
        in_index(ExactIndex(vectors), vectors[:2]),
        2,
        [*np.array([[99], [98]], np.uint64)],
        np.arange(8, dtype=np.uint64),
        4,
    )
    assert found[:, 0].tolist() == [NULL, NULL] and found[:, 1].tolist() == [0, 1]
    assert np.all(found[:, 1:] >= 0)


def test_many_copies_of_one_block_take_one_place():
    vectors = np.concatenate([np.tile([[9.0, 0]], (50, 1)), [[1, 0], [0.5, 0]]]).astype(np.float32)
    uid = np.array([7] * 50 + [8, 9], np.uint64)
    found = candidates(
        in_index(ExactIndex(vectors), np.array([[1, 0]], np.float32)), 1, [np.array([0], np.uint64)], uid, 5
    )
    assert found.tolist() == [[NULL, 0, 50, 51, ABSENT]]


def test_a_query_that_is_searched_again_does_not_find_its_own_block():
    """The first and the third query have enough at once. The copies of block 0 make the second and the fourth search again."""
    copies = np.tile([[9.0, 0, 0]], (50, 1))
    vectors = np.concatenate([copies, [[1, 0, 0], [0.5, 0, 0], [0.25, 0, 0]], np.outer(range(9, 0, -1), [0, 0, 1])])
    uid = np.array([7] * 50 + list(range(100, 112)), np.uint64)
    queries = np.array([[0, 0, 1], [1, 0, 0.001], [0, 0, 1], [1, 0, 0.001]], np.float32)
    own = np.array([103, 100, 104, 101], np.uint64)
    found = candidates(in_index(ExactIndex(vectors.astype(np.float32)), queries), len(queries), [*own[:, None]], uid, 4)
    assert found.tolist() == [[NULL, 54, 55, 56], [NULL, 0, 51, 52], [NULL, 53, 55, 56], [NULL, 0, 50, 52]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus(make_blocks(tmp_path_factory.mktemp("w") / "blocks", {"One": [["A b."]], "Two": [["C d e."]]}))


def test_the_null_document_is_empty(corpus):
    titles, bodies = titles_and_bodies(corpus, np.array([NULL, 1, ABSENT, 0]))
    assert [len(title) for title in titles] == [0, 1, 0, 1] and [len(body) for body in bodies] == [0, 4, 0, 3]
    assert np.array_equal(bodies[1], corpus.tokens(1)) and np.array_equal(bodies[3], corpus.tokens(0))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12), st.integers(2, 9))
def test_queries_with_copies_among_their_best_hits(seed, blocks, names, count):
    rng = np.random.default_rng(seed)
    vectors, queries = rng.normal(size=(blocks, 3)).astype(np.float32), rng.normal(size=(5, 3)).astype(np.float32)
    uid = rng.integers(0, names, blocks).astype(np.uint64)
    best = [[uid[row] for row in np.argsort(-(vectors @ query))[:count]] for query in queries]
    expected = [any(best_of.count(one) > 1 for one in best_of) for best_of in best]
    assert doubled(in_index(ExactIndex(vectors), queries), len(queries), uid, count).tolist() == expected
