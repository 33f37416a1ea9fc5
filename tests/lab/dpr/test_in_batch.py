"""Questions of one passage are no negatives of each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from realmctl.artifacts import tokenizer_folder
from realmctl.corpus.corpus import Corpus
from realmctl.lab.dpr.objective import Labelled, LabelledObjective
from realmctl.lab.dpr.settings import DprSettings
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer


def expected(score_BC, names, targets, distilled=None, weight=0.0):
    """Mean cross-entropy, each query over all blocks but other places of its own, and the divergence from the start's softmax."""
    total = 0.0
    for row, target in enumerate(targets):
        others = [at for at, name in enumerate(names) if at == target or name != names[target]]
        log_prob = torch.log_softmax(score_BC[row, others], 0)
        total -= float(log_prob[others.index(target)])
        if distilled is not None:
            start = torch.log_softmax(distilled[row, others], 0)
            total += weight * float((start.exp() * (start - log_prob)).sum())
    return total / len(targets)


def test_two_questions_of_one_passage_are_no_negatives_of_each_other(chain):
    words = Tokenizer.load(tokenizer_folder(chain.blocks))
    corpus = Corpus(chain.blocks)
    passages = [(corpus.title(row), corpus.tokens(row)) for row in range(6)]
    questions = [
        Labelled(corpus.tokens(row)[first : first + 4], (passages[row],), ()) for row in range(6) for first in (0, 4)
    ]
    settings = DprSettings(passages=Path("passages.json"), hard_negatives=0, batch_size=12)
    objective = LabelledObjective(Retriever.load(chain.retriever.path), Collator.of(words), questions, settings)
    objective.modules.eval()
    [part] = objective.draw(0)
    with torch.no_grad():
        score_BC = objective.retriever.embed_queries(part.queries) @ objective.retriever.embed_blocks(part.blocks).T
    names = [number // 2 for number in objective.order.batch(0).tolist()]
    assert float(objective.loss(part)[0].detach()) == pytest.approx(expected(score_BC, names, range(12)), rel=1e-4)
