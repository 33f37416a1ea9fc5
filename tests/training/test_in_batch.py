"""A block is no negative of its own query, wherever else it stands: in-batch contrast against plain loops."""

from __future__ import annotations

import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.ict import InverseClozeObjective
from realmctl.training.settings.retriever import IctSettings


def objective_of(chain, task=InverseClozeObjective, **more):
    settings = IctSettings(blocks=chain.blocks, encoder=None, **{"batch_size": 24, **more})
    collator = Collator.of(Tokenizer.load(chain.blocks.path))
    objective = task(Retriever.load(chain.retriever.path), Corpus(chain.blocks), collator, settings)
    objective.modules.eval()
    return objective


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


def scores(objective, retriever=None):
    """(own examples, scores, names) of step 1, in which one pass over the 40 blocks ends and the next begins."""
    parts = objective.draw(1)
    examples, encoder = [example for part in parts for example in part.examples], retriever or objective.retriever
    with torch.no_grad():
        query = torch.cat([encoder.embed_queries(part.queries) for part in parts])
        block = torch.cat([encoder.embed_blocks(part.blocks) for part in parts])
    return examples, query @ block.T, [name for example in examples for name in example.names]


@pytest.mark.parametrize("more", [{}, {"micro_batch": 5}, {"distill_start": 2.0}])
def test_another_place_of_the_block_to_find_is_left_out(chain, more):
    objective = objective_of(chain, **more)
    start = Retriever.load(chain.retriever.path).eval()
    with torch.no_grad():
        for parameter in objective.retriever.parameters():
            parameter.mul_(1.2)
    examples, score_BC, names = scores(objective)
    uids = [int(objective.corpus.uid[row]) for row in objective.rows[objective.order.batch(1)]]
    assert [example.names[0] for example in examples] == uids and len(set(uids)) < len(uids)
    if "hard_negatives" in more:
        hard = {name for example in examples for name in example.names[1:]}
        assert hard & set(uids)
    targets = range(0, len(names), objective.blocks_each)
    distilled = scores(objective, start)[1] if "distill_start" in more else None
    loss = sum(float(objective.loss(part)[0].detach()) for part in objective.draw(1))
    assert loss == pytest.approx(expected(score_BC, names, targets, distilled, 2.0), rel=1e-4)


def test_with_a_null_document_too(chain):
    """Where the block is withheld, all its places are, and the null document is the target."""
    objective = objective_of(chain, null_share=0.5)
    examples, score_BC, names = scores(objective)
    [part] = objective.draw(1)
    with torch.no_grad():
        null = objective.retriever.embed_blocks(part.null)
        score_BC = torch.cat([score_BC, objective.retriever.embed_queries(part.queries) @ null.T], 1)
    total = 0.0
    for row, example in enumerate(examples):
        places = [at for at, name in enumerate(names) if name != names[row]] + [len(names)]
        places, target = (places, len(names)) if example.withheld else ([row, *places], row)
        total -= float(torch.log_softmax(score_BC[row, places], 0)[places.index(target)])
    assert 0 < sum(example.withheld for example in examples) < len(examples)
    assert float(objective.loss(part)[0].detach()) == pytest.approx(total / len(examples), rel=1e-4)
