"""The kNN-LM against brute force over every stored state, and its stages' inputs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import QualityError
from realmctl.extras.hnsw.hnsw import HnswIndex
from realmctl.extras.utility.eval_utility import EvalUtility
from realmctl.index.build import build
from realmctl.index.settings import IndexSettings
from realmctl.lab.knn_lm import knn_lm
from realmctl.lab.knn_lm.build_datastore import BuildDatastore
from realmctl.lab.knn_lm.eval_knn_lm import EvalKnnLm
from realmctl.lab.knn_lm.mixture import stored_keys
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.encoder import hidden_states
from realmctl.models.inputs import Collator
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from stages.mlm_init import MlmInit
from stages.tag import Tag
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents
from tests.fixtures.transformers_bert import as_transformers

FAST = {"precision": "fp32"}


@pytest.fixture(scope="module")
def datastore(chain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    return BuildDatastore(encoder=chain.encoder, spans=chain.spans, batch_size=7, **FAST).make(folder / "datastore")


@pytest.fixture(scope="module")
def brute(chain):
    """(state, log p of every wordpiece, wordpiece, uid) of each hidden wordpiece, one span at a time."""
    model, queries = load_masked_lm(chain.encoder.path)[0].eval(), TaggedQueries(chain.spans)
    head = as_transformers(model).cls.predictions
    packer, found = Collator.of(Tokenizer.load(chain.spans.path)), []
    for sentence, first, stop, *_ in queries.spans.tolist():
        tokens = np.array(queries.tokens(sentence), dtype=np.int64)
        targets = tokens[first:stop].copy()
        tokens[first:stop] = packer.mask_id
        packed = packer.joint([tokens], [tokens[:0]], 24, 8)
        with torch.no_grad():
            states = head.transform(hidden_states(model.bert, packed))[0]
        for place, target in zip(range(first, stop), targets, strict=True):
            log_prob = head.decoder(states[place + 1]).log_softmax(-1).detach().numpy()
            found.append((states[place + 1].numpy().astype(np.float64), log_prob, int(target), queries.uid[sentence]))
    return found


def expected(brute, k, share, temperature):
    """Means of log p and accuracy of the mixture, and of log p of the model alone, by a plain loop in float64."""
    mixture, right, alone = [], [], []
    for state, log_prob, target, uid in brute:
        others = [(float(((state - key) ** 2).sum()), word) for key, _, word, own in brute if own != uid]
        nearest = sorted(others)[:k]
        weights = np.exp(-np.array([distance for distance, _ in nearest]) / temperature)
        p = (1 - share) * np.exp(log_prob.astype(np.float64))
        for weight, (_, word) in zip(weights / weights.sum(), nearest, strict=True):
            p[word] += share * weight
        mixture.append(np.log(p[target]))
        right.append(p.argmax() == target)
        alone.append(log_prob[target])
    return np.mean(mixture), np.mean(right), np.mean(alone)


def measured(chain, datastore, out, **values):
    stage = EvalKnnLm(encoder=chain.encoder, datastore=datastore, spans=chain.spans, **{**FAST, **values})
    return stage.make(out / "utility").metrics


@pytest.mark.parametrize(("k", "share", "temperature"), [(10_000, 0.5, 1.0), (500, 0.25, 3.0), (10_000, 0.9, 0.5)])
def test_the_mixture_over_all_other_blocks_is_that_of_brute_force(
    chain, datastore, brute, tmp_path, monkeypatch, k, share, temperature
):
    monkeypatch.setattr(knn_lm, "KEYS_AT_ONCE", 500)
    log_prob, accuracy, alone = expected(brute, k, share, temperature)
    found = measured(chain, datastore, tmp_path, neighbours=k, share=share, temperature=temperature, batch_size=9)
    assert found["wordpieces"] == len(brute) == datastore.metrics["rows"]
    assert found["log_prob"] == pytest.approx(log_prob, abs=2e-4)
    assert found["lm_log_prob"] == pytest.approx(alone, abs=1e-4)
    assert found["knn_utility"] == pytest.approx(log_prob - alone, abs=2e-4)
    assert found["accuracy"] == pytest.approx(accuracy, abs=1.5 / len(brute))


def made_of_random_states(folder, type):
    """States of three hundred wordpieces: those of the chain have ties, as many of its sentences differ in the hidden words alone."""
    rng = np.random.default_rng(0)
    keys, words, uids = (
        rng.normal(size=(300, 8)).astype(np.float32),
        rng.integers(20, size=300),
        rng.integers(6, size=300),
    )
    folder.mkdir()
    np.save(folder / "vectors.npy", stored_keys(keys))
    knn_lm._centre_last_column(folder / "vectors.npy")
    np.save(folder / "wordpieces.npy", words.astype(np.int32))
    np.save(folder / "uids.npy", uids.astype(np.uint64))
    np.save(folder / "sentences.npy", uids.astype(np.uint64))
    build(folder, IndexSettings(type=type, ef=300, min_recall=0.0))
    store = knn_lm.Datastore(SimpleNamespace(path=folder, file=folder.joinpath), torch.device("cpu"))
    return store, keys, words, uids


@pytest.mark.parametrize(("k", "temperature"), [(1, 1.0), (7, 2.0)])
def test_a_few_neighbours_are_those_of_brute_force(tmp_path, k, temperature):
    store, keys, words, uids = made_of_random_states(tmp_path / "exact", "exact")
    graph, *_ = made_of_random_states(tmp_path / "hnsw", "hnsw")
    rng = np.random.default_rng(1)
    queries, own = rng.normal(size=(40, 8)).astype(np.float32), rng.integers(6, size=40)
    rows = store.nearest(queries, own.astype(np.uint64), k)
    spread = store.spread(torch.from_numpy(queries), rows, temperature, 20).numpy()
    for query, uid, found, p in zip(queries, own, rows, spread, strict=True):
        others = [row for row in range(300) if uids[row] != uid]
        distances = sorted((float(((query - keys[row]) ** 2).sum()), row) for row in others)[:k]
        assert found.tolist() == [row for _, row in distances]
        expected = np.zeros(20)
        for distance, row in distances:
            expected[words[row]] += np.exp(-distance / temperature)
        assert np.allclose(p, expected / expected.sum(), atol=1e-5)
    near = graph.nearest(queries, own.astype(np.uint64), k)
    assert (uids[near] != own[:, None]).all()
    assert np.mean([len(set(a) & set(b)) / k for a, b in zip(near, rows, strict=True)]) >= 0.9


def test_rows_are_stored_with_their_wordpiece_and_block(datastore, brute):
    vectors = np.load(datastore.file("vectors.npy"))
    keys = np.array([state for state, *_ in brute])
    assert np.allclose(vectors[:, :-1], keys, atol=1e-5)
    halves = -0.5 * (keys**2).sum(1)
    assert np.allclose(vectors[:, -1], halves - halves.mean(), atol=1e-4)
    assert np.load(datastore.file("wordpieces.npy")).tolist() == [word for _, _, word, _ in brute]
    assert np.load(datastore.file("uids.npy")).tolist() == [uid for *_, uid in brute]


def test_no_neighbour_is_from_the_block_itself(datastore, brute):
    store = knn_lm.Datastore(datastore, torch.device("cpu"))
    states = np.array([state for state, *_ in brute], dtype=np.float32)
    uids = np.array([uid for *_, uid in brute], dtype=np.uint64)
    for k in (3, len(brute)):
        rows = store.nearest(states, uids, k)
        for query, found in enumerate(rows):
            others = int((uids != uids[query]).sum())
            assert (found >= 0).sum() == min(k, others) and not (uids[found[found >= 0]] == uids[query]).any()


def test_a_datastore_of_another_cut_lends_no_sentence_to_itself(chain, datastore, tmp_path):
    """The same documents, of one block each. Each sentence stands in both cuts, so its own state is at distance 0."""
    whole = make_blocks(tmp_path / "blocks", {title: [[*birth, *work]] for title, (birth, work) in documents().items()})
    assert not set(Corpus(whole).uid.tolist()) & set(Corpus(chain.blocks).uid.tolist())
    spans = Tag(blocks=whole, tagger="anchors", query_length=24, workers=1).make(tmp_path / "spans")
    store = knn_lm.Datastore(datastore, torch.device("cpu"))
    stage = EvalKnnLm(encoder=chain.encoder, datastore=datastore, spans=spans, **FAST)
    states, compared = knn_lm.SpanStates(stage), 0
    stored = TaggedQueries(chain.spans)
    of_sentence = {stored.tokens(row).tobytes(): stored.uid[row] for row in range(len(stored))}
    for batch, state_MH in states.batches(16):
        own_M = store.own_blocks(states.uid_M(batch), states.sentence_M(batch))
        rows_MK = store.nearest(state_MH.numpy(), own_M, 10_000)
        sentences = [query.sentence for query in batch.queries for _ in range(query.hidden)]
        for sentence, rows in zip(sentences, rows_MK, strict=True):
            held = of_sentence[states.queries.tokens(sentence).tobytes()]
            compared += 1
            assert held not in store.uids[rows[rows >= 0]]
    assert compared == sum(query.hidden for batch, _ in states.batches(16) for query in batch.queries) > 100
    assert stage.make(tmp_path / "utility").metrics["wordpieces"] == compared


def test_a_share_of_nothing_and_of_everything(chain, datastore, tmp_path):
    none = measured(chain, datastore, tmp_path, share=0.0)
    assert none["log_prob"] == pytest.approx(none["lm_log_prob"]) and none["knn_utility"] == pytest.approx(0, abs=1e-6)
    everything = measured(chain, datastore, tmp_path, share=1.0, neighbours=1)
    assert everything["log_prob"] is None and everything["knn_utility"] is None
    assert 0 <= everything["accuracy"] <= everything["knn_coverage"] < 1


def test_without_neighbours_it_is_realms_reader_without_retrieval(chain, datastore, tmp_path):
    utility = EvalUtility(
        blocks=chain.blocks,
        spans=chain.spans,
        retriever=chain.retriever,
        index=chain.index,
        encoder=chain.encoder,
        **FAST,
    ).make(tmp_path / "realm")
    found = measured(chain, datastore, tmp_path)
    without = utility.metrics["log_prob"] - utility.metrics["retrieval_utility"]
    assert found["lm_log_prob"] == pytest.approx(without, abs=1e-4)
    assert found["queries"] == utility.metrics["queries"] and found["wordpieces"] == utility.metrics["wordpieces"]


def test_a_graph_that_misses_neighbours_is_not_kept(tmp_path, monkeypatch):
    options = IndexSettings(type="hnsw", ef=300, min_recall=0.9)
    made_of_random_states(tmp_path / "hnsw", "hnsw")
    assert knn_lm.require_neighbours(tmp_path / "hnsw", options, "cpu") >= 0.9
    search = HnswIndex.search
    monkeypatch.setattr(HnswIndex, "search", lambda index, queries, k: search(index, 0.01 * queries, k))
    with pytest.raises(QualityError, match="90%"):
        knn_lm.require_neighbours(tmp_path / "hnsw", options, "cpu")
    assert not (tmp_path / "hnsw" / "index.json").exists()


def test_hnsw_finds_the_same_neighbours(chain, datastore, tmp_path):
    graph = BuildDatastore(encoder=chain.encoder, spans=chain.spans, type="hnsw", **FAST).make(tmp_path / "hnsw")
    exact, near = (measured(chain, store, tmp_path, neighbours=4) for store in (datastore, graph))
    assert near["log_prob"] == pytest.approx(exact["log_prob"], abs=0.02)


def test_what_is_refused(realmctl, chain, datastore, tmp_path):
    other = MlmInit(blocks=chain.blocks, bert="scratch:L1-H16", steps=2, batch_size=2, length=24).make(
        tmp_path / "other"
    )
    inputs = ("--datastore", datastore.path, "--spans", chain.spans.path, "--encoder")
    for code, text, options in (
        (2, "--share 1.5", (chain.encoder.path, "--share", 1.5)),
        (2, "--share -0.1", (chain.encoder.path, "--share", -0.1)),
        (2, "--share", (chain.encoder.path, "--share", "nan")),
        (2, "--neighbours 0", (chain.encoder.path, "--neighbours", 0)),
        (2, "--neighbours 1", (chain.encoder.path, "--neighbours", 10**9)),
        (2, "--temperature 0", (chain.encoder.path, "--temperature", 0)),
        (4, "does not belong to", (other.path,)),
    ):
        got, out, err = realmctl("eval-knn-lm", *inputs, *options, "--out", "made")
        assert (got, out) == (code, "") and text in " ".join(err.split()), err
    assert not list(tmp_path.glob("**/made/v*"))
    assert open_artifact(datastore.path).lineage["encoder"] == chain.encoder.content
