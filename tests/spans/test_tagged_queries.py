"""What pre-training hides of a tagged sentence: REALM's masks and its baselines."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.errors import ConfigError
from realmctl.spans.masking import Masking, masking_of
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer


class Narrow(TaggedQueries):
    """The chain's sentences as short queries of which few wordpieces are asked for."""

    query_length, max_masks = 6, 2


class LongSpan(TaggedQueries):
    """Spans of the chain, of which the first is made to cover its whole sentence."""

    query_length, max_masks = 101, 2

    def __init__(self, spans):
        super().__init__(spans)
        self.spans = np.array(self.spans)
        self.spans[0, 1:3] = 0, len(self.tokens(int(self.spans[0, 0])))


def draw(queries, masking, span, *, seed=0):
    words = Tokenizer.load(queries.artifact.path)
    return queries.query(span, 4, masking_of(masking, words), np.random.default_rng(seed))


@pytest.mark.parametrize("masking", ["salient", "random-span", "random-uniform"])
def test_hidden_wordpieces_are_masked_and_remembered(chain, masking):
    queries = TaggedQueries(chain.spans)
    for span in range(len(queries.spans)):
        query = draw(queries, masking, span)
        original = queries.tokens(query.sentence).astype(np.int64)
        assert np.array_equal(query.targets, original[query.places]) and len(query.places)
        assert np.all(query.tokens[query.places] == 4)
        kept = np.setdiff1d(np.arange(len(original)), query.places)
        assert np.array_equal(query.tokens[kept], original[kept])


def test_salient_masking_hides_the_span_and_nothing_else(chain):
    queries = TaggedQueries(chain.spans)
    for span, (sentence, first, stop, _) in enumerate(queries.spans.tolist()):
        query = draw(queries, "salient", span)
        assert query.sentence == sentence and query.places.tolist() == list(range(first, stop))


def test_random_span_hides_as_many_side_by_side_elsewhere(chain):
    queries = TaggedQueries(chain.spans)
    places = set()
    for seed in range(200):
        query = draw(queries, "random-span", 0, seed=seed)
        width = int(queries.spans[0, 2] - queries.spans[0, 1])
        assert query.places.tolist() == list(range(query.places[0], query.places[0] + width))
        places.add(int(query.places[0]))
    assert places == set(range(len(query.tokens) - width + 1))


@pytest.mark.parametrize(("length", "count"), [(1, 1), (6, 1), (11, 2), (12, 2), (13, 2), (18, 3), (20, 3)])
def test_random_uniform_hides_15_percent(chain, monkeypatch, length, count):
    monkeypatch.setattr(TaggedQueries, "tokens", lambda queries, row: np.arange(10, 10 + length))
    query = draw(TaggedQueries(chain.spans), "random-uniform", 0)
    assert len(query.places) == len(set(query.places.tolist())) == count


@pytest.mark.parametrize("masking", ["salient", "random-span", "random-uniform"])
def test_nothing_is_hidden_beyond_the_room_of_a_query(chain, masking):
    for seed in range(20):
        query = draw(Narrow(chain.spans), masking, 0, seed=seed)
        assert len(query.tokens) == 4 and len(query.places) <= 2
        assert np.all(query.places < 4)


def test_all_of_a_long_span_is_hidden_and_its_beginning_asked_for(chain):
    queries = LongSpan(chain.spans)
    whole = queries.tokens(int(queries.spans[0, 0]))
    query = draw(queries, "salient", 0)
    assert query.tokens.tolist() == [4] * len(whole) and len(whole) > 2
    assert query.places.tolist() == [0, 1] and query.targets.tolist() == whole[:2].tolist()


@pytest.mark.parametrize("places", [[], [-1], [2, 1], [1, 1], [99], [0.5], [[0]], None])
def test_places_that_a_masking_may_not_return_are_refused(chain, places):
    """A negative place would hide a wordpiece of the sentence's end in silence."""

    class Torn(Masking):
        def places(self, sentence, span, most, rng):
            return places

    queries = TaggedQueries(chain.spans)
    with pytest.raises(
        ConfigError, match=r"`places` of .*Torn returns .* for \d+ wordpieces, and a masking returns rising places"
    ):
        queries.query(0, 4, Torn(Tokenizer.load(chain.spans.path)), np.random.default_rng(0))
