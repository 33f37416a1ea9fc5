"""`rank --filter`: what passes is ranked, and nothing else."""

from __future__ import annotations

import json

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.retrieval.search.filters import filtered
from tests.extras.filters.test_filters import FILTER, QUERIES, made  # noqa: F401 (a fixture)


def test_rank_with_a_filter_ranks_what_passes(made, tmp_path, realmctl):  # noqa: F811
    blocks, retriever, indexes = made
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps({"id": f"q{n}", "text": q}) + "\n" for n, q in enumerate(QUERIES))
    )
    words = ["rank", "--queries", tmp_path / "q.jsonl", "--blocks", blocks.path, "--retriever", retriever.path]
    words += ["--index", indexes["hnsw"].path, "--top", 1000, "--out", tmp_path / "ranking", "--method", "dense"]
    code, _, err = realmctl(*words, "--filter", FILTER)
    assert code == 0, err
    ranking = open_artifact(tmp_path / "ranking")
    corpus = Corpus(blocks)
    passing = {corpus[row].id for row in filtered(FILTER, corpus)}
    found = [line.split()[2] for line in ranking.file("run.trec").read_text().splitlines()]
    assert {*found} == passing and len(found) == 3 * len(passing)
    assert json.loads(ranking.file("ranking.json").read_text())["filter"] == FILTER
    code, _, err = realmctl(*words, "--filter", "sorce == 'x'")
    assert code == 2 and "sorce" in err and "source (text)" in err
