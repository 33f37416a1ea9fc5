"""RecallQuestions questions: what they say is what eval-em says, and asking them changes nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.questions.questions import Question
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import pretrain as module
from realmctl.training.monitoring import recall_questions
from realmctl.training.monitoring.recall_questions import RecallQuestions
from stages.eval_em import EvalEm
from tests.fixtures.chain import Stopped, metrics_of, pretrain, stop_at

RECALL = ["recall@1", "recall@5", "recall@20"]


def without_recall(lines):
    return [{name: value for name, value in line.items() if name not in RECALL} for line in lines]


@pytest.fixture(scope="module")
def with_recall(chain):
    return pretrain(chain, recall_questions=chain.questions).make(chain.folder / "with_recall")


def test_asking_changes_no_number(chain, with_recall):
    plain = pretrain(chain).make(chain.folder / "plain")
    assert without_recall(metrics_of(with_recall))[:-1] == metrics_of(plain)
    for part in ("retriever", "reader", "index"):
        name = "vectors.npy" if part == "index" else "model.safetensors"
        weights = [path for path in plain.part(part).path.rglob("*") if path.name.endswith((name, ".safetensors"))]
        assert weights
        for path in weights:
            twin = with_recall.part(part).path / path.relative_to(plain.part(part).path)
            assert path.read_bytes() == twin.read_bytes()


def test_it_is_asked_at_the_start_at_each_new_index_and_at_the_end(with_recall):
    lines = metrics_of(with_recall)
    asked = [number for number, line in enumerate(lines) if "recall@1" in line]
    assert (
        asked == [0, 3, 6]
        and lines[6].keys() == {"step", "index_overlap", "index_drift", *RECALL}
        and lines[6]["step"] == 6
    )
    assert {name: with_recall.metrics[name] for name in RECALL} == {name: lines[6][name] for name in RECALL}


def test_it_counts_as_eval_em_does(chain, with_recall, tmp_path):
    for place, retriever, index in (
        (0, chain.retriever, chain.index),
        (6, with_recall.part("retriever"), with_recall.part("index")),
    ):
        scores = EvalEm(
            retriever=retriever, index=index, blocks=chain.blocks, questions=chain.questions, hits=20, precision="fp32"
        ).make(tmp_path / "scores")
        line = metrics_of(with_recall)[place]
        for depth in (1, 5, 20):
            assert line[f"recall@{depth}"] == pytest.approx(scores.metrics[f"recall@{depth}"], abs=1e-6)
        assert 0 < line["recall@20"] <= 1


def test_an_interrupted_run_asks_as_often(chain, with_recall, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            pretrain(chain, recall_questions=chain.questions).make(tmp_path / "model")
    assert pretrain(chain, recall_questions=chain.questions).make(tmp_path / "model").content == with_recall.content


def test_interrupted_after_the_last_question(chain, with_recall, tmp_path, monkeypatch):
    """The line of the end is written again, not twice."""
    plain = module._last_measures

    def broken(*arguments):
        plain(*arguments)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(module, "_last_measures", broken)
        with pytest.raises(Stopped):
            pretrain(chain, recall_questions=chain.questions).make(tmp_path / "model")
    assert pretrain(chain, recall_questions=chain.questions).make(tmp_path / "model").content == with_recall.content


def test_they_are_part_of_the_recipe_only_where_there_is_one(chain, with_recall):
    assert (
        "recall_questions" not in pretrain(chain).origin().inputs and "recall_questions" in with_recall.manifest.inputs
    )


class Recorder:
    """An index that finds nothing but remembers how many asked."""

    def search(self, query_BD, k):
        self.asked = len(query_BD)
        return np.zeros((self.asked, k), np.float32), np.tile(np.arange(k), (self.asked, 1))


def test_of_a_large_file_some_are_asked_from_all_over_it(chain, monkeypatch):
    monkeypatch.setattr(recall_questions, "MAX_QUESTIONS", 5)
    questions = [Question(str(n), f"number {n} ?", (f"only {n}",)) for n in range(101)]
    asked = RecallQuestions(questions, Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path)))
    assert [search._answers[0] for search in asked._answers] == [f"only {n}" for n in (0, 25, 50, 75, 100)]


@pytest.mark.parametrize("training", [True, False])
def test_it_leaves_randomness_and_mode_alone(chain, training):
    questions = [json.loads(line) for line in chain.questions.read_text().splitlines()]
    asked = RecallQuestions(
        [Question(str(n), each["question"], tuple(each["answer"])) for n, each in enumerate(questions)],
        Corpus(chain.blocks),
        Collator.of(Tokenizer.load(chain.blocks.path)),
    )
    retriever, index = Retriever.load(chain.retriever.path).train(training), Recorder()
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    first = asked.recall(retriever, index)
    assert torch.equal(torch.get_rng_state(), before[0]) and np.random.get_state()[1].tolist() == before[1]
    assert retriever.training is training and index.asked == len(questions)
    assert all(not parameter.grad for parameter in retriever.parameters()) and asked.recall(retriever, index) == first
