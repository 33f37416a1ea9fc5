"""The schema of pipeline files, held against the reader of pipeline files."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import jsonschema
import pytest
import yaml

from realmctl import registry
from realmctl.cli.available_stages import available_stages
from realmctl.extras.schema.schema import schema
from realmctl.pipeline.fields import roles
from realmctl.pipeline.pipeline_file import pair

ROOT = Path(__file__).resolve().parents[3]
FILES = [
    *sorted((ROOT / "examples").glob("*.yaml")),
    *sorted((ROOT / "realmctl").rglob("*.yaml")),
    ROOT / "benchmarks/plan.yaml",
]
GOOD = {
    "workspace": "w",
    "vars": {"seed": 0, "dropout": None},
    "defaults": {"chunk": {"tokenizer": "train:8000"}},
    "stages": {
        "blocks": {"stage": "chunk", "corpus": ["dump.xml.bz2"]},
        "spans": {"stage": "tag", "starts-after": ["blocks"]},
        "retriever": {"stage": "ict-init", "preset": "ict", "batch_size": "${seed}", "steps": 1e3},
        "index": {"stage": "build-index", "type": "exact", "recall-k": [8, 100]},
    },
}


@pytest.fixture(scope="module")
def validator():
    made = schema(available_stages())
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_pipelines_of_the_repository_are_valid(validator, file):
    pipeline = yaml.safe_load(file.read_text())
    if len(registry.rooms()) < 2:
        pytest.skip("the repository's pipelines use rooms")
    assert [error.message for error in validator.iter_errors(pipeline)] == []


@pytest.mark.parametrize(
    "change",
    [
        "stages.blocks.stage=chop",
        "stages.blocks.corpse=x",
        "stages.index.type=tree",
        "stages.index.min-recall=2",
        "stages.index.m=1",
        "stages.index.recall-k=deep",
        "stages.retriever.preset=realism",
        "stages.spans.tagger=true",
        "defaults.chop={}",
        "stage={}",
        "stages.a b={stage: tag}",
        "stages.more={}",
    ],
)
def test_what_the_reader_refuses_is_refused(validator, change):
    assert validator.is_valid(GOOD)
    path, value = pair(change)
    *parents, last = path.split(".")
    document = copy.deepcopy(GOOD)
    place = document
    for name in parents:
        place = place[name]
    place[last] = yaml.safe_load(value)
    assert not validator.is_valid(document)


def test_every_default_of_every_stage_is_valid_and_every_field_has_its_help(validator):
    for name, stage in available_stages().items():
        entry = validator.schema["$defs"][name]
        for item in dataclasses.fields(stage):
            flag = item.name.replace("_", "-")
            assert entry["properties"][flag]["description"] == roles(stage)[item.name].help
            if item.default is not dataclasses.MISSING and item.default is not None:
                value = [*item.default] if isinstance(item.default, tuple) else item.default
                value = str(value) if isinstance(value, Path) else value
                assert jsonschema.Draft202012Validator(entry).is_valid({flag: value}), (name, flag, value)
