"""The stemmer is an option of `rank` and `eval-em`."""

from __future__ import annotations

import pytest

from realmctl.errors import ConfigError, ResourceError
from realmctl.extras.ir.rank import Rank
from realmctl.retrieval.search.stems import check_stemmer
from stages.eval_em import EvalEm
from tests.fixtures.blocks import make_blocks

pytest.importorskip("Stemmer")


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    pages = {
        "Mountains": [["Hikers were climbing the hills.", "They hiked happily!"], ["A climber's house stood there."]],
        "Houses": [["Housing was generally cheap.", "Running water ran."], ["The runner runs a café."]],
    }
    return make_blocks(tmp_path_factory.mktemp("stems") / "blocks", pages)


def test_the_stemmer_is_an_option_of_rank_and_of_eval_em(blocks, tmp_path, monkeypatch):
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a hiker"}\n')
    first = []
    for compared in ({"bm25_tokens": "pieces"}, {"bm25_stemmer": "english"}, {}):
        ranking = Rank(blocks=blocks, queries=tmp_path / "queries.jsonl", method="bm25", top=1, **compared).make(
            tmp_path / "ranking"
        )
        first.append(ranking.file("run.trec").read_text())
    assert " 0-0 " in first[1] and first[0] != first[1]  # "a hiker" finds the hikers
    assert first[2] == first[1], "the stemmer of the blocks' language is the default"
    rank = {"blocks": blocks, "queries": tmp_path / "queries.jsonl", "method": "bm25"}
    with pytest.raises(ConfigError, match="klingon"):
        Rank(**rank, bm25_stemmer="klingon").make(tmp_path / "ranking")
    with pytest.raises(ConfigError, match="--bm25-stemmer"):
        EvalEm(
            blocks=blocks,
            questions=tmp_path / "queries.jsonl",
            bm25_stemmer="english",
            qa_model=None,
            retrieval="dense",
        ).check()
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None)
    with pytest.raises(ResourceError, match="Stemmer"):
        check_stemmer("--bm25-stemmer", "english")
