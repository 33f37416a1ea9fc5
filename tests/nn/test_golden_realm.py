"""Same weights, same inputs, same numbers as REALM in transformers 4.57.6 (see realm_case.py)."""

import pytest
import torch
from torch.testing import assert_close
from transformers import BertConfig, BertForMaskedLM, BertModel

from realmctl.nn.inputs import Packer, block_token_mask
from realmctl.nn.marginal import token_marginal
from realmctl.nn.reader import Reader
from realmctl.nn.retriever import Retriever
from realmctl.nn.span_head import SpanReader, reader_loss, retrieval_loss
from tests.nn import realm_case as case

SCORE = [[16.158754348754883, 13.896247863769531, 13.453569412231445], [19.121366500854492, 19.398162841796875, 19.33916664123535]]  # fmt: skip
LOSS, READER_LOSS, RETRIEVAL_LOSS, BLOCK, SPAN = (
    4.816102981567383,
    3.513376474380493,
    0.6242296695709229,
    0,
    [5, 7],
)


@pytest.fixture
def config() -> BertConfig:
    return BertConfig(**case.CONFIG)


def test_scores_and_pretraining_loss(config: BertConfig, packer: Packer) -> None:
    retriever = Retriever.from_bert(BertModel(config), projection=case.PROJECTION).eval()
    names = {"norm.": "projection.LayerNorm.", "projection.weight": "projection.dense.weight"}
    case.fill(retriever.query_tower, {**names, "projection.bias": "projection.dense.bias"})
    block_BND = retriever.embed_blocks(packer.block(case.TITLES, case.BODIES)).unflatten(0, (2, 3))
    score_BN = retriever.score(retriever.embed_queries(packer.query(case.QUERIES, 64)), block_BND)
    assert_close(score_BN, torch.tensor(SCORE), atol=1e-4, rtol=1e-5)

    mlm = BertForMaskedLM(config)
    case.fill(mlm, {})
    joint = packer.joint([query for query in case.QUERIES for _ in range(3)], case.BODIES, 64, 288)
    position_BM, target_BM = torch.tensor([[2, 4], [2, 0]]), torch.tensor([[33, 34], [35, 0]])
    log_prob_BNM = Reader(mlm).eval().mlm_log_prob(joint, position_BM, target_BM, 3)
    loss, _ = token_marginal(score_BN, log_prob_BNM, torch.tensor([[True, True], [True, False]]))
    assert loss.item() == pytest.approx(LOSS, abs=1e-5)


def test_reader_losses_and_best_span(config: BertConfig, packer: Packer) -> None:
    reader = SpanReader(BertModel(config))
    case.fill(reader, {})
    packed, start_B = packer.reader([case.QUESTION] * 2, case.EVIDENCE)
    span_BS, (start_S, end_S) = reader.eval().span_scores(packed, block_token_mask(packed, start_B), case.SPAN_WIDTH)
    relevance_K = torch.tensor(case.RELEVANCE)
    score_QKS = (span_BS + relevance_K[:2, None])[None]
    correct_QKS = torch.zeros_like(score_QKS, dtype=torch.bool)
    for block, (first, last) in enumerate([(4, 5), (5, 6)]):
        correct_QKS[0, block] = (start_S == first) & (end_S == last)
    assert reader_loss(score_QKS, correct_QKS).item() == pytest.approx(READER_LOSS, abs=1e-4)
    has_answer = torch.tensor([[True, True, False, False]])
    assert retrieval_loss(relevance_K[None], has_answer).item() == pytest.approx(RETRIEVAL_LOSS, abs=1e-6)
    block, span = divmod(int(score_QKS.flatten().argmax()), len(start_S))
    assert (block, [int(start_S[span]), int(end_S[span])]) == (BLOCK, SPAN)
