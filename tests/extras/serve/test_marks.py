"""What the page marks in a hit, and when it says that nothing close was found."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.extras.serve import closeness
from realmctl.extras.serve.closeness import Closeness
from realmctl.extras.serve.marks import Marks
from realmctl.retrieval.search.block_search import Hit
from tests.fixtures.blocks import make_blocks


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    texts = {
        f"T{number}": [[f"The mill number {number} of the town was built in 18{number:02}."]] for number in range(60)
    }
    return Corpus(make_blocks(tmp_path_factory.mktemp("marks") / "blocks", texts))


def test_words_are_marked_whatever_their_endings_but_not_those_that_most_blocks_hold(corpus):
    marks = Marks(corpus, "english")
    text = "Repositories are ENCRYPTED; the repository's keys, and encryption of the town."
    found = [text[start:end] for start, end in marks.of("How is the repository encrypted in the town?", text)]
    assert found == ["Repositories", "ENCRYPTED", "repository", "encryption"]
    assert Marks(corpus, None).of("the repository", text) == [(text.index("repository"), text.index("'s"))]
    assert marks.of("the town", text) == [] and marks.share("the town", text) == 0
    assert marks.share("repository of mice", text) == 0.5


def test_offsets_count_characters_and_a_script_without_blanks_is_searched_within(corpus):
    text = "𝒳 東京都の人口は多い。"
    assert [text[start:end] for start, end in Marks(corpus, None).of("東京", text)] == ["東京"]


class Similar:
    """A searcher whose best score is the share of a query's words that the field knows, times 10."""

    def __init__(self, corpus):
        self.corpus = corpus

    def tokens(self, queries):
        return queries

    def nearest(self, queries, k):
        known = [10 * np.mean([word in "mill number town built 42" for word in query.split()]) for query in queries]
        return np.array(known)[:, None], np.zeros((len(known), 1), int)


def test_a_query_is_far_if_it_is_less_similar_than_words_drawn_from_the_corpus(corpus, monkeypatch):
    monkeypatch.setattr(closeness, "FEWEST_BLOCKS", 50)
    found, marks = Closeness(Similar(corpus)), Marks(corpus, "english")
    assert 0 < found.least < 10
    hit = Hit(7, corpus.block(7), 1.0, 1.0)
    far = found.nothing_close(["xyzzy plugh", "mill town", "1807"], [[hit]] * 3, marks, False)
    assert far == [True, False, False], "the block has the only word of the last one"
    assert found.nothing_close(["xyzzy"], [[hit]], marks, True) == [found.least > 1.0], "the hit's own score counts"
    monkeypatch.setattr(closeness, "FEWEST_BLOCKS", 61)
    assert Closeness(Similar(corpus)).least == -np.inf
