"""Search finds what `rank` writes."""

from __future__ import annotations

import json

import pytest

import realmctl
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.trec import read_run
from tests.fixtures.chain import Chain, documents


@pytest.mark.parametrize("method", ["dense", "bm25", "hybrid"])
def test_search_finds_what_rank_writes(chain: Chain, tmp_path, method):
    queries = tmp_path / "queries.jsonl"
    words = [f"Where was {name} born?" for name in [*documents()][:3]]
    queries.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(words)))
    inputs = {} if method == "bm25" else {"retriever": chain.retriever, "index": chain.index}
    ranked = Rank(blocks=chain.blocks, queries=queries, method=method, top=100, precision="fp32", **inputs)
    written = [[*names] for _, names in read_run(ranked.make(tmp_path / "ranking").file("run.trec"))]
    search = realmctl.load_search(chain.folder, method=method, precision="fp32")
    assert [[hit.block.id for hit in search.search(text, 4)] for text in words] == [names[:4] for names in written]
    scores, rows = search.search_batch(words, 4)
    assert scores.shape == rows.shape == (3, 4)
    if method != "bm25":
        assert [[search.blocks[row].id for row in own] for own in rows.tolist()] == [names[:4] for names in written]
