"""Which steps of a pipeline are rehearsed, and with which settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from realmctl.forecast.rehearsal.rehearsal import DEFAULT_FILE
from realmctl.forecast.rehearsal.toy import STEPS, Toy, toy_pipeline
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages
from realmctl.training.settings.pretrain import PretrainSettings

PIPELINE = """
workspace: w
stages:
  vocabulary: {stage: chunk, corpus: [corpus.jsonl], tokenizer: "train:8000"}
  blocks: {stage: chunk, corpus: [corpus.jsonl], tokenizer: "@vocabulary/tokenizer", keep-lists: true}
  spans: {stage: tag, max-masks: 6}
  encoder: {stage: mlm-init, bert: "scratch:base", steps: 1000000, seed: 7}
  retriever: {stage: ict-init, mask-rate: 0.5}
  embeddings: {stage: embed}
  index: {stage: build-index}
  model: {stage: pretrain, batch-size: 512, marginal: sequence}
  labelled: {stage: dpr-finetune, passages: corpus.jsonl}
  qa-model: {stage: finetune, questions: corpus.jsonl, epochs: 20}
  scores: {stage: eval-em, questions: corpus.jsonl}
"""


@pytest.fixture
def toy(here):
    Path("corpus.jsonl").write_text("{}\n")
    Path("p.yaml").write_text(PIPELINE)
    return Toy(Path("world"), Path("questions"), Path("bert"))


def steps_of(toy: Toy, processes: int, file: Path = Path("p.yaml"), **variables: str):
    pipeline = pipeline_file.read(file, own_stages(), variables, None)
    return {step.name: step for step in toy_pipeline(pipeline, toy, processes, Path("one")).steps}


def test_stages_that_run_in_one_process_are_left_out_unless_another_needs_them(toy):
    found = steps_of(toy, 2)
    assert "index" in found and "scores" not in found
    assert "labelled" not in found, "the world has no labelled passages"


def test_sizes_are_small_and_settings_stay(toy):
    found = steps_of(toy, 3)
    assert all(step.values["steps"] == STEPS for step in found.values() if step.stage.parallel)
    assert all(step.values["batch_size"] % 3 == 0 for step in found.values() if step.stage.parallel)
    assert found["encoder"].values["bert"] == "bert" and found["encoder"].values["seed"] == 7
    assert found["model"].values["marginal"] == "sequence" and found["retriever"].values["mask_rate"] == 0.5
    assert found["blocks"].values["keep_lists"] is True and found["spans"].values["max_masks"] == 6
    assert found["qa-model"].values["questions"] == Path("questions")


def test_all_blocks_have_the_vocabulary_of_the_toy(toy):
    found = steps_of(toy, 2)
    assert found["blocks"].values["tokenizer"] == found["vocabulary"].values["tokenizer"] == "bert"
    assert found["blocks"].paths_in_outputs == {} and found["blocks"].values["corpus"] == (Path("world"),)


def test_a_background_refresh_becomes_one_that_can_be_compared(toy):
    assert steps_of(toy, 2)["model"].values["refresh"] == "lockstep"
    text = PIPELINE.replace("marginal: sequence", "refresh: inline")
    Path("p.yaml").write_text(text)
    assert steps_of(toy, 2)["model"].values["refresh"] == "inline"


def test_what_says_nothing_at_toy_scale_is_left_out(toy):
    """The dev set stays away, and a refresh follows the steps: so do the settings of both."""
    text = PIPELINE.replace("epochs: 20", "dev: corpus.jsonl, dev-every: 20, epochs: 20").replace(
        "marginal: sequence", "refresh: inline, refresh-every: auto, refresh-drift: 0.5"
    )
    Path("p.yaml").write_text(text)
    found = steps_of(toy, 2)
    assert "dev_every" not in found["qa-model"].values and found["qa-model"].values["epochs"] == 2.0
    assert found["model"].values["refresh_drift"] == PretrainSettings.refresh_drift


def test_the_papers_stages_are_all_rehearsed(toy):
    found = steps_of(toy, 2, DEFAULT_FILE, corpus="corpus.jsonl", questions="corpus.jsonl")
    assert {step.stage.command() for step in found.values()} == {
        "chunk",
        "tag",
        "mlm-init",
        "ict-init",
        "embed",
        "build-index",
        "pretrain",
        "finetune",
    }
