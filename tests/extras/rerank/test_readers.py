"""REALM's readers as rerankers, beside sums by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import realmctl
from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.trec import read_run
from realmctl.extras.ir.rerank import Rerank
from realmctl.extras.rerank.readers import HIDINGS, ModelReader, QaReader
from realmctl.models.span_head import LOWEST
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.retrieval.search.reranking import Pair, Reranking
from tests.fixtures.chain import Chain, baseline

QUESTION = "Where was Ada Lorn born?"


def pairs(chain: Chain, rows) -> list[Pair]:
    corpus = Corpus(chain.blocks)
    return [Pair(QUESTION, corpus[row].title, corpus[row].text) for row in rows]


def test_a_qa_model_sums_the_likelihood_of_the_spans(chain: Chain, qa_model):
    qa = QaModel.open(qa_model, blocks=chain.blocks, precision="fp32")
    [hits], tokens = qa.searcher.search(qa.tokens([QUESTION]), 40), qa.tokens([QUESTION])
    with torch.no_grad():
        score_BS, _, _ = qa.answerer._scored([(tokens[0], hit) for hit in hits])
    if qa.answerer.by_block:
        pytest.fail("the fixture's spans have a softmax over all blocks")
    expected = [float(np.log(np.exp(own[own > LOWEST / 2].double().numpy()).sum())) for own in score_BS]
    found = QaReader.open(qa_model.path, "cpu").scores(pairs(chain, [hit.row for hit in hits]))
    assert found == pytest.approx(expected, abs=1e-4) and np.ptp(expected) > 1e-3
    assert QaReader.open(qa_model.path, "cpu").scores([]).shape == (0,)


def test_a_model_sums_the_log_probabilities_of_the_questions_wordpieces(chain: Chain, model):
    loaded, reader = (
        realmctl.load_model(model, blocks=chain.blocks, precision="fp32"),
        ModelReader.open(model.path, "cpu"),
    )
    [tokens], collator = loaded.dense.tokens([QUESTION]), loaded.dense.collator
    found, expected = reader.scores(pairs(chain, range(20))), []
    for row in range(20):
        total = 0.0
        for place in range(len(tokens)):
            masked = tokens.copy()
            masked[place % HIDINGS :: HIDINGS] = collator.mask_id
            joint = collator.joint(
                [masked], [loaded.blocks.tokens(row)], len(tokens) + 2, loaded.dense.retriever.block_length
            )
            with torch.no_grad():
                logits_V = loaded.reader.logits(joint, torch.tensor([[place + 1]]), 1)[0, 0, 0]
            total += float(logits_V.log_softmax(-1)[tokens[place]])
        expected.append(total)
    assert len(tokens) > HIDINGS and found == pytest.approx(expected, rel=1e-4) and np.ptp(expected) > 1e-3


def test_a_series_of_models_is_opened_by_its_kind_and_what_reads_no_blocks_is_refused(
    chain: Chain, qa_model, model, tmp_path
):
    for artifact, kind in ((qa_model, QaReader), (model, ModelReader)):
        found = Reranking.of(artifact.path.parent, 5)
        assert found is not None and isinstance(found.model, kind) and found.name == f"{artifact.path.parent.name}/v1"
    closed = baseline(chain, "none").make(tmp_path / "closed")
    with pytest.raises(MismatchError, match="does not rerank"):
        Reranking.of(closed.path, None)


@pytest.mark.parametrize("method", ["dense", "hybrid"])
def test_a_search_adds_its_own_probability_to_the_likelihood_of_a_reader(chain: Chain, qa_model, method):
    """REALM's equation 1, as `ask` has it."""
    search = realmctl.load_search(chain.folder, method=method, rerank=qa_model.path, rerank_depth=12)
    plain = realmctl.load_search(chain.folder, method=method).search(QUESTION, 12)
    read = QaReader.open(qa_model.path, "cpu").scores(pairs(chain, [hit.row for hit in plain]))
    scores = read + np.log([hit.probability for hit in plain])
    best = np.argsort(-scores, kind="stable")
    found = search.search(QUESTION, 12)
    assert [hit.row for hit in found] == [plain[place].row for place in best]
    assert [hit.score for hit in found] == pytest.approx(scores[best], abs=1e-4)
    assert list(best) not in (list(range(12)), np.argsort(-read, kind="stable").tolist())


def test_a_ranking_is_reranked_as_a_search_is(chain: Chain, qa_model, tmp_path):
    """By `rank` and by `rerank`. A ranking that was reranked tells no probability, and the reader's likelihood counts alone."""
    (tmp_path / "queries.tsv").write_text(f"q\t{QUESTION}\n")
    given = {
        "blocks": chain.blocks,
        "retriever": chain.retriever,
        "index": chain.index,
        "queries": tmp_path / "queries.tsv",
    }
    given |= {"method": "hybrid", "top": 12, "depth": 100}
    first = Rank(**given).make(tmp_path / "first")
    by = {"blocks": chain.blocks, "model": str(qa_model.path), "depth": 12}
    runs = [
        Rank(**given, rerank=str(qa_model.path), rerank_depth=12).make(tmp_path / "one"),
        Rerank(ranking=first, **by).make(tmp_path / "two"),
        Rerank(ranking=Rerank(ranking=first, **by).make(tmp_path / "two"), **by).make(tmp_path / "three"),
    ]
    ranked = [[*dict(read_run(each.file("run.trec")))["q"]] for each in runs]
    search = realmctl.load_search(chain.folder, method="hybrid", rerank=qa_model.path, rerank_depth=12)
    expected = [hit.block.id for hit in search.search(QUESTION, 12)]
    corpus = {block.id: row for row, block in enumerate(Corpus(chain.blocks))}
    read = QaReader.open(qa_model.path, "cpu").scores(pairs(chain, [corpus[name] for name in expected]))
    alone = [expected[place] for place in np.argsort(-read, kind="stable")]
    assert ranked == [expected, expected, alone] and alone != expected
