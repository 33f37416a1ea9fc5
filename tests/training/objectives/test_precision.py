"""One arithmetic for one purpose: what chooses and logs candidates runs as training and evaluation do."""

from __future__ import annotations

import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.questions.questions import read_questions
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens import wordpiece
from realmctl.training.evaluation.utility import measure_utility
from realmctl.training.monitoring.recall_questions import RecallQuestions
from realmctl.training.objectives.pretrain import PretrainObjective, PretrainOptions
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.starts.encoder import starting_bert


@pytest.fixture(params=["fp32", "bf16"])
def precision(request) -> str:
    return request.param


@pytest.fixture
def objective(chain, precision) -> PretrainObjective:
    queries, corpus, collator = (
        TaggedQueries(chain.spans),
        Corpus(chain.blocks),
        Collator.of(wordpiece.load(chain.blocks.path)),
    )
    options = PretrainOptions(
        batch_size=4,
        candidates=4,
        marginal="token",
        masking="salient",
        seed=0,
        precision=precision,
    )
    return PretrainObjective(
        Retriever.load(chain.retriever.path),
        Reader.from_masked_lm(starting_bert(chain.encoder, None, chain.blocks, 0)),
        queries,
        corpus,
        collator,
        IndexInUse(chain.index, "cpu"),
        options,
        recall_questions=RecallQuestions(read_questions(chain.questions), corpus, collator, precision),
    )


def test_everything_that_embeds_a_query_does_so_in_one_arithmetic(objective, precision, monkeypatch):
    """The watched queries and the recall questions, before a step; the searches and the scores of `eval-utility`."""
    seen, embed = [], objective.retriever.embed_queries

    def noted(packed):
        seen.append(torch.is_autocast_enabled("cpu"))
        return embed(packed)

    monkeypatch.setattr(objective.retriever, "embed_queries", noted)
    objective.before_step(0)
    before = len(seen)
    measure_utility(objective, "cpu", 16)
    assert 2 <= before < len(seen) and set(seen) == {precision == "bf16"}


def test_the_logged_recall_is_that_of_the_searcher(objective, chain, precision):
    questions = read_questions(chain.questions)
    searcher = DenseSearcher(chain.retriever, chain.index, chain.blocks, "cpu", precision)
    rows = searcher.nearest(searcher.tokens([question.question for question in questions]), 20)[1]
    recall = objective.recall_questions
    wanted = recall._ranks(rows)
    found = recall.recall(objective.retriever, objective.current.index)
    assert found == {f"recall@{depth}": float((wanted < depth).mean()) for depth in (1, 5, 20)}
