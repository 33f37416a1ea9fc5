"""Presets set what FIDELITY's tables of ORQA and REALM say, give way to what is given, and leave no other trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.cli.available_stages import available_stages
from realmctl.errors import ConfigError
from realmctl.pipeline import hints, roles
from realmctl.pipeline.pipeline_file import read
from realmctl.pipeline.presets import PRESETS, names_for, presets, settings_of
from realmctl.pipeline.trial import Trial
from realmctl.pipeline.values import typed
from realmctl.training.settings.base import TrainingStage, TrainSettings
from tests.fixtures.chain import finetune

TABLE = {  # preset: batch, peak rate, warm-up, steps
    ("ict", "ict-init"): (4096, 1e-4, 10_000, 100_000),
    ("realm", "pretrain"): (512, 3e-5, 10_000, 200_000),
    ("paper", "ict-init"): (4096, 1e-4, 10_000, 100_000),
    ("paper", "pretrain"): (512, 3e-5, 10_000, 200_000),
    ("orqa-nq", "finetune"): (1, 1e-5, 10_000, 300_000),
    ("orqa-wq", "finetune"): (1, 1e-5, 10_000, 205_020),
}
LENGTHS_AND_SIZES = {
    ("paper", "pretrain"): {"candidates": 8, "marginal": "sequence", "null_document": True, "refresh_every": 500},
    ("ict", "ict-init"): {"query_length": 64, "mask_rate": 0.9, "projection": 128},
    ("ict", "chunk"): {"max_wordpieces": 288, "long_sentences": "keep"},
    ("realm", "chunk"): {"max_wordpieces": 288, "long_sentences": "keep"},
    ("realm", "tag"): {"query_length": 96, "max_masks": 10},
    ("realm", "pretrain"): {"candidates": 8, "marginal": "token", "masking": "salient", "refresh_every": 500},
    ("realm", "build-index"): {"type": "exact"},
    ("orqa-nq", "finetune"): {"retriever_beam": 5000, "reader_beam": 5, "reader_length": 320, "span_width": 10},
    ("orqa-wq", "finetune"): {"retriever_beam": 5000, "reader_beam": 5, "reader_length": 320, "span_width": 10},
    ("orqa-nq", "eval-em"): {"scorer": "orqa", "reader_beam": 5},
    ("orqa-wq", "eval-em"): {"scorer": "orqa", "reader_beam": 5},
}


@pytest.mark.parametrize(("preset", "command"), TABLE)
def test_training_is_as_long_and_as_fast_as_the_papers(preset, command):
    batch, rate, warmup, steps = TABLE[preset, command]
    settings = settings_of(preset, command)
    assert (settings["batch_size"], settings["lr"], settings["steps"]) == (batch, rate, steps)
    assert (
        settings["optimizer"] == "bert"
        and settings["warmup"] is None
        and TrainSettings(steps=steps).warmup_steps == warmup
    )


def test_spider_is_trained_as_its_authors_train_it():
    pytest.importorskip("realmctl.lab.spider")
    recipe = {"batch_size": 1024, "lr": 2e-5, "steps": 200_000, "warmup": 2000, "window": 30}
    recipe |= {"official": ("short-spans",)}
    assert {**recipe, "query_length": 64, "pooling": "cls", "optimizer": "adamw"}.items() <= settings_of(
        "spider", "spider-init"
    ).items()


@pytest.mark.parametrize(("preset", "command"), LENGTHS_AND_SIZES)
def test_lengths_and_sizes_are_the_papers(preset, command):
    assert LENGTHS_AND_SIZES[preset, command].items() <= settings_of(preset, command).items()


def test_every_value_is_a_setting_of_its_stage():
    stages = available_stages()
    for preset, commands in presets().items():
        for command, settings in commands.items():
            for name, value in settings.items():
                assert roles(stages[command])[name].name == "setting", f"{preset}: {command}.{name}"
                assert typed(hints(stages[command])[name], value, name) == value
    assert names_for("finetune") == ["paper", "orqa-nq", "orqa-wq"] and names_for("mlm-init") == []


def listed(settings) -> dict:
    """As JSON has them."""
    return json.loads(json.dumps(dict(settings)))


def plan_of(realmctl, *arguments) -> dict:
    code, out, err = realmctl(*arguments, "--dry-run", "--json")
    assert code == 0, err
    return json.loads(out)["settings"]


def test_a_dry_run_shows_what_a_preset_stands_for(realmctl, chain):
    inputs = ["ict-init", "--blocks", chain.blocks.path, "--bert", "scratch:L1-H16"]
    plain, preset = plan_of(realmctl, *inputs, "--steps", "7"), plan_of(realmctl, *inputs, "--preset", "ict")
    assert listed(settings_of("ict", "ict-init")).items() <= preset.items() and "preset" not in preset
    assert plain["steps"] == 7 and preset["steps"] == 100_000


def test_what_is_given_wins_wherever_it_stands(realmctl, chain, monkeypatch):
    monkeypatch.setattr(
        TrainingStage, "trial", lambda stage: Trial(0.0)
    )  # the settings are shown, and nothing is measured
    inputs = [f"--{name}={getattr(chain, name).path}" for name in ("spans", "blocks", "retriever", "index", "encoder")]
    given = plan_of(realmctl, "pretrain", "--steps", 9, *inputs, "--preset", "realm", "--candidates", 3, "--warmup", 2)
    wanted = {**listed(settings_of("realm", "pretrain")), "steps": 9, "candidates": 3, "warmup": 2}
    assert {name: given[name] for name in wanted} == wanted
    default = plan_of(realmctl, "pretrain", *inputs, "--preset", "realm", "--refresh", "background")
    assert {name: default[name] for name in wanted} == listed(settings_of("realm", "pretrain"))


def test_the_manifest_holds_the_values_and_the_same_values_are_the_same_recipe(realmctl, chain):
    inputs = ["--blocks", chain.blocks.path, "--questions", chain.questions, "--out", "qa"]
    inputs += [f"--{name}={getattr(chain, name).path}" for name in ("retriever", "index", "encoder")]
    short = ["--steps", 1, "--reader-length", 40, "--retriever-beam", 8]
    code, out, err = realmctl("finetune", *inputs, *short, "--preset", "orqa-wq")
    assert code == 0, err
    settings = json.loads((Path(out.strip()) / "manifest.json").read_text())["settings"]
    assert (settings["batch_size"], settings["lr"], settings["span_width"], settings["steps"]) == (1, 1e-5, 10, 1)
    by_hand = {**settings_of("orqa-wq", "finetune"), "steps": 1, "reader_length": 40, "retriever_beam": 8}
    made = finetune(chain, **by_hand).make("qa")
    assert str(made.path) == out.strip()


def test_what_a_preset_says_in_vain_is_left_out_and_what_the_user_says_in_vain_is_refused(realmctl, chain):
    alone = [
        "eval-em",
        "--blocks",
        chain.blocks.path,
        "--questions",
        chain.questions,
        "--retrieval",
        "bm25",
        "--preset",
        "orqa-nq",
    ]
    code, out, err = realmctl(*alone)
    assert code == 0, err
    settings = json.loads((Path(out.strip()) / "manifest.json").read_text())["settings"]
    assert (settings["scorer"], settings["reader_beam"]) == ("auto", None)
    code, _, err = realmctl(*alone, "--scorer", "squad")
    assert code == 2 and "--scorer needs --qa-model" in err


@pytest.mark.parametrize(
    ("command", "preset", "named"),
    [
        ("pretrain", "ict", "paper, realm"),
        ("finetune", "realm", "paper, orqa-nq, orqa-wq"),
        ("ict-init", "REALM", "paper, ict"),
        pytest.param("condenser-init", "ict", "condenser, cocondenser", marks=pytest.mark.house),
    ],
)
def test_an_unknown_or_unfitting_preset_is_refused_with_the_names(realmctl, command, preset, named):
    code, _, err = realmctl(command, "--preset", preset)
    assert code == 2 and repr(preset) in err and f"Use one of: {named}." in err
    code, _, err = realmctl("mlm-init", "--preset", preset)
    assert code == 2 and "--preset" in err


def test_a_pipeline_takes_presets(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("stages:\n  retriever: {stage: ict-init, preset: ict, steps: 60, batch-size: 8}\n")
    [step] = read(file, available_stages(), {}, None).steps
    assert dict(step.values) == {**settings_of("ict", "ict-init"), "steps": 60, "batch_size": 8}
    file.write_text("defaults: {ict-init: {preset: ict, lr: 1}}\nstages:\n  retriever: {stage: ict-init, steps: 60}\n")
    [step] = read(file, available_stages(), {}, None).steps
    assert dict(step.values) == {**settings_of("ict", "ict-init"), "steps": 60, "lr": 1.0}
    for preset in ("orqa", "realm", "3"):
        file.write_text(f"stages:\n  retriever: {{stage: ict-init, preset: {preset}}}\n")
        with pytest.raises(ConfigError, match=rf"retriever.*'{preset}'.*ict-init"):
            read(file, available_stages(), {}, None)


def test_help_marks_the_defaults_that_are_the_papers(realmctl):
    told = " ".join(realmctl("pretrain", "--help-all")[1].replace("│", " ").split())
    marked = {name for name, value in PRESETS["paper"]["pretrain"].items() if value is not None} - {"marginal"}
    assert told.count("The default is the paper's.") == len(marked - {"optimizer"}) + 1
    assert (
        "Marginal likelihood. token: of each wordpiece (official code). sequence: of the whole span (paper). Default: token."
        in told
    )
