"""Headlines: the chosen metrics in the order of importance, printed when an artifact is made and when it is found."""

from __future__ import annotations

import re

import pytest

from realmctl import log
from realmctl.cli.available_stages import available_stages
from realmctl.pipeline.headline import headline_text
from realmctl.training.settings.cloze import ClozeSettings
from stages.eval_em import EvalEm
from tests.fixtures.chain import metrics_of, pretrain
from tests.fixtures.small_stages import Plain


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("loss", "steps"), "loss 0.1235, steps 25,000"),
        (("recall@*",), "recall@5 0.5, recall@20 0.75"),
        (("steps", "*"), "steps 25,000, loss 0.1235, recall@5 0.5, recall@20 0.75, alarms hub 2"),
        (("missing", "nothing"), ""),
        ((), ""),
    ],
)
def test_metrics_come_in_the_order_of_the_names(names, wanted):
    metrics = {
        "loss": 0.123456,
        "steps": 25_000,
        "recall@5": 0.5,
        "recall@20": 0.75,
        "alarms": {"hub": 2, "null": 0},
        "nothing": None,
    }
    assert headline_text(names, metrics) == wanted


def test_no_alarms_are_said():
    assert headline_text(("alarms",), {"alarms": {"hub": 0}}) == "alarms none"


def test_a_headline_is_printed_when_made_and_when_found(tmp_path, capsys):
    for _ in range(2):
        Plain(text="four").make(tmp_path / "plain")
        assert capsys.readouterr().err.endswith("small-stages: length 4\n")


def test_every_stage_has_a_headline():
    assert [name for name, stage in available_stages().items() if not stage.headline] == []


def test_a_training_that_may_measure_cloze_recall_shows_it():
    """`compare` then shows what tells two trainings apart without labels."""
    measured = {name: stage for name, stage in available_stages().items() if issubclass(stage, ClozeSettings)}
    assert {"ict-init", "pretrain"} == measured.keys()
    for stage in measured.values():
        assert (
            stage.headline_text({"cloze_rr": 0.25, "cloze_gain": 0.01, "kept_step": 4})
            == "cloze_rr 0.25, cloze_gain 0.01, kept_step 4"
        )


def test_scores_say_exact_match_counts_and_recall():
    metrics = {"questions": 40, "em": 0.325, "scorer": "orqa", "em_orqa": 0.325, "em_dpr": 0.35, "recall@5": 0.5}
    assert EvalEm.headline_text(metrics) == "em 0.325 (orqa), orqa 13/40, dpr 14/40, recall@5 0.5, 40 questions"
    assert EvalEm.headline_text({"questions": 3, "recall@1": 1.0}) == "recall@1 1, 3 questions"


def test_training_shows_loss_and_utility_of_its_steps(chain, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(log, "SECONDS_BETWEEN_LINES", 0.0)
    made = pretrain(chain, steps=2, refresh="never").make(tmp_path / "model")
    err = capsys.readouterr().err
    first, second = re.findall(r"pretrain: (\d)/2 steps, loss ([\d.]+), utility (-?[\d.]+)", err)
    lines = metrics_of(made)
    assert first == ("1", f"{lines[0]['loss']:.3f}", f"{lines[0]['retrieval_utility']:.3f}")
    assert second[0] == "2" and float(second[1]) == pytest.approx((lines[0]["loss"] + lines[1]["loss"]) / 2, abs=1e-3)
    assert re.search(r"pretrain: loss .*retrieval_utility .*alarms .*seconds_per_step", err)
