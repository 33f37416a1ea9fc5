"""Pre-training with a language model as its reader: the loss against brute force, and runs of the whole stage."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from realmctl.errors import ConfigError
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.retrieval.answering.pretrained_model import PretrainedModel
from realmctl.retrieval.search.candidates import NULL
from realmctl.training.checkpoint import module_tensors
from realmctl.training.realm import RealmObjective, relevance
from realmctl.training.refresh.index_in_use import IndexInUse
from stages.pretrain import Pretrain
from tests.fixtures.chain import finetune, metrics_of, pretrain
from tests.fixtures.language_models import byte_tokenizer, make_gpt2, make_t5


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {make.__name__: make(tmp_path_factory.mktemp("lm"), dropout=0.0) for make in (make_gpt2, make_t5)}


def objective_of(chain, folder, **values):
    settings = Pretrain(
        blocks=chain.blocks,
        retriever=chain.retriever,
        index=chain.index,
        reader_lm=str(folder),
        **{"spans": chain.spans, "batch_size": 3, "candidates": 4, "precision": "fp32", "target_length": 40, **values},
    )
    return RealmObjective(settings, Retriever.load(chain.retriever.path), IndexInUse(chain.index, "cpu"))


def log_probs(net, objective, query, rows):
    """log p of each hidden token with each block, by transformers: float [N, M]."""
    ids = lambda text: byte_tokenizer().encode(text, add_special_tokens=False).ids  # noqa: E731
    text = objective.queries.text(query)
    visible = text.before.rstrip()
    hidden = ids(text.before[len(visible) :] + text.hidden)
    found = []
    for row in rows:
        block = objective.corpus[row] if row >= 0 else None
        before = f"{block.title}\n{block.text}\n\n" if block else ""
        whole = [1, *ids(before + visible), *hidden]
        log_prob = net(input_ids=torch.tensor([whole])).logits[0].log_softmax(-1)
        found.append(log_prob[-len(hidden) - 1 : -1].gather(1, torch.tensor(hidden)[:, None])[:, 0])
    return torch.stack(found)


def brute_force(objective, folder, part, per_token):
    """The marginal likelihood of a batch, one query at a time."""
    net, total, count = AutoModelForCausalLM.from_pretrained(folder), torch.zeros(()), 0
    score_BN = relevance(part, objective.retriever, objective.corpus, objective.collator)
    for query, rows, score_N in zip(part.asked.queries, part.rows_BN.tolist(), score_BN, strict=True):
        likelihood = log_probs(net, objective, query, rows).exp()
        prior = score_N.softmax(0)
        if per_token:
            total -= (prior[:, None] * likelihood).sum(0).log().sum()
        else:
            total -= (prior * likelihood.double().prod(1)).sum().log()
        count += likelihood.shape[1] if per_token else 1
    return total / count


@pytest.mark.parametrize("marginal", [None, "token"])
def test_the_loss_is_the_marginal_likelihood(chain, folders, marginal):
    folder = folders["make_gpt2"]
    objective = objective_of(chain, folder, marginal=marginal)
    [part] = objective.draw(0)
    loss, _ = objective.loss(part)
    assert loss.item() == pytest.approx(brute_force(objective, folder, part, marginal == "token").item(), rel=1e-5)


@pytest.mark.parametrize("name", ["make_gpt2", "make_t5"])
def test_micro_batches_give_the_loss_and_gradients_of_the_whole(chain, folders, name):
    found = []
    for size in (0, 2):
        objective = objective_of(chain, folders[name], micro_batch=size, train_reader=True)
        total = sum(objective.loss(part)[0] for part in objective.draw(1))
        total.backward()
        found.append((total.detach(), [p.grad for p in objective.modules.parameters() if p.grad is not None]))
    assert torch.allclose(found[0][0], found[1][0], rtol=1e-5)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=2e-5)


def test_a_frozen_reader_takes_no_gradient_and_no_place_in_checkpoints(chain, folders):
    objective = objective_of(chain, folders["make_gpt2"])
    [part] = objective.draw(0)
    objective.modules.train()
    loss, _ = objective.loss(part)
    loss.backward()
    assert all(p.grad is None and not p.requires_grad for p in objective.reader.module.parameters())
    assert not objective.reader.module.training
    assert all(name.startswith("retriever") for name in module_tensors(objective.modules))
    assert any(p.grad is not None and p.grad.any() for p in objective.retriever.parameters())


@pytest.mark.parametrize(("loss", "temperature"), [("distill", 0.1), ("distill", 2.0), ("replug", 0.1)])
def test_distillation_is_the_divergence_between_both_choices(chain, folders, loss, temperature):
    folder = folders["make_gpt2"]
    objective = objective_of(chain, folder, retriever_loss=loss, reader_temperature=temperature)
    [part] = objective.draw(0)
    net, total, score_BN = (
        AutoModelForCausalLM.from_pretrained(folder),
        0.0,
        relevance(part, objective.retriever, objective.corpus, objective.collator),
    )
    for query, rows, score_N in zip(part.asked.queries, part.rows_BN.tolist(), score_BN, strict=True):
        log_prob_NM = log_probs(net, objective, query, rows)
        teacher = (log_prob_NM.mean(1) / temperature).softmax(0)
        one, other = (score_N.softmax(0), teacher) if loss == "replug" else (teacher, score_N.softmax(0))
        total += (one * (one.log() - other.log())).sum().item() / 3
    assert objective.loss(part)[0].item() == pytest.approx(total, rel=1e-4)


def test_beside_distillation_a_reader_that_learns_has_the_marginal_likelihood(chain, folders):
    both = objective_of(chain, folders["make_gpt2"], retriever_loss="distill", train_reader=True)
    alone, marginal = (
        objective_of(chain, folders["make_gpt2"], retriever_loss=loss) for loss in ("distill", "marginal")
    )
    [part] = both.draw(0)
    losses = [objective.modules.eval() and objective.loss(part)[0] for objective in (both, alone, marginal)]
    assert losses[0].item() == pytest.approx(losses[1].item() + losses[2].item(), rel=1e-5)
    losses[0].backward()
    losses[1].backward()
    for one, other in zip(both.retriever.parameters(), alone.retriever.parameters(), strict=True):
        assert (one.grad is None and other.grad is None) or torch.allclose(one.grad, other.grad, atol=1e-6)
    assert any(p.grad is not None and p.grad.any() for p in both.reader.module.parameters())


@pytest.mark.parametrize("name", ["make_gpt2", "make_t5"])
def test_a_continuation_hides_the_second_part_of_a_block(chain, folders, name):
    objective = objective_of(chain, folders[name], spans=None, target="continuation")
    [part] = objective.draw(0)
    for query, rows in zip(part.asked.queries, part.rows_BN.tolist(), strict=True):
        block, text = objective.corpus[query.sentence], objective.queries.text(query)
        assert text.before + text.hidden == block.text
        assert text.hidden in (block.text[start:] for start, _ in block.sentences[1:])
        words = objective.corpus.tokens(query.sentence)
        assert query.tokens.tolist() == words[: len(query.tokens)].tolist() and 0 < len(query.tokens) < len(words)
        assert query.sentence not in rows
    loss, _ = objective.loss(part)
    assert 0 < loss.item() < 1000


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"reader_lm": "x", "bert": "scratch:tiny", "encoder": None}, "--bert"),
        ({"reader_lm": "x"}, "--encoder"),
        ({"reader_lm": "x", "encoder": None, "masking": "random-span"}, "--masking"),
        ({"reader_lm": "x", "encoder": None, "layer_decay": 0.9}, "--layer-decay"),
        ({"target": "continuation", "spans": None}, "--target"),
        ({"reader_lm": "x", "encoder": None, "target": "continuation"}, "--spans"),
        ({"spans": None}, "--spans"),
        ({"retriever_loss": "replug", "marginal": "token"}, "--marginal"),
        ({"reader_temperature": 2.0}, "--reader-temperature"),
    ],
)
def test_options_that_contradict_each_other_are_refused(chain, given, flag):
    with pytest.raises(ConfigError, match=flag):
        pretrain(chain, **given).check()


def test_a_masked_reader_may_be_frozen_too(chain, tmp_path):
    model = pretrain(chain, freeze_reader=True, steps=1, batch_size=2).make(tmp_path / "model")
    start, kept = (Reader.load(one.path).state_dict() for one in (chain.encoder, model.part("reader")))
    assert all(torch.equal(start[name], tensor) for name, tensor in kept.items())


def test_the_null_document_is_the_prompt_without_a_block(chain, folders):
    objective = objective_of(chain, folders["make_gpt2"])
    [part] = objective.draw(0)
    found, hidden_BM = objective.reader.read(part.asked, np.full((3, 1), NULL))
    net = AutoModelForCausalLM.from_pretrained(folders["make_gpt2"])
    for query, log_prob_1M, hidden_M in zip(part.asked.queries, found, hidden_BM, strict=True):
        assert torch.allclose(log_prob_1M[0][hidden_M], log_probs(net, objective, query, [NULL])[0], atol=1e-4)


def test_pretrain_with_a_frozen_causal_model(chain, folders, tmp_path):
    model = pretrain(chain, encoder=None, reader_lm=str(folders["make_gpt2"]), target_length=40).make(
        tmp_path / "model"
    )
    assert sorted(model.manifest.parts) == ["index", "retriever"]
    opened = PretrainedModel.open(model, blocks=chain.blocks)
    assert opened.search("Ada Lorn", 3)
    with pytest.raises(ConfigError, match="--reader-lm"):
        opened.fill_mask("Ada was born in [MASK].")
    with pytest.raises(ConfigError, match="--encoder"):
        _ = finetune(chain, model).start
    lines = metrics_of(model)
    assert len(lines) == 6 and all(0 <= line["cut_blocks"] <= 1 and line["grad_norm"] > 0 for line in lines)
    before, after = Retriever.load(chain.retriever.path), Retriever.load(model.part("retriever").path)
    assert not torch.equal(before.query_tower.projection.weight, after.query_tower.projection.weight)


@pytest.mark.parametrize("name", ["make_gpt2", "make_t5"])
def test_pretrain_of_reader_and_retriever(chain, folders, name, tmp_path):
    stage = pretrain(chain, encoder=None, reader_lm=str(folders[name]), train_reader=True, steps=2, target_length=40)
    model = stage.make(tmp_path / "model")
    assert sorted(model.manifest.parts) == ["index", "language-model", "retriever"]
    again = objective_of(chain, model.part("language-model").path)
    start = objective_of(chain, folders[name])
    weights = zip(again.reader.module.parameters(), start.reader.module.parameters(), strict=True)
    assert not all(torch.equal(one, other) for one, other in weights)


def test_a_continuation_needs_no_spans_beside_the_options_of_other_rooms(chain, folders):
    given = {"blocks": chain.blocks, "retriever": chain.retriever, "index": chain.index}
    assert Pretrain(**given, reader_lm=str(folders["make_gpt2"]), target="continuation").spans is None
