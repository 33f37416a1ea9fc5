"""The pre-training objective against plain Hugging Face modules and loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.retrieval.search.candidates import ABSENT, NULL
from realmctl.spans.query import hide
from realmctl.training.losses import Marginal, RetrieverLoss
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents, make_index
from tests.fixtures.pretraining import objective_of
from tests.fixtures.retriever import make_retriever
from tests.fixtures.transformers_bert import as_transformers


def embed(tower, ids, segments):
    """ORQA's embedder in Hugging Face's words."""
    state = as_transformers(tower.bert)(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).pooler_output
    return torch.nn.functional.layer_norm(tower.projection(state), (8,), tower.norm.weight, tower.norm.bias, 1e-12)[0]


def brute_force(objective, part, marginal, *, rows_BN=None):
    """The loss of a batch, one query and one candidate at a time; of other candidates than its own if given."""
    corpus, collator = objective.corpus, objective.collator
    [cls], [sep] = collator.frame.before, collator.frame.after
    total, pieces = torch.zeros(()), 0
    for query, rows in zip(part.asked.queries, (part.rows_BN if rows_BN is None else rows_BN).tolist(), strict=True):
        x = query.tokens.tolist()
        query_D = embed(objective.retriever.query_tower, [cls, *x, sep], [0] * (len(x) + 2))
        scores, log_probs = [], []
        for row in rows:
            if row == ABSENT:
                continue
            title, body = ([], []) if row == NULL else (corpus.title(row).tolist(), corpus.tokens(row).tolist())
            ids, segments = [cls, *title, sep, *body, sep], [0] * (len(title) + 2) + [1] * (len(body) + 1)
            scores.append(query_D @ embed(objective.retriever.block_tower, ids, segments))
            joint, segments = [cls, *x, sep, *body, sep], [0] * (len(x) + 2) + [1] * (len(body) + 1)
            logits = as_transformers(objective.reader.module.mlm)(
                torch.tensor([joint]), token_type_ids=torch.tensor([segments])
            ).logits[0]
            log_probs.append(logits.log_softmax(-1)[query.places + 1, query.targets])
        prior = torch.stack(scores).softmax(0)
        likelihood = torch.stack(log_probs).exp()  # [candidates, masks]
        if marginal == "token":
            total -= (prior[:, None] * likelihood).sum(0).log().sum()
        else:
            total -= (prior * likelihood.prod(1)).sum().log()
        pieces += len(query.targets) if marginal == "token" else 1
    return total / pieces


@pytest.mark.parametrize("marginal", ["token", "sequence"])
@pytest.mark.parametrize("masking", ["salient", "random-uniform"])
def test_the_loss_is_the_marginal_likelihood(chain, marginal, masking):
    objective = objective_of(chain, marginal=marginal, masking=masking)
    [part] = objective.draw(0)
    objective.modules.eval()
    loss, _ = objective.loss(part)
    assert torch.allclose(loss, brute_force(objective, part, marginal), rtol=1e-5)


@pytest.mark.parametrize("marginal", ["token", "sequence"])
def test_with_room_for_all_the_sum_is_over_the_whole_corpus(chain, marginal):
    """The null document and every block but the query's own, named here without the index."""
    objective = objective_of(chain, marginal=marginal, candidates=len(Corpus(chain.blocks)) + 1)
    [part] = objective.draw(0)
    objective.modules.eval()
    own_B = [int(objective.queries.uid[query.sentence]) for query in part.asked.queries]
    everything = [
        [NULL, *(row for row in range(len(objective.corpus)) if int(objective.corpus.uid[row]) != own)] for own in own_B
    ]
    loss, _ = objective.loss(part)
    assert torch.allclose(loss, brute_force(objective, part, marginal, rows_BN=np.array(everything)), rtol=1e-5)


def test_absent_candidates_do_not_count(chain):
    objective = objective_of(chain)
    [part] = objective.draw(0)
    objective.modules.eval()
    part.rows_BN[0, 2:] = ABSENT
    part.rows_BN[3, 1:] = ABSENT
    loss, _ = objective.loss(part)
    assert torch.allclose(loss, brute_force(objective, part, "token"), rtol=1e-5)


