"""When a refresh is due: against a loop over single blocks, against fixed periods, and across an interruption."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.retrieval.search.candidates import titles_and_bodies
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.refresh import drift, kinds
from realmctl.training.refresh.drift import CHECKED_EVERY, DriftWatch
from realmctl.training.refresh.index_maker import IndexMaker, request_of
from tests.fixtures.chain import Stopped, metrics_of, pretrain, stop_at
from tests.fixtures.retriever import make_retriever


def drift_watch(chain, threshold):
    request = request_of(pretrain(chain, precision="fp32"))
    return DriftWatch(threshold, chain.retriever, IndexMaker(request, "cpu"))


def vectors(chain, retriever):
    """The embeddings of all blocks, one at a time."""
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    for row in range(len(corpus)):
        packed = collator.block(*titles_and_bodies(corpus, torch.tensor([row]).numpy()), retriever.block_length)
        yield retriever.embed_blocks(packed)[0].tolist()


def drift_by_hand(one, other):
    cosines = [
        sum(a * b for a, b in zip(u, v, strict=True)) / math.sqrt(sum(a * a for a in u) * sum(b * b for b in v))
        for u, v in zip(one, other, strict=True)
    ]
    return 1 - sum(cosines) / len(cosines)


def moved(retriever, amount):
    """A copy whose weights lie at random around those of the retriever."""
    found = copy.deepcopy(retriever)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(amount * torch.randn(parameter.shape, generator=generator))
    return found


def test_it_is_due_when_the_blocks_have_drifted_since_the_last_snapshot(chain, monkeypatch):
    monkeypatch.setattr(drift, "CHECKED_BLOCKS", 10**6)
    retriever = Retriever.load(chain.retriever.path).eval()
    walk = [moved(retriever, amount) for amount in (0.0, 0.02, 0.04, 0.3, 0.32, 0.34, 0.0)]
    where = [list(vectors(chain, each)) for each in walk]
    threshold = drift_by_hand(where[0], where[3]) / 2
    expected, last = [], where[0]
    for number, now in enumerate(where):
        if drift_by_hand(last, now) >= threshold:
            expected.append(number)
            last = now
    watch = drift_watch(chain, threshold)
    watch.start(None)
    assert (
        [n for n, each in enumerate(walk) if watch.is_due((n + 1) * CHECKED_EVERY, each.train())] == expected == [3, 6]
    )
    assert all(each.training for each in walk)
    assert not watch.is_due(CHECKED_EVERY + 1, walk[3])  # not a step at which it looks


def test_a_resumed_run_compares_with_its_newest_snapshot(chain, tmp_path):
    other = make_retriever(tmp_path / "other", chain.blocks, towers="separate", seed=9)
    watch = drift_watch(chain, 1e-4)
    watch.start(other)
    assert not watch.is_due(CHECKED_EVERY, Retriever.load(other.path))
    assert watch.is_due(CHECKED_EVERY, Retriever.load(chain.retriever.path))


SETTINGS = {"steps": 10, "refresh": "inline", "lr": 1e-3, "warmup": 1, "checkpoint_every": 2}


def test_the_least_drift_is_a_fixed_period_and_an_endless_one_is_none(chain, tmp_path, monkeypatch):
    """To measure draws no random number, so equal refreshes are equal runs."""

    def run(name, every, due=kinds.DUE):
        monkeypatch.setattr(kinds, "DUE", due)
        return metrics_of(pretrain(chain, **SETTINGS, refresh_every=every).make(tmp_path / name))

    auto, fixed = run("auto", "auto", 1e-12), run("fixed", CHECKED_EVERY)
    far, late = run("far", "auto", 2.0), run("late", 9)
    assert auto == fixed and [line["index_age_steps"] for line in auto] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert [line["index_age_steps"] for line in far] == list(range(10)) and far[:9] == late[:9]


def test_an_interrupted_run_refreshes_at_the_same_steps(chain, tmp_path, monkeypatch):
    monkeypatch.setattr(kinds, "DUE", 1e-4)
    values = {**SETTINGS, "refresh_every": "auto"}
    whole = pretrain(chain, **values).make(tmp_path / "whole")
    assert 0 in [line["index_age_steps"] for line in metrics_of(whole)[1:]]
    with monkeypatch.context() as patch:
        stop_at(patch, 7)
        with pytest.raises(Stopped):
            pretrain(chain, **values).make(tmp_path / "model")
    assert pretrain(chain, **values).make(tmp_path / "model").content == whole.content


def test_what_cannot_be_is_refused(chain, tmp_path):
    with pytest.raises(ConfigError):
        pretrain(chain, refresh_every="often").make(tmp_path)


def test_a_fixed_period_may_be_text_as_on_the_command_line(chain):
    assert pretrain(chain, refresh_every="7").refresh_every == 7
    assert pretrain(chain, refresh_every="auto").refresh_every == "auto"
