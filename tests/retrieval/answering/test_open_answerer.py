"""A qa-model says what it is in qa-model.json."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, writing
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.retrieval.answering.qa_model import QaModel


def origin_of(artifact: Artifact, version: int) -> Origin:
    made = artifact.manifest
    return Origin(made.kind, made.stage, version, made.settings, made.inputs, made.lineage)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"searcher": "grep"}, ConfigError, "no searcher 'grep'. Use one of: dense, bm25"),
        ({"answerer": "oracle"}, ConfigError, "no answerer 'oracle'. Use one of: extractive, closed-book"),
        ({"searcher": None}, InputError, "names no searcher for the reader"),
        ({"span_width": "4"}, InputError, "span_width is '4', where a value of type int is needed"),
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_refused(chain, qa_model, tmp_path, change, error, message):
    with writing(tmp_path / "changed", origin_of(qa_model, 2)) as out:
        described = json.loads(qa_model.file("qa-model.json").read_text())
        out.file("qa-model.json").write_text(json.dumps({**described, **change}))
        for name in qa_model.manifest.parts:
            out.adopt(name, qa_model.part(name))
    with pytest.raises(error, match=message):
        QaModel.open(open_artifact(tmp_path / "changed"), blocks=chain.blocks)


def test_artifacts_of_other_kinds_are_refused(chain, qa_model):
    with pytest.raises(MismatchError, match="qa-model"):
        QaModel.open(chain.index, blocks=chain.blocks)
    with pytest.raises(MismatchError, match="blocks"):
        QaModel.open(qa_model, blocks=chain.spans)
