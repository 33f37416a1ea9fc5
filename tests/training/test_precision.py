"""One arithmetic for one purpose: what chooses and logs candidates runs as training and evaluation do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.models.retriever import Retriever
from realmctl.questions.questions import read_questions
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.training.monitoring.pretrain_watch import PretrainWatch
from realmctl.training.realm import RealmObjective
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.settings.pretrain import PretrainSettings


@pytest.fixture(params=["fp32", "bf16"])
def precision(request) -> str:
    return request.param


@pytest.fixture
def objective(chain, precision) -> RealmObjective:
    settings = PretrainSettings(
        spans=chain.spans,
        blocks=chain.blocks,
        retriever=chain.retriever,
        index=chain.index,
        encoder=chain.encoder,
        recall_questions=chain.questions,
        batch_size=4,
        candidates=4,
        precision=precision,
    )
    return RealmObjective(
        settings,
        Retriever.load(chain.retriever.path),
        IndexInUse(chain.index, "cpu"),
    )


def test_everything_that_embeds_a_query_does_so_in_one_arithmetic(objective, precision, monkeypatch):
    """The watched queries and the recall questions, before a step; and the searches, also those of `eval-utility`."""
    seen, embed = [], objective.retriever.embed_queries

    def noted(packed):
        seen.append(torch.is_autocast_enabled("cpu"))
        return embed(packed)

    monkeypatch.setattr(objective.retriever, "embed_queries", noted)
    PretrainWatch(objective).before_step(0)
    before = len(seen)
    objective.parts(np.arange(2), np.random.default_rng(0))
    assert 2 <= before < len(seen) and set(seen) == {precision == "bf16"}


def test_the_logged_recall_is_that_of_the_searcher(objective, chain, precision):
    questions = read_questions(chain.questions)
    searcher = DenseSearcher(chain.retriever, chain.index, chain.blocks, "cpu", precision)
    rows = searcher.nearest(searcher.tokens([question.question for question in questions]), 20)[1]
    recall = PretrainWatch(objective).recall_questions
    wanted = recall._ranks(rows)
    found = recall.recall(objective.retriever, objective.in_use.index)
    assert found == {f"recall@{depth}": float((wanted < depth).mean()) for depth in (1, 5, 20)}