@pytest.mark.parametrize("marginal", ["token", "sequence"])
def test_without_the_null_document_all_candidates_are_blocks(chain, marginal):
    """Retrieval is still measured against reading nothing, at no weight in the loss."""
    objective = objective_of(chain, marginal=marginal, null=False)
    [part] = objective.draw(0)
    objective.modules.eval()
    assert part.rows_BN.shape == (5, 4) and np.all(part.rows_BN >= 0)
    part.rows_BN[2, 2:] = ABSENT
    loss, sums = objective.loss(part)
    assert torch.allclose(loss, brute_force(objective, part, marginal), rtol=1e-5)
    per_token = brute_force(objective, part, "token")
    without_retrieval = brute_force(objective, part, "token", rows_BN=np.full((5, 1), NULL))
    gain, hidden = sums["retrieval_utility"]
    assert gain / hidden == pytest.approx((without_retrieval - per_token).item(), abs=1e-4)
    assert "null_share" not in sums and sums["top_1_utility"][1] == 5


@pytest.mark.parametrize("marginal", ["token", "sequence"])
def test_a_query_without_any_candidate_is_left_out(chain, marginal):
    """Its probability would count as 1, and its utility as all that the null document lacks."""
    objective, plain = (objective_of(chain, marginal=marginal, null=False) for _ in range(2))
    allowed, everything = objective.own_blocks.excluded, objective.corpus.uid
    objective.own_blocks.excluded = lambda uid_B: [everything, everything, *allowed(uid_B[2:])]
    [part], [others] = objective.draw(0), plain.parts(plain.order.batch(0)[2:], np.random.default_rng(0))
    loss, sums = objective.loss(part)
    expected, of_others = plain.loss(others)
    assert loss == expected and sums == of_others and sums["top_1_utility"][1] == 3
    objective.own_blocks.excluded = lambda uid_B: [everything] * len(uid_B)
    assert objective.draw(0) == []


