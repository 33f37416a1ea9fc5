"""`rank` against brute force: every block scored, sorted by score and row; fused by rank; merged into documents."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, MismatchError
from realmctl.extras.ir import rank_queries as module
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.extras.ir.ranking.trec import read_run
from realmctl.index.index_type import open_index
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.dense import DenseSearcher
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, finetune, make_index, pretrain
from tests.fixtures.retriever import make_retriever

Ranked = dict[str, list[str]]


def made(chain: Chain, folder, **values) -> Artifact:
    parts = {} if values.get("method") == "bm25" else {"retriever": chain.retriever, "index": chain.index}
    return Rank(**{"blocks": chain.blocks, "queries": chain.questions, "top": 7, **parts, **values}).make(folder)


def ranked(artifact: Artifact) -> Ranked:
    return {query: list(found) for query, found in read_run(artifact.file("run.trec"))}


@pytest.fixture(scope="module")
def scores_of(chain: Chain):
    """{method: scores of every block, [queries, blocks]}, computed without an index or postings of the ranking."""
    texts = [query.question for query in read_queries(chain.questions)]
    dense = DenseSearcher(chain.retriever, chain.index, chain.blocks, "cpu", "fp32")
    vectors = open_index(chain.index.path, "cpu").vectors(np.arange(len(dense.corpus)))
    tokens = dense.tokens(texts)
    packed = dense.collator.query(tokens, 512)
    queries = dense.retriever.embed_queries(packed).detach().numpy()
    bm25 = BM25Searcher(chain.blocks, "cpu")
    return {"dense": queries @ vectors.T, "bm25": np.stack([bm25.postings.score(question) for question in tokens])}


def order(scores: np.ndarray) -> list[int]:
    return sorted(range(len(scores)), key=lambda row: (-scores[row], row))


def ids(chain: Chain) -> list[str]:
    return [record.id for record in Corpus(chain.blocks)]


@pytest.mark.parametrize("method", ["dense", "bm25"])
def test_one_searcher_ranks_as_brute_force_does(tmp_path, chain: Chain, scores_of, method: str):
    names = ids(chain)
    expected = {
        str(number): [names[row] for row in order(scores)[:7] if method == "dense" or scores[row] > 0]
        for number, scores in enumerate(scores_of[method], 1)
    }
    compared = {"bm25_tokens": "pieces"} if method == "bm25" else {}
    assert ranked(made(chain, tmp_path, method=method, precision="fp32", **compared)) == expected


def test_hybrid_is_the_fusion_of_both(tmp_path, chain: Chain, scores_of):
    names, expected = ids(chain), {}
    for number, (dense, bm25) in enumerate(zip(scores_of["dense"], scores_of["bm25"], strict=True), 1):
        fused: dict[int, float] = {}
        for rows in (order(dense)[:9], [row for row in order(bm25)[:9] if bm25[row] > 0]):
            for rank, row in enumerate(rows, 1):
                fused[row] = fused.get(row, 0.0) + 1 / (60 + rank)
        expected[str(number)] = [names[row] for row in sorted(fused, key=lambda row: (-fused[row], row))[:7]]
    found = made(chain, tmp_path, method="hybrid", fusion="ranks", depth=9, bm25_tokens="pieces", precision="fp32")
    assert ranked(found) == expected
    first = next(read_run(found.file("run.trec")))[1]
    assert max(first.values()) <= 1 / 61 and math.isclose(max(first.values()), next(iter(first.values())))


def test_hybrid_by_scores_ranks_by_their_mean(tmp_path, chain: Chain, scores_of):
    """Of all 40 blocks: each ranking's scores from 1 to 0, times the root of its gap, the retriever's in cosines and 32 times."""
    names, expected = ids(chain), {}
    vectors = open_index(chain.index.path, "cpu").vectors(np.arange(40)).astype(np.float64)
    factor = 32 / (vectors * vectors).sum(1).mean()
    for number, (dense, bm25) in enumerate(zip(scores_of["dense"], scores_of["bm25"], strict=True), 1):
        found = []
        for scores, scale, weight in ((dense, factor, 1.0), (bm25, 1.0, 0.25)):
            best = np.sort(scores.astype(np.float64))[::-1]
            gap = best[0] - best[9]
            found.append((weight * np.sqrt(scale * gap), (scores - best[-1]) / (best[0] - best[-1])))
        total = sum(weight * part for weight, part in found) / sum(weight for weight, _ in found)
        expected[str(number)] = {names[row]: total[row] for row in order(total)[:7]}
    found = made(chain, tmp_path, method="hybrid", bm25_weight=0.25, bm25_tokens="pieces", precision="fp32")
    assert ranked(found) == {query: list(scores) for query, scores in expected.items()}
    for query, scores in read_run(found.file("run.trec")):
        assert list(scores.values()) == pytest.approx(list(expected[query].values()), rel=1e-4)
    assert json.loads(found.file("ranking.json").read_text())["search"]["bm25_weight"] == 0.25


def test_a_document_stands_where_its_best_block_stands(tmp_path, chain: Chain):
    of_block = {record.id: record.document for record in Corpus(chain.blocks)}
    blocks = ranked(made(chain, tmp_path / "blocks", top=28))
    documents = ranked(made(chain, tmp_path / "documents", unit="document"))
    for query, found in blocks.items():
        assert documents[query] == list(dict.fromkeys(of_block[name] for name in found))[:7]


@pytest.mark.parametrize("fusion", ["ranks", "scores"])
def test_a_ranking_is_the_same_whatever_the_batches(tmp_path, chain: Chain, monkeypatch, fusion):
    """By ranks to the byte. By scores up to the last digits of a query's vector, which depend on the rows that are multiplied with it."""
    first = made(chain, tmp_path / "1", method="hybrid", fusion=fusion, precision="fp32")
    monkeypatch.setattr(module, "QUERIES_AT_ONCE", 3)
    second = made(chain, tmp_path / "2", method="hybrid", fusion=fusion, precision="fp32", batch_size=2)
    assert first.metrics["hits"] == 7 * 20 and (fusion == "scores" or first.content == second.content)
    for (query, one), (asked, other) in zip(
        read_run(first.file("run.trec")), read_run(second.file("run.trec")), strict=True
    ):
        assert query == asked and [*one.values()] == pytest.approx([*other.values()], abs=1e-5)
        assert all(abs(one[name] - other.get(name, one[[*one][-1]])) < 1e-5 for name in one)


