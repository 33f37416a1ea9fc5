"""`eval-utility` against the training objective's own numbers, one span at a time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from realmctl.artifacts import Origin, open_artifact, tokenizer_folder, writing
from realmctl.errors import ConfigError, InputError
from realmctl.extras.utility.eval_utility import EvalUtility
from realmctl.models.bert.files import load_masked_lm, save_masked_lm
from tests.fixtures.chain import pretrain
from tests.fixtures.pretraining import objective_of


def start_of(chain, **values):
    return EvalUtility(
        blocks=chain.blocks,
        spans=chain.spans,
        retriever=chain.retriever,
        index=chain.index,
        encoder=chain.encoder,
        **{"precision": "fp32", **values},
    )


def test_the_means_are_those_of_the_objective_over_every_span(chain, tmp_path):
    measured = start_of(chain, candidates=4, batch_size=7).make(tmp_path / "u").metrics
    objective = objective_of(chain)
    module = objective.reader.module
    module.load_state_dict({k: v / 3 for k, v in module.state_dict().items()})
    sums, hidden, log_prob = dict.fromkeys(("retrieval_utility", "top_1_utility", "null_share"), 0.0), 0, 0.0
    with torch.no_grad():
        for span in range(len(objective.queries.spans)):
            (part,) = objective.parts(np.array([span]), np.random.default_rng(0))
            loss, worth = objective.loss(part)
            pieces = int(part.asked.hidden_BM.sum())
            hidden += pieces
            log_prob -= float(loss) * pieces
            for name in sums:
                sums[name] += float(worth[name][0])
    queries = len(objective.queries.spans)
    assert measured["queries"] == queries and measured["wordpieces"] == hidden
    assert measured["log_prob"] == pytest.approx(log_prob / hidden, rel=1e-4)
    assert measured["retrieval_utility"] == pytest.approx(sums["retrieval_utility"] / hidden, rel=1e-3, abs=1e-5)
    assert measured["top_1_utility"] == pytest.approx(sums["top_1_utility"] / queries, rel=1e-3, abs=1e-5)
    assert measured["null_share"] == pytest.approx(sums["null_share"] / queries, rel=1e-4)


def test_it_says_which_blocks_tell_the_answer(chain, tmp_path):
    """One span at a time, from the texts' wordpieces and the reader's own probabilities."""
    measured = start_of(chain, candidates=4, batch_size=7).make(tmp_path / "u").metrics
    objective = objective_of(chain)
    module = objective.reader.module
    module.load_state_dict({k: v / 3 for k, v in module.state_dict().items()})
    gains, labels, firsts, favourites = [], [], [], []
    with torch.no_grad():
        for span in range(len(objective.queries.spans)):
            (part,) = objective.parts(np.array([span]), np.random.default_rng(0))
            found = objective.step(part)
            score_BN, log_prob_BNM = found.score_BN, found.log_prob_BNM
            pieces = len(part.asked.queries[0].targets)
            log_prob = log_prob_BNM[0, :, :pieces].sum(1)
            needle = " ".join(map(str, part.asked.queries[0].targets))
            tells = [
                f" {needle} " in f" {' '.join(map(str, objective.corpus.tokens(row)))} " for row in part.rows_BN[0, 1:]
            ]
            gain = (log_prob[1:] - log_prob[0]).tolist()
            gains += gain
            labels += tells
            firsts.append(tells[int(score_BN[0, 1:].argmax())])
            favourites.append(tells[int(np.argmax(gain))])
    assert 0 < sum(labels) < len(labels)
    telling = [gain for gain, tells in zip(gains, labels, strict=True) if tells]
    others = [gain for gain, tells in zip(gains, labels, strict=True) if not tells]
    above = [(a > b) + 0.5 * (a == b) for a in telling for b in others]
    assert measured["gain_auc"] == pytest.approx(np.mean(above), abs=0.01)
    assert measured["first_positive"] == pytest.approx(np.mean(firsts))
    assert measured["favourite_positive"] == pytest.approx(np.mean(favourites), abs=0.05)


def test_the_utility_of_own_told_and_random_blocks(chain, tmp_path):
    """The own and the told block span by span; a random block differs in nothing but the draw."""
    measured = start_of(chain, candidates=4, batch_size=7).make(tmp_path / "u").metrics
    objective = objective_of(chain)
    module = objective.reader.module
    module.load_state_dict({k: v / 3 for k, v in module.state_dict().items()})
    corpus, gains = objective.corpus, {"own": [], "told": []}
    with torch.no_grad():
        for span in range(len(objective.queries.spans)):
            (part,) = objective.parts(np.array([span]), np.random.default_rng(0))
            query = part.asked.queries[0]
            own = corpus.uid.tolist().index(objective.queries.uid[query.sentence])
            score = (
                objective.retriever.embed_queries(part.asked.packed)
                @ torch.from_numpy(np.load(chain.index.file("vectors.npy")).astype(np.float32)).T
            )
            best = [row for row in (-score[0]).argsort(stable=True).tolist() if row != own][:20]
            needle = " ".join(map(str, query.targets))
            telling = [row for row in best if f" {needle} " in f" {' '.join(map(str, corpus.tokens(row)))} "]
            for kind, row in (("own", own), *((("told", telling[0]),) if telling else ())):
                log_prob = objective.reader.read(part.asked, np.array([[-1, row]]))[0][0, :, : len(query.targets)]
                gains[kind] += (log_prob[1] - log_prob[0]).tolist()
            gains.setdefault("queries", []).extend([1] * bool(telling))
    assert measured["told_queries"] == len(gains["queries"]) > 0
    assert measured["own_utility"] == pytest.approx(np.mean(gains["own"]), rel=1e-3, abs=1e-4)
    assert measured["told_utility"] == pytest.approx(np.mean(gains["told"]), rel=1e-3, abs=1e-4)
    assert measured["random_utility"] != pytest.approx(measured["own_utility"])


def test_a_sample_of_the_spans(chain, tmp_path):
    few = start_of(chain, queries=5).make(tmp_path / "few").metrics
    everything = start_of(chain).make(tmp_path / "u").metrics
    assert few["queries"] == 5 < everything["queries"] and few["log_prob"] != everything["log_prob"]


def test_a_model_or_its_parts(chain, tmp_path):
    model = pretrain(chain).make(tmp_path / "model")
    whole = EvalUtility(blocks=chain.blocks, spans=chain.spans, model=model).make(tmp_path / "u")
    parts = {
        kind: model.part(name) for kind, name in (("retriever", "retriever"), ("index", "index"), ("encoder", "reader"))
    }
    apart = EvalUtility(blocks=chain.blocks, spans=chain.spans, **parts).make(tmp_path / "v")
    assert whole.metrics == apart.metrics == json.loads(whole.file("utility.json").read_text())
    assert whole.metrics != start_of(chain).make(tmp_path / "w").metrics


def test_half_a_start_is_refused(chain):
    with pytest.raises(ConfigError, match=r"--retriever.*--index.*--encoder"):
        EvalUtility(blocks=chain.blocks, spans=chain.spans, retriever=chain.retriever, index=chain.index).check()
    with pytest.raises(ConfigError, match="--candidates 1"):
        start_of(chain, candidates=1).check()


def test_a_reader_whose_scores_are_not_finite_is_no_measurement(chain, tmp_path):
    """Weights that are finite, and too large to compute with. The weights themselves are checked where they are read."""
    mlm, _ = load_masked_lm(chain.encoder.path)
    with torch.no_grad():
        mlm.cls.predictions.transform.dense.weight.fill_(3e38)
        mlm.cls.predictions.bias.fill_(3e38)
    with writing(tmp_path / "encoder", Origin("encoder", "mlm-init", 1, {}, {}, dict(chain.encoder.lineage))) as out:
        save_masked_lm(mlm, out.path)
        out.copy_folder(".", tokenizer_folder(chain.blocks))
    broken = replace(start_of(chain, candidates=4), encoder=open_artifact(tmp_path / "encoder"))
    with pytest.raises(InputError, match="not finite"):
        broken.make(tmp_path / "u")
    assert not (tmp_path / "u" / "v1").exists()
