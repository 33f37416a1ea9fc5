"""The reading practice's curriculum: what each kind of example shows and hides, and which kinds come when."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.extras.practice import reading_practice as module
from realmctl.extras.practice.reading_practice import (
    FIRST,
    LATER,
    MOST_COMMON,
    Curriculum,
    Mixture,
    ReadingPractice,
    partners,
)
from realmctl.models.inputs import Collator
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.frame import Frame
from realmctl.tokens.token_search import occurrences
from realmctl.tokens.tokenizer import Tokenizer
from stages.mlm_init import MlmInit
from tests.fixtures.chain import Chain, Stopped, metrics_of, stop_at

NOTHING = {"copy": 0.0, "noisy": 0.0, "told": 0.0, "random": 0.0, "null": 0.0}


@pytest.fixture(scope="module")
def examples(chain) -> Curriculum:
    queries, corpus = TaggedQueries(chain.spans), Corpus(chain.blocks)
    words = Tokenizer.load(chain.blocks.path)
    found = partners(queries, corpus, 5)
    return Curriculum(queries, corpus, found, Collator.of(words), continues_V=words.continues, window=20)


def only(monkeypatch, kind: str) -> None:
    mixture = Mixture(**{**NOTHING, kind: 1.0})
    monkeypatch.setattr(module, "FIRST", mixture)
    monkeypatch.setattr(module, "LATER", mixture)


def drawn(examples: Curriculum, count: int = 3):
    for number in range(len(examples)):
        for seed in range(count):
            yield number, examples.draw(number, np.random.default_rng([number, seed]))


def restored(example) -> np.ndarray:
    """The sentence with what was hidden put back."""
    assert not example.beside.hidden
    tokens = example.tokens.copy()
    tokens[example.places] = example.targets
    return tokens


def test_every_example_hides_something_and_fits_its_window(examples):
    for _, example in drawn(examples, 8):
        assert example.hidden and len(example.beside.tokens) <= 20
        assert (example.tokens[example.places] == examples.collator.mask_id).all()


def test_a_copy_shows_the_whole_sentence_and_hides_all_its_spans(examples, monkeypatch):
    only(monkeypatch, "copy")
    for number, example in drawn(examples):
        sentence = np.asarray(examples.queries.tokens(number))
        assert (restored(example) == sentence).all()
        assert len(occurrences(example.beside.tokens, sentence[:20]))
        hidden = set(example.places.tolist())
        assert all(set(range(*span)) <= hidden for span in examples.queries.spans_of(number))


def test_a_sentence_without_its_block_is_laid_into_random_text(examples, monkeypatch):
    only(monkeypatch, "copy")
    monkeypatch.setattr(examples, "own", np.full(len(examples), -1))
    for number, example in drawn(examples):
        assert len(occurrences(example.beside.tokens, np.asarray(examples.queries.tokens(number))[:20]))


def test_a_noisy_copy_keeps_what_is_asked_on_both_sides(examples, monkeypatch):
    only(monkeypatch, "noisy")
    shorter = 0
    for number, example in drawn(examples):
        sentence = restored(example)
        shorter += len(sentence) < len(examples.queries.tokens(number))
        for first, stop in runs(example.places):
            assert len(occurrences(example.beside.tokens, sentence[first:stop]))
    assert shorter > len(examples)


def runs(places) -> list[tuple[int, int]]:
    """Consecutive hidden places, as (first, stop)."""
    places = sorted(places.tolist())
    cuts = [i for i in range(1, len(places)) if places[i] != places[i - 1] + 1]
    return [(part[0], part[-1] + 1) for part in (list(p) for p in np.split(places, cuts))]


def test_another_block_tells_what_is_asked(examples, monkeypatch):
    only(monkeypatch, "told")
    ranks = Counter()
    for number, example in drawn(examples, 6):
        sentence = np.asarray(examples.queries.tokens(number))
        for rank, partner in enumerate(examples.partners[number]):
            body = np.asarray(examples.corpus.tokens(int(partner)))
            if len(example.tokens) == len(sentence) and len(occurrences(body, example.beside.tokens)):
                ranks[rank] += 1
                assert examples.corpus.uid[partner] != examples.queries.uid[number]
                for first, stop in runs(example.places):
                    assert len(occurrences(example.beside.tokens, sentence[first:stop]))
                break
    assert len(ranks) > 2  # not always the best partner


def test_a_null_document_is_empty(examples, monkeypatch):
    only(monkeypatch, "null")
    assert all(
        len(example.beside.tokens) == 0 and (restored(example) == examples.queries.tokens(n)).all()
        for n, example in drawn(examples, 1)
    )


def test_the_mixture_changes_after_a_third_of_the_steps(examples, monkeypatch):
    for mixture in (FIRST, LATER):
        kinds = Counter(mixture.draw(np.random.default_rng(seed)) for seed in range(4000))
        for kind in NOTHING:
            assert kinds[kind] / 4000 == pytest.approx(getattr(mixture, kind), abs=0.03)
    monkeypatch.setattr(module, "FIRST", Mixture(**{**NOTHING, "null": 1.0}))
    monkeypatch.setattr(module, "LATER", Mixture(**{**NOTHING, "copy": 1.0}))
    lengths = [
        len(examples.draw(0, np.random.default_rng(0), progress).beside.tokens) for progress in (0.0, 0.34, 0.36, 0.99)
    ]
    assert [bool(length) for length in lengths] == [False, False, True, True]


def test_the_stage_practises_and_a_killed_run_goes_on_to_the_same_bytes(chain, tmp_path, monkeypatch, one_thread):
    stage = MlmInit(
        blocks=chain.blocks,
        spans=chain.spans,
        bert="scratch:L1-H16",
        practice="curriculum",
        window=16,
        steps=4,
        batch_size=4,
        checkpoint_every=1,
    )
    whole = stage.make(tmp_path / "whole")
    assert len(metrics_of(whole)) == 4
    with monkeypatch.context() as patch:
        stop_at(patch, 2)
        with pytest.raises(Stopped):
            stage.make(tmp_path / "again")
    assert stage.make(tmp_path / "again").content == whole.content


@pytest.mark.parametrize(("wrong", "name"), [({"spans": None}, "--spans"), ({"window": 7}, "--window")])
def test_settings_that_cannot_work(chain, tmp_path, wrong, name):
    given = {"spans": chain.spans, "practice": "curriculum", "bert": "scratch:L1-H16", **wrong}
    with pytest.raises(ConfigError, match=name):
        MlmInit(blocks=chain.blocks, **given).make(tmp_path / "made")


def test_partners_equal_brute_force(chain: Chain) -> None:
    queries, corpus = TaggedQueries(chain.spans), Corpus(chain.blocks)
    held = [set(map(int, corpus.title(row))) | set(map(int, corpus.tokens(row))) for row in range(len(corpus))]
    count = {token: sum(token in one for one in held) for one in held for token in one}
    most = max(2, int(MOST_COMMON * len(corpus)))

    def shared(tokens: set[int], row: int) -> float:
        telling = [token for token in tokens & held[row] if count[token] <= most]
        return sum(float(np.log((len(corpus) + 1) / (count[token] + 0.5))) for token in telling)

    found = partners(queries, corpus, 3)
    assert (found[:, :1] == partners(queries, corpus)).all()
    for row, (partner, *others) in enumerate(found):
        tokens = set(map(int, queries.tokens(row)))
        scores = [
            shared(tokens, block) if corpus.uid[block] != queries.uid[row] else -1.0 for block in range(len(corpus))
        ]
        if max(scores) <= 0:
            assert partner == -1
        else:
            ranked = sorted((score for score in scores if score > 0), reverse=True)[:3]
            best = [place for place in (partner, *others) if place >= 0]
            assert [scores[place] for place in best] == pytest.approx(ranked)
            assert len(set(best)) == len(best) and all(corpus.uid[place] != queries.uid[row] for place in best)


def test_a_corpus_where_no_block_restates_a_sentence_is_refused(chain, tmp_path):
    queries, corpus = TaggedQueries(chain.spans), Corpus(chain.blocks)
    nobody = np.full(len(queries), -1, dtype=np.int64)
    with pytest.raises(InputError, match="restates a sentence"):
        ReadingPractice(queries, corpus, nobody, Collator(Frame.bert(0, 1), 2, 3), lengths=(20, 20))


def put_back(query: Query) -> np.ndarray:
    """The sequence with what is hidden put back."""
    tokens = query.tokens.copy()
    tokens[query.places] = query.targets
    return tokens


def test_reading_practice_hides_spans_that_the_block_tells(chain: Chain) -> None:
    queries, corpus = TaggedQueries(chain.spans), Corpus(chain.blocks)
    collator = Collator.of(Tokenizer.load(chain.blocks.path))
    practice = ReadingPractice(queries, corpus, partners(queries, corpus)[:, 0], collator, lengths=(24, 288))
    rng = np.random.default_rng(0)
    told = asked = 0
    for number in list(range(len(practice))) * 5:
        example = practice.draw(number, rng)
        assert (put_back(example) == queries.tokens(int(practice.rows[number]))).all()
        assert len(example.targets), "every sentence is asked something"
        assert example.beside is not None
        told += sum(wordpiece in example.beside.tokens for wordpiece in example.targets)
        asked += len(example.targets)
    assert told / asked > 0.5


def test_a_batch_points_at_its_masks(chain: Chain) -> None:
    queries, corpus = TaggedQueries(chain.spans), Corpus(chain.blocks)
    collator = Collator.of(Tokenizer.load(chain.blocks.path))
    practice = ReadingPractice(queries, corpus, partners(queries, corpus)[:, 0], collator, lengths=(24, 288))
    rng = np.random.default_rng(1)
    drawn = [practice.draw(number, rng) for number in range(6)]
    batch = collator.queries(drawn, *practice.lengths)
    assert (batch.packed.ids_BL.flatten()[batch.place_M] == collator.mask_id).all()
    expected = [part.targets for example in drawn for part in (example, example.beside) if part]
    assert batch.target_M.tolist() == np.concatenate(expected).tolist()
    batch.packed.ids_BL.flatten()[batch.place_M] = batch.target_M
    for ids, example in zip(batch.packed.ids_BL.tolist(), drawn, strict=True):
        parts = [put_back(part).tolist() for part in (example, example.beside) if part]
        whole = [*collator.frame.before, *(token for part in parts for token in [*part, *collator.frame.after])]
        assert ids[: len(whole)] == whole
