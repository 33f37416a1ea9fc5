"""The model that is kept is the best on dev, however often the run was interrupted."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial

import pytest
import torch

from realmctl.errors import ConfigError, InputError, NotFiniteError
from realmctl.models.weights import load_tensors
from realmctl.training.evaluation.best_on_dev import BestOnDev
from tests.fixtures.chain import Stopped, baseline, finetune, metrics_of, stop_at
from tests.fixtures.finetuning import QUESTIONS, born, objective_of, span_scores

DEV = [born("Ada Lorn", "Velford"), born("Ben Mott", "Harrow"), born("Eva Ould", "Milton"), born("Dan Nash", "Ashby")]


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    path = tmp_path_factory.mktemp("dev") / "dev.jsonl"
    path.write_text("".join(json.dumps({"question": q.question, "answer": list(q.answers)}) + "\n" for q in DEV))
    return path


def tuned(chain, dev, **values):
    return finetune(chain, steps=7, dev=dev, dev_every=2, **values)


def settings_of(objective, every):
    return replace(objective.settings, dev_every=every, precision="fp32")


def head_of(made):
    return load_tensors(made.part("reader").file("span_head.safetensors"))


def test_the_best_is_kept_and_the_first_of_equals(chain, tmp_path, monkeypatch):
    objective = objective_of(chain, QUESTIONS)
    best = BestOnDev(objective.on(DEV), settings_of(objective, 2), tmp_path)
    scores, weights = iter([0.1, 0.4, 0.4, 0.3]), objective.reader.head.output.weight
    monkeypatch.setattr(best, "_span_exact_match", lambda: next(scores))
    for step in range(7):
        with torch.no_grad():
            weights.fill_(step)
        assert ("dev_span_exact_match" in best.before_step(step)) == (step in (2, 4, 6))
    with torch.no_grad():
        weights.fill_(7)
    assert best.at_end(7) == {"dev_span_exact_match": 0.3}
    assert best.take(7) == {"best_step": 4, "best_dev_span_exact_match": 0.4}
    assert torch.all(weights == 4) and len(list(tmp_path.glob("step-*"))) == 1


def test_the_score_is_the_share_of_questions_whose_best_span_is_an_answer(chain, tmp_path):
    """Of three questions the first has its answer in the best span that is read, and the second in another one."""
    objective = objective_of(chain, QUESTIONS)
    best = BestOnDev(objective.on(DEV[:3]), settings_of(objective, 1), tmp_path)
    objective.modules.eval()
    ranked = [
        [spans[place] for place in scores.argsort(descending=True)]
        for scores, spans in map(partial(span_scores, best.dev), range(3))
    ]
    best.dev.answers = [[ranked[0][0]], [ranked[1][-1]], [[objective.searcher.wordpiece.unk]]]
    objective.modules.train()
    assert best.measure(1) == {"dev_span_exact_match": 1 / 3} and all(
        module.training for module in objective.modules.modules()
    )
    assert objective.questions == QUESTIONS and len(objective.searches) == len(QUESTIONS)


def test_a_reader_whose_scores_are_not_finite_has_no_score(chain, tmp_path):
    objective = objective_of(chain, QUESTIONS)
    best = BestOnDev(objective.on(DEV), settings_of(objective, 1), tmp_path)
    with torch.no_grad():
        objective.reader.head.output.weight.fill_(1e38)
    with pytest.raises(NotFiniteError, match="the reader"):
        best.measure(1)


@pytest.fixture(scope="module")
def whole(chain, dev, tmp_path_factory):
    """A run that nothing stopped."""
    return tuned(chain, dev).make(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def last_head(chain, tmp_path_factory):
    """The head after the last step of the same run without a dev set."""
    return head_of(finetune(chain, steps=7).make(tmp_path_factory.mktemp("last")))


@pytest.mark.parametrize("step", [3, 5])
def test_a_run_that_was_stopped_keeps_what_one_that_was_not_keeps(
    chain, dev, whole, last_head, tmp_path, monkeypatch, step
):
    scored = {
        line["step"] - ("loss" in line): line["dev_span_exact_match"]
        for line in metrics_of(whole)
        if "dev_span_exact_match" in line
    }
    assert set(scored) == {2, 4, 6, 7} and whole.metrics["best_dev_span_exact_match"] == pytest.approx(
        max(scored.values()), abs=1e-6
    )
    with monkeypatch.context() as patch:
        stop_at(patch, step)
        with pytest.raises(Stopped):
            tuned(chain, dev, checkpoint_every=3).make(tmp_path / "qa")
    made = tuned(chain, dev, checkpoint_every=3).make(tmp_path / "qa")
    assert made.content == whole.content and made.metrics["best_step"] == whole.metrics["best_step"]
    assert all(torch.equal(one, last_head[name]) for name, one in head_of(made).items()) == (
        made.metrics["best_step"] == 7
    )
    assert not list(made.path.rglob("step-*.safetensors"))


@pytest.fixture(scope="module")
def stopped_once(chain, dev, tmp_path_factory):
    """A run that was stopped after the best of two scores, with checkpoints at steps 1 to 5."""
    out = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            tuned(chain, dev, checkpoint_every=1).make(out)
    return out


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """A copy of this run."""
    return shutil.copytree(stopped_once, tmp_path / "stopped")


def flipped(path, place):
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["best.json", "step-*.safetensors"])
@pytest.mark.parametrize("place", [0.3, 0.99, *(pytest.param(place, marks=pytest.mark.slow) for place in (0.0, 0.6))])
def test_a_flipped_bit_in_the_best_so_far_does_not_change_what_a_resume_ends_with(
    chain, dev, whole, stopped, capsys, name, place
):
    [path] = (stopped / "v1.partial" / ".scratch" / "best").glob(name)
    flipped(path, place)
    capsys.readouterr()
    assert tuned(chain, dev, checkpoint_every=1).make(stopped).content == whole.content
    said = capsys.readouterr().err
    assert f"{path.name} was moved to" in said and "Falling back to the checkpoint before it" in said


def test_the_best_so_far_that_is_gone_is_trained_again(chain, dev, whole, stopped):
    shutil.rmtree(stopped / "v1.partial" / ".scratch" / "best")
    assert tuned(chain, dev, checkpoint_every=1).make(stopped).content == whole.content


def test_weights_that_rot_before_the_end_are_refused(chain, tmp_path, monkeypatch):
    objective = objective_of(chain, QUESTIONS)
    best = BestOnDev(objective.on(DEV), settings_of(objective, 2), tmp_path)
    scores = iter([0.4, 0.3])
    monkeypatch.setattr(best, "_span_exact_match", lambda: next(scores))
    best.before_step(2)
    [path] = tmp_path.glob("step-*")
    flipped(path, 0.9)
    best.at_end(3)
    with pytest.raises(InputError, match="best"):
        best.take(3)


def test_without_spans_there_is_nothing_to_choose_by(chain, dev):
    with pytest.raises(ConfigError, match="--dev"):
        replace(baseline(chain, "none"), dev=dev).check()
    with pytest.raises(ConfigError, match="--dev-every"):
        finetune(chain, dev_every=0).check()
    with pytest.raises(ConfigError, match="--dev-every needs --dev"):
        finetune(chain, dev_every=3)
