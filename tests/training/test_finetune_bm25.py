"""Fine-tuning beside BM25: the scaled score is in both softmaxes, and the scale's gradient is the closed form."""

from __future__ import annotations

import pytest
import torch

from realmctl.models.span_head import SpanReader
from realmctl.questions.questions import read_questions
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.training.finetune import FinetuneObjective
from realmctl.training.settings.finetune import FinetuneSettings
from realmctl.training.starts.encoder import starting_bert
from tests.fixtures.chain import baseline, metrics_of


def objective_of(chain, scale):
    searcher = BM25Searcher(chain.blocks, "cpu")
    searcher.scale.log_scale.data.fill_(torch.tensor(scale).log())
    torch.manual_seed(0)
    reader = SpanReader.from_bert(starting_bert(chain.encoder, None, chain.blocks, 0).bert)
    with torch.no_grad():
        reader.head.output.weight.mul_(30)
    objective = FinetuneObjective(
        searcher,
        reader,
        read_questions(chain.questions),
        FinetuneSettings(
            blocks=chain.blocks,
            questions=chain.questions,
            batch_size=6,
            retriever_beam=12,
            reader_beam=3,
            reader_length=40,
            span_width=4,
        ),
    )
    objective.modules.eval()
    return objective


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_both_losses_and_the_gradient_of_the_scale(chain, scale):
    objective = objective_of(chain, scale)
    [part] = objective.draw(0)
    loss, _ = objective.loss(part)
    loss.backward()
    searcher = objective.searcher
    raw_QK = torch.stack(
        [
            torch.from_numpy(searcher.postings.score(question)[rows])
            for question, rows in zip(part.questions, part.rows_QK, strict=True)
        ]
    ).double()
    span_QRS, right_QRS = (each.detach() for each in objective._spans(part, torch.device("cpu")))
    span_QC, right_QC = span_QRS.double().flatten(1), right_QRS.flatten(1)
    of_block_QC = raw_QK[:, :3, None].expand(span_QRS.shape).flatten(1)
    found_Q, readable_Q = part.correct_QK.any(1), right_QC.any(1)
    assert found_Q.any() and readable_Q.any()
    parts = [(0 * raw_QK, raw_QK, part.correct_QK, found_Q), (span_QC, of_block_QC, right_QC, readable_Q)]
    expected = slope = 0.0
    for own, raw, correct, possible in parts:
        share = (own + scale * raw).softmax(1)[possible]
        kept = share * correct[possible]
        expected -= float(kept.sum(1).log().sum()) / 6
        given = kept / kept.sum(1, keepdim=True)
        slope += scale * float((raw[possible] * (share - given)).sum()) / 6
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    assert float(searcher.scale.log_scale.grad) == pytest.approx(slope, rel=1e-4)


def test_the_scale_is_logged_and_moves(chain, tmp_path):
    made = baseline(chain, "bm25", steps=20, lr=1e-3, optimizer="adamw").make(tmp_path / "qa")
    scales = [line["bm25_scale"] for line in metrics_of(made)]
    assert scales[0] == pytest.approx(1.0) and abs(scales[-1] - 1) > 0.1
    assert made.metrics["answer_in_beam"] > 0.9