def test_a_query_that_shares_no_wordpiece_has_no_hits(tmp_path, chain: Chain):
    path = tmp_path / "queries.tsv"
    path.write_text("q1\t☃\nq2\tAda Lorn\nq3\tBen Mott\n")
    found = made(chain, tmp_path / "r", method="bm25", queries=path)
    assert found.metrics["without_hits"] == 1 and list(ranked(found)) == ["q2", "q3"]
    asked = [json.loads(line) for line in found.file("queries.jsonl").read_text().splitlines()]
    assert asked == [{"id": "q1", "text": "☃"}, {"id": "q2", "text": "Ada Lorn"}, {"id": "q3", "text": "Ben Mott"}]


@pytest.mark.parametrize(("top", "told"), [(8, False), (9, True)])
def test_a_search_deeper_than_the_recall_was_measured_is_told(tmp_path, chain: Chain, capsys, top, told):
    index = make_index(tmp_path, chain.blocks, chain.retriever, type="hnsw", recall_k=(8,))
    capsys.readouterr()
    made(chain, tmp_path / "ranking", index=index, top=top)
    assert ("--recall-k 9" in capsys.readouterr().err) is told


def test_parts_of_models_search_too(tmp_path, chain: Chain):
    model = pretrain(chain, steps=1).make(tmp_path / "model")
    qa_model = finetune(chain, model, steps=1).make(tmp_path / "qa-model")
    for each in (model, qa_model):
        assert made(chain, tmp_path / "r", retriever=each, index=each, method="hybrid").metrics["hits"] == 140
    other = make_retriever(tmp_path / "other", chain.blocks, seed=1)
    with pytest.raises(MismatchError):
        made(chain, tmp_path / "r", retriever=other)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"top": 0}, "--top"),
        ({"depth": 3}, "--depth 3.*--top 7"),
        ({"method": "wrong"}, "dense, bm25"),
        ({"index": None}, "--retriever.*--index"),
    ],
)
def test_what_is_refused(tmp_path, chain: Chain, values, says: str):
    with pytest.raises(ConfigError, match=says):
        made(chain, tmp_path, **values)


def test_bm25_ignores_a_retriever_and_an_index(tmp_path, chain: Chain, capsys):
    """They change neither the recipe nor which blocks are taken."""
    found = made(chain, tmp_path / "r", method="bm25", index=chain.index)
    assert "index" not in found.manifest.inputs and found.recipe == made(chain, tmp_path / "r", method="bm25").recipe
    blocks = tmp_path / "blocks"
    for version in (chain.blocks, make_blocks(tmp_path / "other", {"Ada": [["Ada saw Ben."]]})):
        shutil.copytree(version.path, blocks / f"v{1 + len([*blocks.glob('*')])}")
    stage = Rank(
        blocks=blocks, queries=chain.questions, method="bm25", retriever=chain.retriever.path, index=chain.index.path
    )
    assert stage.blocks.path.name == "v2" and stage.inputs().keys() == {"blocks"}
    said = capsys.readouterr().err
    assert "--index" in said and "--retriever" in said


def test_judged_documents_that_the_blocks_lack_are_counted(chain: Chain, tmp_path, capsys):
    document = Corpus(chain.blocks)[0].document
    (tmp_path / "q.jsonl").write_text('{"_id": "q1", "text": "Where was Ada Lorn born?"}\n')
    (tmp_path / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\nq1\t{document}\t1\nq1\tnowhere\t1\nq1\tno\t0\n")
    words = {"queries": tmp_path / "q.jsonl", "qrels": tmp_path / "qrels.tsv", "method": "bm25", "unit": "document"}
    made(chain, tmp_path / "ranking", **words)
    assert "1 of 2 judged documents are not in" in capsys.readouterr().err
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    lines = (tmp_path / "qrels.tsv").read_text()
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text(lines + "q2\tunasked\t1\n")
    made(chain, tmp_path / "again", **{**words, "qrels": tmp_path / "beir"})
    said = capsys.readouterr().err
    assert said.count("judgements of test.tsv") == said.count("1 judged queries are not in it") == 1
