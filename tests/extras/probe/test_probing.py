"""`ask --probe`, beside transformers."""

from __future__ import annotations

import json

import pytest
import torch

from realmctl.errors import ConfigError, MismatchError
from realmctl.extras.probe.probing import probe_of
from realmctl.models.reader import Reader
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.chain import Chain, baseline
from tests.fixtures.transformers_bert import as_transformers

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture(scope="module")
def closed_book(chain, tmp_path_factory):
    return baseline(chain, "none").make(tmp_path_factory.mktemp("closed") / "qa-model")


@pytest.mark.parametrize("kind", ["model", "closed_book"])
def test_a_probe_reads_no_document(chain, model, closed_book, kind):
    artifact = {"model": model, "closed_book": closed_book}[kind]
    found = probe_of(artifact, chain.blocks, QUESTION, "Velford Ada")
    words = Tokenizer.load(chain.blocks.path)
    question, wanted = words.ids(QUESTION).tolist(), words.ids("Velford Ada").tolist()
    ids = [words.cls, *question, *[words.mask] * len(wanted), words.sep]
    segments = [0] * len(ids)
    if kind == "model":  # the null document: an empty body
        ids, segments = [*ids, words.sep], [*segments, 1]
    reader = Reader.load(artifact.part("reader").path)
    with torch.no_grad():
        logits = as_transformers(reader.mlm)(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).logits[0]
    log_prob = logits[1 + len(question) : 1 + len(question) + len(wanted)].log_softmax(-1)
    expected = sum(float(log_prob[place, word]) for place, word in enumerate(wanted))
    assert found.wordpieces == len(wanted)
    assert found.log_probability == pytest.approx(expected, rel=1e-4)
    assert found.best_log_probability >= found.log_probability


def test_what_cannot_be_probed(chain: Chain, qa_model, model):
    with pytest.raises(MismatchError, match="--probe"):
        probe_of(qa_model, chain.blocks, QUESTION, "Velford")
    with pytest.raises(ConfigError, match="wordpieces"):
        probe_of(model, chain.blocks, QUESTION, " ")


def test_the_command_says_it(realmctl, chain: Chain, qa_model, model):
    given = ("ask", QUESTION, "--qa-model", qa_model.path, "--blocks", chain.blocks.path, "--probe", model.path)
    code, out, err = realmctl(*given, "--json")
    assert code == 0, err
    told = json.loads(out)
    expected = probe_of(model, chain.blocks, QUESTION, told["answers"][0]["answer"])
    assert told["probe"]["log_probability"] == pytest.approx(expected.log_probability)
    assert "in the weights alone" in realmctl(*given)[1]