def test_the_null_document_costs_no_gradient_where_it_is_no_candidate(chain):
    """The same rows, once with the yardstick beside them and once without: the same gradients."""
    gradients = []
    for null in (False, True):
        objective = objective_of(chain, null=null)
        [part] = objective_of(chain, null=False).draw(1)
        objective.loss(part)[0].backward()
        gradients.append([parameter.grad for parameter in objective.modules.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_gradients_reach_both_towers_and_the_reader(chain, tmp_path):
    objective = objective_of(chain, towers=make_retriever(tmp_path / "retriever", chain.blocks, towers="separate"))
    [part] = objective.draw(0)
    loss, _ = objective.loss(part)
    loss.backward()
    for name, parameter in objective.modules.named_parameters():
        if "position_embeddings" not in name:
            assert parameter.grad is not None and torch.any(parameter.grad != 0), name


@pytest.mark.parametrize("marginal", ["token", "sequence"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_micro_batches_give_the_loss_and_gradients_of_the_whole(chain, marginal, size):
    whole, parts = objective_of(chain, marginal=marginal), objective_of(chain, marginal=marginal, micro_batch=size)
    losses = []
    for objective in (whole, parts):
        drawn = objective.draw(3)
        objective.modules.eval()
        total = sum((objective.loss(part)[0] for part in drawn), torch.zeros(()))
        total.backward()
        losses.append(total.detach())
    assert len(parts.draw(3)) == math.ceil(5 / size)
    assert torch.allclose(*losses, rtol=1e-5)
    for one, other in zip(whole.modules.parameters(), parts.modules.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize(("marginal", "normaliser"), [("token", 6), ("sequence", 3)])
def test_the_loss_is_divided_by_hidden_wordpieces_or_by_queries(chain, marginal, normaliser):
    objective = objective_of(chain, marginal=marginal)
    hidden = [hide(objective.queries.tokens(row), range(count), 4) for row, count in ((0, 1), (1, 3), (2, 2))]
    [part] = objective._searched([replace(query, sentence=row) for row, query in enumerate(hidden)])
    assert part.normaliser == normaliser


@pytest.mark.parametrize(("marginal", "expected"), [("token", 7.0), ("sequence", 0.0)])
def test_only_the_marginal_of_each_token_knows_the_loss_of_guessing(chain, marginal, expected):
    class Further(Marginal):
        """A loss with a name of its own."""

    class Other(RetrieverLoss):
        def __call__(self, score_BN, log_prob_BNM, hidden_BM, present_BN, normaliser):
            return score_BN.sum()

    settings = objective_of(chain, marginal=marginal).settings
    assert [loss(settings).chance(7.0) for loss in (Marginal, Further, Other)] == [expected, expected, 0.0]


def test_a_query_never_sees_its_own_block(chain):
    """X = Z here, so the best hit of a sentence would often be the block it stands in."""
    objective = objective_of(chain, candidates=30)
    seen = 0
    for step in range(12):
        for part in objective.draw(step):
            for query, rows in zip(part.asked.queries, part.rows_BN.tolist(), strict=True):
                own = int(objective.queries.uid[query.sentence])
                uids = [int(objective.corpus.uid[row]) for row in rows[1:]]
                assert rows[0] == NULL and own not in uids
                assert len(set(uids)) == 29
                seen += 1
    assert seen == 60


def test_a_sentence_that_was_tagged_in_another_cut_never_sees_the_block_that_holds_it(chain, tmp_path):
    """The documents are cut again, each into one block, and the spans are those of the former cut."""
    merged = {title: [[sentence for block in blocks for sentence in block]] for title, blocks in documents().items()}
    blocks = make_blocks(tmp_path / "blocks", merged)
    index = make_index(tmp_path, blocks, chain.retriever)
    objective = objective_of(replace(chain, blocks=blocks, index=index), candidates=15)
    seen = 0
    for step in range(12):
        for part in objective.draw(step):
            for query, rows in zip(part.asked.queries, part.rows_BN.tolist(), strict=True):
                title = objective.queries.records[query.sentence]["title"]
                assert title not in [objective.corpus[row].title for row in rows[1:]]
                seen += 1
    assert seen == 60


def test_queries_are_searched_without_dropout(chain):
    objective = objective_of(chain)
    queries = objective.draw(0)[0].asked.queries
    objective.retriever.query_tower.dropout.p = 0.5
    objective.modules.train()
    assert np.array_equal(objective.vectors(queries), objective.vectors(queries))


def test_a_query_may_see_its_own_block_where_it_is_asked_for(chain):
    objective = objective_of(chain, candidates=40, exclude_own="nothing")
    for part in objective.draw(0):
        for query, rows in zip(part.asked.queries, part.rows_BN.tolist(), strict=True):
            own = int(objective.queries.uid[query.sentence])
            assert own in [int(objective.corpus.uid[row]) for row in rows[1:]]


def test_a_query_sees_no_block_of_its_document_where_it_is_asked_for(chain):
    """The chain's documents have several blocks each, so that the same search finds some of them otherwise."""
    found = {}
    for kind in ("block", "document"):
        objective, found[kind] = objective_of(chain, candidates=40, exclude_own=kind), 0
        for part in objective.draw(0):
            for query, rows in zip(part.asked.queries, part.rows_BN.tolist(), strict=True):
                own = np.flatnonzero(objective.corpus.uid == objective.queries.uid[query.sentence])
                documents = {objective.corpus[row].document for row in own.tolist()}
                found[kind] += sum(objective.corpus[row].document in documents for row in rows[1:] if row >= 0)
    assert found["block"] > 0 == found["document"]


def test_the_metrics_are_of_the_whole_batch(chain):
    objective = objective_of(chain, micro_batch=2)
    parts = objective.draw(0)
    sums = [objective.loss(part)[1] for part in parts]
    assert sum(terms["null_share"][1] for terms in sums) == 5
    assert sum(terms["retrieval_utility"][1] for terms in sums) == sum(
        len(query.targets) for part in parts for query in part.asked.queries
    )
    assert all(0 <= terms["null_share"][0] <= terms["null_share"][1] for terms in sums)


def test_a_step_leaves_dropout_on(chain):
    objective = objective_of(chain)
    objective.modules.train()
    objective.draw(0)
    assert all(module.training for module in objective.modules.modules())


def test_the_cost_of_candidates_follows_the_blocks(chain):
    """More candidates than there are blocks are all blocks: no array has the width that the option asks for."""
    few, many = (
        objective_of(chain, candidates=len(chain_blocks := Corpus(chain.blocks)) + 1),
        objective_of(chain, candidates=10**9),
    )
    (one,), (other,) = few.draw(0), many.draw(0)
    assert one.rows_BN.shape[1] == len(chain_blocks) + 1
    assert (one.rows_BN == other.rows_BN).all()
