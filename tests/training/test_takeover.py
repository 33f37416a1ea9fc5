"""A run goes on from one that diverged, with a lower rate: the artifact of a run that had both rates from the beginning."""

from __future__ import annotations

import pytest
import torch

from realmctl.artifacts import Origin
from realmctl.artifacts.unfinished import new_partial, read_recipe
from realmctl.errors import MismatchError, QualityError
from realmctl.pipeline.planning import plan
from realmctl.training import loop
from realmctl.training.checkpoint import step_of
from realmctl.training.evaluation.best_weights import FOLDER, BestWeights, best_step
from realmctl.training.takeover import same_until, take_over
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.mlm_init import MlmInit
from tests.faults.counting import count
from tests.fixtures.chain import FINETUNING, Stopped, finetune, metrics_of, pretrain, stop_at

FAST = {"steps": 8, "batch_size": 4, "lr": 1e-3, "length": 24, "bert": "scratch:L1-H16", "checkpoint_every": 2}


def mlm(chain, **values):
    return MlmInit(blocks=chain.blocks, **{**FAST, **values})


@pytest.mark.parametrize("step", [0, 4])
def test_a_lower_rate_goes_on_from_the_unfinished_run(chain, tmp_path, monkeypatch, capsys, step):
    monkeypatch.setattr("realmctl.artifacts.unfinished.BRIEF_SECONDS", 0)
    with monkeypatch.context() as patch:
        stop_at(patch, 7)
        with pytest.raises(Stopped):
            mlm(chain).make(tmp_path / "one")
    with pytest.raises(MismatchError, match="lr"):
        mlm(chain, lr=1e-4).make(tmp_path / "one")
    lower = mlm(chain, then_lr=(f"{step}=1e-4",))
    planned = plan(lower, tmp_path / "one")
    assert planned["resumes"] and planned["makes"].endswith("v1")
    capsys.readouterr()
    made = lower.make(tmp_path / "one")
    assert (f"continuing after step {step} of 8" in capsys.readouterr().err) == (step > 0)
    whole = lower.make(tmp_path / "other")
    assert (made.recipe, made.content) == (whole.recipe, whole.content)
    assert [line["lr"] / (1 - number / 8) for number, line in enumerate(metrics_of(made))] == pytest.approx(
        [1e-3] * step + [1e-4] * (8 - step)
    )


def test_pre_training_goes_on_with_the_index_of_that_step(chain, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            pretrain(chain).make(tmp_path / "one")
    lower = pretrain(chain, then_lr=("4=1e-3",))
    assert lower.make(tmp_path / "one").content == lower.make(tmp_path / "other").content


def test_best_weights_of_a_later_step_do_not_count(chain, tmp_path, monkeypatch):
    values = {"dev": chain.questions, "dev_every": 1, "steps": 6}
    with monkeypatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            finetune(chain, **values).make(tmp_path / "one")
    lower = finetune(chain, **values, then_lr=("2=1e-4",))
    assert lower.make(tmp_path / "one").content == lower.make(tmp_path / "other").content
    assert FINETUNING["checkpoint_every"] == 2


def origin(*then_lr, **values):
    given = {"stage": "mlm-init", "stage_version": 1, "inputs": {"blocks": "1"}, "settings": {"seed": 0}, **values}
    return Origin("encoder", **{**given, "settings": {**given["settings"], "then_lr": list(then_lr)}})


@pytest.mark.parametrize(
    ("there", "here", "step"),
    [
        ([], ["4=1e-3"], 4),
        (["4=1e-3"], ["4=1e-4"], 4),
        (["2=1e-3", "6=1e-4"], ["2=1e-3", "6=1e-5", "8=1e-6"], 6),
        (["4=1e-3"], [], 4),
        ([], [], None),
        (["4=1e-3"], ["4=0.001"], None),
    ],
)
def test_runs_are_the_same_until_their_rates_differ(there, here, step):
    assert same_until(origin(*there), origin(*here)) == step


@pytest.mark.parametrize(
    "other", [{"stage": "ict-init"}, {"stage_version": 2}, {"inputs": {"blocks": "2"}}, {"settings": {"seed": 1}}]
)
def test_runs_that_differ_in_more_than_their_rates_are_others(other):
    assert same_until(origin(), origin("4=1e-3", **other)) is None


@pytest.mark.parametrize(("best", "resumable", "kept"), [(4, True, [2, 4]), (5, True, []), (5, False, [2, 4, 6])])
def test_what_is_taken_over_of_a_run_is_that_before_its_rate_differs(tmp_path, best, resumable, kept):
    """Best weights of a later step are no part of the new run, and those before them are gone."""
    run = new_partial(tmp_path / "v1.partial", origin(), resumable)
    BestWeights(run.scratch(FOLDER), torch.nn.Linear(1, 1)).offer(best, 0.5)
    for step in (2, 4, 6):
        (run.scratch("checkpoints") / f"step-{step:08d}").mkdir()
    take_over(tmp_path, origin("4=1e-3"))
    assert sorted(step_of(path) for path in run.scratch("checkpoints").iterdir()) == kept
    assert best_step(run.scratch(FOLDER)) == (best if kept else 0)
    assert read_recipe(run.path).origin == origin(*["4=1e-3"] * resumable)


@pytest.mark.parametrize("train", [pretrain, finetune, mlm], ids=["pretrain", "finetune", "mlm-init"])
def test_every_stage_that_diverges_says_its_step_and_how_to_go_on(chain, tmp_path, train):
    with pytest.raises(QualityError, match=r"diverged after \d+ of 6.*--then-lr") as error:
        train(chain, steps=6, lr=1e6, warmup=0).make(tmp_path / "it")
    assert error.value.exit_code == 6 and not (tmp_path / "it" / "v1").exists()
    count("trainings that diverged", 1)


@pytest.mark.parametrize(("refresh", "after", "start"), [("inline", 3, 2), ("never", 6, 4)])
def test_vectors_that_overflow_are_divergence_when_blocks_are_embedded(
    chain, tmp_path, monkeypatch, refresh, after, start
):
    """The index holds numbers up to 65,504. The loss is computed in float32."""
    embeddings = Embed(blocks=chain.blocks, retriever=chain.retriever, dtype="float16").make(tmp_path / "embeddings")
    index = BuildIndex(embeddings=embeddings, type="exact").make(tmp_path / "index")
    plain = loop._Run._update

    def update(run, rate):
        norm = plain(run, rate)
        with torch.no_grad():
            run.objective.retriever.block_tower.norm.weight.fill_(1e5)
        return norm

    monkeypatch.setattr(loop._Run, "_update", update)
    with pytest.raises(QualityError, match=rf"diverged after {after} of 6 .*--then-lr {start}=0\.001 "):
        pretrain(chain, refresh=refresh, index=index).make(tmp_path / "it")
    assert not (tmp_path / "it" / "v1").exists()
    count("trainings that diverged", 1)
